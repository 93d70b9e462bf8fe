// An attempt is counted before its outcome is known: otherwise a thousand guesses at once would
// count as one. An attempt that succeeds is subtracted again. Users' names and addresses are stored
// as a keyed hash only: a text typed as a name may be a password.

import { LimitRefused } from '../../base/limit-refusals.ts';
import { originsOf } from '../../base/origins.ts';
import { toRfc3339 } from '../../base/time.ts';
import { countFailure, type Failures, type LockoutKind } from '../../domain/sign-in.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';

export const failuresKey = (ring: Ports['ring'], kind: LockoutKind, text: string): string =>
  ring.hashToken('sign-in-failures', `${kind}\0${text}`);

interface Counted {
  readonly kind: LockoutKind;
  readonly key: string;
  readonly before: Failures | undefined;
  readonly after: Failures;
}

export interface Attempt {
  /** Set when this attempt, should it fail, locks the user. */
  readonly lock: Failures | undefined;
  /**
   * This attempt succeeded: it is subtracted from the counts as they are now. A lock that another
   * attempt has set stays. `done`: no step of the sign-in is missing, and the user's count starts
   * again; otherwise the user's count stays as it is.
   */
  succeeded(tx: Repositories, done: boolean): Promise<void>;
}

const lockedWhat: Readonly<Record<LockoutKind, string>> = {
  user: 'for this user',
  address: 'from this address',
  network: 'from this network',
};

export const createLockout = ({
  store,
  ring,
  clock,
  usage,
  meter,
}: Pick<Ports, 'store' | 'ring' | 'clock' | 'usage' | 'meter'>) => {
  const refuse = (until: number, what: string): never => {
    usage.refused('api', 'locked');
    meter.signIn('locked');
    throw new LimitRefused('sign-ins', `${what}: the next attempt is possible at ${toRfc3339(until)}`, {
      hint: 'an administrator can unlock a user (dke user unlock); passkeys still work',
      reason: 'locked',
      retryAfterSeconds: Math.max(1, Math.ceil((until - clock.now()) / 1000)),
    });
  };

  return {
    /**
     * Counts an attempt for a user, known or not, from an address. 'rate-limited' while either is
     * locked.
     */
    begin: async (name: string, peer: string | null): Promise<Attempt> => {
      const now = clock.now();
      const counted = await store.write(
        async (tx) => {
          const places: Counted[] = [];
          for (const [kind, text] of [['user', name], ...originsOf(peer)] as const) {
            const key = failuresKey(ring, kind, text);
            const before = await tx.failures.get(key);
            if (before?.lockedUntil != null && before.lockedUntil > now)
              refuse(before.lockedUntil, `too many failed attempts ${lockedWhat[kind]}`);
            places.push({ kind, key, before, after: countFailure(kind, before, now) });
          }
          for (const { key, after } of places) await tx.failures.put(key, after);
          return places;
        },
        // A power failure may take the count of the last moment along.
        { durable: false },
      );
      const user = counted.find(({ kind }) => kind === 'user')?.after;
      return {
        lock: user?.lockedUntil == null ? undefined : user,
        succeeded: async (tx, done) => {
          for (const { kind, key, before, after } of counted) {
            if (kind === 'user' && !done) continue;
            const current = await tx.failures.get(key);
            if (current === undefined) continue;
            const isOwn = current.lockedUntil === after.lockedUntil;
            const rest: Failures = {
              ...current,
              failures: current.failures - 1,
              lockedUntil: isOwn ? (before?.lockedUntil ?? null) : current.lockedUntil,
            };
            const isLocked = rest.lockedUntil !== null && rest.lockedUntil > clock.now();
            if (rest.failures <= 0 || (kind === 'user' && !isLocked)) await tx.failures.remove(key);
            else await tx.failures.put(key, rest);
          }
        },
      };
    },
  };
};
export type Lockout = ReturnType<typeof createLockout>;
