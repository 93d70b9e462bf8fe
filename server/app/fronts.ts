// The fronts of a service behind one address: console, API, health, metrics, XKS proxy and the databases' API.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import type { Core } from '../../addon/core.ts';
import type { ProbeMarks } from '../base/probe-mark.ts';
import type { Config } from '../config.ts';
import { type ApiFrontOptions, createApiFront } from '../fronts/api/app.ts';
import { describeApi } from '../fronts/api/openapi.ts';
import { addClosedDataPaths, addClosedHealth } from '../fronts/closed.ts';
import { createHealthApp } from '../fronts/health.ts';
import { createMetricsApp } from '../fronts/metrics.ts';
import { serveConsole } from '../fronts/shared/console-pages.ts';
import { createDispatch, type RawFront } from '../fronts/shared/dispatch.ts';
import { createTdeFront, type TdeFront } from '../fronts/tde/app.ts';
import { createXksFront, type XksFront } from '../fronts/xks/app.ts';
import type { Operations } from '../operations/index.ts';
import type { XksLatency } from '../operations/requests/xks-latency.ts';
import type { readMetrics } from '../operations/service/read-metrics.ts';
import type { Ports } from '../ports/ports.ts';

/** The built pages: beside what was built of this file, or in the sources' `dist`. */
const pagesDirectory =
  ['../../web', '../../dist/web']
    .map((path) => join(import.meta.dirname, path))
    .find((path) => existsSync(join(path, 'index.html'))) ?? join(import.meta.dirname, '../../dist/web');

/** The description of the API, from the build: making it takes longer than a request may. Without a build it is made now. */
const readApiDocument = (version: string): string => {
  const path = join(import.meta.dirname, '../content/api/openapi.json');
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
  readonly connection: Pick<ApiFrontOptions, 'peerOf' | 'afterSent'>;
}

export interface Fronts {
  readonly xks: XksFront;
  readonly tde: TdeFront;
  readonly handle: RawFront['handle'];
  /** In quarantine: the console and the API over a store that takes no changes; the data paths refuse. */
  readonly handleClosed: RawFront['handle'];
}

export const createFronts = (ports: Ports, operations: Operations, options: FrontOptions): Fronts => {
  const { clock, log, directory, meter } = ports;
  const { config, version, requestId, metrics, latency, marks, connection } = options;
  const tde = createTdeFront({
    operations,
    core: ports.core,
    log,
    requestId,
    epoch: () => directory.epoch(),
    observe: meter.tdeRequest,
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
        directory.record(entry, isOwnProbe);
      },
    },
    isOwnProbe: marks.isValid,
    clock: () => clock.now(),
    requestId,
    product: { vendor: 'DKE', name: 'DKE', version, node: config.node.name },
    onError: (error, id) => log.error('an XKS request failed', { requestId: id, error }),
  });
  const app = new Hono();
  app.route('/health', createHealthApp({ operations }));
  app.route(
    '/metrics',
    createMetricsApp({ operations, metrics, loopback: config.metrics.loopback, requestId, ...connection }),
  );
  app.route(
    '/api',
    createApiFront({ operations, clock, log, document: () => readApiDocument(version), ...connection }),
  );
  app.route('/', serveConsole(pagesDirectory));

  const closed = new Hono();
  addClosedHealth(closed, { state: 'quarantine', requestId });
  addClosedDataPaths(closed, { state: 'quarantine', requestId });
  closed.route('/', app);
  return { xks, tde, handle: createDispatch(app, [xks, tde]), handleClosed: createDispatch(closed, []) };
};
