// GET /metrics: the metrics in Prometheus' text format. Callers need a token of the kind `metrics`,
// unless they are on this host and that is allowed. A proxy on this host makes every request one of
// this host: requests that came through one need a token.

import { type Context, Hono } from 'hono';
import { ServiceError } from '../base/service-error.ts';
import type { MetricFamily } from '../domain/metrics.ts';
import type { Operations } from '../operations/index.ts';
import { expositionType, formatMetrics } from './shared/exposition.ts';
import { answerProblem } from './shared/problem.ts';
import { apiHeaders } from './shared/security-headers.ts';

export interface MetricsFrontOptions {
  readonly operations: Pick<Operations, 'authenticateMetrics'>;
  readonly metrics: () => Promise<readonly MetricFamily[]>;
  /** Whether this host needs no token. */
  readonly loopback: boolean;
  readonly requestId: () => string;
  readonly peerOf: (context: Context) => string | null;
}

const isLoopback = (peer: string | null): boolean =>
  peer !== null && (peer === '::1' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(peer));
const cameThroughProxy = (context: Context): boolean =>
  ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => context.req.header(name) !== undefined);

/** Mounted at /metrics. */
export const createMetricsApp = ({ operations, metrics, loopback, requestId, peerOf }: MetricsFrontOptions): Hono => {
  const app = new Hono();

  const admit = async (context: Context): Promise<void> => {
    const authorization = context.req.header('authorization');
    if (authorization === undefined && loopback && isLoopback(peerOf(context)) && !cameThroughProxy(context)) return;
    const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new ServiceError('unauthenticated', 'no token');
    await operations.authenticateMetrics(token);
  };

  app.get('/', async (context) => {
    await admit(context);
    return context.body(formatMetrics(await metrics()), 200, { ...apiHeaders, 'content-type': expositionType });
  });

  app.onError((error) => {
    const denied = error instanceof ServiceError && error.code === 'unauthenticated';
    return answerProblem(
      denied
        ? {
            code: 'unauthenticated',
            status: 401,
            title: 'Authentication is required',
            detail: error.message,
            requestId: requestId(),
            hint: 'send Authorization: Bearer <token> with a token from dke token create --kind metrics',
          }
        : {
            code: 'unavailable',
            status: 503,
            title: 'The metrics cannot be read',
            detail: 'an internal error occurred',
            requestId: requestId(),
          },
      denied ? { 'www-authenticate': 'Bearer realm="dke metrics"' } : {},
    );
  });
  return app;
};
