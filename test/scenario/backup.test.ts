// A backup of the whole service, created by an operator while the service runs, and its restore on
// a new machine from only the backup, the backup of the root key, the recovery key and the
// passphrases: users, tokens, keys and the audit log are there, and the quarantine lists what was
// changed since.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditRecord } from '../../server/contract/api/audit-routes.ts';
import type { Quarantine } from '../../server/contract/api/quarantine-routes.ts';
import type { Page } from '../../server/domain/page.ts';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { builtServer } from '../support/killed-server.ts';
import { quarantineCodeOf, type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const toml = '[erasure]\ngather_ms = 20\n[[audit.sinks]]\nname = "file"\ntype = "file"\npath = "audit.ndjson"\n';
const begin = (folder: string) => startServerProcess({ folder, program: [builtServer], toml });
const grants = [{ role: 'administrator', scope: null, tenantId: null }];

let work: string;
let old: ServerProcess;
let administrator: string;
let publicKey: string;
let kept: { readonly record: { readonly id: string }; readonly token: string };
let xks: XksEndpoint;
let sealed: Awaited<ReturnType<XksEndpoint['encrypt']>>;
const at = (name: string): string => join(work, name);
const api = () => openConsoleApi(old, administrator);
const dke = (...args: string[]) => runCommand(['-o', 'json', ...args], { cwd: work });
const onOld = (...args: string[]) => dke(...args, '--config', join(old.folder, 'dke.toml'));
const create = (out: string) => onOld('backup', 'create', '--out', at(out));
const withRecovery = ['--recovery-key', 'recovery.key', '--recovery-passphrase-file', 'recovery-passphrase'];
const withRoot = ['--root-backup', 'root-backup.key', '--passphrase-file', 'root-passphrase'];
const signed = ['--signer', 'verifier-key'];
/** An empty machine: its configuration is in the backup. */
const newMachine = (): string => mkdtempSync(at('machine-'));
const restore = (backup: string, machine: string, ...args: string[]) =>
  dke('backup', 'restore', backup, '--config', join(machine, 'dke.toml'), ...signed, ...args);
const fromBackup = '--apply-configuration';

const recoveryKey = async (): Promise<string> => {
  const made = await dke(
    'recovery-key',
    'create',
    '--out',
    at('recovery.key'),
    '--passphrase-file',
    at('recovery-passphrase'),
  );
  expect([made.code, made.stderr]).toEqual([0, '']);
  return (JSON.parse(made.stdout) as { readonly publicKey: string }).publicKey;
};

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'dke-backup-'));
  writeFileSync(at('recovery-passphrase'), 'a passphrase of the safe\n', { mode: 0o600 });
  writeFileSync(at('root-passphrase'), 'correct horse battery staple\n', { mode: 0o600 });
  writeFileSync(at('wrong-passphrase'), 'not the passphrase at all\n', { mode: 0o600 });
  mkdirSync(at('old'));
  old = await begin(at('old'));
  administrator = old.adminToken;

  const refused = await create('refused.dkebackup');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('dke recovery-key register')]);
  expect(existsSync(at('refused.dkebackup'))).toBe(false);
  publicKey = await recoveryKey();
  await api().call('POST', '/api/recovery-keys', { name: 'safe of the bank', publicKey });
  kept = await api().call('POST', '/api/tokens', { name: 'token of the night shift', grants });
  await api().call('POST', '/api/users', { name: 'alice.operator', grants });
  xks = await createXksEndpoint({ server: old, api: api() }, 'cloud');
  sealed = await xks.encrypt(Buffer.alloc(32, 7));
  expect(sealed.status).toBe(200);
  const { verifierKey } = await api().call<{ readonly verifierKey: string }>('GET', '/api/audit/log');
  writeFileSync(at('verifier-key'), `${verifierKey}\n`);
  const early = await create('early.dkebackup');
  expect([early.code, early.stderr]).toEqual([0, expect.stringContaining('dke root backup')]);
  const root = await onOld(
    'root',
    'backup',
    '--out',
    at('root-backup.key'),
    '--new-passphrase-file',
    at('root-passphrase'),
  );
  expect([root.code, root.stderr]).toEqual([0, '']);

  // While others write.
  let busy = true;
  const writing = (async () => {
    for (let i = 0; busy; i += 1) await api().call('POST', '/api/vaults', { name: `during ${i}` });
  })();
  const made = await create('service.dkebackup');
  busy = false;
  await writing;
  expect([made.code, made.stderr]).toEqual([0, '']);
  expect(JSON.parse(made.stdout)).toMatchObject({
    ...{ rootEpoch: 1, rootKeyBackup: 'current', bytes: expect.any(Number), signer: verifierKey },
  });

  await until('the receipt of the backup', async () => {
    const { items } = await api().call<Page<AuditRecord>>('GET', '/api/audit?kind=service.backed-up');
    const { backupId } = JSON.parse(made.stdout) as { readonly backupId: string };
    const digest = /^[A-Za-z0-9+/]{43}=$/;
    return items.some(({ details }) => details.backupId === backupId && digest.test(String(details.digest)))
      ? true
      : undefined;
  });
  // Changes after the backup.
  await api().send('DELETE', `/api/tokens/${kept.record.id}`);
  await api().call('POST', '/api/vaults', { name: 'of after the backup' });
  await api().send('GET', '/api/audit/export');
});
afterAll(async () => {
  await old?.stop();
  rmSync(work, { recursive: true, force: true });
});

