// Keeps the write-ahead log short without making those wait for the disk who read or use keys: a
// thread copies its pages into the database file, and restarts the log (checkpoint-worker.ts).
// Writers wait for the end of that, which is short; the many pages are copied while they write.

import { once } from 'node:events';
import { statSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import type { FileIdentity } from './own-file.ts';
import { type SqliteFailure, sqliteError, startWorker, ThreadEnded } from './worker.ts';

/**
 * What the thread is told. `copy`, while others write, copies until little is left, and is answered
 * with whether there was much to copy; then `renew` is to follow, while writers wait. `empty`,
 * while writers wait, is answered with whether no log is left.
 */
export type Task = 'copy' | 'renew' | 'empty' | 'close';

/** What it says. `failed` is an error of node:sqlite. */
export interface Done {
  readonly done: boolean;
  readonly failed?: SqliteFailure;
}

export interface Checkpointer {
  /** To be called after every commit: something may be there to copy. */
  committed(): void;
  /**
   * Copies all of the log and leaves none, while no writer runs. False: another process, or a long
   * read, prevents it. Throws the error of node:sqlite. Undefined: the thread has failed.
   */
  empty(): Promise<boolean | undefined>;
  close(): Promise<void>;
}

/** Pages of a log that is worth the work: what SQLite takes on its own. */
const longLog = 1_000;
const pageBytes = 4_096;
const everyMs = 1_000;

export interface CheckpointerOptions {
  /** Path of the database. */
  readonly path: string;
  /** Identity of the open file: the thread opens no other one under its name. */
  readonly identity: FileIdentity;
  /** How long an erasure waits for those who read. */
  readonly lockWaitMs: number;
  /** Runs something while no writer does. */
  readonly pause: (work: () => Promise<void>) => Promise<void>;
  /** The thread has failed: SQLite is to copy on its own. */
  readonly onFailure: () => void;
}

export const createCheckpointer = ({
  path,
  identity,
  lockWaitMs,
  pause,
  onFailure,
}: CheckpointerOptions): Checkpointer => {
  let worker: Worker | undefined;
  let failed = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  /** How many want no log to be left. */
  let waitingForNone = 0;

  const fail = (): void => {
    if (failed || closed) return;
    failed = true;
    onFailure();
  };
  const start = (): Worker => {
    const started = startWorker('./checkpoint-worker.js', {
      workerData: { path, identity, longLog, lockWaitMs },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    started.unref();
    // The end comes behind it.
    started.on('error', () => undefined);
    started.once('exit', fail);
    return started;
  };
  const tell = (task: Task): Promise<boolean> =>
    new Promise((resolve, reject) => {
      worker ??= start();
      const asked = worker;
      const ended = (): void => reject(new ThreadEnded());
      asked.once('exit', ended);
      asked.once('message', ({ done, failed: error }: Done) => {
        asked.off('exit', ended);
        if (error === undefined) resolve(done);
        else reject(sqliteError(error));
      });
      asked.postMessage(task);
    });
  const fileIsLong = (): boolean =>
    (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) >= longLog * pageBytes;

  const run = async (): Promise<void> => {
    try {
      if (!(await tell('copy'))) return;
      await pause(async () => {
        await tell('renew');
      });
    } catch {
      fail();
    }
  };

  return {
    committed: () => {
      if (failed || closed || timer !== undefined) return;
      timer = setTimeout(() => {
        timer = undefined;
        // The file does not shrink: it tells that the log has never been long, not that it is long
        // now.
        if (running !== undefined || waitingForNone > 0 || !fileIsLong()) return;
        running = run().finally(() => {
          running = undefined;
        });
      }, everyMs).unref();
    },
    empty: async () => {
      waitingForNone += 1;
      try {
        await running;
        if (failed) return undefined;
        let emptied = false;
        worker ??= start();
        // Otherwise the process could end while it waits.
        worker.ref();
        // Most of the log goes while others write: the pause is for what they add in the meantime.
        await tell('copy');
        await pause(async () => {
          emptied = await tell('empty');
        });
        return emptied;
      } finally {
        waitingForNone -= 1;
        if (!closed) worker?.unref();
      }
    },
    close: async () => {
      closed = true;
      clearTimeout(timer);
      // Otherwise the process could end while it waits.
      worker?.ref();
      await running;
      if (worker === undefined || failed) return;
      const exited = once(worker, 'exit');
      worker.postMessage('close' satisfies Task);
      await exited;
    },
  };
};
