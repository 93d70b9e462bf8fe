// The store over a database: its migrations, repositories for readers, and the writer. What only one database knows is its engine
// (sqlite/, postgres/). Errors of the database become ServiceError here; those after which nothing is certain go to `onFatal`, whose
// business is to stop the process.

import { CompiledQuery, Kysely } from 'kysely';
import type { Clock } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import type { ChangeMark } from '../domain/change-protocol.ts';
import { type Changes, mergeChanges } from '../domain/changes.ts';
import type { NodeLink } from '../ports/node-link.ts';
import type { Repositories, Store } from '../ports/store.ts';
import { noteChanges } from './changes.ts';
import { type Copyable, type CopyReport, copyStore } from './copy.ts';
import type { Engine, HeadOfChanges } from './engine.ts';
import { StoreError } from './errors.ts';
import { migrate, newestSchema } from './migrate.ts';
import type { PostgresOptions } from './postgres/engine.ts';
import { createRepositories, oneRow } from './repositories.ts';
import { createRequestLog } from './request-log.ts';
import type { RowAuthenticator } from './row-codes.ts';
import { createRowSet, OutdatedRow, readVersion } from './row-set.ts';
import type { Schema } from './schema.ts';
import { makeTerms } from './search.ts';
import { openSqliteEngine } from './sqlite/engine.ts';
import { createWriter } from './writer.ts';

interface Surroundings {
  readonly clock: Clock;
  readonly authenticateRow: RowAuthenticator;
  /** Called at most once: the store can no longer be trusted to be durable. */
  readonly onFatal: (error: StoreError) => void;
  /** Another process has changed the set of KEKs: called in a unit of work, before it writes. */
  readonly onKeks?: ((tx: Repositories) => Promise<void>) | undefined;
  /** A commit has succeeded whose units had been told that the outcome is unknown: what memory has of these things is no longer true. */
  readonly onLate?: ((changes: Changes) => void) | undefined;
}

export interface StoreOptions extends Surroundings {
  /** File of the embedded database. Its directory exists and belongs to the service alone. */
  readonly path: string;
}

/** What the copy of a store works on. */
const copyables = new WeakMap<Store, Copyable>();

/** How long the database may give no sign before who waits for it is answered. */
const stalledAfterMs = 5_000;
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

