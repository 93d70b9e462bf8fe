// The process of a foreign disk: carries out what it is told, one task after the other. It ends
// with the service, and when it is killed because a task takes too long (disks.ts); a signal to the
// whole group of the service's processes does not end it while there is something to do.

import { ignoreForeignSignals } from '../../base/foreign-signals.ts';
import { StartError } from '../../base/start-error.ts';
import { diskTasks } from './disk-tasks.ts';
import type { DiskAnswer, DiskQuestion } from './disks.ts';

const faultOf = (id: number, error: unknown): DiskAnswer => {
  const { message, code } = error as NodeJS.ErrnoException;
  return { id, message, code, startClass: error instanceof StartError ? error.class : undefined };
};

const carryOut = async ({ id, task, given }: DiskQuestion): Promise<DiskAnswer> => {
  try {
    return { id, value: await (diskTasks[task] as (...all: readonly unknown[]) => Promise<unknown>)(...given) };
  } catch (error) {
    return faultOf(id, error);
  }
};

ignoreForeignSignals();
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit());
let last: Promise<unknown> = Promise.resolve();
process.on('message', (question) => {
  last = last.then(async () => {
    const answer = await carryOut(question as DiskQuestion);
    process.send?.(answer, undefined, undefined, () => {
      if ('value' in answer && answer.value instanceof Uint8Array) answer.value.fill(0);
    });
  });
});
