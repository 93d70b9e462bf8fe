// The store over a database: its migrations, repositories for readers, and the writer. What only
// one database knows is its engine (sqlite/, postgres/). Errors of the database become ServiceError
// here; those after which nothing is certain go to `onFatal`, whose business is to stop the
// process.

import { Kysely } from 'kysely';
import type { RowAuthenticator } from '../../base/row-jobs.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Clock } from '../../base/time.ts';
import type { Changes } from '../../domain/changes.ts';
import type { NodeLink } from '../../ports/node-link.ts';
import type { Repositories, Store, StoredKek } from '../../ports/store.ts';
import { type Copyable, type CopyReport, copyStore } from './copy.ts';
import type { Engine } from './engine/engine.ts';
import type { PostgresOptions } from './engine/postgres/postgres-engine.ts';
import { openSqliteEngine } from './engine/sqlite/sqlite-engine.ts';
import { StoreError } from './engine/store-error.ts';
import { migrate, newestSchema, requireKnown, requireNewest } from './migrations/migrate.ts';
import { createRepositories, oneRow } from './repositories/repositories.ts';
import { createRequestLog } from './repositories/request-log-repository.ts';
import { makeTerms } from './repositories/search-index-repository.ts';
import { begunSetting, createSettings } from './repositories/settings-repository.ts';
import { createTenantKeks } from './repositories/tenant-keks-repository.ts';
import { createRowSet, OutdatedRow } from './rows/row-set.ts';
import { readVersion } from './rows/row-set-head.ts';
import { compareSchema } from './schema/compare-schema.ts';
import type { Schema } from './schema/schema.ts';
import { tryOut } from './scratch.ts';
import { createStoreErrors, type StoreErrors } from './transactions/translate-error.ts';
import { createTransactions } from './transactions/unit-of-work.ts';

interface Surroundings {
  readonly clock: Clock;
  readonly authenticateRow: RowAuthenticator;
  /** Called at most once: the store can no longer be trusted to be durable. */
  readonly onFatal: (error: StoreError) => void;
  /** See TransactionOptions. */
  readonly onKeks?: ((tx: Repositories) => Promise<void>) | undefined;
  /**
   * A commit has succeeded whose units had been told that the outcome is unknown: what memory has
   * of these things is no longer true.
   */
  readonly onLate?: ((changes: Changes) => void) | undefined;
  /** See TransactionOptions. */
  readonly onChange?: (() => void) | undefined;
  /** The database is only read: one of an earlier schema is refused, not upgraded. */
  readonly unchanged?: true | undefined;
}

export interface StoreOptions extends Surroundings {
  /** File of the embedded database. Its directory exists and belongs to the service alone. */
  readonly path: string;
}

/** What the copy of a store works on. */
const copyables = new WeakMap<Store, Copyable>();

/** Runs `work` on one state of everything, while others write. */
const inOneState = async <T>(
  engine: Engine,
  readerDb: Kysely<Schema>,
  errors: StoreErrors,
  work: (db: Kysely<Schema>) => Promise<T>,
): Promise<T> => {
  const dialect = engine.lasting();
  const db = dialect === null ? readerDb : new Kysely<Schema>({ dialect });
  const transaction = db.transaction();
  try {
    return await (dialect === null ? transaction.setIsolationLevel('repeatable read') : transaction).execute(work);
  } catch (error) {
    throw errors.ofReading(error);
  } finally {
    if (dialect !== null) await db.destroy();
  }
};

const upgrade = async (db: Kysely<Schema>, engine: Engine): Promise<void> => {
  for (let times = 0; ; times += 1)
    try {
      await migrate(db, engine);
      await makeTerms(db);
      return;
    } catch (error) {
      const cause = error instanceof StoreError ? error.cause : error;
      if (times === mostRepeats || !engine.isUndone(cause)) throw error;
    }
};

