// Keeps V8's helper threads out of the way of the one thread that answers requests.
//
// They compile and mark garbage, four at a time, for up to a tenth of a second each time. Where the
// process has few CPUs the scheduler shares these out evenly among threads, and the one that is
// waited for gets a fifth. So one of each kind has to do, and young objects are collected by the
// thread that made them, which would have to wait for a helper's share otherwise. A lower priority
// of the helpers would save little more, and the collector of old objects would wait for them, on a
// busy machine for long.

import { setFlagsFromString } from 'node:v8';

const flags = [
  '--concurrent-marking-max-worker-num=1',
  '--concurrent-turbofan-max-threads=1',
  '--concurrent-maglev-max-threads=1',
  '--no-parallel-scavenge',
];

/**
 * For a process that answers requests, once, as early as it can. A flag that V8 does not know is
 * told on standard error.
 */
export const keepHelpersBack = (): void => {
  for (const flag of flags) setFlagsFromString(flag);
};
