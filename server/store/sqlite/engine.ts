// The embedded database as the store's engine.

import type { Engine } from '../engine.ts';
import { type Checkpointer, createCheckpointer } from './checkpointer.ts';
import { openCommittedMark } from './committed-mark.ts';
import { isBusy, isConstraint, isFatal, isFull, lockWaitMs, openSqlite, sqliteColumns } from './dialect.ts';

/** How long a lock that is held by others is left alone before it is tried again. */
const askAgainMs = 5;

/** Another process's lock (a backup, somebody's shell) is waited for between other work. */
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
  let checkpointer: Checkpointer | undefined;
  let synchronous = true;
  return {
    name: 'sqlite',
    path,
    place: path,
    whenFull: 'free space in the data directory',
    writer: connections.writer,
    reader: connections.reader,
    lasting: () => connections.another(),
    columns: sqliteColumns,
    kindOf: (error) => {
      if (isFatal(error)) return 'fatal';
      if (isFull(error)) return 'full';
      if (isBusy(error)) return 'busy';
      return isConstraint(error) ? 'constraint' : undefined;
    },
    begin: async (run, durable) => {
      // In WAL mode 'normal' leaves out the fsync of a commit, and nothing else: the log stays whole.
      if (durable !== synchronous) {
        await run(`pragma synchronous = ${durable ? 'full' : 'normal'}`);
        synchronous = durable;
      }
      await beginSoon(run);
      return undefined;
    },
    shared: undefined,
    commit: (run) => run('commit'),
    rollback: (run) => run('rollback'),
    mark,
    committed: () => checkpointer?.committed(),
    started: ({ pause }) => {
      connections.waitNoMore();
      checkpointer = createCheckpointer({ path, pause, onFailure: () => connections.copyByItself() });
    },
    checkpoint: async () => {
      await checkpointer?.settled();
      connections.checkpoint();
    },
    close: async () => {
      await checkpointer?.close();
      mark.close();
    },
  };
};
