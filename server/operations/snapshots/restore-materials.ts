// The key material of a snapshot: it is sealed again into the records of the tenant's rows that own
// it, and records that the snapshot does not have go. A row owns keys if it is in the tenant now,
// with the right authentication code; a key of no such row is left out, whatever the file says of
// it. The value of a key's version never changes: where the tenant has another one, nothing is
// restored.

import { contentDigest } from '../../base/content-digest.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { OwnedRecord, RecordClass, RecordOwner } from '../../ports/key-record.ts';
import type { SnapshotRow } from '../../ports/snapshot-archive.ts';
import type { TenantRow, TenantTable } from '../../ports/tenant-rows.ts';
import { keyOwner } from '../keys/key-records.ts';
import { contentOfCopy } from '../shared/sealed-content.ts';
import { counterOf, idHere, type RestoreBatch, type RunningRestore } from './running-restore.ts';

/** In files of earlier versions: the keys under which they hashed access_guids. */
export const tokenHashUnit = '00000000-0000-0000-0000-000000000002';

interface Owners {
  readonly table: TenantTable;
  readonly classes: readonly RecordClass[];
  readonly owners: ReadonlyMap<string, RecordOwner>;
  readonly rows: ReadonlyMap<string, SnapshotRow>;
}

/** The rows with these ids in the target tenant, for each table whose rows own records. */
const ownersOf = async ({ tx, target }: RunningRestore, ids: readonly string[]): Promise<readonly Owners[]> => {
  const { tenantRows } = tx;
  const all: Owners[] = [];
  for (const table of tenantRows.tables()) {
    const classes = tenantRows.of(table).recordClasses;
    if (classes.length === 0) continue;
    const found = await tenantRows.findIn(table, target.tenantId, ids);
    all.push({
      table,
      classes,
      owners: tenantRows.owners(table, target.tenantId, found),
      rows: new Map(found.map(({ row }) => [String(row.id), row])),
    });
  }
  return all;
};

/** How the key that a record holds compares with the one of this check value. */
const compare = (
  { ring, core, archive }: RunningRestore,
  record: OwnedRecord | undefined,
  check: string,
): 'none' | 'same' | 'other' | 'damaged' => {
  if (record === undefined) return 'none';
  try {
    const key = ring.open(record);
    try {
      return archive.checkOf(key) === check ? 'same' : 'other';
    } finally {
      core.release(key);
    }
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') return 'damaged';
    throw error;
  }
};

const differs = (name: string, version: number): ServiceError =>
  new ServiceError(
    'conflict',
    `version ${version} of the key ${name} has another value here than in the snapshot: nothing was changed`,
    {
      reason: 'key-version-differs',
      hint: 'data may be encrypted with both values: restore the snapshot to a new tenant, which has the other one',
    },
  );

const notOfItsRow = (objectId: string): ServiceError =>
  new ServiceError('key-tampered', `the snapshot has a key that is not the one of its row ${objectId}`, {
    reason: 'snapshot-damaged',
  });

/** Other records than those of keys have one version. */
const isVersionOf = (table: TenantTable, row: SnapshotRow | undefined, version: number): boolean =>
  Number.isSafeInteger(version) && version >= 1 && version <= (table === 'keys' ? Number(row?.current_version) : 1);

type Material = RestoreBatch['materials'][number];

/** The records of one key that are to be put. */
const recordsOf = (
  restore: RunningRestore,
  { unitId, version, attributes, copies, check, key }: Material,
  all: readonly Owners[],
  stored: ReadonlyMap<string, OwnedRecord>,
): readonly OwnedRecord[] => {
  const objectId = idHere(restore, unitId);
  const put: OwnedRecord[] = [];
  for (const copy of copies) {
    const found = all.find(({ classes }) => (classes as readonly string[]).includes(copy));
    const owner = found?.owners.get(objectId);
    if (found === undefined) throw notOfItsRow(objectId);
    const { table, classes, rows } = found;
    if (owner === undefined || key === null) {
      counterOf(restore, table).omitted += 1;
      continue;
    }
    const recordClass = copy as RecordClass;
    const row = rows.get(objectId);
    if (owner.attributes !== attributes || !isVersionOf(table, row, version)) throw notOfItsRow(objectId);
    // Each copy has the one value: where this one is damaged, another may still say which. The
    // value of an object is none that never changes: with another one, its key is another one, too.
    const isOther = table === 'tde_objects' && restore.newValues.has(objectId);
    const kept = classes.map((each) =>
      isOther ? 'none' : compare(restore, stored.get(`${objectId} ${version} ${each}`), check),
    );
    if (kept.includes('other')) throw differs(String(row?.name ?? objectId), version);
    if (kept[classes.indexOf(recordClass)] !== 'same') put.push(restore.ring.seal(owner, version, recordClass, key));
  }
  return put;
};

/**
 * A key that says that it is a copy of another one delays what is said about that one's
 * destruction, and may be another tenant's: it must have its value. The first version is the one
 * that copies never have differently.
 */
