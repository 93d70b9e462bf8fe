// A thread that keeps the write-ahead log short, when it is told to, over connections of its own: it copies what is committed from the
// log into the database file, and then begins the log anew. Both end with the disk's word, and the thread that answers requests would
// wait for it: the first commit behind a log that was copied to its end writes a new header and syncs it (sqlite.org/wal.html). So the
// end is kept out of reach of those commits, by a reader that stands before it, until nobody writes.
// Passive checkpoints only, which wait for nobody and hold up nobody.

import { constants, setPriority } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Done, Task } from './checkpointer.ts';
import { failureOf } from './worker.ts';

// Of this thread alone (setpriority(2) on Linux): whoever answers requests goes first where both share a CPU.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

const { path, longLog, lockWaitMs } = workerData as {
  readonly path: string;
  readonly longLog: number;
  readonly lockWaitMs: number;
};
const database = new DatabaseSync(path);
database.exec('pragma synchronous = normal');
const reader = new DatabaseSync(path, { readOnly: true });

const checkpoint = (mode: 'noop' | 'passive') => {
  const row = database.prepare(`pragma wal_checkpoint(${mode})`).get();
  return { pages: Number(row?.log ?? 0), copied: Number(row?.checkpointed ?? 0) };
};
const leave = (): void => {
  if (reader.isTransaction) reader.exec('rollback');
};

/** Answers whether the log was long enough to be worth it. */
const copy = (): boolean => {
  if (checkpoint('noop').pages < longLog) return false;
  leave();
  reader.exec('begin');
  reader.prepare('pragma schema_version').get();
  checkpoint('passive');
  return true;
};

/** Nobody writes meanwhile. */
const renew = (): void => {
  leave();
  const { pages, copied } = checkpoint('passive');
  if (copied < pages) return;
  const version = Number(database.prepare('pragma user_version').get()?.user_version);
  // Any commit does. This one changes nothing but the count of changes.
  database.exec(`pragma user_version = ${version}`);
};

/** Nobody writes meanwhile. Who reads is waited for, for a while. */
const empty = (): boolean => {
  leave();
  database.exec(`pragma busy_timeout = ${lockWaitMs}`);
  try {
    return database.prepare('pragma wal_checkpoint(truncate)').get()?.busy === 0;
  } finally {
    database.exec('pragma busy_timeout = 0');
  }
};

const carryOut = (task: Exclude<Task, 'close'>): Done => {
  if (task === 'empty')
    try {
      return { done: empty() };
    } catch (error) {
      return { done: false, failed: failureOf(error) };
    }
  try {
    if (task === 'copy') return { done: copy() };
    renew();
  } catch {
    // A full or failing disk, or another process's lock: the pages stay in the log, where they are as safe, and the next one tries again.
    leave();
  }
  return { done: false };
};

parentPort?.on('message', (task: Task) => {
  if (task !== 'close') {
    parentPort?.postMessage(carryOut(task));
    return;
  }
  reader.close();
  database.close();
  parentPort?.close();
});
