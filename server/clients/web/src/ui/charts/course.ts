// The course of the requests over time as values: what is drawn, and which figures so many requests
// bear. Pure.

import type { LatencyPoint } from '../../api/types.ts';

/**
 * Positions of points without a neighbour: a line needs two points, so the chart would not show
 * them.
 */
export const lonely = (values: readonly (number | null)[]): number[] => {
  const isThere = (at: number): boolean => (values[at] ?? null) !== null;
  return values.flatMap((_, at) => (isThere(at) && !isThere(at - 1) && !isThere(at + 1) ? [at] : []));
};

/** With fewer moments than this, bars are drawn instead of lines. */
const leastForLines = 30;
export const isSparse = (lines: readonly { readonly values: readonly (number | null)[] }[]): boolean =>
  lines.every(({ values }) => values.filter((value) => value !== null && value !== 0).length < leastForLines);

/** One in a hundred cannot be said of fewer. */
const leastForP99 = 100;
export const p99Of = ({ requests, p99Ms }: LatencyPoint): number | null => (requests < leastForP99 ? null : p99Ms);

export interface Figures {
  readonly requests: number;
  readonly errors: number;
  readonly over100Ms: number;
  readonly over250Ms: number;
  /** Weighted by the requests of each point, which is exact; null: no request. */
  readonly medianMs: number | null;
  /** The worst of the points with enough requests; null: none has. */
  readonly worstP99Ms: number | null;
}

export const figuresOf = (points: readonly LatencyPoint[]): Figures => {
  const sum = (of: (point: LatencyPoint) => number): number => points.reduce((total, point) => total + of(point), 0);
  const requests = sum((point) => point.requests);
  const p99s = points.map(p99Of).filter((value) => value !== null);
  return {
    requests,
    errors: sum(({ errors }) => errors),
    over100Ms: sum(({ over100Ms }) => over100Ms),
    over250Ms: sum(({ over250Ms }) => over250Ms),
    medianMs: requests === 0 ? null : sum(({ p50Ms, requests: own }) => (p50Ms ?? 0) * own) / requests,
    worstP99Ms: p99s.length === 0 ? null : Math.max(...p99s),
  };
};

const spans = ['hour', 'day'] as const;
export type Span = (typeof spans)[number];

/** A period, and the part of it that was marked: in the address, so that others see the same. */
export interface Period {
  readonly span: Span;
  /** RFC 3339; absent: all of it. */
  readonly part: { readonly from: string; readonly to: string } | undefined;
}

export const readPeriod = (fragment: string): Period => {
  const words = new URLSearchParams(fragment.replace(/^#/, ''));
  const [from, to] = [words.get('from') ?? '', words.get('to') ?? ''];
  return {
    span: spans.find((span) => span === words.get('span')) ?? 'hour',
    part: Date.parse(from) < Date.parse(to) ? { from, to } : undefined,
  };
};

export const periodWords = ({ span, part }: Period): Readonly<Record<string, string | undefined>> => ({
  span: span === 'hour' ? undefined : span,
  from: part?.from,
  to: part?.to,
});

export const pointsIn = (points: readonly LatencyPoint[], { part }: Period): readonly LatencyPoint[] =>
  part === undefined
    ? points
    : points.filter(({ at }) => Date.parse(at) >= Date.parse(part.from) && Date.parse(at) <= Date.parse(part.to));
