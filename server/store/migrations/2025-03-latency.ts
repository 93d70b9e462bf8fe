// Latencies of key store endpoints by the minute. Figures, not evidence: no row of theirs keeps another from going.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const latencyMigration = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: a migration knows the schema of its own day
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('xks_latency')
      .addColumn('minute', 'integer', (c) => c.notNull())
      .addColumn('endpoint_id', 'text', (c) => c.notNull())
      .addColumn('node', 'text', (c) => c.notNull())
      .addColumn('counts', 'text', (c) => c.notNull())
      .addColumn('errors', 'integer', (c) => c.notNull())
      .addPrimaryKeyConstraint('xks_latency_key', ['minute', 'endpoint_id', 'node'])
      .execute();
  },
});
