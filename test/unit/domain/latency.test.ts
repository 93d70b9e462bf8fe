// Latencies by the minute: counting, adding, writing and reading, and the figures by which the
// cloud key service judges.

import { describe, expect, test } from 'vitest';
import {
  addLatency,
  countLatency,
  formatLatency,
  latencyBounds,
  newLatencyCounts,
  parseLatency,
  summarizeLatency,
} from '../../../server/domain/latency.ts';
import fc from '../../support/property.ts';

const counted = (times: readonly number[], failed = 0) => {
  const counts = newLatencyCounts();
  for (const [at, ms] of times.entries()) countLatency(counts, ms, at < failed);
  return counts;
};
const times = fc.array(fc.double({ min: 0, max: 20_000, noNaN: true }), { minLength: 1, maxLength: 200 });

describe('latency counts', () => {
  test('bounds grow, and those of the cloud key service are among them', () => {
    expect(latencyBounds.toSorted((a, b) => a - b)).toEqual(latencyBounds);
    expect(latencyBounds).toEqual(expect.arrayContaining([100, 250]));
  });

  test('what took more than 100 and 250 ms is counted exactly', () => {
    expect(summarizeLatency(counted([99.9, 100, 100.1, 250, 250.1, 9000], 2))).toMatchObject({
      requests: 6,
      errors: 2,
      over100Ms: 4,
      over250Ms: 2,
    });
  });

  test('nothing has no percentile', () => {
    expect(summarizeLatency(newLatencyCounts())).toMatchObject({ requests: 0, p50Ms: null, p99Ms: null });
  });

  test('a percentile is as near to the true one as its bucket is wide', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.1, max: 4000, noNaN: true }), { minLength: 1, maxLength: 300 }),
        (values) => {
          const sorted = values.toSorted((a, b) => a - b);
          const exact = sorted[Math.ceil(values.length * 0.99) - 1] ?? 0;
          const { p99Ms } = summarizeLatency(counted(values));
          const index = latencyBounds.findIndex((bound) => exact <= bound);
          expect(p99Ms).toBeGreaterThanOrEqual(index === 0 ? 0 : (latencyBounds[index - 1] ?? 0));
          expect(p99Ms).toBeLessThanOrEqual(latencyBounds[index] ?? 0);
        },
      ),
    );
  });

  test('what is written is read back, and adding is counting together', () => {
    fc.assert(
      fc.property(times, times, (first, second) => {
        const [a, b] = [counted(first), counted(second, 1)];
        expect(parseLatency(formatLatency(b), b.errors)).toEqual(b);
        addLatency(a, b);
        expect(a).toEqual(counted([...second, ...first], 1));
      }),
    );
  });
});
