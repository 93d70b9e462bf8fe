// GET /metrics: the metrics in Prometheus' text format, version 0.0.4. Who asks shows a token of the kind `metrics`, or asks from this
// host where that is allowed. A proxy on this host makes every request one of this host: what shows that it came through one
// needs a token.

import { type Context, Hono } from 'hono';
import { ServiceError } from '../base/errors.ts';
import type { MetricFamily, MetricSample } from '../domain/metrics.ts';
import type { Operations } from '../operations/index.ts';
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

const contentType = 'text/plain; version=0.0.4; charset=utf-8';

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');
const writeLabels = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
};

const writeSample = (name: string, { labels, value }: MetricSample): string => {
  const plain = writeLabels(labels);
  if (typeof value === 'number') return `${name}${plain} ${value}\n`;
  const { buckets, sum, count } = value;
  const lines = [...buckets.map((bucket) => [String(bucket.bound), bucket.count]), ['+Inf', count]].map(
    ([le, most]) => `${name}_bucket${writeLabels({ ...labels, le: String(le) })} ${most}\n`,
  );
  return `${lines.join('')}${name}_sum${plain} ${sum}\n${name}_count${plain} ${count}\n`;
};

export const formatMetrics = (families: readonly MetricFamily[]): string =>
  families
    .map(({ name, type, help, samples }) => {
      const lines = samples.map((sample) => writeSample(name, sample));
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');

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
    return context.body(formatMetrics(await metrics()), 200, { ...apiHeaders, 'content-type': contentType });
  });

  app.onError((error) => {
    const denied = error instanceof ServiceError && error.code === 'unauthenticated';
    return answerProblem(
      denied
        ? {
            code: 'unauthenticated',
            status: 401,
            title: 'Authentication is needed',
            detail: error.message,
            requestId: requestId(),
            hint: 'send Authorization: Bearer <token>, one that dke token create --kind metrics made',
          }
        : {
            code: 'unavailable',
            status: 503,
            title: 'The metrics cannot be read',
            detail: 'the service failed to do this',
            requestId: requestId(),
          },
      denied ? { 'www-authenticate': 'Bearer realm="dke metrics"' } : {},
    );
  });
  return app;
};
