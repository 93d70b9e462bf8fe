// The course of requests at the console: what is drawn, and which figures are said of how many
// requests.
import { describe, expect, test } from 'vitest';
import { withWords } from '../../../server/clients/web/src/session/fragment.ts';
import {
  figuresOf,
  isSparse,
  lonely,
  p99Of,
  periodWords,
  pointsIn,
  readPeriod,
} from '../../../server/clients/web/src/ui/charts/course.ts';
import type { LatencyPoint } from '../../../server/contract/api/overview-routes.ts';

const point = (minute: number, requests: number, p99Ms = 40): LatencyPoint => ({
  at: new Date(Date.UTC(2026, 2, 1, 9, minute)).toISOString(),
  requests,
  errors: 1,
  over100Ms: 2,
  over250Ms: 0,
  p50Ms: requests === 0 ? null : minute,
  p99Ms: requests === 0 ? null : p99Ms,
});

test('bars are drawn below thirty moments with requests', () => {
  const busy = (count: number) => ({ values: Array.from({ length: 60 }, (_, at) => (at < count ? 5 : 0)) });
  expect(isSparse([busy(29), { values: [null, 1] }])).toBe(true);
  expect(isSparse([busy(30), { values: [null, 1] }])).toBe(false);
});

describe('figures', () => {
  test('have no p99 of fewer than a hundred requests', () => {
    expect(p99Of(point(1, 10))).toBeNull();
    expect(p99Of(point(1, 100))).toBe(40);
    expect(figuresOf([point(1, 10), point(2, 99)]).worstP99Ms).toBeNull();
    expect(figuresOf([point(1, 10, 900), point(2, 500), point(3, 500, 60)]).worstP99Ms).toBe(60);
  });

  test('are sums, and the weighted median', () => {
    const figures = figuresOf([point(10, 1), point(20, 3), point(30, 0)]);
    expect(figures).toMatchObject({ requests: 4, errors: 3, over100Ms: 6, over250Ms: 0, medianMs: 17.5 });
    expect(figuresOf([]).medianMs).toBeNull();
  });
});

test('a period with its marked part is in the address, and points are those of it', () => {
  const period = {
    span: 'day' as const,
    part: { from: '2026-03-01T09:02:00.000Z', to: '2026-03-01T09:03:00.000Z' },
  };
  const fragment = withWords('sort=-name', periodWords(period));
  expect(readPeriod(fragment)).toEqual(period);
  expect(fragment).toContain('sort=-name');
  expect(readPeriod('span=year&from=now&to=then')).toEqual({ span: 'hour', part: undefined });
  const points = [1, 2, 3, 4].map((minute) => point(minute, 1));
  expect(pointsIn(points, period)).toEqual(points.slice(1, 3));
  expect(pointsIn(points, { span: 'day', part: undefined })).toBe(points);
});

test.each<[string, (number | null)[], number[]]>([
  ['of the last minute alone', [null, null, 0.3], [2]],
  ['of the first minute alone', [0, null], [0]],
  ['of one minute in all', [7], [0]],
  ['between gaps', [1, 2, null, 3, null, 4, 5, null, 6], [3, 8]],
  ['of a line', [1, 2, 3], []],
  ['of nothing', [null, null], []],
  ['of no minutes', [], []],
])('the lonely ones %s', (_name, values, expected) => {
  expect(lonely(values)).toEqual(expected);
});
