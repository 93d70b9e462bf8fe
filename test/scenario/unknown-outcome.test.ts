// Creating calls without an answer in time: in the end such a call has succeeded or had no effect,
// and a caller who repeats it does not meet its own key of the attempt before.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Head, RouteName, ServiceDoor } from '../../provider/agent/service/service-door.ts';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig } from '../../provider/agent/settings/config.ts';
import { instanceText } from '../../server/contract/tde.ts';
import { until } from '../support/host.ts';
import { instance, masterKey, toLabel } from '../support/open-service.ts';
import { type ServiceProcess, startService, writeConfig } from '../support/pkcs11-host.ts';
import { openTcpGate, type TcpGate } from '../support/tcp-gate.ts';

let service: ServiceProcess;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-outcome-'));
  service = await startService();
  return async () => {
    await service.stop();
    rmSync(folder, { recursive: true });
  };
});

let gate: TcpGate;
let door: ServiceDoor;
let withdrawn: [string, string][];
beforeEach(async () => {
  const { hostname, port } = new URL(service.serverUrl);
  gate = await openTcpGate(hostname, Number(port));
  const serverUrl = service.serverUrl.replace(`:${port}`, `:${gate.port}`);
  const path = writeConfig(folder, { ...service, serverUrl }, 'connect_timeout_ms = 30000\ncall_timeout_ms = 3000\n');
  withdrawn = [];
  door = openHttpService(await loadConfig(path), {
    withdrawn: (id, outcome) => withdrawn.push([id, outcome]),
  });
});
afterEach(async () => {
  gate.open();
  await door.close();
  await gate.close();
});

const ask = <R extends RouteName>(route: R, head: Head<R>, requestId: string, handle: number | null = null) =>
  door.call({ route, handle, head, raw: null }, { requestId, instance: instanceText(instance) });
const codeOf = (error: unknown): string => (error as { readonly code: string }).code;
const keysCalled = async (label: string, id: string): Promise<number> => {
  const { answer } = await ask('findObjects', { label: toLabel(label), after: 0, limit: 10 }, id);
  return answer.objects.length;
};
const untilWithdrawn = (id: string) =>
  until(`request ${id} is withdrawn`, async () => withdrawn.find(([each]) => each === id)?.[1]);

test('a key whose answer came too late is undone, and the repeated call makes it', async () => {
  // The connection is there, and the request alone passes.
  await ask('info', {}, 'late-0');
  gate.holdAnswers();
  const failed = ask('generateKey', masterKey('late'), 'late-1').catch(codeOf);
  await until('the service has answered', async () => (gate.held > 0 ? true : undefined));
  expect(await failed).toBe('dependency-timeout');
  gate.open();
  const { answer } = await ask('generateKey', masterKey('late'), 'late-2');
  expect(withdrawn).toEqual([['late-1', 'undone']]);
  expect(await keysCalled('late', 'late-3')).toBe(1);
  expect((await ask('getObject', {}, 'late-4', answer.handle)).answer.label).toBe(toLabel('late'));
});

test('a request that reaches the service after its withdrawal is not carried out', async () => {
  await ask('info', {}, 'slow-0');
  gate.holdRequests();
  expect(await ask('generateKey', masterKey('slow'), 'slow-1').catch(codeOf)).toBe('dependency-timeout');
  // The held request arrives with the withdrawal, on connections of their own.
  gate.open();
  expect(['undone', 'not-carried-out']).toContain(await untilWithdrawn('slow-1'));
  expect(await ask('generateKey', masterKey('slow'), 'slow-1').catch(codeOf)).toBe('conflict');
  expect(await keysCalled('slow', 'slow-2')).toBe(0);
});

test('while an outcome is open, a further call of this kind waits, and fails at its deadline without being sent', async () => {
  await ask('info', {}, 'open-0');
  gate.holdAnswers();
  expect(await ask('generateKey', masterKey('open'), 'open-1').catch(codeOf)).toBe('dependency-timeout');
  expect(await ask('generateKey', masterKey('other'), 'open-2').catch(codeOf)).toBe('dependency-timeout');
  gate.cut();
  gate.open();
  // The service may have carried out a withdrawal already whose answer was held.
  expect(['undone', 'not-carried-out']).toContain(await untilWithdrawn('open-1'));
  await ask('generateKey', masterKey('open'), 'open-3');
  expect(withdrawn.map(([id]) => id)).toEqual(['open-1']);
  expect(await keysCalled('other', 'open-4')).toBe(0);
});

test('what another process has used in the meantime stays, and the agent reports it', async () => {
  await ask('info', {}, 'used-0');
  gate.holdAnswers();
  const failed = ask('generateKey', masterKey('used'), 'used-1').catch(codeOf);
  await until('the service has answered', async () => (gate.held > 0 ? true : undefined));
  gate.holdRequests();
  expect(await failed).toBe('dependency-timeout');
  // Another process, on its own way to the service.
  const other = openHttpService(await loadConfig(writeConfig(folder, service)));
  const call = <R extends RouteName>(route: R, head: Head<R>, handle: number | null, raw: Uint8Array<ArrayBuffer>) =>
    other.call({ route, handle, head, raw }, { requestId: crypto.randomUUID(), instance: instanceText(instance) });
  try {
    const query = { label: toLabel('used'), after: 0, limit: 10 };
    const { answer } = await call('findObjects', query, null, new Uint8Array(0));
    const handle = answer.objects[0]?.handle ?? 0;
    const { raw } = await call('encrypt', { algorithm: 'aes-ecb' }, handle, new Uint8Array(16));
    gate.cut();
    gate.open();
    expect(await untilWithdrawn('used-1')).toBe('kept');
    const decrypted = await call('decrypt', { algorithm: 'aes-ecb' }, handle, new Uint8Array(raw));
    expect(Buffer.from(decrypted.raw)).toEqual(Buffer.alloc(16));
  } finally {
    await other.close();
  }
});

test('the end of the agent waits for what is open', async () => {
  await ask('info', {}, 'end-0');
  gate.holdAnswers();
  expect(await ask('generateKey', masterKey('end'), 'end-1').catch(codeOf)).toBe('dependency-timeout');
  gate.cut();
  gate.open();
  await door.close();
  expect(withdrawn).toEqual([['end-1', 'undone']]);
});