const openOver = async (
  engine: Engine,
  { clock, authenticateRow, onFatal, onKeks, onLate }: Surroundings,
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
    await migrate(writerDb, engine);
    await makeTerms(writerDb);
  } catch (error) {
    await closeAll();
    throw error;
  }

  const away = (error: unknown): { readonly cause: unknown; readonly hint?: string } => {
    const hint = engine.whenAway(error);
    return hint === undefined ? { cause: error } : { cause: error, hint };
  };
  let fatal = false;
  const translate = (error: unknown): unknown => {
    if (error instanceof ServiceError) return error;
    const kind = engine.kindOf(error);
    if (kind === 'fatal') {
      if (!fatal) {
        fatal = true;
        onFatal(
          new StoreError('io', `writing ${engine.place} failed: what was not confirmed is lost`, { cause: error }),
        );
      }
      return new ServiceError('unavailable', 'the store has failed', { cause: error });
    }
    if (kind === 'full')
      return new ServiceError('unavailable', 'the disk is full: nothing was changed', {
        hint: engine.whenFull,
        cause: error,
      });
    if (kind === 'busy')
      return new ServiceError('unavailable', 'another process has locked the database: nothing was changed', {
        hint: 'stop the process that has the database open for writing',
        cause: error,
      });
    if (kind === 'away')
      return new ServiceError('unavailable', 'the database does not answer: nothing was changed', away(error));
    if (kind === 'unknown')
      return new ServiceError('unavailable', `${engine.place} has not confirmed the change: it may be made yet`, {
        hint: `check whether it was made before you repeat it; ${engine.whenStalled}`,
        reason: 'unconfirmed',
        cause: error,
      });
    if (kind === 'constraint')
      return new ServiceError('conflict', 'the change conflicts with another one', { cause: error });
    return error;
  };
  let closing = false;
  /** What readers throw: the same, but no reason to stop. */
  const translateRead = (error: unknown): unknown => {
    if (error instanceof ServiceError) return error;
    // A caller reads one thing after another while the service stops.
    if (closing) return new ServiceError('unavailable', 'the service is stopping', { cause: error });
    const kind = engine.kindOf(error);
    if (kind === 'away') return new ServiceError('unavailable', 'the database does not answer', away(error));
    if (kind === 'full')
      return new ServiceError('unavailable', 'the disk is full', { hint: engine.whenFull, cause: error });
    if (kind === 'busy')
      return new ServiceError('unavailable', 'another process has locked the database', {
        hint: 'stop the process that has the database open for writing',
        cause: error,
      });
    return error;
  };

  const run = async (text: string): Promise<void> => {
    await writerDb.executeQuery(CompiledQuery.raw(text));
  };
  // A sync that failed is told once: the next one of the same file succeeds, and what was lost stays lost. So nothing is committed behind it.
  const requireTrusted = (): void => {
    if (fatal) throw new StoreError('io', 'the store has failed');
  };
  const requireFile = (): void => {
    const refusal = engine.file?.refusal();
    if (refusal !== undefined) throw refusal;
  };
  const { shared } = engine;
  /** What the unit of work under way has changed, and those of the transaction before it. */
  let unit: Changes[] = [];
  let done: Changes[] = [];
  /** Whether the transaction under way is a durable one. */
  let lasting = true;
  let mark: ChangeMark = { epoch: 0, history: '' };
  let keks: number | undefined;
  const set = createRowSet(authenticateRow, shared !== undefined);
  const { transaction } = set;
  const plain = createRepositories(writerDb, set, 'transaction', clock);
  /** Audit records after the newest append of the unit of work under way, of the units before it, and of what is committed. */
  const records: { unit?: number | undefined; done?: number | undefined; committed?: number | undefined } = {};
  const audit: Repositories['audit'] = {
    ...plain.audit,
    append: async (event) => {
      records.unit = await plain.audit.append(event);
      return records.unit;
    },
  };
  const tx = noteChanges({ ...plain, audit }, (changes) => unit.push(changes));
  const endUnit = (): void => {
    transaction.releaseSavepoint();
    done.push(...unit);
    records.done = records.unit ?? records.done;
  };
  const beginUnit = (): void => {
    unit = [];
    records.unit = undefined;
    transaction.savepoint();
  };
  let told: HeadOfChanges | undefined;
  const writer = createWriter(
    {
      begin: async (durable) => {
        requireTrusted();
        lasting = durable;
        unit = [];
        done = [];
        records.unit = undefined;
        records.done = undefined;
        transaction.begin();
        const found = await engine.begin(run, durable);
        // A request that changes nothing has found the work of this change done.
        if (found !== undefined) mark = { epoch: found.epoch, history: found.history };
        if (found?.keks === keks) return;
        await onKeks?.(plain);
        keks = found?.keks;
      },
      isLocked: (error) => engine.kindOf(error) === 'busy',
      prepare: async () => {
        requireTrusted();
        await transaction.prepare(writerDb);
        told = done.length === 0 ? undefined : await shared?.announce(mergeChanges(done));
      },
      commit: async () => {
        await engine.commit(run);
        transaction.committed();
        records.committed = records.done ?? records.committed;
        if (lasting && records.committed !== undefined) engine.mark?.write(records.committed);
        if (told !== undefined) {
          mark = { epoch: told.epoch, history: told.history };
          ({ keks } = told);
        }
        engine.committed();
      },
      rollback: () => {
        transaction.rolledBack();
        return engine.rollback(run);
      },
      savepoint: () => {
        beginUnit();
        return run('savepoint unit');
      },
      releaseSavepoint: async () => {
        await run('release savepoint unit');
        endUnit();
      },
      rollbackToSavepoint: () => {
        beginUnit();
        return run('rollback to savepoint unit');
      },
      endOnlyUnit: endUnit,
    },
    translate,
    {
      afterMs: stalledAfterMs,
      now: () => clock.monotonic(),
      undone: (forMs) =>
        new ServiceError('unavailable', `${engine.place} has not answered for ${seconds(forMs)}: nothing was changed`, {
          hint: engine.whenStalled,
        }),
      unknown: (forMs) =>
        new ServiceError(
          'unavailable',
          `${engine.place} has not confirmed the change for ${seconds(forMs)}: it may be made yet`,
          { hint: `check whether it was made before you repeat it; ${engine.whenStalled}`, reason: 'unconfirmed' },
        ),
      onLate: () => onLate?.(mergeChanges(done)),
    },
  );
  ({ moved } = writer);
  engine.started({ pause: (work) => writer.pause(work) });
  const copyable: Copyable = { db: writerDb, dialect: engine.name, place: engine.place };

  const requests = requestsDb === undefined ? {} : { requests: createRequestLog(requestsDb, engine.requests?.hashes) };
  const readers = (as: 'reader' | 'again') => ({ ...createRepositories(readerDb, set, as, clock), ...requests });
  const read = guarded(readers('reader'), readers('again'), translateRead);
  const inOneState = async <T>(work: (db: Kysely<Schema>) => Promise<T>): Promise<T> => {
    const dialect = engine.lasting();
    const db = dialect === null ? readerDb : new Kysely<Schema>({ dialect });
    const transaction = db.transaction();
    try {
      return await (dialect === null ? transaction.setIsolationLevel('repeatable read') : transaction).execute(work);
    } catch (error) {
      throw translateRead(error);
    } finally {
      if (dialect !== null) await db.destroy();
    }
  };
  const store: Store = {
    dialect: engine.name,
    path: engine.path,
    link: shared && (translated(shared.link, shared.link, translateRead) as NodeLink),
    committed: engine.mark && { records: engine.mark.found, accept: engine.mark.accept },
    epoch: () => mark.epoch,
    mark: () => mark,
    started: async () => shared?.started(),
    read,
    write: async (work, { durable = true, background = false } = {}) => {
      requireFile();
      return writer.submit(() => work(tx), { durable, background });
    },
    checkFile: async () => engine.file?.check(),
    schema: newestSchema,
    snapshot: (work) => inOneState(async (db) => work(createRepositories(db, set, await readVersion(db), clock))),
    rowSet: {
      load: async () => {
        let loaded: Awaited<ReturnType<typeof set.load>> | undefined;
        // Between two commits, so that none is missed.
        await writer.pause(async () => {
          loaded = await inOneState(set.load);
        });
        if (loaded === undefined) throw new Error('unreachable');
        return loaded;
      },
      adopt: (atLeast) => writer.submit(() => set.adopt(writerDb, atLeast)),
    },
    waiting: () => writer.waiting(),
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
      closing = true;
      await writer.close(new ServiceError('unavailable', 'the service is stopping'));
      // What the open file alone has is gone with its last connection.
      await engine.file?.check();
      await closeAll();
      requireFile();
    },
  };
  copyables.set(store, copyable);
  return store;
};

