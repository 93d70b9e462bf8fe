// Requests of database hosts that made or changed something, by the key under which they may be sent again (ports/store.ts).

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const tdeRequests = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('tde_requests')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('fingerprint', 'text', (c) => c.notNull())
      .addColumn('handles', 'text', (c) => c.notNull())
      .addColumn('at', long, (c) => c.notNull())
      .execute();
    await db.schema.createIndex('tde_requests_by_time').on('tde_requests').column('at').execute();
  },
});