const openOver = async (
  engine: Engine,
  { clock, authenticateRow, onFatal, onKeks, onLate, onChange, unchanged }: Surroundings,
): Promise<Store> => {
  let moved = (): void => undefined;
  const writerDb = new Kysely<Schema>({ dialect: engine.writer, log: () => moved() });
  const readerDb = new Kysely<Schema>({ dialect: engine.reader });
  const requestsDb = engine.requests && new Kysely<Schema>({ dialect: engine.requests.reader });
  const closeAll = async (): Promise<void> => {
    await engine.close();
    await Promise.allSettled([requestsDb?.destroy(), readerDb.destroy()]);
    // The last one empties the write-ahead log.
    await Promise.allSettled([writerDb.destroy()]);
  };
  try {
    await (unchanged === true ? requireNewest(writerDb) : upgrade(writerDb, engine));
  } catch (error) {
    await closeAll();
    throw error;
  }

  const errors = createStoreErrors(engine, onFatal);
  const requireFile = (): void => {
    const refusal = engine.file?.refusal();
    if (refusal !== undefined) throw refusal;
  };
  const { shared } = engine;
  const set = createRowSet(authenticateRow, shared !== undefined, (db) => compareSchema(db, engine.schema));
  const { writer, tx, mark, written } = createTransactions({
    engine,
    db: writerDb,
    set,
    clock,
    errors,
    ...{ onKeks, onLate, onChange },
  });
  ({ moved } = writer);
  engine.started({ pause: (work) => writer.pause(work) });

  const walked = requestsDb && createRequestLog(requestsDb, engine.requests?.hashes);
  const readers = (as: 'reader' | 'again'): Repositories => {
    const own = createRepositories(readerDb, set, as, clock);
    if (walked === undefined) return own;
    // What takes no walk needs no thread: most services with an empty log of requests start none.
    const { newest, dropped } = own.requests;
    return { ...own, requests: { ...walked, newest, dropped } };
  };
  /** A read is one statement, or several that see one state each: it can be done again. */
  const isAgain = (error: unknown): boolean => isOutdated(error) || engine.isUndone(error);
  const read = guarded(readers('reader'), readers('again'), errors.ofReading, isAgain);
  const oneState = <T>(work: (db: Kysely<Schema>) => Promise<T>): Promise<T> =>
    inOneState(engine, readerDb, errors, work);
  const inReader = <T>(work: (db: Kysely<Schema>) => Promise<T>): Promise<T> =>
    work(readerDb).catch((error: unknown) => {
      throw errors.ofReading(error);
    });
  const store: Store = {
    dialect: engine.name,
    path: engine.path,
    link: shared && (translated(shared.link, shared.link, errors.ofReading, isOutdated) as NodeLink),
    committed: engine.mark && { found: engine.mark.found, accept: engine.mark.accept, place: engine.mark.place },
    epoch: () => mark().epoch,
    mark,
    started: async () => shared?.started(),
    read,
    write: async (work, { durable = true, background = false } = {}) => {
      requireFile();
      return writer.submit(() => work(tx), { durable, background });
    },
    checkFile: async () => engine.file?.check(),
    schema: newestSchema,
    written,
    snapshot: (work) => {
      // Before the state is fixed: what is committed from now on may be missing in it.
      const known = set.version();
      return oneState(async (db) =>
        work(createRepositories(db, set, { version: await readVersion(db), known }, clock)),
      );
    },
    tryOut: (work) => tryOut(engine.name, oneState, { authenticateRow, clock }, work),
    rowSet: {
      load: async () => {
        let loaded: Awaited<ReturnType<typeof set.load>> | undefined;
        // Between two commits, so that none is missed. Where no other process commits, that is
        // already one state: the connection that is there reads it, and a start needs no thread for
        // one of its own.
        await writer.pause(async () => {
          loaded = await (shared === undefined ? inReader(set.load) : oneState(set.load));
        });
        if (loaded === undefined) throw new Error('unreachable');
        return loaded;
      },
      version: set.version,
      adopt: (atLeast) => writer.submit(() => set.adopt(writerDb, atLeast)),
      convert: () => writer.submit(() => set.convert(writerDb)),
    },
    waiting: () => writer.waiting(),
    isWriting: () => writer.isWriting(),
    probe: async () => {
      await engine.file?.check();
      requireFile();
      await writer.submit(async () => {
        await tx.settings.set('probe', String(clock.now()));
        await oneRow.execute(writerDb);
      });
      if ((await read.settings.get('probe')) === undefined)
        throw new ServiceError('unavailable', 'the store does not return what was written');
    },
    checkpoint: () => engine.checkpoint(),
    close: async () => {
      errors.closing();
      await writer.close(new ServiceError('unavailable', 'the service is stopping'));
      // What the open file alone has is gone with its last connection.
      await engine.file?.check();
      await closeAll();
      requireFile();
    },
  };
  copyables.set(store, { db: writerDb, dialect: engine.name, place: engine.place });
  return store;
};

