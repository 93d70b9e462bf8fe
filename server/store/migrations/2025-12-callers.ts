// Where the credentials of an application may be used from.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const callers = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    // Canonical JSON; null: any caller.
    await db.schema.alterTable('tde_applications').addColumn('callers', 'text').execute();
  },
});
