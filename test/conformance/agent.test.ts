// The agent as a process: who may connect, what it does with a bad configuration, how it stops, and
// that a database does not notice when it is started again.

import { once } from 'node:events';
import { chmodSync, existsSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgent } from '../support/agent-process.ts';
import { findAll } from '../support/graphene-calls.ts';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';

let host: Pkcs11Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host?.stop());

test("the socket is the owner's alone", () => {
  expect(statSync(host.agent.socket).mode & 0o777).toBe(0o600);
});

test('a second agent on the same socket refuses to start, and the first one continues', async () => {
  const second = startAgent(host.folder);
  const agent = await second;
  const [code] = agent.child.exitCode === null ? await once(agent.child, 'exit') : [agent.child.exitCode];
  expect(code).toBe(1);
  expect(rvOf(() => host.pkcs11.C_GetTokenInfo(host.slot))).toBe('CKR_OK');
});

test('garbage ends the connection that sent it, and no other', async () => {
  for (const bytes of [Buffer.alloc(64, 0xff), Buffer.from([0xd1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3])]) {
    const socket = createConnection(host.agent.socket);
    await once(socket, 'connect');
    socket.write(bytes);
    socket.on('error', () => undefined);
    socket.resume();
    await once(socket, 'close');
  }
  expect(rvOf(() => host.pkcs11.C_GetTokenInfo(host.slot))).toBe('CKR_OK');
});

test('a session with thousands of objects is searched and closed', () => {
  const { pkcs11 } = host;
  const [session, other] = [host.open(), host.open()];
  const count = 3_000;
  for (let i = 0; i < count; i++)
    pkcs11.C_CreateObject(session, [
      { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_DATA },
      { type: pkcs11js.CKA_LABEL, value: `object ${i % 3}` },
    ]);
  const found = (label: string): number =>
    findAll(pkcs11, other, [
      { type: pkcs11js.CKA_TOKEN, value: false },
      { type: pkcs11js.CKA_LABEL, value: label },
    ]).length;
  expect([found('object 1'), found('object 3')]).toEqual([count / 3, 0]);
  pkcs11.C_CloseSession(session);
  expect(found('object 1')).toBe(0);
  pkcs11.C_CloseSession(other);
});

test('a session continues when the agent is killed and started again; session objects are gone', async () => {
  const { pkcs11 } = host;
  const session = host.open();
  const label = 'resumed';
  const key = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
    { type: pkcs11js.CKA_TOKEN, value: true },
    { type: pkcs11js.CKA_LABEL, value: label },
    { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
  ]);
  const temporary = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
    { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
  ]);
  await host.agent.stop('SIGKILL');
  const again = await startAgent(host.folder, { environment: { DKE_PKCS11_CONF: process.env.DKE_PKCS11_CONF ?? '' } });
  try {
    const mechanism = { mechanism: pkcs11js.CKM_AES_CBC, parameter: Buffer.alloc(16) };
    pkcs11.C_EncryptInit(session, mechanism, key);
    expect(pkcs11.C_Encrypt(session, Buffer.alloc(32), Buffer.alloc(32))).toHaveLength(32);
    expect(pkcs11.C_GetSessionInfo(session)).toMatchObject({ state: 3 });
    expect(rvOf(() => pkcs11.C_EncryptInit(session, mechanism, temporary))).toBe('CKR_KEY_HANDLE_INVALID');
  } finally {
    // The library starts none in its place before this one has ended.
    expect(await again.stop()).toBe(0);
  }
});

test('an agent that is not used stops on its own and takes its socket with it', async () => {
  const folder = join(host.folder, 'idle');
  const agent = await startAgent(folder, { arguments: ['--idle-seconds', '1'] });
  if (agent.child.exitCode === null) await once(agent.child, 'exit');
  expect(agent.child.exitCode).toBe(0);
  expect(existsSync(agent.socket)).toBe(false);
});

test('a configuration that others can read is refused with one clear line, also when it was in use before', async () => {
  const config = process.env.DKE_PKCS11_CONF ?? '';
  const folder = join(host.folder, 'modes');
  const agent = await startAgent(folder, { environment: { DKE_PKCS11_CONF: config } });
  const initialized = (mode: number): string => {
    host.pkcs11.C_Finalize();
    chmodSync(config, mode);
    return rvOf(() => host.pkcs11.C_Initialize());
  };
  process.env.DKE_PKCS11_SOCKET = agent.socket;
  try {
    expect(initialized(0o600)).toBe('CKR_OK');
    expect(initialized(0o600)).toBe('CKR_OK');
    expect(initialized(0o644)).toBe('CKR_DEVICE_ERROR');
    chmodSync(config, 0o600);
    expect(rvOf(() => host.pkcs11.C_Initialize())).toBe('CKR_OK');
    expect(rvOf(() => host.pkcs11.C_GetTokenInfo(host.slot))).toBe('CKR_OK');
    host.pkcs11.C_Finalize();
    await agent.stop();
    expect(agent.log()).toContain(`${config}: mode 644 gives other users access; chmod 600 `);
  } finally {
    chmodSync(config, 0o600);
  }
});

test('no log line holds the access token', () => {
  expect(host.agent.log()).not.toContain(host.service.accessToken);
});
