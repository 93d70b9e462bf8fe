// Runs of runbooks and their ticks. They are evidence, and outlive what they tell of: no row of theirs keeps another from going.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const runbookMigration = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: a migration knows the schema of its own day
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('runbook_runs')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('application_id', 'text', (c) => c.notNull())
      .addColumn('runbook', 'text', (c) => c.notNull())
      .addColumn('content', 'text', (c) => c.notNull())
      .addColumn('started_at', long, (c) => c.notNull())
      .addColumn('started_by', 'text', (c) => c.notNull())
      .addColumn('finished_at', long)
      .addColumn('finished_by', 'text')
      .addColumn('outcome', 'text')
      .execute();
    await db.schema
      .createIndex('runbook_runs_by_application')
      .on('runbook_runs')
      .columns(['application_id', 'id'])
      .execute();
    await db.schema
      .createTable('runbook_ticks')
      .addColumn('run_id', 'text', (c) => c.notNull().references('runbook_runs.id'))
      .addColumn('step', 'text', (c) => c.notNull())
      .addColumn('outcome', 'text', (c) => c.notNull())
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('actor_id', 'text', (c) => c.notNull())
      .addColumn('actor_name', 'text', (c) => c.notNull())
      .addColumn('note', 'text')
      .addPrimaryKeyConstraint('runbook_ticks_key', ['run_id', 'step'])
      .execute();
  },
});
