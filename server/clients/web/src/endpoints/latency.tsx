// How long the key store endpoints took to answer, over the last hour or day: the figures that the
// cloud key service judges by, and their course.

import { useQuery } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useMemo } from 'react';
import { send } from '../api/client.ts';
import type { LatencyPoint } from '../api/types.ts';
import { useFragment } from '../session/use-fragment.ts';
import type { ChartLine } from '../ui/charts/chart.tsx';
import { figuresOf, type Period, p99Of, periodWords, pointsIn, readPeriod, type Span } from '../ui/charts/course.ts';
import { Button, IconButton } from '../ui/page/button.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';

// The drawing library is loaded when there is something to draw.
const Chart = lazy(() => import('../ui/charts/chart.tsx').then((module) => ({ default: module.Chart })));

const spans: readonly (readonly [Span, string])[] = [
  ['hour', '1 h'],
  ['day', '24 h'],
];

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

const Course = ({
  points,
  onZoom,
}: {
  points: readonly LatencyPoint[];
  onZoom: (from: number, to: number) => void;
}) => {
  const [at, times, counts] = useMemo(() => {
    const seconds = points.map((point) => Date.parse(point.at) / 1000);
    const latency: readonly ChartLine[] = [
      { name: 'p99', colour: 'warn', values: points.map(p99Of) },
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
          onZoom={onZoom}
        />
        <Chart label="Requests and refusals over time" at={at} lines={counts} unit="" onZoom={onZoom} />
      </Suspense>
    </div>
  );
};

export const LatencyPanel = ({ endpointId }: { endpointId?: string }) => {
  const [fragment, setWords] = useFragment();
  const period = useMemo(() => readPeriod(fragment), [fragment]);
  const { span, part } = period;
  const setPeriod = (next: Period): void => setWords(periodWords(next));
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
  const all = query.data?.items;
  const points = useMemo(() => pointsIn(all ?? [], period), [all, period]);
  const { requests, errors, over100Ms, over250Ms, medianMs, worstP99Ms } = figuresOf(points);
  const zoom = (from: number, to: number): void =>
    setPeriod({
      span,
      part: { from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString() },
    });
  return (
    <Panel
      title="Key store requests"
      asOf={query.dataUpdatedAt}
      description="Measured in this service, without its own checks. The cloud reports more than 100 ms as slow, and gives up after 250 ms."
      actions={
        <>
          {part !== undefined && (
            <Button icon="close" onClick={() => setPeriod({ span, part: undefined })}>
              Whole period
            </Button>
          )}
          <IconButton icon="refresh" label="Refresh" onClick={() => void query.refetch()} />
          <fieldset className="flex rounded-md border border-line p-0.5">
            <legend className="sr-only">Period</legend>
            {spans.map(([value, text]) => (
              <button
                key={value}
                type="button"
                aria-pressed={span === value}
                onClick={() => setPeriod({ span: value, part: undefined })}
                className={`min-h-7 rounded px-2.5 text-xs font-medium ${span === value ? 'bg-accent-soft text-accent' : 'text-muted hover:text-ink'}`}
              >
                {text}
              </button>
            ))}
          </fieldset>
        </>
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
        <EmptyState
          title={
            part !== undefined
              ? 'No requests in this part'
              : span === 'hour'
                ? 'No requests in the last hour'
                : 'No requests in the last day'
          }
        >
          The cloud key service calls when the key of an endpoint is used, and checks its health every few minutes.
        </EmptyState>
      ) : (
        <div className="space-y-5">
          <dl className="grid grid-cols-2 gap-x-6 gap-y-3 sm:grid-cols-3 lg:grid-cols-6">
            <Figure name="Requests" value={requests.toLocaleString('en-GB')} />
            <Figure name="Median (approx.)" value={formatMs(medianMs)} />
            <Figure name="Worst p99" value={formatMs(worstP99Ms)} bad={(worstP99Ms ?? 0) > 100}>
              {worstP99Ms === null && <dd className="text-xs text-muted">too few requests</dd>}
            </Figure>
            <Figure name="Over 100 ms" value={percent(over100Ms, requests)} bad={over100Ms / requests > 0.01} />
            <Figure name="Over 250 ms" value={percent(over250Ms, requests)} bad={over250Ms > 0} />
            <Figure name="Refused" value={percent(errors, requests)} bad={errors / requests > 0.01} />
          </dl>
          {part !== undefined && (
            <p className="text-muted">
              <Time value={part.from} /> to <Time value={part.to} />
            </p>
          )}
          <Course points={points} onZoom={zoom} />
          <p className="text-xs text-muted">Mark a part of a chart with the pointer to see it alone.</p>
        </div>
      )}
    </Panel>
  );
};
