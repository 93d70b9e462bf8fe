// The label of an application's PKCS#11 token is a column of its own, which a new name does not
// change. Until now the label was the name.

import { sql } from 'kysely';
import type { SchemaMigration } from './migration.ts';

export const tokenLabels: SchemaMigration = {
  name: '0011-token-labels',
  up: async (db, { compareBytewise }) => {
    await db.schema
      .alterTable('tde_applications')
      .addColumn('token_label', 'text', (c) => c.notNull().defaultTo(''))
      .execute();
    await sql`update tde_applications set token_label = name`.execute(db);
    await compareBytewise(db, ['tde_applications']);
    await db.schema
      .createIndex('tde_applications_token_label')
      .unique()
      .on('tde_applications')
      .columns(['tenant_id', 'token_label'])
      .execute();
  },
};
