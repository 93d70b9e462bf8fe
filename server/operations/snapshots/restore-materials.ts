// The key material of a snapshot: it is sealed again into the records of the tenant that have it, and records that the snapshot does not have go.

import { ServiceError } from '../../base/errors.ts';
import type { RecordClass, RecordPlace, StoredRecord } from '../../ports/records.ts';
import { tokenHashUnit } from './make-snapshot.ts';
import { idHere, type RestoreBatch, type RunningRestore } from './running-restore.ts';

/** Whether a record is there and opens to the same key. */
const holds = (
  { ring, core, archive }: RunningRestore,
  record: StoredRecord | undefined,
  place: RecordPlace,
  check: string,
): boolean => {
  if (record === undefined) return false;
  try {
    const key = ring.open({ ...record, ...place });
    try {
      return archive.checkOf(key) === check;
    } finally {
      core.release(key);
    }
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') return false;
    throw error;
  }
};

export const putMaterials = async (restore: RunningRestore, { materials }: RestoreBatch): Promise<void> => {
  const { ring, archive, tx, target, newIds, gone } = restore;
  const ids = [...new Set(materials.map(({ unitId }) => idHere(restore, unitId)))];
  const stored = new Map(
    (await tx.tenantRows.records(ids)).map((record) => [
      `${record.objectId} ${record.version} ${record.class}`,
      record,
    ]),
  );
  const put: StoredRecord[] = [];
  for (const { unitId, version, attributes, copies, check, key } of materials) {
    if (key === null || gone.has(unitId)) continue;
    if (archive.checkOf(key) !== check)
      throw new ServiceError(
        'key-tampered',
        'a key of the snapshot does not match its check value: nothing was changed',
      );
    if (unitId === tokenHashUnit) {
      // The copy of a tenant has no access_guids of the original.
      if (!newIds) await ring.adoptTokenHashKey(tx, key);
      continue;
    }
    if (newIds && copies.includes('endpoint-secret')) continue;
    const objectId = idHere(restore, unitId);
    for (const recordClass of copies) {
      const place: RecordPlace = {
        tenantId: target.tenantId,
        objectId,
        version,
        class: recordClass as RecordClass,
        attributes,
      };
      if (!holds(restore, stored.get(`${objectId} ${version} ${recordClass}`), place, check))
        put.push(ring.seal(place, key));
    }
    // A copy that was not there then, and is now, goes: the vault's, of a key that was soft-deleted.
    for (const recordClass of ['vault-copy', 'sealed-copy'] as const)
      if (!copies.includes(recordClass) && stored.has(`${objectId} ${version} ${recordClass}`))
        await tx.records.wipe(objectId, version, recordClass);
  }
  await tx.tenantRows.putRecords(put);
};

/** Keys whose material the snapshot does not have had none: a general key that was soft-deleted. */
export const wipeLeftovers = async (restore: RunningRestore, { rows, materials }: RestoreBatch): Promise<void> => {
  const { tx, gone } = restore;
  const carried = new Set(materials.map(({ unitId }) => unitId));
  const without = (rows.get('keys') ?? []).filter(
    ({ row }) => row.state === 'soft-deleted' && !carried.has(String(row.id)) && !gone.has(String(row.id)),
  );
  for (const record of await tx.tenantRows.records(without.map(({ row }) => idHere(restore, String(row.id)))))
    await tx.records.wipe(record.objectId, record.version, record.class);
};
