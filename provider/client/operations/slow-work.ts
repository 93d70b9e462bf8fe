// Work of the core that may take longer than 5 ms. It runs on threads of its own, so that the socket thread answers everybody meanwhile. Each
// local user has a queue of their own, and the queues are served in turn: what the processes of one user ask for does not delay
// another user's. Whatever the work needs of the caller's frame is copied before it waits.
import { createTurnstile, TurnstileFull } from '../../../server/base/turnstile.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { Application } from '../application.ts';

/** A private operation with an RSA key above this many bits takes longer than 5 ms. */
const mostRsaBitsAtOnce = 3072;

export const isSlowPrivateKey = ({ kind, bits }: { readonly kind: string; readonly bits: number }): boolean =>
  kind === 'rsa-private' && bits > mostRsaBitsAtOnce;

const turnstiles = {
  /** Finding primes takes a CPU for up to some seconds, and so does factoring the modulus of numbers that are no key's. */
  search: createTurnstile({ running: 2, runningEach: 1, waiting: 16 }),
  /** Private operations with large RSA keys, and the check of a private key that comes in: up to 10 ms each. */
  computation: createTurnstile({ running: 2, runningEach: 1, waiting: 64 }),
} as const;

/** Runs `work` in the turn of the application's user. It does not begin when the application has ended meanwhile. */
export const queued = async <T>(
  kind: keyof typeof turnstiles,
  application: Application,
  work: () => Promise<T>,
): Promise<T> => {
  const begin = (): Promise<T> => {
    if (application.ended) throw new CryptokiError(CKR.CRYPTOKI_NOT_INITIALIZED, 'the application has ended meanwhile');
    return work();
  };
  try {
    return await turnstiles[kind].pass(begin, String(application.account.uid));
  } catch (error) {
    if (!(error instanceof TurnstileFull)) throw error;
    throw new CryptokiError(CKR.DEVICE_MEMORY, 'too many private keys of this user are in work: try again in a moment');
  }
};