const checkClaimedCopy = async (restore: RunningRestore, { unitId, version, check }: Material): Promise<void> => {
  const { tx, target, claimedCopies } = restore;
  const objectId = idHere(restore, unitId);
  if (version !== 1 || !claimedCopies.has(objectId)) return;
  const key = await tx.keys.stored(target.tenantId, objectId);
  for (const other of key === undefined ? [] : await tx.keys.otherCopies(key)) {
    if (other.integrity !== 'ok' || other.state === 'destroyed') continue;
    for (const copy of ['vault-copy', 'sealed-copy'] as const)
      if (compare(restore, await tx.records.of(keyOwner(other)).get(1, copy), check) === 'other')
        throw notOfItsRow(objectId);
  }
};

/** Null: it does not open. */
const valueOfCopy = (...given: Parameters<typeof contentOfCopy>): Buffer | null => {
  try {
    return contentOfCopy(...given);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') return null;
    throw error;
  }
};

/**
 * Values in the copy of a tenant are those of objects with other ids. One that does not open was
 * damaged before the snapshot was made: its object is copied without a value, and named.
 */
const putCopiedValues = async (
  restore: RunningRestore,
  materials: RestoreBatch['materials'],
  all: readonly Owners[],
): Promise<void> => {
  const { core, tx, newValues } = restore;
  const objects = all.find(({ table }) => table === 'tde_objects');
  const put: TenantRow[] = [];
  for (const { unitId, copies, key } of materials) {
    const to = idHere(restore, unitId);
    const row = objects?.rows.get(to);
    if (key === null || !copies.includes('object-content') || !newValues.has(to) || !objects?.owners.has(to)) continue;
    if (!(row?.content instanceof Uint8Array)) throw notOfItsRow(to);
    const content = valueOfCopy(core, key, row.content, { from: unitId, to });
    if (content === null) {
      counterOf(restore, 'tde_objects').omitted += 1;
      restore.withoutValue.push({ id: to, label: String(row.label) });
    }
    const digest = content === null ? null : contentDigest(content);
    put.push({ row: { ...row, content, content_digest: digest }, integrity: 'ok' });
  }
  await tx.tenantRows.put(restore.target.tenantId, 'tde_objects', put);
};

export const putMaterials = async (restore: RunningRestore, { materials }: RestoreBatch): Promise<void> => {
  const { ring, archive, tx, newIds, gone } = restore;
  const all = await ownersOf(restore, [...new Set(materials.map(({ unitId }) => idHere(restore, unitId)))]);
  const stored = new Map<string, OwnedRecord>();
  for (const { owners } of all)
    for (const record of await tx.tenantRows.recordsOf([...owners.values()]))
      stored.set(`${record.objectId} ${record.version} ${record.class}`, record);
  if (newIds)
    await putCopiedValues(
      restore,
      materials.filter(({ unitId }) => !gone.has(unitId)),
      all,
    );
  const put: OwnedRecord[] = [];
  for (const material of materials) {
    const { unitId, version, copies, check, key } = material;
    if (key === null || gone.has(unitId)) continue;
    if (archive.checkOf(key) !== check)
      throw new ServiceError(
        'key-tampered',
        'a key of the snapshot does not match its check value: nothing was changed',
      );
    if (unitId === tokenHashUnit) {
      if (copies.some((copy) => copy !== 'token-hash')) throw notOfItsRow(unitId);
      // The copy of a tenant has no access_guids of the original.
      if (!newIds) await ring.adoptTokenHashKey(tx, key);
      continue;
    }
    if (newIds && copies.includes('endpoint-secret')) continue;
    put.push(...recordsOf(restore, material, all, stored));
    await checkClaimedCopy(restore, material);
    // A copy that was not there then, and is now, goes: the vault's, of a key that is soft-deleted
    // again.
    const objectId = idHere(restore, unitId);
    const extra = stored.get(`${objectId} ${version} vault-copy`);
    const row = all.find(({ table }) => table === 'keys')?.rows.get(objectId);
    if (row?.state === 'soft-deleted' && !copies.includes('vault-copy') && extra !== undefined)
      await tx.records.wipe(extra);
  }
  await tx.records.putAll(put);
};

const isWithout = (row: SnapshotRow): boolean => row.state === 'soft-deleted' || row.destroyed_at != null;

/**
 * Keys whose material the snapshot does not have had none: a general key that was soft-deleted, and
 * one that was destroyed. The row that is in the tenant by now decides: what the file says may be
 * what was changed from outside, and such a row is not put.
 */
export const wipeLeftovers = async (restore: RunningRestore, { rows, materials }: RestoreBatch): Promise<void> => {
  const { tx, gone, target } = restore;
  const carried = new Set(materials.map(({ unitId }) => unitId));
  for (const table of tx.tenantRows.tables()) {
    if (!tx.tenantRows.of(table).leavesTombstones) continue;
    const without = (rows.get(table) ?? []).filter(
      ({ row }) => isWithout(row) && !carried.has(String(row.id)) && !gone.has(String(row.id)),
    );
    const found = await tx.tenantRows.findIn(
      table,
      target.tenantId,
      without.map(({ row }) => idHere(restore, String(row.id))),
    );
    const owners = tx.tenantRows.owners(
      table,
      target.tenantId,
      found.filter(({ row }) => isWithout(row)),
    );
    for (const record of await tx.tenantRows.recordsOf([...owners.values()])) await tx.records.wipe(record);
  }
};
