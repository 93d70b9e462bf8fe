// A connection to the embedded database that only reads, and delays only its own caller: a thread
// of its own carries out its statements (reading-worker.ts). A statement costs some 0.1 ms more
// here than in the thread that answers requests, where the disk may cost all requests a second.
// Under Kysely.

import type { Worker } from 'node:worker_threads';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { RequestHash } from '../../../../base/request-minutes.ts';
import type { Parameters, Row } from './statements.ts';
import { type SqliteFailure, sqliteError, startWorker, ThreadEnded } from './worker.ts';

/**
 * What the thread is told. `hashes`: the statement gives records of the request log, of which their
 * hashes are wanted.
 */
export type Question = { readonly sql: string; readonly parameters: Parameters; readonly hashes: boolean } | 'close';

/** What it says; answers come in the order of the questions. */
export interface Answer {
  readonly rows?: readonly (Row | RequestHash)[];
  readonly failed?: SqliteFailure;
}

interface Waiting {
  readonly resolve: (rows: readonly unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One connection, and its thread, which begins with the first statement. When the thread ends on
 * its own, what was asked fails, and the next statement begins another.
 */
export class ReadingConnection implements DatabaseConnection {
  readonly #data: { readonly path: string; readonly timeout: number };
  readonly #waiting: Waiting[] = [];
  #worker: Worker | undefined;
  #closed = false;
  #inTransaction = false;
  /** The thread has ended within a transaction: another one would see another state. */
  #lost: ThreadEnded | undefined;

  /** `timeout`: milliseconds that another process's lock is waited for. */
  constructor(path: string, timeout: number) {
    this.#data = { path, timeout };
  }

  #start(): Worker {
    const worker = startWorker('./reading-worker.js', {
      workerData: this.#data,
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    });
    worker.on('message', ({ rows, failed }: Answer) => {
      const first = this.#waiting.shift();
      // Who waits for an answer or for its end keeps the process alive, the thread alone does not.
      if (this.#waiting.length === 0 && !this.#closed) worker.unref();
      if (failed === undefined) first?.resolve(rows ?? []);
      else first?.reject(sqliteError(failed));
    });
    // The end comes behind it.
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      const error = new ThreadEnded();
      if (this.#inTransaction) this.#lost = error;
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    });
    return worker;
  }

  #ask<Found>({ sql, parameters }: CompiledQuery, hashes: boolean): Promise<Found[]> {
    if (this.#closed) return Promise.reject(new Error('the connection is closed'));
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    this.#worker ??= this.#start();
    const worker = this.#worker;
    if (this.#waiting.length === 0) worker.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: resolve as Waiting['resolve'], reject });
      worker.postMessage({ sql, parameters: parameters as Parameters, hashes } satisfies Question);
    });
  }

  /** Steps of the one transaction at a time. */
  async transact(step: 'begin' | 'commit' | 'rollback'): Promise<void> {
    const lost = this.#lost;
    if (lost !== undefined && step === 'commit') throw lost;
    this.#lost = undefined;
    this.#inTransaction = step === 'begin';
    // There is nothing to undo in another thread.
    if (lost === undefined || step === 'begin') await this.#ask(CompiledQuery.raw(step), false);
  }

  async executeQuery<Found>(query: CompiledQuery): Promise<QueryResult<Found>> {
    return { rows: await this.#ask<Found>(query, false) };
  }

  /**
   * Carries out a statement that returns records of the request log, and answers with their hashes.
   */
  hashes(query: CompiledQuery): Promise<RequestHash[]> {
    return this.#ask(query, true);
  }

  streamQuery(): AsyncIterableIterator<never> {
    throw new Error('rows are read in pages');
  }

  /** Behind all that was asked. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#worker = undefined;
    worker.ref();
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    worker.postMessage('close' satisfies Question);
    await exited;
  }
}

/** Closes the connection with the Kysely that is over it. */
export const readingDialect = (connection: ReadingConnection): Dialect => ({
  createAdapter: () => new SqliteAdapter(),
  createQueryCompiler: () => new SqliteQueryCompiler(),
  createIntrospector: (db) => new SqliteIntrospector(db),
  createDriver: (): Driver => ({
    init: () => Promise.resolve(),
    acquireConnection: () => Promise.resolve(connection),
    releaseConnection: () => Promise.resolve(),
    beginTransaction: () => connection.transact('begin'),
    commitTransaction: () => connection.transact('commit'),
    rollbackTransaction: () => connection.transact('rollback'),
    destroy: () => connection.close(),
  }),
});
