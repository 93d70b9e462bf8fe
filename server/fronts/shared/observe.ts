// What observers (the access log, OpenTelemetry) learn of each request: the listener's request and
// answer are watched here, and a front adds what only it knows. A service without observers has no
// observation: its data paths test one reference and do nothing.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ObservedRequest, RequestFront, RequestObserver, RequestStep } from '../../ports/telemetry.ts';
import type { RawFront } from './dispatch.ts';
import { requestIdHeader } from './request-id.ts';

export interface RequestDescription extends Pick<ObservedRequest, 'requestId' | 'route' | 'caller'> {
  readonly steps?: readonly RequestStep[];
}
/** Asked once, when the answer has left. */
export type Describe = (incoming: IncomingMessage, description: () => RequestDescription) => void;

export interface Observation {
  readonly describe: Describe;
  watch(handle: RawFront['handle']): RawFront['handle'];
}

const frontOf = (target: string): RequestFront => {
  const [, first = ''] = /^\/(xks|tde|api|health|metrics)(?=[/?]|$)/.exec(target) ?? [];
  return first === '' ? 'console' : (first as RequestFront);
};

const sizeOf = (chunk: unknown, encoding: unknown): number =>
  typeof chunk === 'string'
    ? Buffer.byteLength(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
    : chunk instanceof Uint8Array
      ? chunk.byteLength
      : 0;

/** Counts the bytes of the body that are written. */
const countBytes = (incoming: IncomingMessage, outgoing: ServerResponse): (() => number) => {
  let bytes = 0;
  const write = outgoing.write.bind(outgoing) as (...input: unknown[]) => boolean;
  const end = outgoing.end.bind(outgoing) as (...input: unknown[]) => ServerResponse;
  outgoing.write = (...input: unknown[]) => {
    bytes += sizeOf(input[0], input[1]);
    return write(...input);
  };
  outgoing.end = (...input: unknown[]) => {
    // In HTTP/2 it writes its chunk with `write`.
    if (incoming.httpVersionMajor !== 2) bytes += sizeOf(input[0], input[1]);
    return end(...input);
  };
  return () => (incoming.method === 'HEAD' ? 0 : bytes);
};

export const createObservation = (
  observers: readonly RequestObserver[],
  now: () => number,
  /** Runs the work for a request where its steps are recorded. */
  run: (steps: RequestStep[], work: () => void) => void = (_steps, work) => work(),
): Observation => {
  const described = new WeakMap<IncomingMessage, () => RequestDescription>();
  return {
    describe: (incoming, description) => void described.set(incoming, description),
    watch: (handle) => (incoming, outgoing) => {
      const started = performance.now();
      const at = now();
      // Asked now: a connection that has ended has no peer.
      const peer = incoming.socket.remoteAddress ?? null;
      const front = frontOf(incoming.url ?? '');
      const bytes = countBytes(incoming, outgoing);
      const steps: RequestStep[] = [];
      let isSent = false;
      outgoing.once('finish', () => {
        isSent = true;
      });
      outgoing.once('close', () => {
        const durationMs = performance.now() - started;
        // A front hears of a connection that has ended in the same turn, and describes the request
        // then.
        setImmediate(() => {
          const {
            requestId = null,
            route = 'unknown',
            caller = null,
            steps: own = [],
          } = described.get(incoming)?.() ?? {};
          const status = isSent ? outgoing.statusCode : 499;
          const method = incoming.method ?? '';
          const request: ObservedRequest = {
            ...{ at, durationMs, requestId, front, method, route, status, caller, peer },
            bytes: bytes(),
            steps: [...own, ...steps],
          };
          for (const observer of observers) observer(request);
        });
      });
      run(steps, () => handle(incoming, outgoing));
    },
  };
};

export interface RouteWatchOptions {
  readonly requestId: () => string;
  readonly describe: Describe | undefined;
  /** Told of requests to the API. */
  readonly apiRequest?: (method: string, route: string, status: number, durationMs: number) => void;
}

/** The pattern of a request's path. */
const routeOf = (context: Context): string =>
  matchedRoutes(context).findLast(({ path }) => !path.endsWith('*'))?.path ??
  (frontOf(context.req.path) === 'console' ? '/*' : 'unknown');

/**
 * Before all routes that Hono serves: every answer has a request id, and requests to the API are
 * counted.
 */
export const watchRoutes = ({ requestId, describe, apiRequest }: RouteWatchOptions): MiddlewareHandler =>
  async function watch(context, next) {
    const started = performance.now();
    let id: string | null = null;
    const { incoming } = (context.env ?? {}) as Partial<HttpBindings>;
    if (incoming !== undefined)
      describe?.(incoming, () => ({
        requestId: id ?? context.get('requestId') ?? null,
        route: routeOf(context),
        caller: context.get('caller')?.actor.id ?? null,
      }));
    await next();
    id = context.res.headers.get(requestIdHeader);
    if (id === null) {
      id = requestId();
      context.res.headers.set(requestIdHeader, id);
    }
    if (frontOf(context.req.path) !== 'api') return;
    const route = routeOf(context);
    // Names that callers invent are not labels.
    const method = route === 'unknown' ? 'other' : context.req.method;
    apiRequest?.(method, route, context.res.status, performance.now() - started);
  };
