// The server is killed while keys are being wrapped, between the mark and the answer too: a caller
// who has wrapped bytes finds the wrapping key marked, and a key that was destroyed is destroyed.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Head, RouteName, ServiceDoor } from '../../provider/agent/service/service-door.ts';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig } from '../../provider/agent/settings/config.ts';
import { type CreateObject, instanceText } from '../../server/contract/tde.ts';
import { createGroup, openConsoleApi, registerApplication } from '../support/console-api.ts';
import { instance } from '../support/open-service.ts';
import { writeConfig } from '../support/pkcs11-host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { sizeOf } from '../support/tiers.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-wrapping-'));
let server: ServerProcess | undefined;
let door: ServiceDoor | undefined;
afterAll(async () => {
  await door?.close();
  await server?.remove();
  rmSync(folder, { recursive: true });
});

const key = (label: string, more: Partial<CreateObject>): CreateObject => ({
  class: 'secret-key',
  label: Buffer.from(label).toString('base64'),
  algorithm: 'aes',
  bits: 256,
  usages: ['encrypt'],
  sensitive: true,
  extractable: true,
  modifiable: true,
  destroyable: true,
  private: true,
  attributes: '',
  ...more,
});

test('a kill at any moment leaves no wrapped key without its mark, and no use of what was destroyed', async () => {
  server = await startServerProcess();
  const api = openConsoleApi(server, server.adminToken);
  const { config } = await registerApplication(api, 'erp', await createGroup(api, 'crash'));
  const path = writeConfig(
    folder,
    { serverUrl: config.server_url, accessToken: config.access_token, caFile: server.caFile },
    'call_timeout_ms = 10000\n',
  );
  const opened = openHttpService(await loadConfig(path));
  door = opened;
  const ask = <R extends RouteName>(route: R, handle: number | null, head: Head<R>) =>
    opened.call(
      { route, handle, head, raw: null },
      { requestId: crypto.randomUUID(), instance: instanceText(instance) },
    );
  const codeOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'none',
      (error: { code: string }) => error.code,
    );
  let wraps = 0;
  for (let round = 0; round < sizeOf('wrapping kills'); round++) {
    const by: number[] = [];
    for (let i = 0; i < 12; i++) {
      const wrapper = key(`by ${round} ${i}`, { usages: ['wrap', 'unwrap'], extractable: false });
      by.push((await ask('generateKey', null, wrapper)).answer.handle);
    }
    const what = (await ask('generateKey', null, key(`what ${round}`, {}))).answer.handle;
    const wrapped = new Set<number>();
    let destroyed = false;
    const child = server.child;
    let answers = 0;
    /** The kill follows the answer with this number, while other calls are in progress. */
    const fatal = 1 + round * 3;
    const answered = (): void => {
      answers += 1;
      if (answers === fatal) child.kill('SIGKILL');
    };
    const head = { mechanism: { way: 'key-wrap', padded: true }, key: { from: 'token', handle: what } } as const;
    const work = by.map((handle) =>
      ask('wrap', handle, head)
        .then(() => wrapped.add(handle))
        .finally(answered),
    );
    // In every other round a key was wrapped before: an earlier destruction would refuse all of
    // them.
    const begun = round % 2 === 0 ? Promise.resolve() : Promise.any(work);
    const destruction = begun
      .then(() => ask('destroyObject', what, {}))
      .then(() => {
        destroyed = true;
      })
      .finally(answered);
    await Promise.allSettled([...work, destruction]);
    const { port, folder: used } = server;
    await server.stop('SIGKILL');
    server = await startServerProcess({ folder: used, port });
    wraps += wrapped.size;
    for (const handle of wrapped)
      expect(await codeOf(ask('updateObject', handle, { usages: ['decrypt'] }))).toBe('forbidden');
    if (destroyed) expect(await codeOf(ask('checkUse', what, { usage: 'encrypt' }))).toBe('key-destroyed');
  }
  // A kill before every answer would have shown nothing.
  expect(wraps).toBeGreaterThan(0);
});
