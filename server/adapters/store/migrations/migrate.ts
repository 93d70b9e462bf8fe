// Brings a database to the schema of this version. An empty database gets the tables as they are
// declared (schema.ts) and counts as migrated; one of a released version takes the steps that it
// lacks (migrations/), all in one transaction.

import { setTimeout } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import type { Engine } from '../engine/engine.ts';
import { StoreError } from '../engine/store-error.ts';
import { createTables } from '../schema/create-tables.ts';
import { baseline, migrations } from './index.ts';
import type { SchemaMigration } from './migration.ts';

/** The schema of this version. */
export const newestSchema = migrations.at(-1)?.name ?? baseline;

const namesOf = (steps: readonly SchemaMigration[]): readonly string[] => [baseline, ...steps.map(({ name }) => name)];

/** Schemas from before the first release were named after months. */
const isUnreleased = (name: string): boolean => /^2025-/.test(name);

export interface ForeignSchema {
  readonly code: 'newer' | 'unreleased';
  /** Follows the name of the database. */
  readonly why: string;
  readonly fix: string;
}

/** Why this version cannot use a database with these migrations. */
export const foreignSchema = (applied: readonly string[], steps = migrations): ForeignSchema | undefined => {
  const unknown = applied.find((name) => !namesOf(steps).includes(name));
  if (unknown === undefined) return undefined;
  return isUnreleased(unknown)
    ? {
        code: 'unreleased',
        why: `was written by a development version from before the first release (${unknown}), which cannot be upgraded`,
        fix: 'start with an empty database, then restore the snapshots of its tenants into it',
      }
    : { code: 'newer', why: `was written by a newer version (${unknown})`, fix: 'install that version' };
};

const refuseNodes = (names: readonly string[]): StoreError =>
  new StoreError(
    'open',
    `nodes of an earlier version use the database: stop them first (${names.join(', ')}), then start this version on each; nothing was changed`,
  );

/**
 * In an empty database, all steps count as done: the baseline creates the newest tables. A node
 * that came since the first check has written nothing, or is seen here: its first write needs the
 * lock that the transaction of the steps has.
 */
const providerOf = (
  engine: Pick<Engine, 'columns' | 'shared'>,
  steps: readonly SchemaMigration[],
  isEmpty: boolean,
): Record<string, Migration> => ({
  [baseline]: { up: (db) => createTables(db, engine.columns) },
  ...Object.fromEntries(
    steps.map((step) => [
      step.name,
      {
        up: async (db) => {
          if (isEmpty) return;
          const names = (await engine.shared?.fence(db)) ?? [];
          if (names.length > 0) throw refuseNodes(names);
          await step.up(db, engine.columns);
        },
      } satisfies Migration,
    ]),
  ),
});

/** How long a node of this host that has just ended may still seem to be connected. */
const endedMs = 5_000;
const lookEveryMs = 200;

/**
 * Nodes of the version before would take the new rows for rows that were changed from outside.
 * Throws `StoreError` while one runs.
 */
const requireNoNode = async ({ shared }: Pick<Engine, 'shared'>): Promise<void> => {
  const until = performance.now() + endedMs;
  for (;;) {
    const names = (await shared?.running()) ?? [];
    if (names.length === 0) return;
    if (performance.now() > until) throw refuseNodes(names);
    await setTimeout(lookEveryMs);
  }
};

// biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a database of which no schema is known yet
const readApplied = async (db: Kysely<any>, steps: readonly SchemaMigration[]): Promise<readonly string[]> => {
  const applied = await sql<{ readonly name: string }>`select name from kysely_migration`
    .execute(db)
    .then((result) => result.rows.map(({ name }) => name))
    .catch(() => []);
  const foreign = foreignSchema(applied, steps);
  if (foreign !== undefined) throw new StoreError(foreign.code, `the database ${foreign.why}: ${foreign.fix}`);
  return applied;
};

/** The migrations of a database that this version can use or upgrade. Throws `StoreError`. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export const requireKnown = (db: Kysely<any>): Promise<readonly string[]> => readApplied(db, migrations);

/** Throws `StoreError` where the database is not of this version's schema. Changes nothing. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export const requireNewest = async (db: Kysely<any>): Promise<void> => {
  const applied = await readApplied(db, migrations);
  if (applied.includes(newestSchema)) return;
  const found = applied.toSorted().at(-1) ?? 'no schema';
  throw new StoreError(
    'open',
    `the database has the schema of an earlier version (${found}): use the command of the version that ran last, or start the service, which upgrades the database to ${newestSchema} (docs/upgrade.md); nothing was changed`,
  );
};

/** Throws `StoreError`; then nothing was changed. */
export const migrate = async (
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  db: Kysely<any>,
  engine: Pick<Engine, 'columns' | 'kindOf' | 'shared'>,
  steps: readonly SchemaMigration[] = migrations,
): Promise<void> => {
  const applied = await readApplied(db, steps);
  if (applied.length > 0 && applied.length < namesOf(steps).length) await requireNoNode(engine);
  const provided = providerOf(engine, steps, applied.length === 0);
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(provided) } });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error === undefined) return;
  if (error instanceof StoreError) throw error;
  if (engine.kindOf(error) === 'full')
    throw new StoreError('open', 'the disk of the database is full: free some space', { cause: error });
  const name = results.find(({ status }) => status === 'Error')?.migrationName ?? 'to this version';
  const why = error instanceof Error ? error.message : String(error);
  throw new StoreError(
    engine.kindOf(error) === 'fatal' ? 'io' : 'open',
    `the migration ${name} of the database failed (${why}): the upgrade was undone; go back to the version before, as docs/upgrade.md says`,
    { cause: error },
  );
};
