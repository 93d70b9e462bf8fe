// When each external key store was last looked at, beside what was seen: whose turn it is comes from an index.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const keyStoreLooks = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    // Null: never, or before this column was there, or restored from a snapshot of before.
    await db.schema.alterTable('external_key_stores').addColumn('looked_at', long).execute();
    await db.schema
      .createIndex('external_key_stores_by_look')
      .on('external_key_stores')
      .expression(sql`(coalesce(looked_at, 0)), id`)
      .execute();
  },
});
