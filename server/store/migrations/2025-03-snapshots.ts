// The tables of snapshots: what is kept of them, the recovery keys that they are sealed to, copies that left the service, openings that
// are under way, and what keys that came from another tenant's snapshot were bound to.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const snapshotMigration = ({ bytes, long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('recovery_keys')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('public_key', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('removed_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    // Without a reference to the tenant: what was exported is told for longer than the tenant is there.
    await db.schema
      .createTable('snapshots')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('origin', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('audit_size', long, (c) => c.notNull())
      .addColumn('size', long)
      .addColumn('counts', 'text')
      .addColumn('recovery_key_ids', 'text', (c) => c.notNull())
      .addColumn('signer', 'text')
      .addColumn('verification', 'text')
      .addColumn('verified_at', long)
      .addColumn('deleted_at', long)
      .addColumn('purged_at', long)
      .addColumn('failure', 'text')
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await db.schema.createIndex('snapshots_by_tenant').on('snapshots').columns(['tenant_id', 'id']).execute();
    await db.schema
      .createTable('snapshot_exports')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('snapshot_id', 'text', (c) => c.notNull().references('snapshots.id'))
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('actor_id', 'text', (c) => c.notNull())
      .addColumn('actor_name', 'text', (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex('snapshot_exports_by_snapshot')
      .on('snapshot_exports')
      .columns(['snapshot_id', 'id'])
      .execute();
    await db.schema
      .createTable('snapshot_openings')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('snapshot_id', 'text', (c) => c.notNull().references('snapshots.id'))
      .addColumn('actor_id', 'text', (c) => c.notNull())
      .addColumn('expires_at', long, (c) => c.notNull())
      .execute();
    await db.schema
      .createTable('key_bindings')
      .addColumn('key_id', 'text', (c) => c.primaryKey().references('keys.id'))
      .addColumn('binding', bytes, (c) => c.notNull())
      .execute();
    // A tenant's rows are read in the order of their ids.
    await db.schema.createIndex('tde_objects_of_tenant').on('tde_objects').columns(['tenant_id', 'id']).execute();
  },
});
