// Which key a restored copy in another tenant is a copy of.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const keyCopies = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema.alterTable('keys').addColumn('copy_of', 'text').execute();
    await db.schema
      .createIndex('keys_by_copy')
      .on('keys')
      .columns(['copy_of', 'id'])
      .where(sql.ref('copy_of'), 'is not', null)
      .execute();
  },
});
