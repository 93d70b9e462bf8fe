// Files that left the service, and open a key that is destroyed later: a backup of the whole
// service with one of the root key, and an exported snapshot. The service knows them, so it does
// not call the key unrecoverable before an operator confirms that they are destroyed.
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { createBackup } from '../../../server/app/host/create-backup.ts';
import { backUpRootKey } from '../../../server/app/host/offline.ts';
import { formatRecoveryKey } from '../../../server/base/recovery-key.ts';
import { copyPlaces } from '../../../server/domain/copies.ts';
import { mostRecoveryKeys } from '../../../server/operations/snapshots/recovery-keys.ts';
import { administrator, masterKey, registerCaller, untilAudited } from '../../support/open-service.ts';
import { freshService, restart } from '../../support/shared.ts';
import { actorIn, checksOf, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { onSqlite, queryStored } from '../../support/test-store.ts';

const opened = freshService();
let hand: SnapshotHand;
let applicationId: string;
let keyId: string;
beforeEach(async () => {
  hand = await handOf(opened);
  const { caller } = await registerCaller(opened, 'erp');
  applicationId = caller.application.id;
  keyId = (await opened.operations.tde.generateKey(caller, masterKey('pages'))).id;
});
const runsFinished = async (): Promise<number> =>
  (await opened.operations.audit.list(administrator, { kind: 'erasure.finished' })).items.length;
const destroy = async (): Promise<void> => {
  await opened.operations.masterKeys.destroy(administrator, applicationId, keyId);
  await expect.poll(runsFinished).toBe(1);
  await expect.poll(async () => (await opened.operations.status(administrator)).erasure.state).toBe('idle');
};
const unrecoverableAt = async () => (await opened.operations.keys.get(administrator, keyId)).unrecoverableAt;
const copies = (actor = administrator) => opened.operations.snapshots.ofKey(actor, keyId);
const left = async () => (await opened.operations.copies.list(administrator, { left: true })).items;
const take = async (id: string): Promise<void> => {
  for await (const _ of await opened.operations.snapshots.export(administrator, id));
};
const confirm = (id: string, andOlder = false) =>
  opened.operations.copies.confirmDestroyed(administrator, id, andOlder);

describe.runIf(onSqlite('a backup of its database file'))('with a backup of the whole service', () => {
  const ask = () => Promise.resolve(Buffer.from('a passphrase of the root key'));
  const backUp = (name: string) => createBackup(opened.config, '1.0.0', join(opened.folder, name), ask);
  const backUpRoot = (name: string) => backUpRootKey(opened.config, join(opened.folder, name), ask);

  test('and one of the root key, the key is unrecoverable only when one of them is destroyed', async () => {
    await backUp('service.backup');
    await backUpRoot('root.backup');
    await destroy();
    expect(await unrecoverableAt()).toBeNull();
    expect((await opened.operations.status(administrator)).erasure).toMatchObject({ pendingKeys: 0, waitingKeys: 1 });
    const known = await copies();
    expect(known.count).toBe(1);
    expect(known.items.map(({ place, waits }) => [place, waits])).toEqual([
      ['service-backup', true],
      ['root-backup', false],
    ]);
    // Everywhere the same.
    expect((await opened.operations.keys.use(administrator, keyId)).copies).toEqual(known);
    expect((await opened.operations.masterKeys.blastRadius(administrator, applicationId, keyId)).copies).toEqual(known);
    // The backup is of the whole service: people of one tenant learn only that it exists.
    expect(await copies(actorIn(administrator.tenantId))).toEqual({ count: 1, items: [] });

    const [backup] = (await left()).filter(({ kind }) => kind === 'service-backup');
    await expect(
      opened.operations.copies.confirmDestroyed(actorIn(administrator.tenantId), backup?.id ?? '', false),
    ).rejects.toMatchObject({ code: 'not-found' });
    await confirm(backup?.id ?? '');
    const { details } = await untilAudited(opened, 'key.unrecoverable', keyId);
    // The backup of the root key may open copies of the database that the service does not know.
    expect(details).toMatchObject({ rootBackups: 1 });
    expect(await unrecoverableAt()).not.toBeNull();
    expect(await runsFinished()).toBe(1);
    expect(await untilAudited(opened, 'copy.destroyed', backup?.id)).toMatchObject({
      actorId: administrator.id,
      details: { copyKind: 'service-backup' },
    });
    await expect(confirm(backup?.id ?? '')).rejects.toMatchObject({ code: 'conflict' });
  });

  test('the key waits for no backup from before it was made or after it was destroyed, and for none that nothing opens', async () => {
    const { caller } = await registerCaller(opened, 'other');
    await backUp('before.backup');
    await backUpRoot('root.backup');
    const later = (await opened.operations.tde.generateKey(caller, masterKey('later'))).id;
    await opened.operations.masterKeys.destroy(administrator, caller.application.id, later);
    await untilAudited(opened, 'key.unrecoverable', later);
    // That run ended the root key of the first backups.
    await backUp('without a root key.backup');
    await destroy();
    expect((await copies()).items.map(({ place, waits }) => [place, waits])).toEqual([
      ['service-backup', false],
      ['service-backup', true],
      ['root-backup', false],
    ]);
    const [root] = (await left()).filter(({ kind }) => kind === 'root-backup');
    await confirm(root?.id ?? '');
    await untilAudited(opened, 'key.unrecoverable', keyId);
    await backUp('after.backup');
    await backUpRoot('root again.backup');
    await expect.poll(async () => (await left()).length).toBe(4);
    expect((await copies()).items).toEqual([]);
  });

  test('DBW: a changed record of when the key was made excludes no backup', async () => {
    await backUp('before.backup');
    await destroy();
    expect(await left()).toHaveLength(1);
    const { caller } = await registerCaller(opened, 'other');
    const { id } = await opened.operations.tde.generateKey(caller, masterKey('later'));
    const known = () => opened.operations.snapshots.ofKey(administrator, id);
    expect((await known()).items).toEqual([]);
    await queryStored(opened.folder, "update audit_events set actor_name = 'x' where subject_id = ?", id);
    expect((await known()).items).toMatchObject([{ place: 'service-backup' }]);
  });

  test('while it cannot be read which backups exist, no key is unrecoverable, and the run says what to do', async () => {
    await backUp('service.backup');
    await backUpRoot('root.backup');
    const path = join(opened.config.dataDirectory, 'backup-receipt');
    renameSync(path, `${path}.aside`);
    mkdirSync(path);
    await opened.operations.masterKeys.destroy(administrator, applicationId, keyId);
    const erasure = async () => (await opened.operations.status(administrator)).erasure;
    await expect.poll(async () => (await erasure()).state).toBe('failed');
    expect((await erasure()).failure).toContain(`${path} cannot be read (EISDIR)`);
    expect(await unrecoverableAt()).toBeNull();
    rmdirSync(path);
    renameSync(`${path}.aside`, path);
  });

  test('a backup that was cut off counts, and one that failed does not', async () => {
    // A power failure leaves a backup that was begun, and an incomplete line.
    const begun = { id: 'cut-off', state: 'begun', at: Date.now() };
    appendFileSync(join(opened.config.dataDirectory, 'backup-receipt'), `\n${JSON.stringify(begun)}\n{"id": "ha`);
    await backUpRoot('root.backup');
    await expect(backUp('missing folder/service.backup')).rejects.toThrow();
    await destroy();
    expect((await left()).map(({ kind, id }) => (kind === 'root-backup' ? kind : id))).toEqual([
      ...(['root-backup', 'cut-off'] as const).toSorted(),
    ]);
    expect(await unrecoverableAt()).toBeNull();
    await confirm('cut-off');
    await untilAudited(opened, 'key.unrecoverable', keyId);
  });
});

test('with an exported snapshot, the key is unrecoverable only when it is confirmed that it is destroyed', async () => {
  const snapshotId = await hand.make(administrator.tenantId);
  await take(snapshotId);
  await take(snapshotId);
  await destroy();
  expect(await unrecoverableAt()).toBeNull();
  // What leaves from now on is without it.
  await take(snapshotId);
  const known = await copies();
  expect(known).toMatchObject({ count: 2, items: [{ place: 'exported-snapshot' }, { place: 'exported-snapshot' }] });
  expect(known.items[0]?.text).toContain('exported');
  const [first] = known.items;
  expect((await confirm(first?.id ?? '', true)).length).toBe(2);
  await untilAudited(opened, 'key.unrecoverable', keyId);
  expect((await left()).length).toBe(1);
});

test('a tenant is not unrecoverable while a file that left the service has its keys', async () => {
  const { tenants } = opened.operations;
  const { id } = await tenants.create(administrator, { name: 'leaving' });
  const vault = await opened.operations.vaults.create(actorIn(id), { name: 'general' });
  await opened.operations.keys.create(actorIn(id), { name: 'general', vaultId: vault.id });
  await take(await hand.make(id));
  await tenants.delete(administrator, id);
  expect((await tenants.impact(administrator, id, 'purge')).contents).toMatchObject({ copies: 1 });
  await tenants.purge(administrator, id);
  await expect.poll(runsFinished).toBe(1);
  expect(await tenants.get(administrator, id)).toMatchObject({ unrecoverableAt: null });
  await confirm((await left())[0]?.id ?? '');
  await untilAudited(opened, 'tenant.unrecoverable', id);
});

test('a file whose row was changed in the database counts as one that has every key', async () => {
  await take(await hand.make(administrator.tenantId));
  await opened.stop();
  await queryStored(opened.folder, 'update outside_copies set tenant_id = ?', 'another');
  await restart(opened);
  await destroy();
  expect(await copies()).toMatchObject({ count: 1 });
  expect(await unrecoverableAt()).toBeNull();
});

test('a changed row among older files is named and does not count as destroyed; the others do', async () => {
  const snapshotId = await hand.make(administrator.tenantId);
  for (let count = 0; count < 3; count += 1) await take(snapshotId);
  const [newest, changed, oldest] = await left();
  await queryStored(opened.folder, "update outside_copies set actor_name = 'other' where id = ?", changed?.id ?? '');
  await expect(confirm(changed?.id ?? '')).rejects.toMatchObject({
    ...{ code: 'key-tampered', message: expect.stringContaining(changed?.id ?? ''), hint: expect.any(String) },
  });
  const answered = await confirm(newest?.id ?? '', true);
  expect(answered.map(({ id, integrity, destroyedAt }) => [id, integrity, destroyedAt !== null])).toEqual([
    [newest?.id, 'ok', true],
    [changed?.id, 'tampered', false],
    [oldest?.id, 'ok', true],
  ]);
});

test('recovery keys are registered up to a number for which a backup and a snapshot have room', async () => {
  const { recoveryKeys } = opened.operations;
  const register = (number: number) =>
    recoveryKeys.register(administrator, {
      name: `safe ${number}`,
      publicKey: formatRecoveryKey(createHash('sha256').update(String(number)).digest()),
    });
  for (let number = 1; number < mostRecoveryKeys; number += 1) await register(number);
  await expect(register(mostRecoveryKeys)).rejects.toMatchObject({
    ...{ code: 'conflict', hint: expect.stringContaining('dke recovery-key remove') },
  });
  expect((await opened.operations.snapshots.get(administrator, await hand.make(administrator.tenantId))).state).toBe(
    'available',
  );
});

const erasure = async () => (await opened.operations.status(administrator)).erasure;

// An attacker may change the row only for the length of a run: the next comparison of the rows then
// finds nothing.
test('a file whose row is changed in the database while the service runs counts as one that has every key', async () => {
  await take(await hand.make(administrator.tenantId));
  await queryStored(opened.folder, 'update outside_copies set destroyed_at = 1');
  await opened.operations.masterKeys.destroy(administrator, applicationId, keyId);
  // Its record is written after the keys are marked.
  await expect.poll(runsFinished).toBe(1);
  expect(await unrecoverableAt()).toBeNull();
  // Nothing is concluded without it, and nothing tries to, again and again.
  await expect.poll(async () => (await erasure()).state).toBe('idle');
});
test('a run concludes nothing while the row of a file is missing in the database', async () => {
  await take(await hand.make(administrator.tenantId));
  await queryStored(opened.folder, 'delete from outside_copies');
  await opened.operations.masterKeys.destroy(administrator, applicationId, keyId);
  const failure = 'rows of the database are not those that the service wrote';
  await expect.poll(erasure).toMatchObject({ state: 'failed', failure });
  expect(await unrecoverableAt()).toBeNull();
});

describe('the row of a snapshot that is hidden in the database for the length of a run', () => {
  const fileOf = (id: string): string => join(opened.config.snapshots.directory, `${id}.dkesnap`);
  const keyIn = async (id: string): Promise<string | undefined> =>
    (await checksOf(opened, id, hand.recovery)).get(`${keyId} 1`);

  test.each([
    ["update snapshots set state = 'purged'", 'update snapshots set state = ?'],
    ["update snapshots set state = 'creating'", 'update snapshots set state = ?'],
  ])('does not keep the key: %s', async (statement, back) => {
    const id = await hand.make(administrator.tenantId);
    expect(await keyIn(id)).toMatch(/^(?!erased)/);
    await queryStored(opened.folder, statement);
    await opened.operations.masterKeys.destroy(administrator, applicationId, keyId);
    await expect.poll(runsFinished).toBe(1);
    expect(await unrecoverableAt()).not.toBeNull();
    await queryStored(opened.folder, back, 'available');
    // What was said is true: the file has it no longer.
    expect(await keyIn(id)).toBe('erased');
  });

  test('nor is the key called unrecoverable while neither row nor file is there', async () => {
    const id = await hand.make(administrator.tenantId);
    await queryStored(opened.folder, 'delete from snapshots');
    renameSync(fileOf(id), `${fileOf(id)}.away`);
    await opened.operations.masterKeys.destroy(administrator, applicationId, keyId);
    const failure = 'rows of the database are not those that the service wrote';
    await expect.poll(erasure).toMatchObject({ state: 'failed', failure });
    expect(await unrecoverableAt()).toBeNull();
  });
});

test('the page lists every place, in the words of the declaration', () => {
  const page = readFileSync('docs/snapshots.md', 'utf8');
  for (const { what, end } of Object.values(copyPlaces)) expect(page).toContain(`| ${what} | ${end} |`);
});
