// Requests of database hosts that were carried out get rows with authentication codes. Those from
// before have none, and are forgotten: a host that sends one of them again after the upgrade makes
// an object that is not used.

import type { SchemaMigration } from './migration.ts';

export const codedRequests: SchemaMigration = {
  name: '0005-coded-requests',
  up: async (db, { long }) => {
    await db.schema.dropTable('tde_requests').execute();
    await db.schema
      .createTable('tde_requests')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('fingerprint', 'text', (c) => c.notNull())
      .addColumn('handles', 'text', (c) => c.notNull())
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .addColumn('row_version', long, (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema.createIndex('tde_requests_by_time').on('tde_requests').column('at').execute();
  },
};
