// What nodes tell one another has a code, and the row of a token names the person behind it. Changes
// from before have none: a node that meets one reads everything again. Tokens from before get
// theirs at the first start.

import type { SchemaMigration } from './migration.ts';

export const codedChanges: SchemaMigration = {
  name: '0008-coded-changes',
  up: async (db) => {
    await db.schema
      .alterTable('node_changes')
      .addColumn('code', 'text', (c) => c.notNull().defaultTo(''))
      .execute();
    await db.schema.alterTable('api_tokens').addColumn('person_id', 'text').execute();
  },
};
