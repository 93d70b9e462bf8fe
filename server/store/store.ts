// The store: a dialect, its migrations, repositories for readers, and the writer. Errors of the database become
// ServiceError here; those after which nothing is certain go to `onFatal`, whose business is to stop the process.

import { Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import type { Clock } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import type { Store } from '../ports/store.ts';
import { StoreError } from './errors.ts';
import { createMigrations } from './migrations.ts';
import { createRepositories, oneRow } from './repositories.ts';
import type { RowAuthenticator } from './rows.ts';
import type { Schema } from './schema.ts';
import { createCheckpointer } from './sqlite/checkpointer.ts';
import { isBusy, isConstraint, isFatal, isFull, lockWaitMs, openSqlite, sqliteColumns } from './sqlite/dialect.ts';
import { createWriter } from './writer.ts';

export interface StoreOptions {
  /** File of the embedded database. Its directory exists and belongs to the service alone. */
  readonly path: string;
  readonly clock: Clock;
  readonly authenticateRow: RowAuthenticator;
  /** Called at most once: the store can no longer be trusted to be durable. */
  readonly onFatal: (error: StoreError) => void;
}

const migrate = async (db: Kysely<Schema>): Promise<void> => {
  const provider = createMigrations(sqliteColumns);
  const known = new Set(Object.keys(await provider.getMigrations()));
  const migrator = new Migrator({ db, provider });
  const applied = await sql<{ readonly name: string }>`select name from kysely_migration`
    .execute(db)
    .then((result) => result.rows)
    .catch(() => []);
  const foreign = applied.find((row) => !known.has(row.name));
  if (foreign !== undefined)
    throw new StoreError(
      'newer',
      `the database was written by a newer version (${foreign.name}): install that version`,
    );
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return;
  if (isFull(error))
    throw new StoreError('open', 'there is no room on the disk for the database: free some', { cause: error });
  throw new StoreError(isFatal(error) ? 'io' : 'open', 'the database schema could not be brought up to date', {
    cause: error,
  });
};

/** How long a lock that is held by others is left alone before it is tried again. */
const askAgainMs = 5;

/** Opens or makes the embedded store. Throws `StoreError`. */
export const openStore = async ({ path, clock, authenticateRow, onFatal }: StoreOptions): Promise<Store> => {
  const connections = openSqlite(path);
  const writerDb = new Kysely<Schema>({ dialect: connections.writer });
  const readerDb = new Kysely<Schema>({ dialect: connections.reader });
  try {
    await migrate(writerDb);
    connections.waitNoMore();
  } catch (error) {
    await Promise.allSettled([writerDb.destroy(), readerDb.destroy()]);
    throw error;
  }

  let fatal = false;
  const translate = (error: unknown): unknown => {
    if (error instanceof ServiceError) return error;
    if (isFatal(error)) {
      if (!fatal) {
        fatal = true;
        onFatal(new StoreError('io', `writing ${path} failed: what was not confirmed is lost`, { cause: error }));
      }
      return new ServiceError('unavailable', 'the store has failed', { cause: error });
    }
    if (isFull(error))
      return new ServiceError('unavailable', 'the disk is full: nothing was changed', {
        hint: 'free space in the data directory',
        cause: error,
      });
    if (isBusy(error))
      return new ServiceError('unavailable', 'another process keeps the database locked: nothing was changed', {
        hint: 'end what has the database open for writing',
        cause: error,
      });
    if (isConstraint(error)) return new ServiceError('conflict', 'the change meets another one', { cause: error });
    return error;
  };

  const run = async (text: string): Promise<void> => {
    await sql.raw(text).execute(writerDb);
  };
  /** Another process's lock (a backup, somebody's shell) is waited for between other work. */
  const beginSoon = async (): Promise<void> => {
    const until = performance.now() + lockWaitMs;
    for (;;) {
      try {
        await run('begin immediate');
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, askAgainMs));
      }
    }
  };
  let synchronous = true;
  const writer = createWriter(
    {
      begin: async (durable) => {
        // In WAL mode 'normal' leaves out the fsync of a commit, and nothing else: the log stays whole.
        if (durable !== synchronous) {
          await run(`pragma synchronous = ${durable ? 'full' : 'normal'}`);
          synchronous = durable;
        }
        await beginSoon();
      },
      commit: async () => {
        await run('commit');
        checkpointer.committed();
      },
      rollback: () => run('rollback'),
      savepoint: () => run('savepoint unit'),
      releaseSavepoint: () => run('release savepoint unit'),
      rollbackToSavepoint: () => run('rollback to savepoint unit'),
    },
    translate,
  );

  const checkpointer = createCheckpointer({
    path,
    pause: (work) => writer.pause(work),
    onFailure: () => connections.copyByItself(),
  });

  const tx = createRepositories(writerDb, authenticateRow, clock);
  const read = createRepositories(readerDb, authenticateRow, clock);
  return {
    dialect: 'sqlite',
    path,
    read,
    write: (work, { durable = true } = {}) => writer.submit(() => work(tx), durable),
    waiting: () => writer.waiting(),
    probe: async () => {
      await writer.submit(async () => {
        await tx.settings.set('probe', String(clock.now()));
        await oneRow.execute(writerDb);
      });
      if ((await read.settings.get('probe')) === undefined)
        throw new ServiceError('unavailable', 'the store does not show what was written');
    },
    checkpoint: async () => {
      await checkpointer.settled();
      connections.checkpoint();
    },
    close: async () => {
      await writer.close(new ServiceError('unavailable', 'the service is stopping'));
      await checkpointer.close();
      await readerDb.destroy();
      await writerDb.destroy();
    },
  };
};
