// What requests under an `Idempotency-Key` have made, for a day: whichever node is asked again answers the same.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const idempotencyMigration = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: a migration knows the schema of its own day
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('idempotency_keys')
      // The digest of who asks and of the key: the key itself is nobody else's business.
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('fingerprint', 'text', (c) => c.notNull())
      .addColumn('request_id', 'text', (c) => c.notNull())
      .addColumn('run', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('location', 'text')
      .addColumn('body', 'text')
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await db.schema.createIndex('idempotency_keys_by_age').on('idempotency_keys').column('created_at').execute();
  },
});