/** How often a read is repeated whose rows were changed in the meantime. */
const mostRepeats = 5;

const isOutdated = (error: unknown): boolean => error instanceof OutdatedRow;

type Method = (...values: unknown[]) => unknown;

/**
 * The methods of `group` with their errors translated. A read that met a row older than the newest
 * one, or was undone, is done again, the last time by `again`, which tells of such a row.
 */
const translated = (
  group: object,
  again: object,
  translate: (error: unknown) => unknown,
  isAgain: (error: unknown) => boolean,
): object => {
  const readAgain = async (method: Method, last: Method, values: unknown[]): Promise<unknown> => {
    for (let times = 0; times < mostRepeats; times += 1)
      try {
        return await method(...values);
      } catch (error) {
        if (!isAgain(error)) throw error;
      }
    return last(...values);
  };
  return Object.fromEntries(
    Object.entries(group).map(([name, method]: [string, Method]) => [
      name,
      (...values: unknown[]) => {
        // Some tell of the tables without asking the database.
        const answer = method(...values);
        if (!(answer instanceof Promise)) return answer;
        const last = (again as Readonly<Record<string, Method>>)[name] ?? method;
        return answer
          .catch((error: unknown) => {
            if (!isAgain(error)) throw error;
            return readAgain(method, last, values);
          })
          .catch((error: unknown) => {
            throw translate(error);
          });
      },
    ]),
  );
};

const guarded = (
  repositories: Repositories,
  again: Repositories,
  translate: (error: unknown) => unknown,
  isAgain: (error: unknown) => boolean,
): Repositories =>
  Object.fromEntries(
    Object.entries(repositories).map(([name, group]: [string, object]) => [
      name,
      translated(group, again[name as keyof Repositories], translate, isAgain),
    ]),
  ) as unknown as Repositories;

/** Opens or makes the embedded store. Throws `StoreError`. */
export const openStore = async ({ path, ...surroundings }: StoreOptions): Promise<Store> =>
  openOver(openSqliteEngine(path), surroundings);

/** Opens a database of PostgreSQL, and makes the tables in an empty one. Throws `StoreError`. */
export const openPostgresStore = async ({
  postgres,
  ...surroundings
}: Surroundings & { readonly postgres: PostgresOptions }): Promise<Store> => {
  const { openPostgres } = await import('./engine/postgres/postgres-engine.ts');
  return openOver(await openPostgres(postgres, 'start', surroundings.authenticateRow), surroundings);
};

/**
 * What a start finds in a database of PostgreSQL, which stays as it is: its schema, and the keys
 * that the root key opens. Throws `StoreError`.
 */
export const inspectPostgres = async (
  postgres: PostgresOptions,
): Promise<{ readonly schema: string | undefined; readonly begun: boolean; readonly keks: readonly StoredKek[] }> => {
  const { openPostgres } = await import('./engine/postgres/postgres-engine.ts');
  const engine = await openPostgres(postgres, 'look');
  const db = new Kysely<Schema>({ dialect: engine.reader });
  try {
    const schema = (await requireKnown(db)).toSorted().at(-1);
    if (schema === undefined) return { schema, begun: false, keks: [] };
    const begun = (await createSettings(db).get(begunSetting)) !== undefined;
    return { schema, begun, keks: await createTenantKeks(db).list() };
  } finally {
    await engine.close();
    await Promise.allSettled([db.destroy(), new Kysely<Schema>({ dialect: engine.writer }).destroy()]);
  }
};

/**
 * Copies all of one store to another one that is empty (copy.ts). No other process uses either.
 * Throws `StoreError`.
 */
export const copyWhole = (from: Store, to: Store, options: Parameters<typeof copyStore>[2]): Promise<CopyReport> => {
  const [source, target] = [copyables.get(from), copyables.get(to)];
  if (source === undefined || target === undefined) throw new Error('not a store that was opened here');
  return copyStore(source, target, options);
};
export type { CopyReport };