/** How often a read is repeated whose rows were changed meanwhile. */
const mostRepeats = 5;

type Method = (...values: unknown[]) => unknown;

/**
 * The methods of `group` with their errors translated. A read that met a row older than the newest one is done again, the last time by `again`, which
 * tells of such a row.
 */
const translated = (group: object, again: object, translate: (error: unknown) => unknown): object => {
  const readAgain = async (method: Method, last: Method, values: unknown[]): Promise<unknown> => {
    for (let times = 0; times < mostRepeats; times += 1)
      try {
        return await method(...values);
      } catch (error) {
        if (!(error instanceof OutdatedRow)) throw error;
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
            if (!(error instanceof OutdatedRow)) throw error;
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
): Repositories =>
  Object.fromEntries(
    Object.entries(repositories).map(([name, group]: [string, object]) => [
      name,
      translated(group, again[name as keyof Repositories], translate),
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
  const { openPostgres } = await import('./postgres/engine.ts');
  return openOver(await openPostgres(postgres), surroundings);
};

/** Copies all of one store to another one that is empty (copy.ts). No other process uses either. Throws `StoreError`. */
export const copyWhole = (from: Store, to: Store, options: Parameters<typeof copyStore>[2]): Promise<CopyReport> => {
  const [source, target] = [copyables.get(from), copyables.get(to)];
  if (source === undefined || target === undefined) throw new Error('not a store that was opened here');
  return copyStore(source, target, options);
};
export type { CopyReport };
