// A copy of the embedded database for a backup, also while the service runs: one read transaction
// in this process, so that it is one state, and the service continues writing. Freed pages are not
// in it: what was deleted stays out of the backup.

import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store-error.ts';
import { isFull } from './dialect.ts';

export interface CopiedDatabase {
  /** The newest migration. */
  readonly schema: string;
  /** Name of the audit log, and its records. */
  readonly log: string;
  readonly records: number;
  /** Epochs of the root keys that the keys in the copy are sealed under. */
  readonly rootEpochs: readonly number[];
}

const lockWaitMs = 5_000;

/** The first column of what a query answers. */
const reading = <T>(path: string, work: (column: <V>(query: string) => V[]) => T): T => {
  const database = new DatabaseSync(path, { readOnly: true, timeout: lockWaitMs });
  try {
    return work(<V>(query: string) =>
      database
        .prepare(query)
        .all()
        .map((row) => Object.values(row)[0] as V),
    );
  } finally {
    database.close();
  }
};
const newestMigration = 'select max(name) from kysely_migration';

/** The newest migration of a database. */
export const schemaOf = (path: string): string => reading(path, (column) => column<string>(newestMigration)[0] ?? '');

const describe = (path: string): CopiedDatabase =>
  reading(path, (column) => ({
    schema: column<string>(newestMigration)[0] ?? '',
    log: column<string>("select value from decisions where id = 'audit-origin'")[0] ?? '',
    records: Number(column<number>('select size from audit_head')[0] ?? 0),
    rootEpochs: column<number>('select distinct root_epoch from tenant_keks order by root_epoch'),
  }));

/**
 * Writes what is committed into a new file, mode 600, and says what is in it. Throws StoreError.
 */
export const copyDatabase = (path: string, to: string): CopiedDatabase => {
  closeSync(openSync(to, 'wx', 0o600));
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: lockWaitMs });
    database.prepare('vacuum into ?').run(to);
    return describe(to);
  } catch (error) {
    if (isFull(error))
      throw new StoreError('open', `there is no room for a copy of the database at ${to}: free some, and try again`, {
        cause: error,
      });
    throw new StoreError(
      'open',
      `${path} cannot be copied: ${error instanceof Error ? error.message : 'unknown reason'}`,
      { cause: error },
    );
  } finally {
    database?.close();
  }
};
