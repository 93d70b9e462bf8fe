// A master key that encrypts and cannot decrypt, as versions before the rule created it when a
// template named CKA_WRAP and not CKA_DECRYPT: it is found, named, refused for more data, and
// repaired, without a change by its database. The rule (server/base/master-keys.ts) is off here
// while the key is created.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Caller, ServiceDoor } from '../../provider/agent/service/service-door.ts';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig } from '../../provider/agent/settings/config.ts';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { encodeHead, instanceText } from '../../server/contract/tde.ts';
import { runCommand } from '../support/command.ts';
import { until } from '../support/host.ts';
import { instance, masterKey, openTestService } from '../support/open-service.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

vi.mock('../../server/base/master-keys.ts', async (original) => ({
  ...(await original<typeof import('../../server/base/master-keys.ts')>()),
  isUnreadableMasterKey: () => false,
}));

const label = `ORACLE.TDE.HSM.MK.06${'A'.repeat(32)}`;
const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7) } as const;
const plain = Buffer.alloc(48, 0x5a);

let server: ServerProcess;
let environment: NodeJS.ProcessEnv;
let conf: string;
let keyId: string;
let sealed: Buffer;
let guid: string;

const dke = async (...args: string[]) => {
  const run = await runCommand([...args, '-o', 'json'], { environment, cwd: server.folder });
  return { ...run, answer: run.stdout === '' ? undefined : JSON.parse(run.stdout) };
};
/** What an application's own process would be answered. */
const asApplication = async <T>(work: (door: ServiceDoor, caller: Caller) => Promise<T>): Promise<T> => {
  const door = openHttpService(await loadConfig(conf));
  try {
    return await work(door, { requestId: 'call-1', instance: instanceText(instance) });
  } finally {
    await door.close();
  }
};
const cipher = (route: 'encrypt' | 'decrypt', handle: number, data: Buffer) =>
  asApplication((door, caller) =>
    door.call({ route, handle, head: encodeHead(route, cbc), raw: new Uint8Array(data) }, caller).then(
      ({ raw }) => Buffer.from(raw),
      (error: Error) => error.message,
    ),
  );

beforeAll(async () => {
  server = await startServerProcess();
  const { folder, port, caFile, adminToken } = server;
  conf = join(folder, 'pkcs11.toml');
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, adminToken, { mode: 0o600 });
  environment = { DKE_SERVER: server.url, DKE_CA_FILE: caFile, DKE_TOKEN_FILE: tokenFile };
  for (const args of [
    ['tde', 'group', 'create', 'finance'],
    ['tde', 'app', 'register', 'erp', '--group', 'finance', '--out', conf, '--database-ca-file', caFile],
  ])
    expect(await runCommand(args, { environment })).toMatchObject({ code: 0, stderr: '' });
  guid = /^access_token = "([^"]+)"$/m.exec(readFileSync(conf, 'utf8'))?.[1] ?? '';
  await server.stop();
  const earlier = await openTestService({ folder });
  const { tde } = earlier.operations;
  const facts = { accessGuid: guid, appId: 'erp', instance, requestId: 'call-1', peer: '127.0.0.1' };
  const caller = await tde.authenticate(facts);
  const key = await tde.generateKey(caller, { ...masterKey(label), usages: ['encrypt', 'wrap', 'unwrap'] });
  keyId = key.id;
  sealed = await tde.encrypt(caller, key.handle, cbc, plain);
  await earlier.stop();
  server = await startServerProcess({ folder, port });
});
afterAll(() => server?.remove());

test('is found by the doctor, named in the inbox, refused for more data and repaired by one command', async () => {
  const doctor = async () => {
    const { code, answer } = await dke('doctor', '--socket', join(server.folder, 'agent.sock'), '--conf', conf);
    const parts = answer as readonly { readonly results: readonly CheckResult[] }[];
    return { code, found: parts.flatMap(({ results }) => results).find(({ id }) => id === 'master-keys') };
  };
  const named = async () => {
    const { answer } = await dke('notification', 'list');
    return (answer.items as { readonly kind: string; readonly subject: { readonly name: string } }[]).find(
      ({ kind }) => kind === 'master-key.unreadable',
    );
  };
  const handle = (await dke('tde', 'key', 'show', keyId)).answer.handle as number;
  expect(await doctor()).toMatchObject({
    code: exitCodes['checks-failed'],
    found: {
      state: 'failed',
      evidence: expect.stringContaining(label),
      fix: expect.stringContaining('allow-decryption'),
    },
  });
  expect(await until('the notification', named)).toMatchObject({ severity: 'critical', subject: { name: label } });
  expect(await cipher('encrypt', handle, plain)).toContain('dke tde key allow-decryption');
  expect(await cipher('decrypt', handle, sealed)).toContain('cannot be used for this');

  expect(await dke('tde', 'key', 'allow-decryption', keyId)).toMatchObject({
    code: 0,
    answer: { usages: ['encrypt', 'decrypt', 'wrap', 'unwrap'] },
  });
  expect(await cipher('decrypt', handle, sealed)).toEqual(plain);
  expect(await cipher('encrypt', handle, plain)).toEqual(sealed);
  expect((await doctor()).found).toMatchObject({ state: 'ok' });
  // A second call changes nothing, and nothing is recorded twice.
  expect((await dke('tde', 'key', 'allow-decryption', keyId)).code).toBe(0);
  const { answer } = await dke('audit', 'list', '--subject-id', keyId, '--kind', 'key.decryption-allowed');
  expect(answer.items).toMatchObject([{ details: { name: label } }]);
});
