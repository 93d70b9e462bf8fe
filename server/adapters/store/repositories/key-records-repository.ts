// Key records: sealed key material by tenant, object, version and class. Each is reached through
// its owner, whose table declares the classes that its rows have.

import { type Kysely, type SqlBool, sql } from 'kysely';
import { serviceTenantId } from '../../../base/ids.ts';
import { ServiceError } from '../../../base/service-error.ts';
import {
  OwnedRecord,
  type RecordAddress,
  type RecordClass,
  RecordOwner,
  type RecordTable,
} from '../../../ports/key-record.ts';
import type { Repositories } from '../../../ports/store.ts';
import { declared, leavesTombstones, type Schema } from '../schema/schema.ts';
import { recordMembers, serviceRecordClasses, toRecord } from '../schema/tables/keys-table.ts';

/** Rows of one statement: databases limit its parameters. */
const atOnce = 200;

/** The classes of records that rows of this table own. */
const recordClassesOf = (table: RecordTable): readonly RecordClass[] => {
  if (table === 'service') return serviceRecordClasses;
  const { records = 'none' } = declared.get(table) ?? {};
  return records === 'none' ? [] : records.classes;
};

/** Throws where a class is not one of the owner's table: that is a fault of this program. */
const requireClass = (owner: RecordOwner, recordClass: RecordClass): void => {
  if (!RecordOwner.isOne(owner) || !recordClassesOf(owner.table).includes(recordClass))
    throw new ServiceError('internal', `rows of ${owner.table} own no ${recordClass}`);
};

const putRecords = async (db: Kysely<Schema>, records: readonly OwnedRecord[]): Promise<void> => {
  for (const { owner, class: own } of records) requireClass(owner, own);
  for (let at = 0; at < records.length; at += atOnce)
    await db
      .insertInto('key_records')
      .values(records.slice(at, at + atOnce).map((each) => ({ ...recordMembers.toRow(each), record: each.record })))
      .onConflict((conflict) =>
        conflict.columns(['tenant_id', 'object_id', 'version', 'class']).doUpdateSet((e) => ({
          epoch: e.ref('excluded.epoch'),
          attributes: e.ref('excluded.attributes'),
          record: e.ref('excluded.record'),
        })),
      )
      .execute();
};

/**
 * Every record of these owners, of one table and tenant, that is not wiped: by object, version and
 * class.
 */
export const recordsOf = async (
  db: Kysely<Schema>,
  owners: readonly RecordOwner[],
): Promise<readonly OwnedRecord[]> => {
  const byId = new Map(owners.map((owner) => [owner.objectId, owner]));
  const [first] = owners;
  const all: OwnedRecord[] = [];
  if (first === undefined) return all;
  const ids = [...byId.keys()];
  for (let at = 0; at < ids.length; at += atOnce) {
    const found = await db
      .selectFrom('key_records')
      .selectAll()
      .where('tenant_id', '=', first.tenantId)
      .where('object_id', 'in', ids.slice(at, at + atOnce))
      .where('class', 'in', recordClassesOf(first.table))
      .where('record', 'is not', null)
      .orderBy('object_id')
      .orderBy('version')
      .orderBy('class')
      .execute();
    for (const row of found) {
      const owner = byId.get(row.object_id);
      const record = toRecord(row);
      if (owner !== undefined && record !== undefined) all.push(new OwnedRecord(owner, record));
    }
  }
  return all;
};

const isAt = ({ tenantId, objectId, version, class: recordClass }: RecordAddress) =>
  sql<SqlBool>`tenant_id = ${tenantId} and object_id = ${objectId} and version = ${version} and class = ${recordClass}`;

const wipeRecord = async (db: Kysely<Schema>, address: RecordAddress): Promise<boolean> => {
  const place = () => db.updateTable('key_records').where(isAt(address));
  const row = await db.selectFrom('key_records').select('record').where(isAt(address)).executeTakeFirst();
  if (row === undefined || row.record === null) return false;
  // Overwritten in its own page first: removing alone leaves the bytes there in most databases.
  await place()
    .set({ record: Buffer.alloc(row.record.length) })
    .execute();
  await place().set({ record: null }).execute();
  return true;
};

export const createKeyRecords = (db: Kysely<Schema>): Repositories['records'] => ({
  of: (owner) => {
    const select = (recordClass: RecordClass) => {
      requireClass(owner, recordClass);
      return db
        .selectFrom('key_records')
        .selectAll()
        .where('tenant_id', '=', owner.tenantId)
        .where('object_id', '=', owner.objectId)
        .where('class', '=', recordClass)
        .where('record', 'is not', null)
        .orderBy('version');
    };
    const owned = (row: Parameters<typeof toRecord>[0]): OwnedRecord[] => {
      const record = toRecord(row);
      return record === undefined ? [] : [new OwnedRecord(owner, record)];
    };
    return {
      get: async (version, recordClass) =>
        (await select(recordClass).where('version', '=', version).execute()).flatMap(owned)[0],
      list: async (recordClass) => (await select(recordClass).execute()).flatMap(owned),
    };
  },
  ofService: async (recordClass) => {
    const found = await db
      .selectFrom('key_records')
      .selectAll()
      .where('tenant_id', '=', serviceTenantId)
      .where('class', '=', recordClass)
      .where('record', 'is not', null)
      .orderBy('object_id')
      .orderBy('version')
      .execute();
    return found.flatMap((row) => {
      const record = toRecord(row);
      if (record === undefined) return [];
      const owner = new RecordOwner('service', { tenantId: serviceTenantId, id: row.object_id, integrity: 'ok' }, null);
      requireClass(owner, recordClass);
      return [new OwnedRecord(owner, record)];
    });
  },
  put: (record) => putRecords(db, [record]),
  putAll: (records) => putRecords(db, records),
  replace: async (records) => {
    for (const each of records)
      await db
        .updateTable('key_records')
        .where(isAt(each))
        .where('record', 'is not', null)
        .set({ epoch: each.epoch, record: each.record })
        .execute();
  },
  wipe: (address) => wipeRecord(db, address),
  tryWipe: async (addresses) => {
    await sql`savepoint wiping`.execute(db);
    let failed: { readonly failure: unknown } | undefined;
    try {
      for (const address of addresses) await wipeRecord(db, address);
    } catch (failure) {
      failed = { failure };
      // Fails where the whole transaction has ended: then nothing of the unit of work continues.
      await sql`rollback to savepoint wiping`.execute(db);
    }
    await sql`release savepoint wiping`.execute(db);
    return failed;
  },
  copies: async (tenantId, objectIds) =>
    objectIds.length === 0
      ? []
      : (
          await db
            .selectFrom('key_records')
            .select(['tenant_id', 'object_id', 'version', 'class'])
            .where('tenant_id', '=', tenantId)
            .where('object_id', 'in', objectIds)
            .where('record', 'is not', null)
            .execute()
        ).map((row) => ({
          tenantId: row.tenant_id,
          objectId: row.object_id,
          version: row.version,
          class: row.class as RecordClass,
        })),
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
    const owners = [...declared].filter(([, table]) => leavesTombstones(table));
    const { rows: found } = await sql<{ readonly id: string }>`${sql.join(
      owners.map(
        ([table]) => sql`select id from ${sql.table(table)}
          where destroyed_at is not null and id in (${sql.join(objectIds)})`,
      ),
      sql` union `,
    )}`.execute(db);
    return found.map(({ id }) => id);
  },
});
