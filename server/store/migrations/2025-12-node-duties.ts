// Work that one node does for all: who has each duty, by which fencing number, and how often it was renewed.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const nodeDuties = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('node_duties')
      .addColumn('duty', 'text', (c) => c.primaryKey())
      // Null: it was given up.
      .addColumn('node_id', 'text')
      .addColumn('fence', long, (c) => c.notNull())
      .addColumn('renewals', long, (c) => c.notNull())
      .execute();
  },
});
