// The file of a snapshot is missing while a key is destroyed: the key does not count as
// unrecoverable, and it is removed from the file before anything else is done with the file.
import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  administrator,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
} from '../../support/open-service.ts';
import { checksOf, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { onSqlite, queryStored } from '../../support/test-store.ts';

let opened: OpenedService;
let hand: SnapshotHand;
let keyId: string;
let snapshotId: string;
afterEach(() => opened?.remove());

const path = (): string => join(opened.config.snapshots.directory, `${snapshotId}.dkesnap`);
const away = (): string => join(opened.folder, 'away.dkesnap');
const awayFolder = (): string => join(opened.folder, 'away');
const keyNow = () => opened.operations.keys.get(administrator, keyId);
const status = async () => (await opened.operations.status(administrator)).erasure;
/** A snapshot with a key: then its file or folder goes missing, and the key is destroyed. */
const begin = async (missing: string, what: 'file' | 'folder' = 'file'): Promise<void> => {
  opened = await openTestService({
    toml: `[erasure]\ngather_ms = 5\n${missing}[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n`,
  });
  const { operations } = opened;
  hand = await handOf(opened);
  const { caller } = await registerCaller(opened, 'erp');
  const { handle, id } = await operations.tde.generateKey(caller, masterKey('pages'));
  keyId = id;
  snapshotId = await hand.make((await operations.tenants.default()).id);
  if (what === 'file') renameSync(path(), away());
  else renameSync(opened.config.snapshots.directory, awayFolder());
  await operations.tde.destroyObject(caller, handle);
};

test('a destroyed key waits for a missing file, and is taken out of it when the file is back', async () => {
  await begin('');
  await expect.poll(async () => (await status()).blockers?.snapshots).toEqual([snapshotId]);
  expect(await keyNow()).toMatchObject({ state: 'destroyed', unrecoverableAt: null });
  renameSync(away(), path());
  expect(await opened.operations.snapshots.verify(administrator, snapshotId, null)).toMatchObject({
    state: 'available',
    counts: { erased: 1 },
  });
  await expect.poll(async () => (await keyNow()).unrecoverableAt).not.toBeNull();
  const copy = await hand.restore(snapshotId, { newTenant: 'copy' });
  expect(copy.stayDestroyed.map(({ name }) => name)).toEqual(['pages']);
});

test('so does one for a folder that is not mounted', async () => {
  await begin('', 'folder');
  await expect.poll(async () => (await status()).blockers?.snapshots).toEqual([snapshotId]);
  renameSync(awayFolder(), opened.config.snapshots.directory);
  const { snapshots } = opened.operations;
  const exported = await snapshots.export(administrator, snapshotId).then(
    () => 'exported with the key',
    ({ code }: { readonly code: string }) => code,
  );
  expect(exported).toBe('conflict');
  expect(await snapshots.verify(administrator, snapshotId, null)).toMatchObject({
    state: 'available',
    counts: { erased: 1 },
  });
  await expect.poll(async () => (await keyNow()).unrecoverableAt).not.toBeNull();
});

test('a missing snapshot that is deleted is destroyed: nothing waits for it', async () => {
  await begin('');
  await expect.poll(async () => (await status()).state).toBe('blocked');
  expect(await opened.operations.snapshots.delete(administrator, snapshotId)).toMatchObject({ state: 'purged' });
  await expect.poll(async () => (await keyNow()).unrecoverableAt).not.toBeNull();
});

test('where the configuration says so, the missing snapshot is named instead, and still loses the key when it is back', async () => {
  await begin('missing_snapshots = "name"\n');
  await expect.poll(async () => (await keyNow()).unrecoverableAt).not.toBeNull();
  const { items } = await opened.operations.audit.list(administrator, { kind: 'key.unrecoverable', limit: 10 });
  expect(items).toMatchObject([{ subjectId: keyId, details: { except: [snapshotId] } }]);
  renameSync(away(), path());
  expect(await opened.operations.snapshots.verify(administrator, snapshotId, null)).toMatchObject({
    state: 'available',
    counts: { erased: 1 },
  });
});

test('a file that is imported again is not there for others before it has lost the destroyed key', async () => {
  await begin('');
  await expect.poll(async () => (await status()).state).toBe('blocked');
  const { snapshots } = opened.operations;
  await snapshots.delete(administrator, snapshotId);
  await expect.poll(async () => (await keyNow()).unrecoverableAt).not.toBeNull();
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield readFileSync(away());
  }
  const imported = snapshots.import(administrator, pieces(), undefined);
  const firstSeen = async () => {
    for (;;) {
      const { state, counts } = await snapshots.get(administrator, snapshotId);
      if (state === 'available') return counts?.erased;
      await new Promise(setImmediate);
    }
  };
  expect(await firstSeen()).toBe(1);
  expect(await imported).toMatchObject({ state: 'available', counts: { erased: 1 } });
});

test.runIf(onSqlite('a trigger of its own'))('an import that cannot be recorded leaves no file', async () => {
  await begin('');
  const { snapshots } = opened.operations;
  await snapshots.delete(administrator, snapshotId);
  const files = () => readdirSync(opened.config.snapshots.directory).filter((name) => name.startsWith(snapshotId));
  expect(files()).toEqual([]);
  await queryStored(
    opened.folder,
    "create trigger refused before update on snapshots begin select raise(abort, 'refused'); end",
  );
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield readFileSync(away());
  }
  await expect(snapshots.import(administrator, pieces(), undefined)).rejects.toThrow();
  expect(files()).toEqual([]);
  await queryStored(opened.folder, 'drop trigger refused');
  expect(await snapshots.import(administrator, pieces(), undefined)).toMatchObject({ state: 'available' });
});