test('a backup is encrypted, readable by its user alone, and leaves no copy of the database behind', () => {
  expect((statSync(at('service.dkebackup')).mode & 0o777).toString(8)).toBe('600');
  const bytes = readFileSync(at('service.dkebackup'));
  for (const text of ['alice.operator', 'token of the night shift', 'SQLite format', 'service.started', '[server]'])
    expect(bytes.includes(text)).toBe(false);
  expect(readdirSync(old.dataDirectory).filter((name) => name.startsWith('dke.db.backup'))).toEqual([]);
});

test('it is verified anywhere, every key of it with the backup of the root key', async () => {
  const keys = await dke('backup', 'verify', 'service.dkebackup', ...signed, ...withRecovery, ...withRoot);
  expect([keys.code, keys.stderr]).toEqual([0, '']);
  expect(JSON.parse(keys.stdout)).toMatchObject({
    authentic: true,
    depth: 'keys',
    configuration: true,
    rootEpochs: [1],
    findings: [],
    valid: true,
  });
});

test('without the verifier key, the first line says that it is not authentic', async () => {
  const { code, stdout, stderr } = await dke('backup', 'verify', 'service.dkebackup', ...withRecovery);
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^dke: not authentic: /)]);
  expect(JSON.parse(stdout)).toMatchObject({ authentic: false, depth: 'database' });
});

test('where an export of the audit log is given, it must name the backup', async () => {
  writeFileSync(at('audit-export'), await (await api().send('GET', '/api/audit/export')).text);
  const logged = ['--audit-log', 'audit-export'];
  const verify = (backup: string, ...more: readonly string[]) =>
    dke('backup', 'verify', backup, ...withRecovery, ...logged, ...more);
  const named = await verify('service.dkebackup', ...signed);
  expect([named.code, named.stderr, JSON.parse(named.stdout)]).toMatchObject([0, '', { authentic: true }]);
  expect((await create('late.dkebackup')).code).toBe(0);
  const late = await verify('late.dkebackup', ...signed);
  expect([late.code, late.stderr]).toEqual([5, expect.stringMatching(/not authentic: the audit log does not name it/)]);
  const alone = await verify('service.dkebackup');
  expect([alone.code, alone.stderr]).toEqual([2, expect.stringMatching(/--audit-log needs --signer/)]);
});

