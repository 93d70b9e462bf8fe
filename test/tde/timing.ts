// How long each call to a library took, as a table for people: nothing here is asserted.
import type { TracedCall } from './trace.ts';

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
const milliseconds = (nanoseconds: number): string => (nanoseconds / 1e6).toFixed(3).padStart(9);

/** A line a function: how often, p50, p99 and the longest, in milliseconds. */
export const percentiles = (calls: readonly TracedCall[]): string => {
  const by = new Map<string, number[]>();
  for (const { function: name, took } of calls) {
    const all = by.get(name) ?? [];
    by.set(name, all);
    if (took !== undefined) all.push(took);
  }
  const lines = [...by]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, times]) => {
      const sorted = times.sort((a, b) => a - b);
      const figures = [at(sorted, 0.5), at(sorted, 0.99), sorted.at(-1) ?? 0].map(milliseconds).join(' ');
      return `${name.padEnd(22)}${String(sorted.length).padStart(6)} ${figures}`;
    });
  return ['call                   times       p50       p99   longest  (ms)', ...lines].join('\n');
};