describe('a file that is replaced by an older copy of itself', () => {
  // The erasure run takes keys out of files that were destroyed within a day: here the destruction
  // is longer ago.
  const replace = async (): Promise<void> => {
    await begin('');
    renameSync(away(), path());
    copyFileSync(path(), away());
    const { snapshots } = opened.operations;
    await expect.poll(async () => (await snapshots.verify(administrator, snapshotId, null)).counts?.erased).toBe(1);
    await expect.poll(async () => (await keyNow()).unrecoverableAt).not.toBeNull();
    copyFileSync(away(), path());
    expect(await stored()).not.toBe('erased');
  };
  const stored = async () => (await checksOf(opened, snapshotId, hand.recovery)).get(`${keyId} 1`);
  test.each([
    ['exported', () => opened.operations.snapshots.export(administrator, snapshotId)],
    ['opened', () => opened.operations.snapshots.beginOpening(administrator, snapshotId, hand.recovery.id)],
    ['verified', () => opened.operations.snapshots.verify(administrator, snapshotId, null)],
  ] as const)('loses the destroyed keys again before it is %s', async (_, use) => {
    await replace();
    await use();
    expect(await stored()).toBe('erased');
    const { items } = await opened.operations.audit.list(administrator, { kind: 'snapshot.keys-erased', limit: 10 });
    expect(items.map(({ details }) => details)).toEqual([{ keys: 1 }, { keys: 1 }]);
  });
  test.each([
    ['exported', () => opened.operations.snapshots.export(administrator, snapshotId)],
    ['opened', () => opened.operations.snapshots.beginOpening(administrator, snapshotId, hand.recovery.id)],
    ['verified', () => opened.operations.snapshots.verify(administrator, snapshotId, null)],
  ] as const)('loses them also when the row says that nothing was erased, before it is %s', async (_, use) => {
    await replace();
    const rows = await queryStored(opened.folder, 'select counts from snapshots where id = ?', snapshotId);
    const counts = JSON.parse(String(rows[0]?.counts)) as object;
    const older = JSON.stringify({ ...counts, erased: 0 });
    await queryStored(opened.folder, 'update snapshots set counts = ? where id = ?', older, snapshotId);
    await use();
    expect(await stored()).toBe('erased');
  });
  test('or by the file of another snapshot, is neither exported nor opened', async () => {
    await begin('');
    renameSync(away(), path());
    const other = await hand.make((await opened.operations.tenants.default()).id);
    await opened.operations.snapshots.verify(administrator, snapshotId, null);
    copyFileSync(join(opened.config.snapshots.directory, `${other}.dkesnap`), path());
    const { snapshots } = opened.operations;
    await expect(snapshots.export(administrator, snapshotId)).rejects.toMatchObject({ code: 'key-tampered' });
    await expect(hand.answer(snapshotId)).rejects.toMatchObject({ code: 'key-tampered' });
  });
});

describe('the file of another service, in which a key was erased that is not known here', () => {
  let other: OpenedService;
  afterEach(() => other?.remove());
  async function* pieces(file: Buffer): AsyncGenerator<Uint8Array> {
    yield file;
  }
  /** Makes the file in two states: with the key (`older`), and without it, as it is imported. */
  const begin = async (): Promise<{ readonly older: Buffer; readonly verifier: string }> => {
    const toml = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
    other = await openTestService({ toml });
    const maker = await handOf(other);
    const { caller } = await registerCaller(other, 'erp');
    const { handle, id } = await other.operations.tde.generateKey(caller, masterKey('pages'));
    [keyId, snapshotId] = [id, await maker.make((await other.operations.tenants.default()).id)];
    const made = join(other.config.snapshots.directory, `${snapshotId}.dkesnap`);
    const older = readFileSync(made);
    await other.operations.tde.destroyObject(caller, handle);
    const isErased = async () => (await checksOf(other, snapshotId, maker.recovery)).get(`${keyId} 1`) === 'erased';
    await expect.poll(isErased).toBe(true);
    const verifier = (await other.operations.audit.log()).verifierKey;
    opened = await openTestService({
      toml: `${toml}[snapshots]\ntrusted_signers = ["${verifier}"]\nrestore_second_person = false\n`,
    });
    hand = await handOf(opened, maker.recovery);
    const file = readFileSync(made);
    expect(await opened.operations.snapshots.import(administrator, pieces(file), verifier)).toMatchObject({
      counts: { erased: 1 },
    });
    return { older, verifier };
  };
  test('is not used when an older copy replaces it, whatever the counts of its row say', async () => {
    const { older } = await begin();
    writeFileSync(path(), older);
    const [row] = await queryStored(opened.folder, 'select counts from snapshots where id = ?', snapshotId);
    const counts = JSON.stringify({ ...(JSON.parse(String(row?.counts)) as object), erased: 0 });
    await queryStored(opened.folder, 'update snapshots set counts = ? where id = ?', counts, snapshotId);
    const { snapshots } = opened.operations;
    await expect(snapshots.export(administrator, snapshotId)).rejects.toMatchObject({ code: 'key-tampered' });
    await expect(hand.answer(snapshotId)).rejects.toMatchObject({ code: 'key-tampered' });
    expect((await snapshots.verify(administrator, snapshotId, null)).verification).toMatchObject({ valid: false });
  });
  test('is not imported again in an older state', async () => {
    const { older, verifier } = await begin();
    const { snapshots } = opened.operations;
    renameSync(path(), away());
    await expect(snapshots.import(administrator, pieces(older), verifier)).rejects.toMatchObject({
      code: 'key-tampered',
    });
    const newer = readFileSync(away());
    expect(await snapshots.import(administrator, pieces(newer), verifier)).toMatchObject({ state: 'available' });
  });
});
