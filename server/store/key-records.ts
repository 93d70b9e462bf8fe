// Key records: sealed key material by object, version and class.

import { type Kysely, sql } from 'kysely';
import type { RecordClass, StoredRecord } from '../ports/records.ts';
import type { Repositories } from '../ports/store.ts';
import type { Schema } from './schema.ts';
import { recordMembers, toRecord } from './tables/keys.ts';

/** Inserts or replaces in one statement: at most 200 records, because databases limit the parameters of a statement. */
export const putRecords = async (db: Kysely<Schema>, records: readonly StoredRecord[]): Promise<void> => {
  if (records.length === 0) return;
  await db
    .insertInto('key_records')
    .values(records.map((each) => ({ ...recordMembers.toRow(each), record: each.record })))
    .onConflict((conflict) =>
      conflict.columns(['object_id', 'version', 'class']).doUpdateSet((e) => ({
        epoch: e.ref('excluded.epoch'),
        attributes: e.ref('excluded.attributes'),
        record: e.ref('excluded.record'),
      })),
    )
    .execute();
};

export const createKeyRecords = (db: Kysely<Schema>): Repositories['records'] => ({
  get: async (objectId, version, recordClass) => {
    const row = await db
      .selectFrom('key_records')
      .selectAll()
      .where('object_id', '=', objectId)
      .where('version', '=', version)
      .where('class', '=', recordClass)
      .executeTakeFirst();
    return row && toRecord(row);
  },
  list: async (objectId, recordClass) =>
    (
      await db
        .selectFrom('key_records')
        .selectAll()
        .where('object_id', '=', objectId)
        .where('class', '=', recordClass)
        .where('record', 'is not', null)
        .orderBy('version')
        .execute()
    ).flatMap((row) => toRecord(row) ?? []),
  listClass: async (recordClass) =>
    (
      await db
        .selectFrom('key_records')
        .selectAll()
        .where('class', '=', recordClass)
        .where('record', 'is not', null)
        .orderBy('object_id')
        .orderBy('version')
        .execute()
    ).flatMap((row) => toRecord(row) ?? []),
  put: (record) => putRecords(db, [record]),
  putAll: (records) => putRecords(db, records),
  wipe: async (objectId, version, recordClass) => {
    const place = () =>
      db
        .updateTable('key_records')
        .where('object_id', '=', objectId)
        .where('version', '=', version)
        .where('class', '=', recordClass);
    const row = await db
      .selectFrom('key_records')
      .select('record')
      .where('object_id', '=', objectId)
      .where('version', '=', version)
      .where('class', '=', recordClass)
      .executeTakeFirst();
    if (row === undefined || row.record === null) return false;
    // Overwritten in its own page first: removing alone leaves the bytes there in most databases.
    await place()
      .set({ record: Buffer.alloc(row.record.length) })
      .execute();
    await place().set({ record: null }).execute();
    return true;
  },
  copies: async (objectIds) =>
    objectIds.length === 0
      ? []
      : (
          await db
            .selectFrom('key_records')
            .select(['object_id', 'version', 'class'])
            .where('object_id', 'in', objectIds)
            .where('record', 'is not', null)
            .execute()
        ).map((row) => ({ objectId: row.object_id, version: row.version, class: row.class as RecordClass })),
  listOlder: async (tenantId, epoch, limit, after) => {
    let query = db
      .selectFrom('key_records')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('epoch', '<', epoch)
      .where('record', 'is not', null);
    if (after !== undefined)
      query = query.where((e) =>
        e(
          e.refTuple('epoch', 'object_id', 'version', 'class'),
          '>',
          e.tuple(after.epoch, after.objectId, after.version, after.class),
        ),
      );
    const found = await query
      .orderBy('epoch')
      .orderBy('object_id')
      .orderBy('version')
      .orderBy('class')
      .limit(limit)
      .execute();
    return found.flatMap((row) => toRecord(row) ?? []);
  },
  destroyedOwners: async (objectIds) => {
    if (objectIds.length === 0) return [];
    const { rows: found } = await sql<{ readonly id: string }>`
      select id from keys where state = 'destroyed' and id in (${sql.join(objectIds)})
      union select id from tde_objects where destroyed_at is not null and id in (${sql.join(objectIds)})`.execute(db);
    return found.map(({ id }) => id);
  },
});
