// Key records are addressed by their tenant too. SQLite cannot change a primary key, so that the
// table is made again; in the same transaction the copy is compared with what was there, and the
// upgrade is undone if anything is missing. A record says itself where it belongs
// (addon/FORMAT.md): one that another tenant's row named does not open, before and after.

import { sql } from 'kysely';
import type { SchemaMigration } from './migration.ts';

export const ownedRecords: SchemaMigration = {
  name: '0002-owned-records',
  up: async (db, { bytes }) => {
    const sum = async (table: string): Promise<string> => {
      const { rows } = await sql<Readonly<Record<string, unknown>>>`
        select count(*) as records, count(record) as sealed, coalesce(sum(length(record)), 0) as bytes,
          coalesce(sum(epoch), 0) as epochs, count(distinct tenant_id) as tenants from ${sql.table(table)}`.execute(db);
      return Object.values(rows[0] ?? {}).join(' ');
    };
    const before = await sum('key_records');
    await sql`create table key_records_before as select * from key_records`.execute(db);
    await db.schema.dropTable('key_records').execute();
    await db.schema
      .createTable('key_records')
      .addColumn('object_id', 'text', (c) => c.notNull())
      .addColumn('version', 'integer', (c) => c.notNull())
      .addColumn('class', 'text', (c) => c.notNull())
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('attributes', 'text', (c) => c.notNull())
      .addColumn('record', bytes)
      .addPrimaryKeyConstraint('key_records_pk', ['tenant_id', 'object_id', 'version', 'class'])
      .execute();
    await sql`
      insert into key_records (object_id, version, class, tenant_id, epoch, attributes, record)
      select object_id, version, class, tenant_id, epoch, attributes, record from key_records_before`.execute(db);
    await db.schema
      .createIndex('key_records_by_epoch')
      .on('key_records')
      .columns(['tenant_id', 'epoch', 'object_id', 'version', 'class'])
      .where(sql.raw<boolean>('"record" is not null'))
      .execute();
    const after = await sum('key_records');
    if (after !== before) throw new Error(`the copy of the key records differs: ${after} instead of ${before}`);
    const lost = await sql<{ readonly id: string }>`
      select b.object_id as id from key_records_before b left join key_records a
        on a.tenant_id = b.tenant_id and a.object_id = b.object_id and a.version = b.version and a.class = b.class
        where a.object_id is null or (a.record is null) <> (b.record is null) or a.record <> b.record
          or a.attributes <> b.attributes or a.epoch <> b.epoch limit 1`.execute(db);
    if (lost.rows.length > 0) throw new Error(`the key record of ${lost.rows[0]?.id} was not copied`);
    // What its pages still hold is worth nothing after the next erasure run, as with every older
    // copy of the database.
    await db.schema.dropTable('key_records_before').execute();
  },
};
