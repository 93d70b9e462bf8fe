// What nodes tell one another has a code, the row of a token names the person behind it, and that
// of a purged tenant says when nothing of it was left. Changes from before have none: a node that
// meets one reads everything again. Tokens get theirs at the first start, and purged tenants are
// cleared again.

import type { SchemaMigration } from './migration.ts';

export const codedChanges: SchemaMigration = {
  name: '0008-coded-changes',
  up: async (db, { long }) => {
    await db.schema
      .alterTable('node_changes')
      .addColumn('code', 'text', (c) => c.notNull().defaultTo(''))
      .execute();
    await db.schema.alterTable('api_tokens').addColumn('person_id', 'text').execute();
    await db.schema.alterTable('tenants').addColumn('cleared_at', long).execute();
  },
};
