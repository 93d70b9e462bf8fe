// What tells a node's data directory from a copy of it, so that a copy that is started while the node is cut off is refused.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const nodeDirectory = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .alterTable('nodes')
      .addColumn('directory', 'text', (c) => c.notNull().defaultTo(''))
      .execute();
  },
});
