// The version of each policy row, and the set that they are in (row-set.ts).

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

/** Policy tables when this migration was written. */
const tables = [
  'access_guids',
  'api_tokens',
  'approvals',
  'endpoint_credentials',
  'endpoints',
  'external_key_stores',
  'idempotency_keys',
  'keys',
  'recovery_keys',
  'sessions',
  'snapshots',
  'tde_applications',
  'tde_groups',
  'tde_objects',
  'tenants',
  'user_factors',
  'users',
  'vaults',
];

export const rowSet = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    for (const table of tables)
      await db.schema
        .alterTable(table)
        .addColumn('row_version', long, (c) => c.notNull().defaultTo(0))
        .execute();
    await db.schema
      .createTable('row_set')
      .addColumn('id', 'integer', (c) => c.primaryKey())
      .addColumn('version', long, (c) => c.notNull())
      .addColumn('sum', 'text', (c) => c.notNull())
      .addColumn('tag', 'text', (c) => c.notNull())
      .execute();
  },
});
