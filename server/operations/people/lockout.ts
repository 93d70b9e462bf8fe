// Attempts that fail are counted before anybody knows that they do: otherwise a thousand at once would be one. What goes well takes
// its count back. Users' names and addresses are known here by a keyed hash alone: what somebody typed as a name may be a password.

import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { countFailure, type Failures, type LockoutKind } from '../../domain/sign-in.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';

export const failuresKey = (ring: Ports['ring'], kind: LockoutKind, text: string): string =>
  ring.hashToken('sign-in-failures', `${kind}\0${text}`);

/** What is counted for an address: a household has 2^64 of version 6. */
const addressOf = (peer: string): string => (peer.includes(':') && !peer.includes('.') ? prefixOf(peer) : peer);
const prefixOf = (peer: string): string => {
  const [head = '', tail] = peer.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right].slice(0, 4).join(':');
};

interface Counted {
  readonly kind: LockoutKind;
  readonly key: string;
  readonly before: Failures | undefined;
  readonly after: Failures;
}

export interface Attempt {
  /** Set when this attempt, should it fail, locks the user. */
  readonly lock: Failures | undefined;
  /** It went well as far as it went: the counts are what they were. `done`: the whole sign-in did, so that the user's begins anew. */
  succeeded(tx: Repositories, done: boolean): Promise<void>;
}

/** A few attempts at once from an address, then one every three seconds. */
const burst = 20;
const perMs = 1 / 3_000;
const mostAddresses = 20_000;

export const createLockout = ({ store, ring, clock, usage }: Pick<Ports, 'store' | 'ring' | 'clock' | 'usage'>) => {
  const buckets = new Map<string, { tokens: number; at: number }>();

  const refuse = (until: number, what: string): never => {
    usage.refused('api', 'locked');
    throw new ServiceError('rate-limited', `${what}: the next attempt is possible at ${toRfc3339(until)}`, {
      hint: 'an administrator can unlock a user: dke user unlock; a passkey is not locked',
      reason: 'locked',
      retryAfterSeconds: Math.max(1, Math.ceil((until - clock.now()) / 1000)),
    });
  };

  return {
    /** Takes one from the address's bucket. 'rate-limited' when it is empty. */
    admit: (peer: string | null): void => {
      const address = addressOf(peer ?? 'unknown');
      const now = clock.monotonic();
      const bucket = buckets.get(address) ?? { tokens: burst, at: now };
      bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) * perMs);
      bucket.at = now;
      // The latest stand last, so that the first one is the one to forget.
      buckets.delete(address);
      buckets.set(address, bucket);
      const [oldest] = buckets.keys();
      if (buckets.size > mostAddresses && oldest !== undefined) buckets.delete(oldest);
      if (bucket.tokens < 1)
        throw new ServiceError('rate-limited', 'too many sign-ins from this address', {
          hint: 'try again in a few seconds',
          retryAfterSeconds: 3,
        });
      bucket.tokens -= 1;
    },

    /** Counts an attempt for a user, known or not, from an address. 'rate-limited' while either is locked. */
    begin: async (name: string, peer: string | null): Promise<Attempt> => {
      const now = clock.now();
      const counted = await store.write(
        async (tx) => {
          const places: Counted[] = [];
          for (const [kind, text] of [
            ['user', name],
            ['address', addressOf(peer ?? 'unknown')],
          ] as const) {
            const key = failuresKey(ring, kind, text);
            const before = await tx.failures.get(key);
            if (before?.lockedUntil != null && before.lockedUntil > now)
              refuse(
                before.lockedUntil,
                kind === 'user'
                  ? 'too many failed attempts for this user'
                  : 'too many failed attempts from this address',
              );
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
          for (const { kind, key, before } of counted) {
            if (before === undefined || (done && kind === 'user')) await tx.failures.remove(key);
            else await tx.failures.put(key, before);
          }
        },
      };
    },
  };
};
export type Lockout = ReturnType<typeof createLockout>;
