// Keeps the write-ahead log short without making anybody wait for the disk: a thread copies its pages into the database file
// (checkpoint-worker.ts). SQLite begins the log anew when all of it was copied before the next commit, which is so between two batches
// of request records. Where commits follow one another without a pause the log grows; once it is much too long, writers wait until
// the rest is copied. Who only reads or uses keys never waits.

import { once } from 'node:events';
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** Pages in the log, and how many of them are in the database file, too. */
export interface Checkpoint {
  readonly pages: number;
  readonly copied: number;
}

export interface Checkpointer {
  /** To be called after every commit: something may be there to copy. */
  committed(): void;
  /** Resolves when nothing is being copied; nothing is until control returns to the event loop. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** Pages of a log that is worth the work: what SQLite takes by itself. */
const longLog = 1_000;
/** Of a log that must not grow on: 64 MiB. */
const muchTooLong = 16_000;
const pageBytes = 4_096;
const everyMs = 1_000;

export interface CheckpointerOptions {
  /** Of the database. */
  readonly path: string;
  /** Runs something while no writer does. */
  readonly pause: (work: () => Promise<void>) => Promise<void>;
  /** The thread has failed: SQLite is to copy by itself. */
  readonly onFailure: () => void;
}

export const createCheckpointer = ({ path, pause, onFailure }: CheckpointerOptions): Checkpointer => {
  let worker: Worker | undefined;
  let failed = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;

  const start = (): Worker => {
    const file = import.meta.url.endsWith('.ts') ? './checkpoint-worker.ts' : './checkpoint-worker.js';
    const started = new Worker(new URL(file, import.meta.url), {
      workerData: path,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    started.unref();
    return started;
  };
  const copy = async (): Promise<Checkpoint> => {
    worker ??= start();
    const answer = once(worker, 'message') as Promise<[Checkpoint]>;
    worker.postMessage('copy');
    const [done] = await answer;
    return done;
  };
  const fileIsLong = (): boolean =>
    (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) >= longLog * pageBytes;

  const run = async (): Promise<void> => {
    try {
      const { pages } = await copy();
      if (pages < muchTooLong) return;
      await pause(async () => {
        await copy();
      });
    } catch {
      if (failed || closed) return;
      failed = true;
      onFailure();
    }
  };

  return {
    committed: () => {
      if (failed || closed || timer !== undefined) return;
      timer = setTimeout(() => {
        timer = undefined;
        // The file does not shrink: it tells that the log has never been long, not that it is long now.
        if (running !== undefined || !fileIsLong()) return;
        running = run().finally(() => {
          running = undefined;
        });
      }, everyMs).unref();
    },
    settled: async () => {
      while (running !== undefined) await running;
    },
    close: async () => {
      closed = true;
      clearTimeout(timer);
      // Otherwise the process could end while it waits.
      worker?.ref();
      while (running !== undefined) await running;
      if (worker === undefined || failed) return;
      const exited = once(worker, 'exit');
      worker.postMessage('close');
      await exited;
    },
  };
};
