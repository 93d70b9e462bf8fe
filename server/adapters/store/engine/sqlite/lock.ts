// One server per data directory. The lock is an exclusive transaction on a small database of its
// own: the operating system gives it back when the process ends, however it ends, so there is no
// stale lock to clear by hand.

import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store-error.ts';
import { whyNotWritable } from './writable.ts';

export interface DirectoryLock {
  release(): void;
}

const isBusy = (error: unknown): boolean => (error as { readonly errcode?: unknown }).errcode === 5;

/** Whether another process has the lock. One that cannot be tried is not held. */
export const isLocked = (path: string): boolean => {
  try {
    lockDirectory(path).release();
    return false;
  } catch (error) {
    return isBusy((error as Error).cause);
  }
};

export const lockDirectory = (path: string): DirectoryLock => {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    database.exec('pragma journal_mode = memory');
    database.exec('begin exclusive');
    const held = database;
    return {
      release: () => {
        held.exec('rollback');
        held.close();
      },
    };
  } catch (error) {
    database?.close();
    throw new StoreError(
      'open',
      isBusy(error)
        ? `another server uses this data directory (${path} is locked)`
        : `the data directory cannot be used: ${whyNotWritable(path) ?? `${path} cannot be locked`}`,
      { cause: error },
    );
  }
};
