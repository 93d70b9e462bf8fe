// A backup of the root key, created by an operator while the service runs: encrypted, verified,
// known to the service, useless after an erasure run with a notification, and sufficient to start
// again on the database.
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Notification } from '../../server/contract/api/notifications-routes.ts';
import type { Root } from '../../server/contract/api/root-routes.ts';
import type { Setup } from '../../server/contract/api/setup-routes.ts';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { builtServer } from '../support/killed-server.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const passphrase = 'correct horse battery staple';
let folder: string;
let server: ServerProcess;
let token: string;
const at = (name: string): string => join(folder, name);
const start = async (toml = ''): Promise<void> => {
  server = await startServerProcess({ folder, program: [builtServer], toml: `[erasure]\ngather_ms = 20\n${toml}` });
};
const api = () => openConsoleApi(server, token);
const root = (...args: string[]) =>
  runCommand(['root', ...args, '--config', at('dke.toml'), '-o', 'json'], { cwd: folder });
const backUp = (out: string) => root('backup', '--out', at(out), '--new-passphrase-file', at('passphrase'));
const step = async () => (await api().call<Setup>('GET', '/api/setup')).steps.find((each) => each.step === 'root-key');
const rotate = async (): Promise<void> => {
  const { epoch } = await api().call<Root>('POST', '/api/root/rotate', {});
  await until('the rotation', async () => {
    const now = await api().call<Root>('GET', '/api/root');
    return now.epoch > epoch && !now.rotating ? true : undefined;
  });
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-root-backup-'));
  writeFileSync(at('passphrase'), `${passphrase}\n`, { mode: 0o600 });
  writeFileSync(at('wrong'), 'not the passphrase at all\n', { mode: 0o600 });
  await start();
  token = server.adminToken;
});
afterEach(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('is made while the service runs, and is worth nothing after an erasure run, which the service tells', async () => {
  expect(await step()).toMatchObject({ state: 'open', finding: expect.stringContaining('dke root backup') });
  const made = await backUp('one.key');
  expect([made.code, made.stderr]).toEqual([0, '']);
  expect(JSON.parse(made.stdout)).toMatchObject({ file: at('one.key'), epoch: 1 });
  expect((statSync(at('one.key')).mode & 0o777).toString(8)).toBe('600');
  // The root key of a service without providers is unencrypted in its file: no part of it is in the
  // backup.
  const plain = readFileSync(join(server.dataDirectory, 'root.key'));
  const secret = plain.subarray(4096, 4096 + 64);
  expect(secret.some((byte) => byte !== 0)).toBe(true);
  const copy = readFileSync(at('one.key'));
  for (let from = 0; from + 16 <= secret.length; from += 4) {
    const part = secret.subarray(from, from + 16);
    if (part.some((byte) => byte !== 0)) expect(copy.includes(part)).toBe(false);
  }
  await until('the service to know it', async () => ((await step())?.state === 'done' ? true : undefined));
  expect((await api().audit('kind=root.backed-up')).map(({ details }) => details.rootEpoch)).toEqual([1]);
  expect(await api().call('GET', '/api/root')).toMatchObject({ epoch: 1, backup: { epoch: 1 } });
  const again = await backUp('one.key');
  expect([again.code, again.stderr]).toEqual([3, expect.stringContaining('specify a new file')]);
  expect(readFileSync(at('one.key')).equals(copy)).toBe(true);

  await rotate();
  expect(await step()).toMatchObject({ state: 'open', finding: expect.stringContaining('now useless') });
  await until('a notification', async () => {
    const { items } = await api().call<{ items: Notification[] }>('GET', '/api/notifications?limit=100');
    return items.some(({ kind }) => kind === 'root.backup-old') ? true : undefined;
  });

  // The disaster: the root key file is lost, and the only backup is of before.
  expect((await backUp('two.key')).code).toBe(0);
  await until('the service to know it', async () => ((await step())?.state === 'done' ? true : undefined));
  const { id } = await api().call<{ id: string }>('POST', '/api/vaults', { name: 'kept' });
  const busy = await root('restore', at('two.key'), '--passphrase-file', at('passphrase'));
  expect([busy.code, busy.stderr]).toEqual([5, expect.stringContaining('another server uses')]);
  await server.stop();
  const path = join(server.dataDirectory, 'root.key');
  const there = await root('restore', at('two.key'), '--passphrase-file', at('passphrase'));
  expect([there.code, there.stderr]).toEqual([3, expect.stringContaining('move it away first')]);
  // What prepares a node before each start does nothing here, and waits for the backup when it is
  // needed.
  const ifMissing = (name: string) => root('restore', at(name), '--if-missing', '--passphrase-file', at('passphrase'));
  expect(JSON.parse((await ifMissing('none.key')).stdout)).toEqual({ file: path, restored: false });
  renameSync(path, at('lost.key'));
  const needed = await ifMissing('none.key');
  expect([needed.code, needed.stderr]).toEqual([6, expect.stringContaining('none.key could not be read (ENOENT)')]);
  const old = await root('restore', at('one.key'), '--passphrase-file', at('passphrase'));
  expect([old.code, old.stderr]).toEqual([6, expect.stringMatching(/erased since.*restore a snapshot/s)]);
  const wrong = await root('restore', at('two.key'), '--passphrase-file', at('wrong'));
  expect([wrong.code, wrong.stderr]).toEqual([6, expect.stringContaining('is wrong')]);
  expect(existsSync(path)).toBe(false);
  const restored = await root('restore', at('two.key'), '--passphrase-file', at('passphrase'));
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  expect(JSON.parse(restored.stdout)).toEqual({ file: path, epoch: 2 });
  await start();
  expect(await api().call('GET', `/api/vaults/${id}`)).toMatchObject({ name: 'kept' });
});

test('of a root key that a passphrase wraps is restored for the providers of dke.toml', async () => {
  expect((await backUp('first.key')).code).toBe(0);
  const { id } = await api().call<{ id: string }>('POST', '/api/vaults', { name: 'kept' });
  await server.stop();
  renameSync(join(server.dataDirectory, 'root.key'), at('lost.key'));
  const people = '[[root.providers]]\nname = "people"\ntype = "passphrase"\nfile = "passphrase"\n';
  writeFileSync(at('dke.toml'), `${readFileSync(at('dke.toml'), 'utf8')}${people}`);
  const restored = await root('restore', at('first.key'), '--passphrase-file', at('passphrase'));
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  await start(people);
  expect(await api().call('GET', `/api/vaults/${id}`)).toMatchObject({ name: 'kept' });
  expect(await api().call('GET', '/api/root')).toMatchObject({ providers: [{ name: 'people', opened: true }] });

  // Who recovers an administrator on the host needs what opens the root key.
  await server.stop();
  writeFileSync(at('dke.toml'), readFileSync(at('dke.toml'), 'utf8').replace('file = "passphrase"\n', ''));
  const recover = (file: string) =>
    runCommand(['server', 'new-administrator', '--config', at('dke.toml'), '--passphrase-file', at(file)], {
      cwd: folder,
    });
  const refused = await recover('wrong');
  expect([refused.code, refused.stdout]).toEqual([6, '']);
  const recovered = await recover('passphrase');
  expect([recovered.code, recovered.stderr, recovered.stdout]).toEqual([0, '', expect.stringContaining('dket_')]);
});
