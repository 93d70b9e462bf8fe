// Traces and metrics for an OpenTelemetry receiver, OTLP over HTTP with JSON bodies, by
// OpenTelemetry's own library. This file is imported only when [telemetry] endpoint is set. No
// automatic instrumentation: a span is made from what the access log would say, when the answer has
// left.
//
// A request never waits for the receiver. What waits is limited; spans beyond that, and what the
// receiver did not take, are dropped and counted.

import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, ValueType } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import {
  ParentBasedSampler,
  type ReadableSpan,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { lookupWithin } from '../../base/name-lookup.ts';
import { callOutside, endedBy } from '../../base/outside.ts';
import type { Distribution, MetricFamily } from '../../domain/metrics.ts';
import type { Log } from '../../ports/log.ts';
import type { RequestObserver, TelemetryState } from '../../ports/telemetry.ts';

export interface TelemetryOptions {
  /** Without the path of a signal. */
  readonly endpoint: string;
  /** Read for each export: it may be replaced. */
  readonly token: (() => Promise<string>) | undefined;
  /** PEM; undefined: the public ones. */
  readonly authorities: string | undefined;
  readonly tracePercent: number;
  readonly metrics: boolean;
  readonly metricsMs: number;
  readonly version: string;
  readonly node: string;
  readonly log: Pick<Log, 'warn' | 'info'>;
  /** For one export in total, with what the library repeats of it. */
  readonly timeoutMs?: number;
}

export interface Telemetry {
  readonly observe: RequestObserver;
  /** Sends these numbers from now on, when metrics are wanted. */
  startMetrics(read: () => Promise<readonly MetricFamily[]>): void;
  state(): TelemetryState;
  /** Sends what waits, for at most that long. */
  stop(graceMs: number): Promise<void>;
}

const mostWaiting = 4_096;
/** Made into JSON at once: more would delay requests. */
const mostAtOnce = 100;
const gatherMs = 1_000;

type Send = (report: (result: { readonly code: number; readonly error?: Error }) => void) => void;

/**
 * The connections of a signal's exports: of each, the library waits without an end while bytes
 * come.
 */
const createConnections = ({ endpoint, authorities, timeoutMs: totalMs = 10_000 }: TelemetryOptions) => {
  let agent: HttpAgent | undefined;
  return {
    totalMs,
    host: new URL(endpoint).host,
    open: (protocol: string): HttpAgent => {
      const Agent = protocol === 'http:' ? HttpAgent : HttpsAgent;
      const lookup = lookupWithin(totalMs * 0.8);
      agent ??= new Agent({ keepAlive: true, lookup, ...(authorities === undefined ? {} : { ca: authorities }) });
      return agent;
    },
    end: (): void => agent?.destroy(),
  };
};
type Connections = ReturnType<typeof createConnections>;

/** Whether exports of a signal arrive, and what became of those that did not. */
const createDelivery = (signal: 'traces' | 'metrics', log: TelemetryOptions['log'], connections: Connections) => {
  const dropped = { queue: 0, export: 0 };
  let failing = false;
  return {
    dropped,
    state: () => ({ dropped: { ...dropped }, failing }),
    /** Resolves in any case; `count` is what is lost when it fails. */
    send: async (count: number, send: Send): Promise<void> => {
      const error = await callOutside({ place: connections.host, totalMs: connections.totalMs }, (ended) => {
        const sent = new Promise<void>((resolve, reject) => {
          send(({ code, error: reason }) => (code === 0 ? resolve() : reject(reason ?? new Error('not accepted'))));
        });
        // The library knows a time of silence only.
        return endedBy(ended, connections.end, sent);
      }).then(
        () => undefined,
        (reason: Error) => reason,
      );
      if (error !== undefined) dropped.export += count;
      if (error !== undefined && !failing)
        log.warn(
          'the OpenTelemetry receiver rejects data or is unreachable; data is dropped until it accepts data again',
          {
            signal,
            error,
          },
        );
      if (error === undefined && failing) log.info('the OpenTelemetry receiver accepts data again', { signal });
      failing = error !== undefined;
    },
  };
};

const histogramOf = ({ buckets, sum, count }: Distribution) => {
  const counts = buckets.map((bucket, at) => bucket.count - (buckets[at - 1]?.count ?? 0));
  return {
    buckets: {
      boundaries: buckets.map(({ bound }) => bound),
      counts: [...counts, count - (buckets.at(-1)?.count ?? 0)],
    },
    ...{ sum, count },
  };
};

const hrTimeOf = (ms: number): [number, number] => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1_000_000)];

