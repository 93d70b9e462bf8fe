// What the service answers while it is closed: sealed, when its root key is not open, or in
// quarantine, when an operator has to check its database first. Health says which, the data paths
// refuse in their own words, and a sealed service takes a passphrase. Leaves out the console's API
// in quarantine: that is the API itself, over a store that takes no changes.

import type { HttpBindings } from '@hono/node-server';
import { Hono, type MiddlewareHandler } from 'hono';
import { countRefusal, type LimitRefusals } from '../base/limit-refusals.ts';
import type { OriginRates } from '../base/origin-rates.ts';
import { ServiceError } from '../base/service-error.ts';
import type { MetricFamily } from '../domain/metrics.ts';
import { admitStranger } from './shared/admission.ts';
import { expositionType, formatMetrics } from './shared/exposition.ts';
import { answerProblem, retryAfterOf } from './shared/problem.ts';
import { leaveUnread, readBody } from './shared/read-body.ts';
import { requestIdHeader } from './shared/request-id.ts';

export interface ClosedFrontOptions {
  readonly state: 'sealed' | 'quarantine';
  readonly requestId: () => string;
  /** Takes a passphrase; the front wipes it. Throws ServiceError. Absent: nothing is sealed. */
  readonly unseal?: (passphrase: Buffer, peer: string | null) => Promise<void>;
  /** Metrics of a sealed service: they say what /health says, so everyone may read them. */
  readonly metrics?: () => readonly MetricFamily[];
  /** Told of each passphrase that was refused for its address. */
  readonly refused?: LimitRefusals['refused'] | undefined;
  /** Before all routes. */
  readonly watch?: MiddlewareHandler | undefined;
}

const words = {
  sealed: { detail: 'the service is sealed', hint: 'run dke root unseal, or make a root provider available again' },
  quarantine: {
    detail: 'the service is in quarantine: its database failed the rollback check',
    hint: 'run dke quarantine show for the differences; dke quarantine confirm accepts the database as it is',
  },
} as const;

const longestPassphrase = 1024;
/** Clients that wait for the service ask again, as of every 503. */
const again = { 'retry-after': '1' } as const;

/** The answers of the data paths: every address under `/xks` and `/tde`. */
export const addClosedDataPaths = (app: Hono, { state, requestId }: ClosedFrontOptions): void => {
  const { detail, hint } = words[state];
  app.all('/xks/*', (c) =>
    c.json({ errorName: 'DependencyTimeoutException', errorMessage: detail }, 503, {
      'cache-control': 'no-store',
      ...again,
      [requestIdHeader]: requestId(),
    }),
  );
  app.all('/tde/*', () =>
    answerProblem({ code: 'unavailable', status: 503, title: detail, detail: hint, requestId: requestId() }, again),
  );
};

export const addClosedHealth = (app: Hono, { state }: ClosedFrontOptions): void => {
  app.get('/health', (c) => c.json({ status: state }, 503, { 'cache-control': 'no-store' }));
  // A restart would open nothing.
  app.get('/health/live', (c) => c.json({ status: 'live' }, 200, { 'cache-control': 'no-store' }));
};

/** Everything that a sealed service answers. `attempts` counts each before its body is read. */
export const createSealedApp = (options: ClosedFrontOptions, attempts: OriginRates): Hono => {
  const { requestId, unseal, metrics, watch, refused } = options;
  const { detail, hint } = words.sealed;
  const app = new Hono();
  if (watch !== undefined) app.use('*', watch);
  const refuse = (error: unknown): Response => {
    const known = error instanceof ServiceError ? error : new ServiceError('internal', 'unsealing failed');
    const status = { 'rate-limited': 429, forbidden: 403, 'payload-too-large': 413 } as const;
    const after = retryAfterOf(known);
    return answerProblem(
      {
        code: known.code,
        status: status[known.code as keyof typeof status] ?? 500,
        title: 'The root key was not opened',
        detail: known.message,
        requestId: requestId(),
        hint: known.hint,
      },
      after === undefined ? {} : { 'retry-after': String(after) },
    );
  };
  addClosedHealth(app, options);
  addClosedDataPaths(app, options);
  if (metrics !== undefined)
    app.get('/metrics', (c) =>
      c.body(formatMetrics(metrics()), 200, { 'content-type': expositionType, 'cache-control': 'no-store' }),
    );
  app.post('/api/root/unseal', async (c) => {
    const { incoming } = c.env as HttpBindings;
    const peer = incoming.socket.remoteAddress ?? null;
    try {
      const passphrase = await readBody(incoming, longestPassphrase, admitStranger(attempts, peer));
      try {
        await unseal?.(passphrase, peer);
      } finally {
        passphrase.fill(0);
      }
      return c.body(null, 204);
    } catch (error) {
      const refusal = refuse(error);
      countRefusal(error, refused, peer);
      leaveUnread(incoming, refusal.headers);
      return refusal;
    }
  });
  app.all('*', () =>
    answerProblem(
      {
        code: 'unavailable',
        status: 503,
        title: 'The service is not ready',
        detail,
        requestId: requestId(),
        hint,
      },
      again,
    ),
  );
  return app;
};
