// The console's API as one Hono application, mounted at /api: what every request has (its id, its
// headers, its caller), and a handler for every row of the contract (serve-row.ts). Nothing is read
// from a request before its caller is known, but for signing in.

import { type Context, Hono } from 'hono';
import { countRefusal, type LimitRefusals } from '../../base/limit-refusals.ts';
import { ServiceError } from '../../base/service-error.ts';
import { createShares } from '../../base/shares.ts';
import type { Clock } from '../../base/time.ts';
import { Waiting } from '../../base/waits-for-approval.ts';
import { apiRoutes } from '../../contract/api/index.ts';
import { type RouteGroup, type RouteRow, readsOnly, tenantParameter } from '../../contract/api/row.ts';
import { pendingHeaders } from '../../contract/pending-nodes.ts';
import type { Approval } from '../../domain/approval.ts';
import type { Operations } from '../../operations/index.ts';
import type { Log } from '../../ports/log.ts';
import { answerInPieces } from '../shared/outbox.ts';
import { leaveUnread } from '../shared/read-body.ts';
import { pickRequestId, requestIdHeader } from '../shared/request-id.ts';
import { apiHeaders } from '../shared/security-headers.ts';
import { answerError, HttpRefusal } from './api-problem.ts';
import { type Caller, createAuthenticator, onlyTenantOf } from './authenticate.ts';
import { representApproval } from './handlers/approvals-handlers.ts';
import { createHandlers, missingHandler } from './handlers/index.ts';
import { createIdempotency } from './idempotency-key.ts';
import { type AnyHandler, type ApiEnv, json, type Shared, serveRow, type TenantCaller } from './serve-row.ts';
import { requireNoNul } from './validate.ts';

export interface ApiFrontOptions {
  readonly operations: Operations;
  readonly clock: Clock;
  readonly log: Log;
  /** The OpenAPI document, as JSON. */
  readonly document: () => string;
  /** Address of the peer of a request, where the server knows it. */
  readonly peerOf: (context: Context) => string | null;
  /** The connection of this request belongs to a caller who has authenticated. */
  readonly proven?: (context: Context, caller: string, tenantId: string | null) => void;
  readonly refused?: LimitRefusals['refused'];
  /** Runs once the answer has been handed to the socket. */
  readonly afterSent: (context: Context, done: () => void) => void;
}

const prefix = '/api';
/** Exports and requests that take long, at a time. A caller is a token or a user. */
const placesOfLongWork = { all: 24, group: 12, caller: 4 };
const pathInFront = ({ path }: RouteRow): string => path.slice(prefix.length).replace(/\{(\w+)\}/g, ':$1');

const methodsByPath: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(
    Object.groupBy(
      Object.values(apiRoutes).flatMap((rows: RouteGroup) => Object.values(rows)),
      pathInFront,
    ),
  ).map(([path, rows = []]) => [path, rows.map(({ method }) => method.toUpperCase())]),
);

export const createApiFront = (options: ApiFrontOptions): Hono => {
  const { operations, clock, log, afterSent } = options;
  const authenticator = createAuthenticator(operations, options.peerOf);
  const idempotency = createIdempotency(clock, operations.idempotency);
  const shares = createShares(placesOfLongWork);
  const actIn = (context: Context, caller: Caller): TenantCaller => {
    const named = new URL(context.req.url).searchParams.get(tenantParameter) ?? undefined;
    requireNoNul(named ?? '');
    return { ...caller, actor: operations.access.actIn(caller.actor, caller.grants, named) };
  };
  const callerAgain: Shared['callerAgain'] = async (context, how) =>
    actIn(
      context,
      await authenticator.authenticate(context, context.get('requestId'), {
        again: { isUse: false, isFresh: how === 'fresh' },
      }),
    );
  const shared: Shared = { operations, authenticator, clock, callerAgain, idempotency, shares, afterSent };
  const handlers = createHandlers(operations) as unknown as Readonly<
    Record<string, Readonly<Record<string, AnyHandler>>>
  >;
  const app = new Hono<ApiEnv>();

  app.use('*', async function prepare(context, next) {
    const requestId = pickRequestId(context.req.header(requestIdHeader), clock.now());
    context.set('requestId', requestId);
    // A HEAD request would run the handler of GET, which may write a record.
    if (context.req.raw.method === 'HEAD')
      throw new HttpRefusal('validation', 405, 'the API does not support HEAD', { headers: { allow: 'GET' } });
    await next();
    context.res.headers.set(requestIdHeader, requestId);
    const { pendingNodes = [], pendingUntil = null } = context.get('unconfirmed') ?? {};
    for (const [name, value] of pendingHeaders(pendingNodes, pendingUntil)) context.res.headers.set(name, value);
    for (const [name, value] of Object.entries(apiHeaders)) context.res.headers.set(name, value);
    leaveUnread(context.env.incoming, context.res.headers);
  });

  app.onError((error, context) => {
    const requestId = context.get('requestId');
    if (error instanceof Waiting) {
      const approval = error.request as Approval;
      return json(representApproval(approval), 202, { location: `${prefix}/approvals/${approval.id}` });
    }
    countRefusal(error, options.refused, options.peerOf(context));
    return answerError(error, requestId, (cause) =>
      log.error('an API request failed', { requestId, path: context.req.path, error: cause }),
    );
  });

  const bindAll = (wanted: (row: RouteRow) => boolean): void => {
    for (const [group, rows] of Object.entries<RouteGroup>(apiRoutes))
      for (const [name, row] of Object.entries(rows).filter(([, each]) => wanted(each))) {
        const handler = handlers[group]?.[name];
        if (handler === undefined) throw missingHandler(`${group}.${name}`);
        const current = row.changes === undefined ? undefined : handlers[group]?.[row.changes];
        app.on(row.method.toUpperCase(), pathInFront(row), serveRow({ ...shared, row, handler, current }));
      }
  };
  // Before `authenticate`: this is all that is open to callers without a credential.
  /** Encoded once: answers that wait for their readers share it. */
  let document: Uint8Array<ArrayBuffer> | undefined;
  app.get('/openapi.json', () => {
    document ??= new TextEncoder().encode(options.document());
    return answerInPieces(document, { headers: { 'content-type': 'application/json' } });
  });
  bindAll(({ needs }) => needs === 'sign-in');
  // Rows that only read say so before the caller is known.
  for (const row of Object.values(apiRoutes).flatMap((rows: RouteGroup) => Object.values(rows)))
    if (row.needs !== 'sign-in' && readsOnly(row, new URLSearchParams('dryRun=true')))
      app.on(row.method.toUpperCase(), pathInFront(row), async function readsOnlyOf(context, next) {
        context.set('readsOnly', readsOnly(row, { get: (name) => context.req.query(name) ?? null }));
        await next();
      });
  app.use('*', async function authenticate(context, next) {
    const only = context.get('readsOnly') ?? false;
    const caller = await authenticator.authenticate(context, context.get('requestId'), { readsOnly: only });
    options.proven?.(context, caller.actor.id, onlyTenantOf(caller));
    context.set('caller', actIn(context, caller));
    await next();
  });
  bindAll(({ needs }) => needs !== 'sign-in');

  // A known path under another method, then everything else.
  for (const [path, methods] of methodsByPath) {
    app.all(path, () => {
      throw new HttpRefusal('validation', 405, `this path supports ${methods.join(', ')}`, {
        headers: { allow: methods.join(', ') },
      });
    });
  }
  app.all('*', () => {
    throw new ServiceError('not-found', 'path not found', { hint: 'see GET /api/openapi.json for all paths' });
  });
  return app as unknown as Hono;
};
