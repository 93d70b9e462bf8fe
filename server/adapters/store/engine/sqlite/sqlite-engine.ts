// The embedded database as the store's engine. SQLite would wait for the disk within the commit,
// and with it the whole process: every request of a cloud, too. So it writes its log without that
// (`synchronous = normal`, which leaves out the sync of a commit and nothing else), and a commit
// that must last is synced here, by another thread, before it counts.

import { closeSync, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Engine } from '../engine.ts';
import { StoreError } from '../store-error.ts';
import { type Checkpointer, createCheckpointer } from './checkpointer.ts';
import { openCommittedMark } from './committed-mark.ts';
import { isBusy, isConstraint, isFatal, isFull, lockWaitMs, logInUse, openSqlite, sqliteColumns } from './dialect.ts';
import { identityOf, watchOwnFile } from './own-file.ts';
import { readingDialect } from './reading-connection.ts';
import { sqliteSchema } from './schema-list.ts';
import { ThreadEnded } from './worker.ts';

const sync = promisify(fdatasync);

/** How long a lock that is held by others is left alone before it is tried again. */
const askAgainMs = 5;

/** Another process's lock (a backup, an operator's shell) is waited for between other work. */
const beginSoon = async (run: (statement: string) => Promise<void>): Promise<void> => {
  const until = performance.now() + lockWaitMs;
  for (;;) {
    try {
      await run('begin immediate');
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, askAgainMs));
    }
  }
};

/** Opens or makes the file. Throws `StoreError`. */
export const openSqliteEngine = (path: string): Engine => {
  const mark = openCommittedMark(path);
  const connections = openSqlite(path);
  const requests = connections.another();
  const identity = identityOf(path);
  const file = watchOwnFile(path, (to) => connections.saveTo(to));
  let checkpointer: Checkpointer | undefined;
  let lasts = true;
  /** Runs work between two commits. */
  let between = (work: () => Promise<void>): Promise<void> => work();
  /** The write-ahead log, which is one file as long as a connection is open. */
  let log: number | undefined;
  const syncLog = async (): Promise<void> => {
    try {
      log ??= openSync(`${path}-wal`, 'r');
      await sync(log);
    } catch (error) {
      // What the log holds is not on the disk, and who reads sees it already.
      throw new StoreError('io', 'the disk did not take a commit', { cause: error });
    }
  };
  return {
    name: 'sqlite',
    path,
    place: path,
    whenFull: 'free space in the data directory',
    whenAway: () => undefined,
    whenStalled: 'check the disk of the data directory',
    writer: connections.writer,
    reader: connections.reader,
    lasting: () => readingDialect(connections.another()),
    requests: {
      reader: readingDialect(requests),
      hashes: (query) => requests.hashes(query),
    },
    columns: sqliteColumns,
    schema: sqliteSchema,
    isUndone: () => false,
    kindOf: (error) => {
      if (isFatal(error) || error instanceof StoreError) return 'fatal';
      if (isFull(error)) return 'full';
      if (error instanceof ThreadEnded) return 'away';
      if (isBusy(error)) return 'busy';
      return isConstraint(error) ? 'constraint' : undefined;
    },
    begin: async (run, durable) => {
      lasts = durable;
      await beginSoon(run);
      return undefined;
    },
    shared: undefined,
    outlast: async () => {
      lasts = true;
    },
    commit: async (run) => {
      await run('commit');
      if (lasts) await syncLog();
    },
    rollback: (run) => run('rollback'),
    mark,
    file,
    committed: () => checkpointer?.committed(),
    started: ({ pause }) => {
      between = pause;
      connections.syncNoMore();
      connections.waitNoMore();
      checkpointer = createCheckpointer({
        path,
        identity,
        lockWaitMs,
        pause,
        onFailure: () => connections.copyByItself(),
      });
    },
    checkpoint: async () => {
      const emptied = await checkpointer?.empty();
      // SQLite refuses to empty the log within a transaction of the same connection.
      if (emptied === undefined) await between(async () => connections.checkpoint());
      else if (!emptied) throw logInUse();
    },
    close: async () => {
      await checkpointer?.close();
      mark.close();
      if (log !== undefined) closeSync(log);
      log = undefined;
    },
  };
};
