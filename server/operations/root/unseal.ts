// A sealed service waits here for its root key: for a passphrase, or for a provider that is
// available again. scrypt makes guesses slow, one is checked at a time, and each wrong one makes
// its address wait longer. Requests from the service's own host never wait for other addresses, so
// outsiders cannot keep the service sealed.

import { createFairQueue, QueueFull } from '../../base/fair-queue.ts';
import { LimitRefused } from '../../base/limit-refusals.ts';
import { isLocal, originsOf } from '../../base/origins.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Clock } from '../../base/time.ts';
import type { Log } from '../../ports/log.ts';
import type { RootProvider } from '../../ports/root-provider.ts';

const retryEveryMs = 5_000;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
/** Addresses whose wrong passphrases are remembered. */
const mostOrigins = 1_000;

interface SealedRoot {
  unseal(passphrase: Buffer): Promise<RootProvider | undefined>;
  retry(): Promise<RootProvider | undefined>;
}

export interface Unsealing {
  /** Resolves once the root is open. */
  readonly root: Promise<RootProvider>;
  /**
   * 'forbidden' for a wrong passphrase, 'rate-limited' when one from the same address comes too
   * soon after it.
   */
  unseal(passphrase: Buffer, peer: string | null): Promise<void>;
  /** How many wrong passphrases were given. */
  failures(): number;
  stop(): void;
}

export const createUnsealing = (sealed: SealedRoot, { clock, log }: { clock: Clock; log: Log }): Unsealing => {
  let failures = 0;
  /** Pauses after wrong passphrases, by address; the address with the latest failure is last. */
  const pauses = new Map<string, { readonly failures: number; readonly notBefore: number }>();
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
          (error: unknown) => log.error('the root key could not be checked', { error }),
        )
        .finally(() => {
          if (!opened) look();
        });
    }, retryEveryMs);
    timer.unref();
  };
  look();
  const outside = createFairQueue({ running: 1, waiting: 4 });
  const local = createFairQueue({ running: 1, waiting: 4 });
  const rateLimited = (message: string, pauseMs: number, cause?: unknown): ServiceError =>
    new LimitRefused('sign-ins', message, {
      hint: 'wait a minute, then enter the correct passphrase',
      retryAfterSeconds: Math.max(1, Math.ceil(pauseMs / 1000)),
      cause,
    });
  const guess = async (passphrase: Buffer, origin: string): Promise<void> => {
    if (opened) throw new ServiceError('conflict', 'the service is not sealed');
    const before = pauses.get(origin);
    if (before !== undefined && clock.monotonic() < before.notBefore)
      throw rateLimited('a wrong passphrase was just entered from this address', before.notBefore - clock.monotonic());
    const found = await sealed.unseal(passphrase);
    if (found === undefined) {
      failures += 1;
      const own = (before?.failures ?? 0) + 1;
      pauses.delete(origin);
      pauses.set(origin, {
        failures: own,
        notBefore: clock.monotonic() + Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(20, own - 1)),
      });
      const [oldest] = pauses.keys();
      if (pauses.size > mostOrigins && oldest !== undefined) pauses.delete(oldest);
      log.warn('a wrong passphrase was given for the root key', { failures, origin });
      throw new ServiceError('forbidden', 'the passphrase is wrong', { hint: 'try again' });
    }
    done(found);
  };
  return {
    root,
    failures: () => failures,
    unseal: async (passphrase, peer) => {
      const [[, origin]] = originsOf(peer);
      try {
        await (isLocal(peer) ? local : outside).run(() => guess(passphrase, origin), origin);
      } catch (error) {
        throw error instanceof QueueFull
          ? rateLimited('too many passphrases are being checked', firstPauseMs, error)
          : error;
      }
    },
    stop: () => {
      opened = true;
      clearTimeout(timer);
    },
  };
};