describe('a restore that fails says why, and leaves nothing behind', () => {
  test('a file that was changed', async () => {
    const machine = newMachine();
    const bytes = readFileSync(at('service.dkebackup'));
    const place = Math.floor(bytes.length / 2);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    writeFileSync(at('spoilt.dkebackup'), bytes);
    writeFileSync(join(machine, 'dke.toml'), '');
    const { code, stderr } = await restore('spoilt.dkebackup', machine, ...withRecovery, ...withRoot);
    expect([code, stderr]).toEqual([5, expect.stringMatching(/damaged/)]);
    expect(readdirSync(machine)).toEqual(['dke.toml']);
  });

  const without: readonly (readonly [string, readonly string[], number, RegExp])[] = [
    [
      'the passphrase of the recovery key is wrong',
      ['--recovery-key', 'recovery.key', '--recovery-passphrase-file', 'wrong-passphrase', ...withRoot],
      9,
      /the passphrase is wrong/,
    ],
    [
      'the passphrase of the root key is wrong',
      [...withRecovery, '--root-backup', 'root-backup.key', '--passphrase-file', 'wrong-passphrase'],
      6,
      /is wrong/,
    ],
    ['there is no root key', withRecovery, 6, /add --root-backup/],
  ];
  test.each(without)('%s', async (_, args, exit, message) => {
    const machine = newMachine();
    const { code, stderr } = await restore('service.dkebackup', machine, fromBackup, ...args);
    expect([code, stderr]).toEqual([exit, expect.stringMatching(message)]);
    expect(readdirSync(machine)).toEqual([]);
  });

  test('a data directory that is not empty', async () => {
    const machine = newMachine();
    mkdirSync(join(machine, 'dke-data'));
    writeFileSync(join(machine, 'dke-data', 'dke.db'), 'of another service');
    const { code, stderr } = await restore('service.dkebackup', machine, fromBackup, ...withRecovery, ...withRoot);
    expect([code, stderr]).toEqual([5, expect.stringMatching(/is not empty.*nothing was changed/)]);
    expect(readFileSync(join(machine, 'dke-data', 'dke.db'), 'utf8')).toBe('of another service');
    expect(existsSync(join(machine, 'dke.toml'))).toBe(false);
  });
});

test('a full disk leaves no part of a backup', async () => {
  const disk = mountSmallDisk('4m');
  if (typeof disk === 'string') {
    console.log(`skipped: ${disk}`);
    return;
  }
  try {
    disk.fill(8192);
    const { code, stderr } = await onOld('backup', 'create', '--out', join(disk.folder, 'service.dkebackup'));
    expect([code, stderr]).toEqual([5, expect.stringContaining('the disk is full')]);
    expect(readdirSync(disk.folder)).toEqual(['ballast']);
    const again = await create('service.dkebackup');
    expect([again.code, again.stderr]).toEqual([3, expect.stringContaining('specify a new file')]);
  } finally {
    disk.end();
  }
});

test('services that share a folder keep their own newest backups, and remove no file of another', async () => {
  mkdirSync(at('other'));
  mkdirSync(at('shared'));
  const other = await begin(at('other'));
  try {
    const body = { name: 'safe of the bank', publicKey };
    await openConsoleApi(other, other.adminToken).call('POST', '/api/recovery-keys', body);
    const create = async ({ folder }: ServerProcess, keep: number) => {
      const where = ['--folder', at('shared'), '--config', join(folder, 'dke.toml')];
      const { code, stdout } = await dke('backup', 'create', '--keep', String(keep), ...where);
      expect(code).toBe(0);
      const { file, removed } = JSON.parse(stdout) as { readonly file: string; readonly removed: readonly string[] };
      return { name: basename(file), removed };
    };
    /**
     * Renames a backup as if it had been made on that day of January 2026; returns the new name.
     */
    const age = (name: string, day: number): string => {
      const older = name.replace(/\d{8}T\d{6}/, `2026010${day}T000000`);
      renameSync(join(at('shared'), name), join(at('shared'), older));
      return older;
    };
    const unreadable = 'dke-20250101T000000Z.dkebackup';
    writeFileSync(join(at('shared'), unreadable), 'no backup');
    const theirs = age((await create(other, 1)).name, 1);
    const oldest = age((await create(old, 2)).name, 2);
    const second = age((await create(old, 2)).name, 3);
    const third = await create(old, 2);
    expect(third.removed).toEqual([oldest]);
    const theirNext = await create(other, 1);
    expect(theirNext.removed).toEqual([theirs]);
    expect(readdirSync(at('shared')).toSorted()).toEqual([unreadable, second, third.name, theirNext.name].toSorted());
  } finally {
    await other.stop();
  }
});

test('on PostgreSQL its own tools are named', async () => {
  writeFileSync(at('postgresql.toml'), '[store]\ntype = "postgresql"\nhost = "localhost"\n');
  const { code, stderr } = await dke('backup', 'create', '--config', 'postgresql.toml', '--out', 'never');
  expect([code, stderr]).toEqual([2, expect.stringMatching(/pg_dump or pgBackRest/)]);
});

