// A thread that keeps the write-ahead log short, when it is told to, over connections of its own:
// it copies what is committed from the log into the database file, and then restarts the log. Both
// wait for the disk, and the thread that answers requests would wait for it: the first commit
// behind a log that was copied to its end writes a new header and syncs it (sqlite.org/wal.html).
// So the end is kept out of reach of those commits, by a reader that comes before it, until the
// last writer has ended. Passive checkpoints only, which neither wait for others nor delay them.
// The thread has the priority of the others: writers wait for the end of its work, and on a busy
// machine a thread of low priority would let them wait for seconds.

import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Done, Task } from './checkpointer.ts';
import { type FileIdentity, isSameFile } from './own-file.ts';
import { failureOf } from './worker.ts';

const { path, identity, longLog, lockWaitMs } = workerData as {
  readonly path: string;
  readonly identity: FileIdentity;
  readonly longLog: number;
  readonly lockWaitMs: number;
};
// A new database under the name of one that was deleted would take the write-ahead log of the old
// one for its own.
if (!isSameFile(identity, statSync(path, { throwIfNoEntry: false })))
  throw new Error('the file of the database is another one');
const database = new DatabaseSync(path);
database.exec('pragma synchronous = normal');
/** Two, so that one is in the log before the other one leaves it. */
const readers = [new DatabaseSync(path, { readOnly: true }), new DatabaseSync(path, { readOnly: true })] as const;
/** What may be left to copy while writers wait: a few milliseconds of work. */
const shortRest = 256;
/** A writer that is faster than this copy is not waited for any longer. */
const mostPasses = 8;

const checkpoint = (mode: 'noop' | 'passive') => {
  const row = database.prepare(`pragma wal_checkpoint(${mode})`).get();
  return { pages: Number(row?.log ?? 0), copied: Number(row?.checkpointed ?? 0) };
};
const leave = (): void => {
  for (const reader of readers) if (reader.isTransaction) reader.exec('rollback');
};
/** A reader at the end of the log as it is now; the one from before goes. */
const stand = (): void => {
  const [next, before] = readers[0].isTransaction ? [readers[1], readers[0]] : readers;
  next.exec('begin');
  next.prepare('pragma schema_version').get();
  if (before.isTransaction) before.exec('rollback');
};

/** Answers whether the log was long enough to be worth it. */
const copy = (): boolean => {
  if (checkpoint('noop').pages < longLog) return false;
  for (let pass = 0; pass < mostPasses; pass++) {
    stand();
    checkpoint('passive');
    const { pages, copied } = checkpoint('noop');
    if (pages - copied <= shortRest) break;
  }
  return true;
};

/** Writers wait in the meantime. */
const renew = (): void => {
  leave();
  const { pages, copied } = checkpoint('passive');
  if (copied < pages) return;
  const version = Number(database.prepare('pragma user_version').get()?.user_version);
  // Any commit does. This one changes nothing but the count of changes.
  database.exec(`pragma user_version = ${version}`);
};

const pause = new Int32Array(new SharedArrayBuffer(4));
/**
 * Writers wait. Waits for readers, for a while: SQLite's own wait would sleep up to 100 ms at a
 * time.
 */
const empty = (): boolean => {
  leave();
  const until = performance.now() + lockWaitMs;
  while (database.prepare('pragma wal_checkpoint(truncate)').get()?.busy !== 0) {
    if (performance.now() > until) return false;
    Atomics.wait(pause, 0, 0, 1);
  }
  return true;
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
    // A full or failing disk, or another process's lock: the pages stay in the log, where they are
    // as safe, and the next one tries again.
    leave();
  }
  return { done: false };
};

parentPort?.on('message', (task: Task) => {
  if (task !== 'close') {
    parentPort?.postMessage(carryOut(task));
    return;
  }
  for (const reader of readers) reader.close();
  database.close();
  parentPort?.close();
});
