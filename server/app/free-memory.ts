// Freed memory goes back to the system once a minute. A wave of requests leaves as much of it as
// is in use: the C library keeps it for each thread, in pieces between what stays. A process whose
// memory is limited would be ended for memory that nothing needs.

import { core } from '../../addon/core.ts';

const everyMs = 60_000;

/** For a process that is a server, as long as it lives. */
export const returnFreeMemory = (): void => {
  // Where no thread can be started for it, the next minute tries again.
  const attempt = async (): Promise<unknown> => core.returnFreeMemory();
  setInterval(() => void attempt().catch(() => undefined), everyMs).unref();
};
