// How long requests took, counted minute by minute in buckets that grow by a quarter: close enough
// for a percentile, small enough to keep for days. The two bounds that the cloud key service judges
// by are bounds here too, so the shares above them are exact.

/** The cloud key service reports more than this as slow. */
export const slowMs = 100;
/** The cloud key service gives up a request after this. */
export const lostMs = 250;

const build = (): readonly number[] => {
  const bounds: number[] = [];
  for (let bound = 0.1; bound < slowMs * 0.95; bound *= 1.25) bounds.push(bound);
  bounds.push(slowMs, 125, 156, 195, lostMs, 312, 390, 488, 610, 763, 1000, 2000, 5000);
  return bounds;
};
/** Upper bounds, milliseconds. */
export const latencyBounds = build();

const indexOver = (ms: number): number => latencyBounds.indexOf(ms) + 1;
const [slowFrom, lostFrom] = [indexOver(slowMs), indexOver(lostMs)];

export interface LatencyCounts {
  /** One more than there are bounds: what took longer than all. */
  readonly buckets: Uint32Array;
  errors: number;
}

export const newLatencyCounts = (): LatencyCounts => ({
  buckets: new Uint32Array(latencyBounds.length + 1),
  errors: 0,
});

export const countLatency = (counts: LatencyCounts, ms: number, failed: boolean): void => {
  let [low, high] = [0, latencyBounds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ms <= (latencyBounds[middle] ?? 0)) high = middle;
    else low = middle + 1;
  }
  counts.buckets[low] = (counts.buckets[low] ?? 0) + 1;
  if (failed) counts.errors += 1;
};

export const addLatency = (to: LatencyCounts, from: LatencyCounts): void => {
  for (const [at, count] of from.buckets.entries()) to.buckets[at] = (to.buckets[at] ?? 0) + count;
  to.errors += from.errors;
};

export interface LatencySummary {
  readonly requests: number;
  readonly errors: number;
  readonly over100Ms: number;
  readonly over250Ms: number;
  /** Milliseconds; null: there was no request. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

const percentile = (buckets: Uint32Array, total: number, share: number): number => {
  const wanted = Math.ceil(total * share);
  let seen = 0;
  for (const [at, count] of buckets.entries()) {
    if (seen + count >= wanted) {
      const upper = latencyBounds[at] ?? latencyBounds.at(-1) ?? 0;
      const lower = at === 0 ? 0 : (latencyBounds[at - 1] ?? 0);
      return lower + ((upper - lower) * (wanted - seen)) / count;
    }
    seen += count;
  }
  return latencyBounds.at(-1) ?? 0;
};

export const summarizeLatency = ({ buckets, errors }: LatencyCounts): LatencySummary => {
  const sum = (from: number): number => buckets.subarray(from).reduce((total, count) => total + count, 0);
  const requests = sum(0);
  return {
    requests,
    errors,
    over100Ms: sum(slowFrom),
    over250Ms: sum(lostFrom),
    p50Ms: requests === 0 ? null : percentile(buckets, requests, 0.5),
    p99Ms: requests === 0 ? null : percentile(buckets, requests, 0.99),
  };
};

/** Only what is not zero: `3:17,4:2`. */
export const formatLatency = ({ buckets }: LatencyCounts): string =>
  [...buckets.entries()].flatMap(([at, count]) => (count === 0 ? [] : [`${at}:${count}`])).join(',');

export const parseLatency = (text: string, errors: number): LatencyCounts => {
  const counts = newLatencyCounts();
  for (const part of text === '' ? [] : text.split(',')) {
    const [at = '', count = ''] = part.split(':');
    if (Number(at) < counts.buckets.length) counts.buckets[Number(at)] = Number(count);
  }
  counts.errors = errors;
  return counts;
};
