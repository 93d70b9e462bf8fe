// One server per data directory. The lock is an exclusive transaction on a small database of its own: the operating system
// gives it back when the process ends, however it ends, so there is no stale lock to clear by hand.

import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../errors.ts';
import { whyNotWritable } from './writable.ts';

export interface DirectoryLock {
  release(): void;
}

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
    const busy = ((error as { readonly errcode?: unknown }).errcode as number | undefined) === 5;
    throw new StoreError(
      'open',
      busy
        ? `another server uses this data directory (${path} is locked)`
        : `the data directory cannot be used: ${whyNotWritable(path) ?? `${path} cannot be locked`}`,
      { cause: error },
    );
  }
};
