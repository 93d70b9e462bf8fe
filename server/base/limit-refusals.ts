// Counts what limits refuse: each refusal in a metric, and in the log the first one at once, then
// one line a minute with the addresses that were refused most. Who can choose it: strangers choose
// how often and from where, so that lines and addresses are bounded. Which kinds exist is this
// list, and each of them is tested (test/scenario/limits.test.ts).

import { ServiceError } from './service-error.ts';

/** Limits of requests: a refused request is answered 429, with Retry-After. */
const requestLimits = ['sign-ins', 'exports', 'diagnoses', 'tde-requests', 'xks-requests'] as const;
export type RequestLimit = (typeof requestLimits)[number];

export const limitNames = [
  'connections',
  'connections-of-address',
  'connections-of-network',
  'connections-of-caller',
  'unread-answer',
  'late-request',
  ...requestLimits,
] as const;
export type LimitName = (typeof limitNames)[number];

/**
 * Names its limit, so that the front that answers it counts it. No other code makes 'rate-limited'.
 */
export class LimitRefused extends ServiceError {
  readonly limit: RequestLimit;

  constructor(
    limit: RequestLimit,
    message: string,
    options: NonNullable<ConstructorParameters<typeof ServiceError>[2]> & { readonly retryAfterSeconds: number },
  ) {
    super('rate-limited', message, options);
    this.limit = limit;
  }
}

export interface LimitReport {
  readonly limit: LimitName;
  readonly refused: number;
  /** With how many each. */
  readonly from: readonly string[];
}

export interface LimitRefusals {
  refused(limit: LimitName, address: string | null): void;
  totals(): Readonly<Record<LimitName, number>>;
}

/** What a front does with every error that it answers. */
export const countRefusal = (
  error: unknown,
  refused: LimitRefusals['refused'] | undefined,
  address: string | null,
): void => {
  if (error instanceof LimitRefused) refused?.(error.limit, address);
};

const minuteMs = 60_000;
const mostAddresses = 1_000;
const mostShown = 5;

export const createLimitRefusals = (
  report: (line: LimitReport) => void,
  afterMinute: (done: () => void) => void = (done) => void setTimeout(done, minuteMs).unref(),
): LimitRefusals => {
  const totals = Object.fromEntries(limitNames.map((name) => [name, 0])) as Record<LimitName, number>;
  /** Refusals of the running minute by limit: how many each address had. */
  const minutes = new Map<LimitName, Map<string, number>>();
  const tell = (limit: LimitName, counts: ReadonlyMap<string, number>): void => {
    const most = [...counts].sort(([, one], [, other]) => other - one);
    const refused = most.reduce((sum, [, count]) => sum + count, 0);
    report({ limit, refused, from: most.slice(0, mostShown).map(([address, count]) => `${address} (${count})`) });
  };
  const begin = (limit: LimitName): void => {
    minutes.set(limit, new Map());
    afterMinute(() => {
      const counts = minutes.get(limit) ?? new Map<string, number>();
      minutes.delete(limit);
      if (counts.size === 0) return;
      tell(limit, counts);
      begin(limit);
    });
  };
  return {
    refused: (limit, address) => {
      totals[limit] += 1;
      const known = address ?? 'unknown';
      const counts = minutes.get(limit);
      if (counts === undefined) {
        tell(limit, new Map([[known, 1]]));
        begin(limit);
        return;
      }
      const name = counts.has(known) || counts.size < mostAddresses ? known : 'others';
      counts.set(name, (counts.get(name) ?? 0) + 1);
    },
    totals: () => totals,
  };
};
