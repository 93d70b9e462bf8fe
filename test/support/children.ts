// Child processes of a test end with the test's own process, whatever ends it.
import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();
// One listener for all: a test of many processes is not a leak.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** From now on until the child has ended, or `leave` lets it live on. */
export const endWithTest = (child: ChildProcess): void => {
  running.add(child);
  child.once('exit', () => running.delete(child));
};

export const leave = (child: ChildProcess): void => {
  running.delete(child);
  child.unref();
};