test('on a new machine everything is there, and the quarantine lists what was changed since the backup', async () => {
  await old.stop();
  const machine = newMachine();
  // The sink is the only thing that was saved of the old machine next to the backups.
  copyFileSync(join(old.folder, 'audit.ndjson'), join(machine, 'audit.ndjson'));
  const restored = await restore('service.dkebackup', machine, fromBackup, ...withRecovery, ...withRoot);
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  const said = JSON.parse(restored.stdout) as { readonly auditRecords: number };
  expect(said).toMatchObject({ findings: [], valid: true, dataDirectory: join(machine, 'dke-data') });
  expect(readFileSync(join(machine, 'dke.toml'), 'utf8')).toBe(readFileSync(join(old.folder, 'dke.toml'), 'utf8'));

  const server = await begin(machine);
  try {
    const place = { server, api: openConsoleApi(server, administrator) };
    const quarantine = await place.api.call<Quarantine>('GET', '/api/quarantine');
    expect(quarantine).toMatchObject({ finding: 'restored', size: said.auditRecords });
    const { missing } = quarantine;
    const missed = missing?.records ?? [];
    expect(missed[0]?.sequence).toBe(said.auditRecords + 1);
    expect(missing?.count).toBe(missed.length);
    expect(missing?.signed).toBeGreaterThan(said.auditRecords);
    expect(missed).toContainEqual(expect.objectContaining({ kind: 'token.revoked', subjectId: kept.record.id }));
    expect(missed.map(({ kind }) => kind)).toContain('vault.created');
    expect(missing?.sinks).toEqual([
      { name: 'file', type: 'file', target: join(machine, 'audit.ndjson'), records: missing?.count },
    ]);
    writeFileSync(at('token'), administrator, { mode: 0o600 });
    const connection = ['--server', server.url, '--ca-file', server.caFile, '--token-file', at('token')];
    const shown = await runCommand([...connection, 'quarantine', 'show']);
    expect(shown.stdout).toMatch(/^\d+ .* token\.revoked .*token /m);
    expect((await place.api.send('POST', '/api/vaults', { name: 'now' })).status).toBe(503);

    const code = await quarantineCodeOf(server);
    await place.api.call('POST', '/api/quarantine/confirm', { code });
    await expect.poll(async () => (await place.api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
    expect((await xks.at(server).decrypt(sealed.body)).status).toBe(200);
    const users = await place.api.call<{ items: readonly { name: string }[] }>('GET', '/api/users');
    expect(users.items.map(({ name }) => name)).toContain('alice.operator');
    // The state at the time of the backup, which is why the list exists.
    expect((await openConsoleApi(server, kept.token).send('GET', '/api/vaults')).status).toBe(200);
    await place.api.call('POST', '/api/vaults', { name: 'now' });
  } finally {
    await server.stop();
  }
  const verified = await dke('verify', '--config', join(machine, 'dke.toml'));
  expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([0, { valid: true, findings: [] }]);
  const again = await begin(machine);
  expect((await openConsoleApi(again, administrator).send('GET', '/health')).text).toBe('{"status":"healthy"}');
  await again.stop();
});

test('a root key that is already there is used', async () => {
  await old.stop();
  const made = await create('another.dkebackup');
  expect([made.code, made.stderr]).toEqual([0, '']);
  const machine = newMachine();
  mkdirSync(join(machine, 'keys'), { mode: 0o700 });
  copyFileSync(join(old.dataDirectory, 'root.key'), join(machine, 'keys', 'root.key'));
  const config = `${readFileSync(join(old.folder, 'dke.toml'), 'utf8')}[root]\npath = "keys/root.key"\n`;
  writeFileSync(join(machine, 'dke.toml'), config);
  const refused = await restore('another.dkebackup', machine, ...withRecovery, ...withRoot);
  expect([refused.code, refused.stderr]).toEqual([6, expect.stringMatching(/leave out --root-backup/)]);
  const restored = await restore('another.dkebackup', machine, ...withRecovery);
  expect([restored.code, restored.stderr]).toEqual([
    0,
    expect.stringMatching(/^dke: dke\.toml differs.*which is not applied.*\n- \[root\]\n- path = "keys\/root\.key"\n$/),
  ]);
});
