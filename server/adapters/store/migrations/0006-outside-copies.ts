// Files that left the service get rows with authentication codes (server/domain/copies.ts). Exports
// of earlier versions are moved by the first start, which has the key of the codes.

import { sql } from 'kysely';
import type { SchemaMigration } from './migration.ts';

export const outsideCopies: SchemaMigration = {
  name: '0006-outside-copies',
  up: async (db, { long }) => {
    await db.schema
      .createTable('outside_copies')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('tenant_id', 'text')
      .addColumn('snapshot_id', 'text')
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('actor_id', 'text', (c) => c.notNull())
      .addColumn('actor_name', 'text', (c) => c.notNull())
      .addColumn('state_from', long, (c) => c.notNull())
      .addColumn('state_until', long, (c) => c.notNull())
      .addColumn('state_size', long)
      .addColumn('erased_until', long)
      .addColumn('erased_size', long)
      .addColumn('oldest_root_epoch', 'integer')
      .addColumn('root_epoch', 'integer')
      .addColumn('destroyed_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .addColumn('row_version', long, (c) => c.notNull().defaultTo(0))
      .execute();
    const index = (name: string, columns: string[]) =>
      db.schema.createIndex(name).on('outside_copies').columns(columns);
    await index('outside_copies_by_tenant', ['tenant_id', 'id']).execute();
    await index('outside_copies_by_kind', ['kind', 'id']).execute();
    await index('outside_copies_by_snapshot', ['snapshot_id', 'id']).execute();
    await index('outside_copies_left', ['id']).where(sql.raw<boolean>('"destroyed_at" is null')).execute();
  },
};
