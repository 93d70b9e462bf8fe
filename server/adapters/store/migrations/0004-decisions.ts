// Settings that decide something get rows with authentication codes (server/domain/decisions.ts).
// Their values are moved by the first start, which has the key of the codes.

import type { SchemaMigration } from './migration.ts';

export const decisionRows: SchemaMigration = {
  name: '0004-decisions',
  up: async (db, { long }) => {
    await db.schema
      .createTable('decisions')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('value', 'text')
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .addColumn('row_version', long, (c) => c.notNull().defaultTo(0))
      .execute();
  },
};
