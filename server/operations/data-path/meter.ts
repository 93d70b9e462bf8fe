// The counters behind the metrics (ports/meter.ts). They cost every request of the data paths, so a
// series is found by two look-ups and a walk along a handful of results; they start at zero with
// the process.

import { refusalReasons } from '../../base/refusal-reasons.ts';
import type { Clock } from '../../base/time.ts';
import { newHistogram, observe } from '../../domain/metrics.ts';
import type { ApiSeries, Meter, TdeSeries, XksSeries } from '../../ports/meter.ts';

const lookEveryMs = 20;

interface Result {
  readonly status: number;
  readonly errorName: string | null;
  count: number;
}
type XksCounts = Omit<XksSeries, 'results' | 'throttled'> & {
  readonly results: Result[];
  readonly throttled: { rate: number; load: number };
};
type TdeCounts = Omit<TdeSeries, 'results'> & { readonly results: Result[] };
type ApiCounts = Omit<ApiSeries, 'results'> & { readonly results: { route: string; status: number; count: number }[] };

const count = (results: Result[], status: number, errorName: string | null): void => {
  for (const result of results)
    if (result.status === status && result.errorName === errorName) {
      result.count += 1;
      return;
    }
  results.push({ status, errorName, count: 1 });
};

export const createMeter = (clock: Pick<Clock, 'monotonic'>): Meter => {
  const xks = new Map<string | null, Map<string, XksCounts>>();
  const tde = new Map<string, TdeCounts>();
  const api = new Map<string, ApiCounts>();
  const signIns = { succeeded: 0, failed: 0, locked: 0 };
  const credentialUses = new Map<string, number>();
  let notRenewed = 0;
  const eventLoopDelay = newHistogram();
  let timer: NodeJS.Timeout | undefined;

  const xksCounts = (endpointId: string | null, operation: string): XksCounts => {
    let own = xks.get(endpointId);
    if (own === undefined) {
      own = new Map();
      xks.set(endpointId, own);
    }
    let counts = own.get(operation);
    if (counts === undefined) {
      counts = { endpointId, operation, duration: newHistogram(), results: [], throttled: { rate: 0, load: 0 } };
      own.set(operation, counts);
    }
    return counts;
  };

  return {
    xksRequest: (entry) => {
      const counts = xksCounts(entry.endpointId, entry.operation);
      count(counts.results, entry.status, entry.errorName);
      observe(counts.duration, entry.durationMs);
      if (entry.credentialId !== null) credentialUses.set(entry.credentialId, entry.at);
      if (entry.reason === refusalReasons.rate) counts.throttled.rate += 1;
      else if (entry.reason === refusalReasons.load) counts.throttled.load += 1;
    },
    tdeRequest: (operation, status, durationMs) => {
      let counts = tde.get(operation);
      if (counts === undefined) {
        counts = { operation, duration: newHistogram(), results: [] };
        tde.set(operation, counts);
      }
      count(counts.results, status, null);
      observe(counts.duration, durationMs);
    },
    apiRequest: (method, route, status, durationMs) => {
      let counts = api.get(method);
      if (counts === undefined) {
        counts = { method, duration: newHistogram(), results: [] };
        api.set(method, counts);
      }
      observe(counts.duration, durationMs);
      const known = counts.results.find((one) => one.route === route && one.status === status);
      if (known === undefined) counts.results.push({ route, status, count: 1 });
      else known.count += 1;
    },
    signIn: (result) => {
      signIns[result] += 1;
    },
    hashNotRenewed: () => {
      notRenewed += 1;
    },
    hashesNotRenewed: () => notRenewed,
    xks: () => [...xks.values()].flatMap((own) => [...own.values()]),
    tde: () => [...tde.values()],
    api: () => [...api.values()],
    signIns: () => signIns,
    credentialUse: (id) => credentialUses.get(id),
    eventLoopDelay,
    start: () => {
      let due = clock.monotonic() + lookEveryMs;
      timer = setInterval(() => {
        const now = clock.monotonic();
        observe(eventLoopDelay, Math.max(0, now - due));
        due = now + lookEveryMs;
      }, lookEveryMs);
      timer.unref();
    },
    stop: () => clearInterval(timer),
  };
};
