// The fronts of a service behind one address: console, API, health, metrics, XKS proxy and the
// databases' API.

import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { Hono } from 'hono';
import type { Core } from '../../../addon/core.ts';
import type { LimitRefusals } from '../../base/limit-refusals.ts';
import type { ProbeMarks } from '../../base/probe-mark.ts';
import { describeApi } from '../../contract/api/openapi.ts';
import { tdeRoutes } from '../../contract/tde.ts';
import { type ApiFrontOptions, createApiFront } from '../../fronts/api/api-front.ts';
import { addClosedDataPaths, addClosedHealth } from '../../fronts/closed.ts';
import { createHealthApp } from '../../fronts/health.ts';
import { createMetricsApp } from '../../fronts/metrics.ts';
import { createDispatch, type RawFront } from '../../fronts/shared/dispatch.ts';
import { type Observation, watchRoutes } from '../../fronts/shared/observe.ts';
import { serveConsole } from '../../fronts/shared/static-files.ts';
import { createTdeFront, type TdeFront, type TdeTrace } from '../../fronts/tde/tde-front.ts';
import { createXksFront, type XksFront } from '../../fronts/xks/xks-front.ts';
import type { Operations } from '../../operations/index.ts';
import type { XksLatency } from '../../operations/requests/xks-latency.ts';
import type { readMetrics } from '../../operations/service/read-metrics.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RequestStep } from '../../ports/telemetry.ts';
import type { XksRequestRecord } from '../../ports/xks-directory.ts';
import type { Config } from '../config/config.ts';

/** The built pages: next to what was built of this file, or in the sources' `dist`. */
const pagesDirectory =
  ['../../../web', '../../../dist/web']
    .map((path) => join(import.meta.dirname, path))
    .find((path) => existsSync(join(path, 'index.html'))) ?? join(import.meta.dirname, '../../../dist/web');

/**
 * The description of the API, from the build: making it takes longer than a request may. Without a
 * build it is made now.
 */
const readApiDocument = (version: string): string => {
  const path = join(import.meta.dirname, '../../contract/api/openapi.json');
  return existsSync(path) ? readFileSync(path, 'utf8') : JSON.stringify(describeApi(version));
};

export interface FrontOptions {
  readonly config: Pick<Config, 'metrics' | 'node'>;
  readonly version: string;
  readonly core: Core;
  readonly requestId: () => string;
  readonly metrics: ReturnType<typeof readMetrics>;
  readonly latency: XksLatency;
  readonly marks: ProbeMarks;
  readonly connection: Pick<ApiFrontOptions, 'peerOf' | 'afterSent' | 'proven'>;
  readonly refused: LimitRefusals['refused'];
  /** Undefined: nothing observes the requests. */
  readonly observation: Observation | undefined;
}

export interface Fronts {
  readonly xks: XksFront;
  readonly tde: TdeFront;
  readonly handle: RawFront['handle'];
  /**
   * In quarantine: the console and the API over a store that takes no changes; the data paths
   * refuse.
   */
  readonly handleClosed: RawFront['handle'];
}

const xksRoutes: Readonly<Record<string, string>> = {
  health: '/xks/:prefix/kms/xks/v1/health',
  metadata: '/xks/:prefix/kms/xks/v1/keys/:key/metadata',
  encrypt: '/xks/:prefix/kms/xks/v1/keys/:key/encrypt',
  decrypt: '/xks/:prefix/kms/xks/v1/keys/:key/decrypt',
};

const xksSteps = ({ at, durationMs, phases }: XksRequestRecord): readonly RequestStep[] => {
  const read = at - durationMs + phases.readMs;
  const authenticated = read + phases.authMs;
  return [
    { name: 'xks.read', from: at - durationMs, to: read },
    { name: 'xks.authenticate', from: read, to: authenticated },
    { name: 'xks.answer', from: authenticated, to: at },
  ];
};

/** How the data paths describe their requests to the observers. */
const describersOf = (observation: Observation) => ({
  xks: (incoming: IncomingMessage, entry: XksRequestRecord): void =>
    observation.describe(incoming, () => ({
      requestId: entry.requestId,
      route: xksRoutes[entry.operation] ?? 'unknown',
      caller: entry.credentialId,
      steps: xksSteps(entry),
    })),
  tde: (incoming: IncomingMessage, trace: TdeTrace): void =>
    observation.describe(incoming, () => ({
      requestId: trace.requestId,
      route: trace.route === 'unknown' ? 'unknown' : `/tde/v1/:access_guid/:app${tdeRoutes[trace.route].path}`,
      caller: trace.caller,
    })),
});

export const createFronts = (ports: Ports, operations: Operations, options: FrontOptions): Fronts => {
  const { clock, log, directory, meter } = ports;
  const { config, version, requestId, metrics, latency, marks, connection, observation, refused } = options;
  const describers = observation === undefined ? undefined : describersOf(observation);
  const tde = createTdeFront({
    operations,
    core: ports.core,
    log,
    requestId,
    epoch: directory.epoch,
    observe: meter.tdeRequest,
    refused,
    describe: describers?.tde,
  });
  const xks = createXksFront({
    core: options.core,
    directory: {
      ...directory,
      record: (entry, isOwnProbe) => {
        if (!isOwnProbe) {
          meter.xksRequest(entry);
          latency.record(entry);
        }
        if (entry.status === 429) refused('xks-requests', entry.peer);
        directory.record(entry, isOwnProbe);
      },
    },
    isOwnProbe: marks.isValid,
    describe: describers?.xks,
    clock: () => clock.now(),
    requestId,
    product: { vendor: 'DKE', name: 'DKE', version, node: config.node.name },
    onError: (error, id) => log.error('an XKS request failed', { requestId: id, error }),
  });
  const routes = new Hono();
  routes.route('/health', createHealthApp({ operations }));
  routes.route(
    '/metrics',
    createMetricsApp({ operations, metrics, loopback: config.metrics.loopback, requestId, ...connection }),
  );
  routes.route(
    '/api',
    createApiFront({ operations, clock, log, document: () => readApiDocument(version), refused, ...connection }),
  );
  routes.route('/', serveConsole(pagesDirectory));

  const watch = watchRoutes({ requestId, describe: observation?.describe, apiRequest: meter.apiRequest });
  const app = new Hono();
  app.use('*', watch);
  app.route('/', routes);
  const closed = new Hono();
  closed.use('*', watch);
  addClosedHealth(closed, { state: 'quarantine', requestId });
  addClosedDataPaths(closed, { state: 'quarantine', requestId });
  closed.route('/', routes);
  const watched = (handle: RawFront['handle']): RawFront['handle'] => observation?.watch(handle) ?? handle;
  return {
    xks,
    tde,
    handle: watched(createDispatch(app, [xks, tde])),
    handleClosed: watched(createDispatch(closed, [])),
  };
};
