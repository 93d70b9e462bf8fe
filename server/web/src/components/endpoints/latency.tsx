// How long the key store endpoints took to answer, over the last hour or day: the figures that the cloud key service judges by, and
// their course.

import { useQuery } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useMemo, useState } from 'react';
import { send } from '../../api/client.ts';
import type { LatencyPoint } from '../../api/types.ts';
import { Panel } from '../page/page.tsx';
import { EmptyState, ProblemView } from '../page/problem-view.tsx';
import type { ChartLine } from './chart.tsx';

// The drawing library is loaded when there is something to draw.
const Chart = lazy(() => import('./chart.tsx').then((module) => ({ default: module.Chart })));

const spans = [
  ['hour', '1 h'],
  ['day', '24 h'],
] as const;
type Span = (typeof spans)[number][0];

const marks = [100, 250];

const percent = (part: number, whole: number): string => {
  const share = (part / whole) * 100;
  return `${share === 0 ? '0' : share < 0.1 ? '< 0.1' : share.toFixed(share < 10 ? 1 : 0)} %`;
};
const formatMs = (value: number | null): string =>
  value === null ? '–' : `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;

const Figure = ({
  name,
  value,
  bad = false,
  children,
}: {
  name: string;
  value: string;
  bad?: boolean;
  children?: ReactNode;
}) => (
  <div>
    <dt className="text-xs text-muted">{name}</dt>
    <dd className={`text-lg leading-6 font-semibold tabular-nums ${bad ? 'text-danger' : ''}`}>{value}</dd>
    {children}
  </div>
);

const Course = ({ points }: { points: readonly LatencyPoint[] }) => {
  const [at, times, counts] = useMemo(() => {
    const seconds = points.map((point) => Date.parse(point.at) / 1000);
    const latency: readonly ChartLine[] = [
      { name: 'p99', colour: 'warn', values: points.map(({ p99Ms }) => p99Ms) },
      { name: 'p50', colour: 'accent', values: points.map(({ p50Ms }) => p50Ms) },
    ];
    const requests: readonly ChartLine[] = [
      { name: 'Requests', colour: 'accent', values: points.map((point) => point.requests), fill: true },
      { name: 'Refused', colour: 'danger', values: points.map(({ errors }) => errors) },
    ];
    return [seconds, latency, requests] as const;
  }, [points]);
  return (
    <div className="grid gap-6 xl:grid-cols-2">
      <Suspense fallback={<div className="h-56" />}>
        <Chart
          label="Latency over time: median and 99th percentile, in milliseconds"
          at={at}
          lines={times}
          unit="ms"
          marks={marks}
        />
        <Chart label="Requests and refusals over time" at={at} lines={counts} unit="" />
      </Suspense>
    </div>
  );
};

export const LatencyPanel = ({ endpointId }: { endpointId?: string }) => {
  const [span, setSpan] = useState<Span>('hour');
  const query = useQuery({
    queryKey: ['/api/latency', span, endpointId],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly LatencyPoint[] }>(
        { method: 'GET', path: '/api/latency', query: { span, endpointId } },
        { signal },
      ),
    refetchInterval: 30_000,
    placeholderData: (before) => before,
  });
  const points = query.data?.items ?? [];
  const sum = (of: (point: LatencyPoint) => number): number => points.reduce((total, point) => total + of(point), 0);
  const requests = sum((point) => point.requests);
  // Computed from the percentiles of the points: each point is exact; the total is their weighted median and the worst p99.
  const weighted = points.reduce((total, { p50Ms, requests: own }) => total + (p50Ms ?? 0) * own, 0);
  const worst = points.reduce<number | null>(
    (most, { p99Ms }) => (p99Ms === null ? most : Math.max(most ?? 0, p99Ms)),
    null,
  );
  const [errors, slow, lost] = [
    sum((point) => point.errors),
    sum((point) => point.over100Ms),
    sum((point) => point.over250Ms),
  ];
  return (
    <Panel
      title="Key store requests"
      asOf={query.dataUpdatedAt}
      description="Measured in this service. The cloud reports more than 100 ms as slow, and gives up after 250 ms."
      actions={
        <fieldset className="flex rounded-md border border-line p-0.5">
          <legend className="sr-only">Period</legend>
          {spans.map(([value, text]) => (
            <button
              key={value}
              type="button"
              aria-pressed={span === value}
              onClick={() => setSpan(value)}
              className={`min-h-7 rounded px-2.5 text-xs font-medium ${span === value ? 'bg-accent-soft text-accent' : 'text-muted hover:text-ink'}`}
            >
              {text}
            </button>
          ))}
        </fieldset>
      }
    >
      {query.data === undefined ? (
        query.error === null ? (
          <div role="status" aria-label="Loading" className="space-y-3">
            <div className="skeleton h-4 w-1/2" />
            <div className="skeleton h-40 w-full" />
          </div>
        ) : (
          <ProblemView error={query.error} onRetry={() => void query.refetch()} />
        )
      ) : requests === 0 ? (
        <EmptyState title={span === 'hour' ? 'No requests in the last hour' : 'No requests in the last day'}>
          The cloud key service calls when the key of an endpoint is used, and checks its health every few minutes.
        </EmptyState>
      ) : (
        <div className="space-y-5">
          <dl className="grid grid-cols-2 gap-x-6 gap-y-3 sm:grid-cols-3 lg:grid-cols-6">
            <Figure name="Requests" value={requests.toLocaleString('en-GB')} />
            <Figure name="Median (approx.)" value={formatMs(weighted / requests)} />
            <Figure name="Worst p99" value={formatMs(worst)} bad={(worst ?? 0) > 100} />
            <Figure name="Over 100 ms" value={percent(slow, requests)} bad={slow / requests > 0.01} />
            <Figure name="Over 250 ms" value={percent(lost, requests)} bad={lost > 0} />
            <Figure name="Refused" value={percent(errors, requests)} bad={errors / requests > 0.01} />
          </dl>
          <Course points={points} />
        </div>
      )}
    </Panel>
  );
};
