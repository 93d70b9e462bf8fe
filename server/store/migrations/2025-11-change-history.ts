// The history of changes: each has a random id and names the one before it, so that a node sees when a change that it has heard of is
// not there any more.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const changeHistory = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .alterTable('node_head')
      .addColumn('history', 'text', (c) => c.notNull().defaultTo(''))
      .execute();
    for (const column of ['history', 'previous_history'])
      await db.schema
        .alterTable('node_changes')
        .addColumn(column, 'text', (c) => c.notNull().defaultTo(''))
        .execute();
  },
});
