// A thread that reads the embedded database for others, over a connection of its own that cannot
// write. SQLite answers within the call, however long the disk takes: long walks through data that
// is not cached are made here. Statements are carried out one after the other, in the order in
// which they come.

import { constants, setPriority } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { hashRequests } from '../../schema/request-hashes.ts';
import type { Answer, Question } from './reading-connection.ts';
import { keepStatements } from './statements.ts';
import { failureOf } from './worker.ts';

// Lowers the priority of this thread alone (setpriority(2) on Linux): the thread that answers
// requests goes first where both share a CPU.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

const { path, timeout } = workerData as { readonly path: string; readonly timeout: number };
let database: ReturnType<typeof keepStatements> | undefined;

const read = ({ sql, parameters, hashes }: Exclude<Question, 'close'>): Answer => {
  try {
    database ??= keepStatements(new DatabaseSync(path, { readOnly: true, timeout }));
    const { reader, all, run } = database.prepare(sql);
    if (reader) return { rows: hashes ? hashRequests(all(parameters) as never) : all(parameters) };
    run(parameters);
    return { rows: [] };
  } catch (error) {
    return { failed: failureOf(error) };
  }
};

parentPort?.on('message', (question: Question) => {
  if (question !== 'close') {
    parentPort?.postMessage(read(question));
    return;
  }
  database?.close();
  parentPort?.close();
});
