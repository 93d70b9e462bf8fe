// Threads of the store's: how one begins, and how an error of node:sqlite comes out of it.

import { Worker, type WorkerOptions } from 'node:worker_threads';

/** `name` is that of a file beside this one, without its ending. An error that the thread does not catch ends the process. */
export const startWorker = (name: string, options: WorkerOptions = {}): Worker => {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./${name}.${ending}`, import.meta.url), { execArgv: [], ...options });
};

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
