// A sealed service waits here for its root: a passphrase that somebody gives, or a provider that comes back. Guessing is slow by
// scrypt, one guess at a time, and slower after each wrong one.

import type { Clock } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import { createTurnstile, TurnstileFull } from '../base/turnstile.ts';
import type { Log } from '../ports/log.ts';
import type { RootProvider } from '../ports/root-provider.ts';

const retryEveryMs = 5_000;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

interface SealedRoot {
  unseal(passphrase: Buffer): Promise<RootProvider | undefined>;
  retry(): Promise<RootProvider | undefined>;
}

export interface Unsealing {
  /** Resolves once the root is open. */
  readonly root: Promise<RootProvider>;
  /** 'forbidden' for a wrong passphrase, 'rate-limited' when one comes too soon after it. */
  unseal(passphrase: Buffer): Promise<void>;
  /** How many wrong passphrases were given. */
  failures(): number;
  stop(): void;
}

export const createUnsealing = (sealed: SealedRoot, { clock, log }: { clock: Clock; log: Log }): Unsealing => {
  let failures = 0;
  let notBefore = 0;
  let timer: NodeJS.Timeout | undefined;
  let opened = false;
  let finish: (root: RootProvider) => void = () => undefined;
  const root = new Promise<RootProvider>((resolve) => {
    finish = resolve;
  });
  const done = (found: RootProvider): void => {
    // A passphrase and a provider can come at once: the first one is taken.
    if (opened) {
      found.release();
      return;
    }
    opened = true;
    clearTimeout(timer);
    finish(found);
  };
  const look = (): void => {
    timer = setTimeout(() => {
      sealed
        .retry()
        .then(
          (found) => (found === undefined ? undefined : done(found)),
          (error: unknown) => log.error('the root key could not be looked at', { error }),
        )
        .finally(() => {
          if (!opened) look();
        });
    }, retryEveryMs);
    timer.unref();
  };
  look();
  const turnstile = createTurnstile({ running: 1, waiting: 4 });
  const rateLimited = (message: string, cause?: unknown): ServiceError =>
    new ServiceError('rate-limited', message, { hint: 'wait a while, then give the right one', cause });
  const guess = async (passphrase: Buffer): Promise<void> => {
    if (opened) throw new ServiceError('conflict', 'the service is not sealed');
    if (clock.monotonic() < notBefore) throw rateLimited('a wrong passphrase was given just now');
    const found = await sealed.unseal(passphrase);
    if (found === undefined) {
      failures += 1;
      notBefore = clock.monotonic() + Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1));
      log.warn('a wrong passphrase was given for the root key', { failures });
      throw new ServiceError('forbidden', 'the passphrase is wrong', { hint: 'nothing was locked: try again' });
    }
    done(found);
  };
  return {
    root,
    failures: () => failures,
    unseal: async (passphrase) => {
      try {
        await turnstile.pass(() => guess(passphrase));
      } catch (error) {
        throw error instanceof TurnstileFull ? rateLimited('many passphrases are being tried', error) : error;
      }
    },
    stop: () => {
      opened = true;
      clearTimeout(timer);
    },
  };
};
