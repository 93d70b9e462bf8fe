// Backup and restore with the real server, the `dke` command and a real database process: a
// recovery key made apart, a snapshot of which the service cannot open anything, a destroyed key
// that no restore brings back, and the loss of everything but a copy of a snapshot.
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KeyCopies } from '../../server/contract/api/keys-routes.ts';
import type { Snapshot, SnapshotRestore } from '../../server/contract/api/snapshots-routes.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { loseStored } from '../support/test-store.ts';

const newLabel = (): string => `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
const iv = '07'.repeat(16);
const plain = randomBytes(32).toString('hex');

let site: Site;
let tokenFile: string;
let recoveryFile: string;
let passphraseFile: string;
let application: RegisteredApplication;
let database: Database;
let publicKey: string;
const labels = [newLabel(), newLabel()] as const;
const handles: number[] = [];
const wrapped: string[] = [];

const run = (...args: readonly string[]): Promise<CommandRun> =>
  runCommand(['--server', site.server.url, '--ca-file', site.server.caFile, '--token-file', tokenFile, ...args]);
const json = async <T>(...args: readonly string[]): Promise<T> => {
  const { code, stdout, stderr } = await run('-o', 'json', ...args);
  if (code !== 0) throw new Error(`dke ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
};
const writeToken = (token: string): void => writeFileSync(tokenFile, token, { mode: 0o600 });
const withKey = (): readonly string[] => ['--recovery-key', recoveryFile, '--passphrase-file', passphraseFile];
const confirm = (id: string): readonly string[] => ['--confirm', id.slice(0, 8)];
const decrypted = (at: number) => database.call('decrypt', { handle: handles[at] ?? 0, iv, data: wrapped[at] ?? '' });

beforeAll(async () => {
  site = await startSite();
  tokenFile = join(site.folder, 'token');
  recoveryFile = join(site.folder, 'recovery.key');
  passphraseFile = join(site.folder, 'passphrase');
  writeToken(site.token);
  writeFileSync(passphraseFile, 'correct horse battery staple\n', { mode: 0o600 });
  application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  database = site.database(site.config('pkcs11', application));
  expect(await database.call('open', { pin: 'any' })).toEqual({ rv: 'CKR_OK' });
  for (const label of labels) {
    const { handle } = await database.call('generate', { label });
    handles.push(handle ?? 0);
    const { data } = await database.call('encrypt', { handle: handle ?? 0, iv, data: plain });
    wrapped.push(data ?? '');
  }
});
afterAll(() => site?.end());

describe('a recovery key', () => {
  test('is made without a service, into a file of its own, and its public half is registered', async () => {
    const made = await runCommand([
      '-o',
      'json',
      'recovery-key',
      'create',
      '--out',
      recoveryFile,
      '--passphrase-file',
      passphraseFile,
    ]);
    expect([made.code, made.stderr]).toEqual([0, '']);
    const key = JSON.parse(made.stdout) as { readonly id: string; readonly publicKey: string };
    const { id } = key;
    ({ publicKey } = key);
    expect((statSync(recoveryFile).mode & 0o777).toString(8)).toBe('600');
    const shown = await runCommand(['-o', 'json', 'recovery-key', 'show', recoveryFile]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ id, publicKey, passphrase: true });
    expect((await run('snapshot', 'create')).stderr).toContain('no recovery key is registered');
    expect(await json('recovery-key', 'register', publicKey, '--name', 'safe of the bank')).toMatchObject({ id });
    expect(await json<{ readonly items: readonly object[] }>('recovery-key', 'list')).toMatchObject({
      items: [{ id, name: 'safe of the bank', removedAt: null }],
    });
    // What is registered is not a file, and another file is not overwritten.
    expect((await runCommand(['recovery-key', 'create', '--out', recoveryFile])).code).not.toBe(0);
  });

  test('with a wrong passphrase opens nothing and says so', async () => {
    const { id, tenantId } = await json<Snapshot>('snapshot', 'create', '--of', 'default');
    expect((await run('snapshot', 'create', '--of', 'none')).stderr).toContain('there is no tenant named none');
    expect(
      (await json<{ items: Snapshot[] }>('snapshot', 'list', '--of', 'default')).items.map((each) => each.tenantId),
    ).toContain(tenantId);
    const wrong = join(site.folder, 'wrong');
    writeFileSync(wrong, 'something else entirely', { mode: 0o600 });
    const { code, stderr } = await run(
      'snapshot',
      'verify',
      id,
      '--recovery-key',
      recoveryFile,
      '--passphrase-file',
      wrong,
    );
    expect(code).toBe(9);
    expect(stderr).toContain('the passphrase is wrong');
    expect(await json('snapshot', 'verify', id)).toMatchObject({ verification: { depth: 'sealed', valid: true } });
    expect(await json('snapshot', 'verify', id, ...withKey())).toMatchObject({
      verification: { depth: 'opened', valid: true },
    });
  });
});

