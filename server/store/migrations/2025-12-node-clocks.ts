// How far the clock of each node's host is ahead of the database's: a deadline counts by the earliest of all clocks.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const nodeClocks = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .alterTable('nodes')
      .addColumn('clock_ahead_ms', long, (c) => c.notNull().defaultTo(0))
      .execute();
  },
});
