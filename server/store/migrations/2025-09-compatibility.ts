// The compatibility switches of applications.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const compatibility = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    // Canonical JSON; null: none.
    await db.schema.alterTable('tde_applications').addColumn('compatibility', 'text').execute();
  },
});
