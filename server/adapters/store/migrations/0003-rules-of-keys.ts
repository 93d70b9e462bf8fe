// What the maker of a token key has laid down for it (docs/decisions/0036-rules-of-token-keys.md).
// Keys from before have no rules.

import type { SchemaMigration } from './migration.ts';

export const rulesOfKeys: SchemaMigration = {
  name: '0003-rules-of-keys',
  up: async (db) => {
    await db.schema.alterTable('tde_objects').addColumn('rules', 'text').execute();
  },
};
