// What protects the proxy from more than it can or may do: a token bucket for each endpoint, and
// shedding before queueing eats up the 250 ms after which the cloud key service gives up. Both
// answer 429.

import type { XksEndpointView } from '../../ports/xks-directory.ts';

interface Bucket {
  tokens: number;
  at: number;
}

export interface Rates {
  /** Takes one request out of the endpoint's bucket; false when it is empty. */
  admit(endpoint: XksEndpointView): boolean;
}

/** `now`: milliseconds of a clock that never goes back. */
export const createRates = (now: () => number): Rates => {
  // One entry an endpoint that has a rate; an endpoint that is deleted is no longer requested.
  const buckets = new Map<string, Bucket>();
  return {
    admit: ({ id, settings: { rate } }) => {
      if (rate === null) {
        buckets.delete(id);
        return true;
      }
      const time = now();
      const bucket = buckets.get(id) ?? { tokens: rate.burst, at: time };
      bucket.tokens = Math.min(rate.burst, bucket.tokens + ((time - bucket.at) * rate.perSecond) / 1000);
      bucket.at = time;
      buckets.set(id, bucket);
      if (bucket.tokens < 1) return false;
      bucket.tokens -= 1;
      return true;
    },
  };
};

/**
 * Requests in one iteration of the event loop that are always served, however late they are:
 * serving so few takes about 15 ms, and refusing them half of that. An iteration is long with few
 * requests when the machine runs other processes, or after other work.
 */
const leastQueue = 256;

/**
 * Whether to refuse the current request because it is in a queue and has waited longer than
 * `latestMs`, counted from the beginning of this iteration of the event loop. `afterIteration`
 * calls its argument after the iteration.
 *
 * Refusing earlier would serve fewer requests: reading a request and answering 429 costs nearly
 * half of what serving it does.
 */
export const createShedder = (
  latestMs: number,
  now: () => number = () => performance.now(),
  afterIteration: (done: () => void) => void = setImmediate,
): (() => boolean) => {
  let startedAt = 0;
  let inIteration = 0;
  const over = (): void => {
    inIteration = 0;
  };
  return () => {
    inIteration += 1;
    if (inIteration === 1) {
      startedAt = now();
      afterIteration(over);
    }
    return inIteration > leastQueue && now() - startedAt > latestMs;
  };
};
