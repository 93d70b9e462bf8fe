// What is sent to an OpenTelemetry receiver, by the library itself to a receiver on this host; and
// that nothing waits for the receiver.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { openTelemetry, type Telemetry } from '../../server/adapters/telemetry/otlp.ts';
import type { MetricFamily } from '../../server/domain/metrics.ts';
import type { ObservedRequest } from '../../server/ports/telemetry.ts';
import { until } from '../support/host.ts';
import { files, importsOf, read } from '../support/sources.ts';

const running: (Telemetry | Server)[] = [];
afterEach(async () => {
  for (const each of running.splice(0))
    if ('observe' in each) await each.stop(0);
    else {
      each.closeAllConnections();
      each.close();
    }
});

interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a receiver reads is checked by the expectations.
  readonly body: any;
}

/**
 * `false`: takes requests and never answers them. `'drips'`: the answer to the first one never
 * ends.
 */
const receive = async (
  answer: boolean | 'drips' = true,
): Promise<{ readonly endpoint: string; readonly received: Received[] }> => {
  const received: Received[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const body = JSON.parse(Buffer.concat(await incoming.toArray()).toString('utf8'));
    received.push({ path: incoming.url ?? '', authorization: incoming.headers.authorization, body });
    if (answer === false) return;
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    if (answer === true || received.length > 1) {
      outgoing.end('{}');
      return;
    }
    const timer = setInterval(() => outgoing.write(' '), 5);
    outgoing.once('close', () => clearInterval(timer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  running.push(server);
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
};

const open = (endpoint: string, own: Partial<Parameters<typeof openTelemetry>[0]> = {}): Telemetry => {
  const telemetry = openTelemetry({
    ...{ endpoint, token: undefined, authorities: undefined, tracePercent: 100, metrics: true, metricsMs: 20 },
    ...{ version: '1.2.3', node: 'node-1', log: { warn: () => undefined, info: () => undefined } },
    ...own,
  });
  running.push(telemetry);
  return telemetry;
};

const observed: ObservedRequest = {
  ...{ at: 1_700_000_000_000, durationMs: 12, requestId: 'request-1', front: 'api', method: 'GET', status: 503 },
  ...{ route: '/api/keys/:id', caller: 'token-1', peer: '192.0.2.1', bytes: 7 },
  steps: [{ name: 'store.keys.get', from: 1_700_000_000_001, to: 1_700_000_000_003 }],
};

test('a request is a span with its id, and its steps are below it', async () => {
  const { endpoint, received } = await receive();
  const telemetry = open(`${endpoint}/`, { token: async () => 'for-the-receiver' });
  telemetry.observe(observed);
  await telemetry.stop(30_000);
  expect(received).toHaveLength(1);
  const { path, authorization, body } = received[0] as Received;
  expect([path, authorization]).toEqual(['/v1/traces', 'Bearer for-the-receiver']);
  const [{ resource, scopeSpans }] = body.resourceSpans;
  expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'dke' } });
  const [step, span] = scopeSpans[0].spans;
  expect(step).toMatchObject({ name: 'store.keys.get', traceId: span.traceId, parentSpanId: span.spanId });
  expect(span).toMatchObject({
    ...{ name: 'GET /api/keys/:id', kind: 2, status: { code: 2 } },
    ...{ startTimeUnixNano: '1700000000000000000', endTimeUnixNano: '1700000000012000000' },
  });
  const attributes = Object.fromEntries(
    span.attributes.map(({ key, value }: { key: string; value: object }) => [key, Object.values(value)[0]]),
  );
  expect(attributes).toEqual({
    'http.request.method': 'GET',
    'http.route': '/api/keys/:id',
    'http.response.status_code': 503,
    'http.response.body.size': 7,
    'dke.front': 'api',
    'dke.request_id': 'request-1',
    'enduser.id': 'token-1',
    'client.address': '192.0.2.1',
  });
});

test('none of the requests is sent when none is wanted', async () => {
  const { endpoint, received } = await receive();
  const telemetry = open(endpoint, { tracePercent: 0 });
  telemetry.observe(observed);
  await telemetry.stop(30_000);
  expect(received).toEqual([]);
});

