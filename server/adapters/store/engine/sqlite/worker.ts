// Threads of the store's: how one begins, and how an error of node:sqlite comes out of it.

import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * `file` is next to this one, and ends with `.js`, as a literal: bundlers depend on such texts. The
 * starter of a thread listens to its `error`: otherwise one that the thread does not catch ends the
 * process.
 */
export const startWorker = (file: `./${string}.js`, options: WorkerOptions = {}): Worker => {
  const built = import.meta.url.endsWith('.js');
  return new Worker(new URL(built ? file : file.replace(/js$/, 'ts'), import.meta.url), { execArgv: [], ...options });
};

/** The thread that was asked is gone: it had no memory, or could not be started. */
export class ThreadEnded extends Error {
  override readonly name = 'ThreadEnded';

  constructor() {
    super('a thread of the store has ended');
  }
}

/** An error of node:sqlite: nothing but the message of one would reach another thread. */
export interface SqliteFailure {
  readonly message: string;
  readonly code: string | undefined;
  /** sqlite.org/rescode.html */
  readonly errcode: number | undefined;
}

/** Within the thread. */
export const failureOf = (error: unknown): SqliteFailure => {
  const { message, code, errcode } = error as Error & Partial<SqliteFailure>;
  return { message, code, errcode };
};

/** Outside. */
export const sqliteError = (failure: SqliteFailure): Error => Object.assign(new Error(failure.message), failure);
