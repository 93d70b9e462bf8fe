// A thread that copies what is committed from the write-ahead log into the database file, when it is told to, over a connection of
// its own: copying ends with the disk's word, and the thread that answers requests would wait for it. Passive checkpoints only
// (sqlite.org/wal.html), which wait for nobody and hold up nobody.

import { constants, setPriority } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Checkpoint } from './checkpointer.ts';

// Of this thread alone (setpriority(2) on Linux): whoever answers requests goes first where both share a CPU.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

const database = new DatabaseSync(workerData as string);

parentPort?.on('message', (message: 'copy' | 'close') => {
  if (message === 'close') {
    database.close();
    parentPort?.close();
    return;
  }
  let done: Checkpoint;
  try {
    const row = database.prepare('pragma wal_checkpoint(passive)').get();
    done = { pages: Number(row?.log ?? 0), copied: Number(row?.checkpointed ?? 0) };
  } catch {
    // A full or failing disk: the pages stay in the log, where they are as safe, and the next one tries again.
    done = { pages: 0, copied: 0 };
  }
  parentPort?.postMessage(done);
});
