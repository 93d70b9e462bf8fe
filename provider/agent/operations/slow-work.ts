// Work of the core that may take longer than 5 ms. It runs on threads of its own, so that the
// socket thread answers everybody in the meantime. Each local user has a queue of their own, and
// the queues are served round robin: what the processes of one user ask for does not delay another
// user's. Whatever the work needs of the caller's frame is copied before it waits.
import { createFairQueue, QueueFull } from '../../../server/base/fair-queue.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { Application } from '../sessions/application.ts';

/** A private operation with an RSA key above this many bits takes longer than 5 ms. */
const mostRsaBitsAtOnce = 3072;

export const isSlowPrivateKey = ({ kind, bits }: { readonly kind: string; readonly bits: number }): boolean =>
  kind === 'rsa-private' && bits > mostRsaBitsAtOnce;

const queues = {
  /**
   * Finding primes takes a CPU for up to some seconds, and so does factoring the modulus of numbers
   * that are not a key's.
   */
  search: createFairQueue({ running: 2, runningEach: 1, waiting: 16 }),
  /**
   * Private operations with large RSA keys, and the check of a private key that comes in: up to 10
   * ms each.
   */
  computation: createFairQueue({ running: 2, runningEach: 1, waiting: 64 }),
} as const;

/**
 * Runs `work` from the queue of the application's user. It does not begin when the application has
 * ended in the meantime.
 */
export const queued = async <T>(
  kind: keyof typeof queues,
  application: Application,
  work: () => Promise<T>,
): Promise<T> => {
  const begin = (): Promise<T> => {
    if (application.ended)
      throw new CryptokiError(CKR.CRYPTOKI_NOT_INITIALIZED, 'the application has ended in the meantime');
    return work();
  };
  try {
    return await queues[kind].run(begin, String(application.account.uid));
  } catch (error) {
    if (!(error instanceof QueueFull)) throw error;
    throw new CryptokiError(
      CKR.DEVICE_MEMORY,
      'too many operations with private keys of this user are in progress: try again in a moment',
    );
  }
};