describe('a restore', () => {
  test('brings back what was deleted, and a destroyed key stays destroyed in every copy', async () => {
    const { id } = await json<Snapshot>('snapshot', 'create');
    const [gone, kept] = [
      await site.api.masterKey(application.application.id, labels[0]),
      await site.api.masterKey(application.application.id, labels[1]),
    ];
    const copy = join(site.folder, 'early.dkesnap');
    await json('snapshot', 'export', id, '--out', copy);
    expect(readFileSync(copy).includes(Buffer.from(labels[0]))).toBe(false);

    await json('tde', 'key', 'destroy', labels[0], '--confirm', labels[0]);
    await until('the end of the erasure run', async () =>
      (await site.api.audit('kind=erasure.finished')).length > 0 ? true : undefined,
    );
    await json('key', 'delete', kept.id, '--confirm', labels[1]);
    // The exported file still has it: the key is unrecoverable when a person has confirmed that the
    // file is destroyed.
    const copies = await json<KeyCopies>('snapshot', 'of-key', gone.id);
    expect(copies).toMatchObject({ count: 1, items: [{ place: 'exported-snapshot', waits: true }] });
    const [exported] = copies.items;
    expect(await json('copy', 'list', '--left')).toMatchObject({ items: [{ id: exported?.id, snapshotId: id }] });
    expect((await run('snapshot', 'of-key', gone.id)).stdout).toContain(`dke copy confirm-destroyed ${exported?.id}`);
    expect(await site.api.audit('kind=key.unrecoverable')).toEqual([]);
    expect(await json('copy', 'confirm-destroyed', exported?.id ?? '')).toMatchObject({
      items: [{ id: exported?.id, destroyedAt: expect.any(String) as unknown }],
    });
    await until('the conclusion', async () =>
      (await site.api.audit('kind=key.unrecoverable')).length > 0 ? true : undefined,
    );

    const planned = await json<SnapshotRestore>('snapshot', 'restore', id, ...withKey(), '--dry-run');
    expect(planned).toMatchObject({ dryRun: true, stayDestroyed: [{ id: gone.id, name: labels[0] }] });
    const unasked = await run('snapshot', 'restore', id, ...withKey());
    expect(unasked.code).not.toBe(0);
    const restored = await json<SnapshotRestore>('snapshot', 'restore', id, ...withKey(), ...confirm(id));
    expect(restored).toEqual({ ...planned, dryRun: false });

    expect((await decrypted(0)).rv).not.toBe('CKR_OK');
    expect(await decrypted(1)).toEqual({ rv: 'CKR_OK', data: plain });
    expect(await site.api.masterKey(application.application.id, labels[1])).toMatchObject({
      state: 'active',
      vaultCopy: true,
      sealedCopy: true,
    });
    // The file of the service no longer has it, and is sound.
    expect(await json('snapshot', 'verify', id, ...withKey())).toMatchObject({
      erased: 1,
      verification: { depth: 'opened', valid: true },
    });
  });
});