const toMetricData = ({ name, type, help, samples }: MetricFamily, startMs: number, nowMs: number): MetricData => {
  const base = {
    descriptor: {
      name,
      description: help,
      unit: name.includes('_seconds') ? 's' : name.includes('_bytes') ? 'By' : '',
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const times = { startTime: hrTimeOf(startMs), endTime: hrTimeOf(nowMs) };
  const numbers = samples.flatMap(({ labels, value }) =>
    typeof value === 'number' ? [{ ...times, attributes: { ...labels }, value }] : [],
  );
  if (type === 'gauge') return { ...base, dataPointType: DataPointType.GAUGE, dataPoints: numbers };
  if (type === 'counter') return { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: numbers };
  const dataPoints = samples.flatMap(({ labels, value }) =>
    typeof value === 'number' ? [] : [{ ...times, attributes: { ...labels }, value: histogramOf(value) }],
  );
  return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
};

const exporterOptions = ({ endpoint, token }: TelemetryOptions, path: string, { totalMs, open }: Connections) => ({
  url: `${endpoint.replace(/\/+$/, '')}/${path}`,
  timeoutMillis: totalMs,
  concurrencyLimit: 1,
  // The function must not throw: without its token the receiver refuses the export, which is
  // reported.
  headers: async (): Promise<Record<string, string>> => {
    try {
      return token === undefined ? {} : { authorization: `Bearer ${await token()}` };
    } catch {
      return {};
    }
  },
  httpAgentOptions: open,
});

const resourceOf = ({ version, node }: TelemetryOptions) =>
  resourceFromAttributes({ 'service.name': 'dke', 'service.version': version, 'service.instance.id': node });

/** Spans that have ended, sent in batches. */
const createSpanQueue = (options: TelemetryOptions) => {
  const connections = createConnections(options);
  const delivery = createDelivery('traces', options.log, connections);
  const exporter = new OTLPTraceExporter(exporterOptions(options, 'v1/traces', connections));
  let waiting: ReadableSpan[] = [];
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const sendWaiting = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, mostAtOnce);
      waiting = waiting.slice(mostAtOnce);
      await delivery.send(batch.length, (report) => exporter.export(batch, report));
    }
  };
  const sendSoon = (): void => {
    clearTimeout(timer);
    timer = undefined;
    sending ??= sendWaiting().finally(() => {
      sending = undefined;
    });
  };
  return {
    delivery,
    isFull: (): boolean => waiting.length >= mostWaiting,
    add: (span: ReadableSpan): void => {
      if (waiting.length >= mostWaiting) delivery.dropped.queue += 1;
      else waiting.push(span);
    },
    /** Sends what was added: at once when it fills a batch. */
    schedule: (): void => {
      if (waiting.length >= mostAtOnce) sendSoon();
      else timer ??= setTimeout(sendSoon, gatherMs).unref();
    },
    flush: async (): Promise<void> => {
      sendSoon();
      await sending;
    },
    shutdown: () => exporter.shutdown(),
  };
};

const createTraces = (options: TelemetryOptions) => {
  const queue = createSpanQueue(options);
  const provider = new TracerProvider({
    resource: resourceOf(options),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.tracePercent / 100) }),
    spanProcessors: [
      {
        onStart: () => undefined,
        onEnd: queue.add,
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  });
  const tracer = provider.getTracer('dke', options.version);
  const observe: RequestObserver = (request) => {
    if (queue.isFull()) {
      queue.delivery.dropped.queue += 1 + request.steps.length;
      return;
    }
    const { at, durationMs, requestId, front, method, route, status, caller, peer, bytes, steps } = request;
    const span = tracer.startSpan(
      `${method} ${route}`,
      {
        kind: SpanKind.SERVER,
        startTime: at,
        attributes: {
          'http.request.method': method,
          'http.route': route,
          'http.response.status_code': status,
          'http.response.body.size': bytes,
          'dke.front': front,
          ...(requestId === null ? {} : { 'dke.request_id': requestId }),
          ...(caller === null ? {} : { 'enduser.id': caller }),
          ...(peer === null ? {} : { 'client.address': peer }),
        },
      },
      ROOT_CONTEXT,
    );
    if (!span.isRecording()) return;
    if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    const parent = trace.setSpan(ROOT_CONTEXT, span);
    for (const { name, from, to } of steps) tracer.startSpan(name, { startTime: from }, parent).end(to);
    span.end(at + durationMs);
    queue.schedule();
  };
  return { observe, state: queue.delivery.state, flush: queue.flush, shutdown: queue.shutdown };
};

const createMetrics = (options: TelemetryOptions) => {
  const connections = createConnections(options);
  const delivery = createDelivery('metrics', options.log, connections);
  const exporter = new OTLPMetricExporter(exporterOptions(options, 'v1/metrics', connections));
  const resource = resourceOf(options);
  const scope = { name: 'dke', version: options.version };
  const startedAt = Date.now() - process.uptime() * 1000;
  let interval: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  const send = async (read: () => Promise<readonly MetricFamily[]>): Promise<void> => {
    const families = await read();
    const metrics = families
      .filter(({ samples }) => samples.length > 0)
      .map((family) => toMetricData(family, startedAt, Date.now()));
    await delivery.send(1, (report) => exporter.export({ resource, scopeMetrics: [{ scope, metrics }] }, report));
  };
  return {
    start: (read: () => Promise<readonly MetricFamily[]>): void => {
      if (!options.metrics) return;
      interval = setInterval(() => {
        // The receiver is slower than the interval: this time is left out.
        if (sending !== undefined) delivery.dropped.queue += 1;
        sending ??= send(read)
          .catch((error: unknown) => options.log.warn('metrics could not be read for OpenTelemetry', { error }))
          .finally(() => {
            sending = undefined;
          });
      }, options.metricsMs).unref();
    },
    state: delivery.state,
    /** Resolves when what is being sent has arrived or is lost. */
    stop: async (): Promise<void> => {
      clearInterval(interval);
      await sending;
    },
    shutdown: () => exporter.shutdown(),
  };
};

export const openTelemetry = (options: TelemetryOptions): Telemetry => {
  const traces = createTraces(options);
  const metrics = createMetrics(options);
  return {
    observe: traces.observe,
    startMetrics: metrics.start,
    state: () => ({ traces: traces.state(), metrics: metrics.state() }),
    stop: async (graceMs) => {
      let late: NodeJS.Timeout | undefined;
      const grace = new Promise<void>((resolve) => {
        late = setTimeout(resolve, graceMs);
      });
      await Promise.race([Promise.all([traces.flush(), metrics.stop()]), grace]);
      clearTimeout(late);
      // Not awaited: it waits for exports that are in progress.
      void traces.shutdown().catch(() => undefined);
      void metrics.shutdown().catch(() => undefined);
    },
  };
};
