// Child processes of a test end with the test's own process, whatever ends it: its end, or the
// SIGTERM with which vitest ends each of its processes. After a SIGKILL they stay.
import type { ChildProcess } from 'node:child_process';

const running = new Map<ChildProcess, NodeJS.Signals>();
// One listener for all: a test of many processes is not a leak.
const endAll = (): void => {
  for (const [child, signal] of running) child.kill(signal);
};
process.once('exit', endAll);
process.once('SIGTERM', () => {
  endAll();
  // The signal ends the process, as it does without a listener.
  process.kill(process.pid, 'SIGTERM');
});

/** From now on until the child has ended, or `leave` lets it live on. */
export const endWithTest = (child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): void => {
  running.set(child, signal);
  child.once('exit', () => running.delete(child));
};

export const leave = (child: ChildProcess): void => {
  running.delete(child);
  child.unref();
};