describe('everything is lost but a copy of a snapshot, the recovery key, and the verifier key', () => {
  let copy: string;
  let verifier: string;
  let id: string;

  test('the copy is verified where it is, without a service', async () => {
    ({ id } = await json<Snapshot>('snapshot', 'create'));
    ({ verifierKey: verifier } = await json<{ readonly verifierKey: string }>('audit', 'log'));
    copy = join(site.folder, 'offsite.dkesnap');
    await json('snapshot', 'export', id, '--out', copy);
    const { code, stdout } = await runCommand([
      '-o',
      'json',
      'snapshot',
      'verify',
      '--file',
      copy,
      '--signer',
      verifier,
      ...withKey(),
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ id, depth: 'opened', valid: true });
    const changed = readFileSync(copy);
    changed[changed.length >> 1] = (changed[changed.length >> 1] ?? 0) ^ 1;
    const bad = join(site.folder, 'bad.dkesnap');
    writeFileSync(bad, changed);
    expect((await runCommand(['snapshot', 'verify', '--file', bad, '--signer', verifier])).code).toBe(12);
  });

  test('a new service, with a new root key, restores it, and the database continues with the same label and handle', async () => {
    const data = site.server.dataDirectory;
    const tls = ['tls.crt', 'tls.key'];
    await site.stopServer();
    for (const name of tls) copyFileSync(join(data, name), join(site.folder, name));
    rmSync(data, { recursive: true });
    await loseStored(site.folder);
    mkdirSync(data, { mode: 0o700 });
    for (const name of tls) copyFileSync(join(site.folder, name), join(data, name));
    await site.startServer();
    writeToken(site.server.adminToken);
    expect((await decrypted(1)).rv).not.toBe('CKR_OK');

    const untrusted = await run('snapshot', 'import', copy, '--signer', verifier);
    expect(untrusted.stderr).toContain('snapshots.trusted_signers in dke.toml');
    await site.stopServer();
    await site.startServer(`[snapshots]\ntrusted_signers = ["${verifier}"]\nrestore_second_person = false\n`);
    const folder = await run('snapshot', 'import', site.folder);
    expect(folder.stderr).toContain(`${site.folder} cannot be read (EISDIR)`);
    expect(folder.stderr).not.toContain('does not answer');
    const unknown = await run('snapshot', 'import', copy);
    expect(unknown.code).not.toBe(0);
    expect(unknown.stderr).toContain('verifier key');
    // Every `--signer` takes the file that has the key, too.
    const kept = join(site.folder, 'dke-audit.key');
    writeFileSync(kept, `${verifier}\n`);
    const imported = await json<Snapshot>('snapshot', 'import', copy, '--signer', kept);
    expect(imported).toMatchObject({ id, origin: 'imported', state: 'available' });
    const into = ['--into', 'default'];
    expect((await run('snapshot', 'restore', id, ...withKey(), ...confirm(id))).stderr).toContain(
      'is not registered here',
    );
    await json('recovery-key', 'register', publicKey, '--name', 'safe of the bank');
    expect((await run('snapshot', 'restore', id, ...withKey(), ...confirm(id))).stderr).toContain(
      'does not exist here',
    );
    const restored = await json<SnapshotRestore>('snapshot', 'restore', id, ...withKey(), ...into, ...confirm(id));
    expect(restored).toMatchObject({ newTenant: false, newIds: false, newHandles: 0 });

    await until('the database continues', async () => ((await decrypted(1)).rv === 'CKR_OK' ? true : undefined));
    expect(await decrypted(1)).toEqual({ rv: 'CKR_OK', data: plain });
    expect(await database.call('find', { label: labels[1] })).toEqual({ rv: 'CKR_OK', handles: [handles[1]] });
    // What had been destroyed before the disaster stays so.
    expect(await database.call('find', { label: labels[0] })).toEqual({ rv: 'CKR_OK', handles: [] });
    const { handle } = await database.call('generate', { label: newLabel() });
    expect(handle ?? 0).toBeGreaterThan(Math.max(...handles));
  });
});
