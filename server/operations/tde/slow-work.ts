// Work of the core that may take longer than 5 ms. It runs on threads of its own, so that the event
// loop answers everybody in the meantime, and so much at a time that the processors have time for
// the loop, too. Each application has a queue of its own, and the queues are served round robin:
// what one application asks for does not delay another one. A key or a state is checked when the
// work begins, not when it is requested.

import { createFairQueue, QueueFull } from '../../base/fair-queue.ts';
import { LimitRefused } from '../../base/limit-refusals.ts';
import type { TdeCaller } from './tde-operations.ts';

/** An RSA key above this many bits takes longer than 5 ms for a private operation. */
const mostRsaBitsAtOnce = 3072;

export const isSlowPrivateKey = (key: { readonly algorithm: string | null; readonly bits: number | null }): boolean =>
  key.algorithm === 'rsa' && (key.bits ?? 0) > mostRsaBitsAtOnce;

const queues = {
  /** Finding primes takes a CPU for up to some seconds. */
  search: createFairQueue({ running: 2, runningEach: 1, waiting: 16 }),
  /**
   * Private operations with large RSA keys, and the check of a private key that comes in: up to 10
   * ms each.
   */
  computation: createFairQueue({ running: 2, runningEach: 1, waiting: 64 }),
} as const;

/**
 * Runs `work` from the queue of the application. 'rate-limited' when too much of the application's
 * work waits already.
 */
export const inTurn = async <T>(
  kind: keyof typeof queues,
  { application }: TdeCaller,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await queues[kind].run(work, application.id);
  } catch (error) {
    if (!(error instanceof QueueFull)) throw error;
    throw new LimitRefused('tde-requests', 'too many private-key operations of this application are in progress', {
      hint: 'try again in a moment',
      retryAfterSeconds: 5,
      cause: error,
    });
  }
};