test('metrics are sent as what they are: sums, gauges and histograms', async () => {
  const { endpoint, received } = await receive();
  const families: readonly MetricFamily[] = [
    { name: 'dke_a_total', type: 'counter', help: 'a', samples: [{ labels: { result: 'failed' }, value: 3 }] },
    { name: 'dke_b_bytes', type: 'gauge', help: 'b', samples: [{ labels: {}, value: 4 }] },
    {
      ...{ name: 'dke_c_seconds', type: 'histogram', help: 'c' },
      samples: [
        {
          labels: {},
          value: {
            buckets: [
              { bound: 0.1, count: 2 },
              { bound: 0.2, count: 5 },
            ],
            ...{ sum: 1.5, count: 6 },
          },
        },
      ],
    },
    { name: 'dke_none', type: 'gauge', help: 'none', samples: [] },
  ];
  open(endpoint).startMetrics(() => Promise.resolve(families));
  const { path, body } = await until('metrics', async () => received[0]);
  expect(path).toBe('/v1/metrics');
  const [sum, gauge, histogram, ...more] = body.resourceMetrics[0].scopeMetrics[0].metrics;
  expect(more).toEqual([]);
  expect(sum).toMatchObject({ name: 'dke_a_total', sum: { isMonotonic: true, aggregationTemporality: 2 } });
  expect(sum.sum.dataPoints[0]).toMatchObject({
    asDouble: 3,
    attributes: [{ key: 'result', value: { stringValue: 'failed' } }],
  });
  expect(gauge).toMatchObject({ name: 'dke_b_bytes', unit: 'By', gauge: { dataPoints: [{ asDouble: 4 }] } });
  expect(histogram.histogram.dataPoints[0]).toMatchObject({
    ...{ count: 6, sum: 1.5, bucketCounts: [2, 3, 1], explicitBounds: [0.1, 0.2] },
  });
});

test('a receiver that never answers takes a bounded queue, and what does not fit is counted', async () => {
  const { endpoint, received } = await receive(false);
  const telemetry = open(endpoint);
  for (let count = 0; count < 10_000; count += 1) telemetry.observe(observed);
  const { dropped, failing } = telemetry.state().traces;
  expect(failing).toBe(false);
  // Two spans a request: those of one export are under way, and about four thousand wait.
  expect(dropped.queue).toBeGreaterThan(20_000 - 5_000);
  await until('an export', async () => received[0]);
  expect(received).toHaveLength(1);
});

test('a receiver whose answer drips has failed when the time of an export is over, and gets what comes later', async () => {
  const { endpoint, received } = await receive('drips');
  const telemetry = open(endpoint, { timeoutMs: 200 });
  telemetry.observe(observed);
  await until('a failure', async () => (telemetry.state().traces.failing ? true : undefined));
  expect(telemetry.state().traces.dropped.export).toBe(2);
  await until('an export that arrives', async () => {
    telemetry.observe(observed);
    return telemetry.state().traces.failing ? undefined : true;
  });
  expect(received.length).toBeGreaterThan(1);
});

test('a receiver that is not there is reported once, and what was lost is counted', async () => {
  const { endpoint } = await receive();
  for (const server of running.splice(0)) if (!('observe' in server)) server.close();
  const warnings: string[] = [];
  const log = { warn: (text: string) => void warnings.push(text), info: () => undefined };
  const telemetry = open(endpoint, { log, timeoutMs: 100 });
  telemetry.observe(observed);
  await until('a failure', async () => (telemetry.state().traces.failing ? true : undefined));
  expect(telemetry.state().traces.dropped.export).toBe(2);
  expect(warnings).toHaveLength(1);
});

test('the library is loaded only when it is configured', () => {
  const importing = files(['server'], '.ts').filter((path) =>
    importsOf(path).some(
      ({ target, typeOnly }) => !typeOnly && /^@opentelemetry|telemetry\/(otlp|steps)\.ts$/.test(target),
    ),
  );
  expect(importing).toEqual(['server/adapters/telemetry/otlp.ts', 'server/app/open/observation.ts']);
  expect(read('server/app/open/observation.ts')).not.toMatch(/^import (?!type)[^;]*telemetry\/(otlp|steps)\.ts/m);
});
