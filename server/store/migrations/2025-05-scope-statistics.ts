// What look-ups in a tenant compare where they name something narrower, too (`alsoInScope` of tenants.ts). Without a count of its own PostgreSQL takes
// it for rare, reads all that there is and sorts it, where the first of an index's order would do.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const scopeStatistics = ({ count }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    for (const table of ['approvals', 'audit_events', 'keys', 'tde_applications'])
      await count(db, `${table}_by_scope`, table, sql`coalesce(tenant_id, '')`);
  },
});
