// How often an origin may try a credential: some attempts at once, then a few a minute; a network
// has four times as many. Who can choose it: strangers choose how often and, in a network of
// theirs, from where, so that origins are bounded and the latest stay. It decides before anything
// of the request is read. What is lost with a restart is a burst for each origin.

import { LimitRefused, type RequestLimit } from './limit-refusals.ts';
import { originsOf } from './origins.ts';
import type { Clock } from './time.ts';

export interface OriginRates {
  /** Takes one from the buckets of the address. 'rate-limited' when one of them is empty. */
  admit(peer: string | null): void;
}

const mostOrigins = 20_000;
const timesOf = { address: 1, network: 4 } as const;

interface OriginRate {
  readonly burst: number;
  readonly everyMs: number;
  readonly what: string;
  readonly limit: RequestLimit;
}

export const createOriginRates = (
  clock: Pick<Clock, 'monotonic'>,
  { burst, everyMs, what, limit }: OriginRate,
): OriginRates => {
  const filled = new Map<string, { tokens: number; at: number }>();
  return {
    admit: (peer) => {
      const now = clock.monotonic();
      const origins = originsOf(peer).map(([kind, origin]) => {
        const most = burst * timesOf[kind];
        const bucket = filled.get(origin) ?? { tokens: most, at: now };
        bucket.tokens = Math.min(most, bucket.tokens + ((now - bucket.at) * timesOf[kind]) / everyMs);
        bucket.at = now;
        // The latest are last, so that the first one is the one to forget.
        filled.delete(origin);
        filled.set(origin, bucket);
        return bucket;
      });
      for (const oldest of filled.keys()) {
        if (filled.size <= mostOrigins) break;
        filled.delete(oldest);
      }
      if (origins.some(({ tokens }) => tokens < 1))
        throw new LimitRefused(limit, `too many ${what} from this address`, {
          hint: 'try again in a few seconds',
          retryAfterSeconds: Math.ceil(everyMs / 1000),
        });
      for (const bucket of origins) bucket.tokens -= 1;
    },
  };
};

/** The rate of attempts to sign in, or to open a sealed service. */
export const attemptRate = { burst: 20, everyMs: 3_000, what: 'sign-ins', limit: 'sign-ins' } as const;
/**
 * The rate of questions of commands whether their person has approved them: several of an address
 * wait at once.
 */
export const pollRate = { burst: 60, everyMs: 500, what: 'questions about a sign-in', limit: 'sign-ins' } as const;
/**
 * The rate of health probes without a signature. A balancer sends its own and those of strangers
 * from one address: what a stranger sends through it must not end them, and an answer costs little.
 */
export const probeRate = { burst: 1_000, everyMs: 5, what: 'probes', limit: 'xks-requests' } as const;
