// The console's API as one Hono application, mounted at /api: binds a handler to every row of the contract. For each
// request, in this order: request id, authentication, path, query, body, If-Match, the handler. Nothing is read from a
// request before its caller is known, but for signing in.

import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { type Clock, toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';

import { serviceTenantId } from '../../base/ids.ts';
import { takeText } from '../../base/secret-member.ts';

import { Waiting } from '../../base/waiting.ts';

import type { Grant } from '../../domain/access.ts';

import type { TenantActor } from '../../domain/actor.ts';
import type { Approval } from '../../domain/approval.ts';
import type { Operations } from '../../operations/index.ts';
import type { SignInOrigin } from '../../operations/people/interface.ts';
import type { KeptAnswer } from '../../operations/shared/idempotency.ts';
import type { Unconfirmed } from '../../ports/fleet.ts';
import type { Log } from '../../ports/log.ts';
import { apiRoutes } from '../contract/api/index.ts';
import { type RouteGroup, type RouteRow, tenantParameter } from '../contract/api/row.ts';
import { pendingHeaders } from '../contract/pending-nodes.ts';
import { leaveUnread, piecesOf, readBody } from '../shared/read-body.ts';
import { pickRequestId, requestIdHeader } from '../shared/request-id.ts';
import { apiHeaders } from '../shared/security-headers.ts';
import { type Caller, createAuthenticator, isOwnSite } from './authenticate.ts';
import { entityTag, matches } from './entity-tag.ts';
import { answerError, HttpRefusal, ValidationError } from './errors.ts';
import { StreamedFile } from './export.ts';

import { representApproval } from './handlers/approvals.ts';
import { BoundAnswer, type Created, SecretJson, SessionChange } from './handlers/handler.ts';

import { createHandlers, missingHandler } from './handlers/index.ts';
import { createIdempotency, idempotencyHeader } from './idempotency.ts';
import { readJson, readQuery } from './validate.ts';

export interface ApiFrontOptions {
  readonly operations: Operations;
  readonly clock: Clock;
  readonly log: Log;
  /** The OpenAPI document, as JSON. */
  readonly document: () => string;
  /** Address of the peer of a request, where the server knows it. */
  readonly peerOf: (context: Context) => string | null;
  /** Runs once the answer has been handed to the socket. */
  readonly afterSent: (context: Context, done: () => void) => void;
}

/** Who calls, in the tenant that they act in. */
type TenantCaller = Omit<Caller, 'actor'> & { readonly actor: TenantActor };

interface Variables {
  requestId: string;
  caller: TenantCaller;
  /** Which nodes have not confirmed the change, and until when they may act on what was before. */
  unconfirmed: Unconfirmed | undefined;
}
interface ApiEnv {
  Variables: Variables;
  Bindings: HttpBindings;
}
type ApiContext = Context<ApiEnv>;

/** A handler as the binder calls it; the rows and `Handlers` have checked the types. */
type AnyHandler = (call: {
  readonly actor: TenantActor;
  readonly grants: readonly Grant[];
  readonly session: Caller['session'];
  readonly from: SignInOrigin;
  readonly search: string;
  readonly binding: string | undefined;
  readonly secrets: Readonly<Record<string, Buffer>>;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly file: AsyncIterable<Uint8Array> | undefined;
}) => Promise<unknown>;

/** Largest body, in bytes: the longest request has a few names. */
const maxBody = 64 * 1024;
const prefix = '/api';

const json = (value: unknown, status: 200 | 201 | 202, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(typeof value === 'string' ? value : JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });

/** The body as it comes. */
const readFile = (incoming: IncomingMessage, type: string): AsyncIterable<Uint8Array> => {
  if (incoming.headers['content-type'] !== type)
    throw new HttpRefusal('validation', 415, `this path requires a file: ${type}`);
  return piecesOf(incoming);
};

/** Takes the passwords out of a body before it is read as text. */
const takeSecrets = (row: RouteRow, body: Buffer): Record<string, Buffer> => {
  const secrets: Record<string, Buffer> = {};
  for (const name of row.secrets ?? []) {
    const value = takeText(body, name);
    if (value === 'malformed') throw new ValidationError([{ path: name, message: 'is not valid JSON' }]);
    if (value !== null) secrets[name] = value;
  }
  return secrets;
};

/** What a session may not do yet, because its sign-in is not finished. */
const incomplete = {
  'second-factor': [
    'a second factor is required',
    'verify a one-time code, a passkey or a recovery code: POST /api/session/second-factor',
  ],
  'new-password': ['a new password is required', 'set one: POST /api/profile/password'],
  enrolment: ['a second factor must be set up', 'set up a one-time password or a passkey: POST /api/profile/totp'],
} as const;

const sendFile = ({ contentType, name, body }: StreamedFile): Response =>
  new Response(body, {
    status: 200,
    headers: { 'content-type': contentType, 'content-disposition': `attachment; filename="${name}"` },
  });

/** Who has shown no credential: may sign in, and nothing else. */
const strangerOf = ({ requestId, peer }: SignInOrigin): TenantCaller => ({
  actor: {
    kind: 'service',
    id: 'sign-in',
    name: 'sign-in',
    requestId,
    peer,
    tenantId: serviceTenantId,
    reach: serviceTenantId,
  },
  grants: [],
  session: null,
});

export const createApiFront = (options: ApiFrontOptions): Hono => {
  const { operations, clock, log } = options;
  const authenticator = createAuthenticator(operations, options.peerOf);
  const idempotency = createIdempotency(clock, operations.idempotency);
  const handlers = createHandlers(operations);
  const app = new Hono<ApiEnv>();

  app.use('*', async function prepare(context, next) {
    const requestId = pickRequestId(context.req.header(requestIdHeader), clock.now());
    context.set('requestId', requestId);
    // It would run the handler of GET, which may write a record.
    if (context.req.raw.method === 'HEAD')
      throw new HttpRefusal('validation', 405, 'the API does not support HEAD', { headers: { allow: 'GET' } });
    await next();
    context.res.headers.set(requestIdHeader, requestId);
    const { pendingNodes = [], pendingUntil = null } = context.get('unconfirmed') ?? {};
    for (const [name, value] of pendingHeaders(pendingNodes, pendingUntil)) context.res.headers.set(name, value);
    for (const [name, value] of Object.entries(apiHeaders)) context.res.headers.set(name, value);
    leaveUnread(context.env.incoming, context.res.headers);
  });

  const actIn = (context: Context, caller: Caller): TenantCaller => {
    const named = new URL(context.req.url).searchParams.get(tenantParameter) ?? undefined;
    return { ...caller, actor: operations.access.actIn(caller.actor, caller.grants, named) };
  };

  app.onError((error, context) => {
    const requestId = context.get('requestId');
    if (error instanceof Waiting) {
      const approval = error.request as Approval;
      return json(representApproval(approval), 202, { location: `${prefix}/approvals/${approval.id}` });
    }
    return answerError(error, requestId, (cause) =>
      log.error('an API request failed', { requestId, path: context.req.path, error: cause }),
    );
  });

  /** Sends the document and wipes it when the connection has taken it. */
  const sendSecret = (
    context: ApiContext,
    { bytes }: SecretJson,
    headers: Readonly<Record<string, string>>,
  ): Response => {
    options.afterSent(context, () => bytes.fill(0));
    return new Response(bytes as Uint8Array<ArrayBuffer>, {
      status: 201,
      headers: { 'content-type': 'application/json', ...headers },
    });
  };

  const observe = async <T>(context: ApiContext, work: () => Promise<T>): Promise<T> => {
    const observed = await operations.observe(work);
    context.set('unconfirmed', observed);
    if ('refusal' in observed) throw observed.refusal;
    return observed.value;
  };

  const bind = (group: string, name: string, row: RouteRow, siblings: Readonly<Record<string, AnyHandler>>): void => {
    const handler = siblings[name];
    if (handler === undefined) throw missingHandler(`${group}.${name}`);
    const current = row.changes === undefined ? undefined : siblings[row.changes];
    /** It changes something in the tenant acted in, which must not be deleted. */
    const isInTenant =
      row.method !== 'get' &&
      row.needs !== 'signed-in' &&
      row.needs !== 'sign-in' &&
      (row.tenancy === undefined || row.tenancy === 'both') &&
      row.whenDeleted !== true;

    const create = async (
      context: ApiContext,
      body: Buffer,
      run: () => Promise<Created<unknown>>,
    ): Promise<Response> => {
      const collection = context.req.path.replace(/\/$/, '');
      const key = context.req.header(idempotencyHeader);
      const work = async (): Promise<{ readonly created: Created<unknown>; readonly kept: KeptAnswer }> => {
        const created = await run();
        const kept = row.showsSecret ? null : JSON.stringify(created.answer);
        return { created, kept: { location: `${collection}/${encodeURIComponent(created.id)}`, body: kept } };
      };
      const send = ({ created, kept }: Awaited<ReturnType<typeof work>>): Response => {
        const headers = { location: kept.location };
        return created.answer instanceof SecretJson
          ? sendSecret(context, created.answer, headers)
          : json(created.answer, 201, headers);
      };
      if (key === undefined) return send(await work());
      let fresh: Awaited<ReturnType<typeof work>> | undefined;
      const { id: actorId, tenantId } = context.get('caller').actor;
      const requestId = context.get('requestId');
      const request = { key, actorId, requestId, target: `${tenantId} ${collection}`, body };
      const { kept, repeated } = await idempotency.once(request, async () => {
        fresh = await work();
        return fresh.kept;
      });
      if (fresh !== undefined) return send(fresh);
      operations.confirm();
      if (kept.body === null) {
        throw new HttpRefusal(
          'conflict',
          409,
          'this request was completed before, and its secret was shown only then',
          {
            hint: `if the secret is lost, delete ${kept.location} and create another`,
            headers: { location: kept.location },
          },
        );
      }
      return json(kept.body, 201, { location: kept.location, ...(repeated ? { 'idempotent-replayed': 'true' } : {}) });
    };

    /** Whether the caller may; answers who acts, and how far they see. */
    const admit = (
      row: RouteRow,
      context: ApiContext,
      { actor, grants }: TenantCaller,
      path: Readonly<Record<string, string>>,
    ): TenantActor => {
      const { access } = operations;
      if (row.needs === 'signed-in' || row.needs === 'sign-in') return actor;
      const itself = row.tenancy === 'itself' ? (path.id ?? '') : null;
      if (itself !== null) access.requireTenant(grants, row.needs, itself);
      const scope = row.scope === undefined ? null : { kind: row.scope.kind, id: path[row.scope.parameter] ?? '' };
      access.check(grants, row.needs, row.tenancy === 'platform' ? null : (itself ?? actor.tenantId), scope);
      if (isInTenant) access.requireChangeable(actor);
      const names = new URL(context.req.url).searchParams.has(tenantParameter);
      return row.namesCopies === true || (row.tenancy === 'both' && !names)
        ? access.reaching(actor, grants, row.needs)
        : actor;
    };

    app.on(row.method.toUpperCase(), pathInFront(row), async (context) => {
      const requestId = context.get('requestId');
      const from = authenticator.originOf(context, requestId);
      const isOpen = row.needs === 'sign-in';
      if (isOpen && row.method !== 'get') isOwnSite(context);
      const caller = isOpen ? strangerOf(from) : context.get('caller');
      const { grants, session } = caller;
      const path = context.req.param() as Record<string, string>;
      if (session?.missing != null && !row.unfinished?.includes(session.missing)) {
        const [detail, hint] = incomplete[session.missing];
        throw new ServiceError('sign-in-incomplete', detail, { hint });
      }
      const actor = admit(row, context, caller, path);
      const query = readQuery(row.query, context.req.url);
      const file = row.takes === undefined ? undefined : readFile(context.env.incoming, row.takes);
      const bytes =
        row.method === 'get' || file !== undefined ? Buffer.alloc(0) : await readBody(context.env.incoming, maxBody);
      const secrets = takeSecrets(row, bytes);
      try {
        const body = readJson(row.body, context.req.header('content-type'), bytes);
        return await answer(
          context,
          {
            actor,
            grants,
            session,
            from,
            search: new URL(context.req.url).search,
            binding: authenticator.bindingOf(context),
            secrets,
            path,
            query,
            body,
            file,
          },
          bytes,
        );
      } finally {
        for (const secret of Object.values(secrets)) secret.fill(0);
        if (isOpen) bytes.fill(0);
      }
    });

    const answer = async (context: ApiContext, call: Parameters<AnyHandler>[0], bytes: Buffer): Promise<Response> => {
      const ifMatch = context.req.header('if-match');
      const checkTag = async (): Promise<void> => {
        if (ifMatch === undefined || current === undefined) return;
        const before = await current({ ...call, query: {}, body: {} });
        if (!matches(ifMatch, entityTag(before)))
          throw new ServiceError(
            'precondition-failed',
            'the resource has changed since it was read (If-Match does not match)',
            {
              hint: 'read it again, check what changed, and repeat the request with the new ETag',
            },
          );
      };
      // A dry run changes nothing, so nothing else would check.
      await checkTag();
      // Again in the unit of work that makes the change: the tenant may have been deleted, or the resource changed, since the request came.
      const check = async (): Promise<void> => {
        if (isInTenant) await operations.access.requireStillChangeable(call.actor);
        await checkTag();
      };
      return operations.preconditions.under(check, () => carryOut(context, call, bytes));
    };

    const carryOut = async (context: ApiContext, call: Parameters<AnyHandler>[0], bytes: Buffer): Promise<Response> => {
      if (row.creates) {
        const work = () => create(context, bytes, () => handler(call) as Promise<Created<unknown>>);
        return observe(context, work);
      }
      const given = await observe(context, () => handler(call));
      const { pendingNodes = [], pendingUntil = null } = context.get('unconfirmed') ?? {};
      if (given instanceof StreamedFile) return sendFile(given);
      if (given instanceof BoundAnswer) authenticator.setBinding(context, given.binding);
      if (given instanceof SessionChange) {
        if (given.session !== null || given.location === null) authenticator.setSession(context, given.session);
        if (given.location !== null) {
          authenticator.setBinding(context, null);
          return context.redirect(given.location, 303);
        }
      }
      const value = given instanceof SessionChange || given instanceof BoundAnswer ? given.answer : given;
      if (row.answer === null) return context.body(null, 204);
      if (pendingNodes.length > 0 && typeof value === 'object' && value !== null)
        return json(
          { ...value, pendingNodes, pendingUntil: pendingUntil === null ? null : toRfc3339(pendingUntil) },
          200,
        );
      return context.body(JSON.stringify(value), 200, {
        'content-type': 'application/json',
        ...(isVersioned.has(row) ? { etag: entityTag(value) } : {}),
      });
    };
  };

  const bindAll = (wanted: (row: RouteRow) => boolean): void => {
    for (const [group, rows] of Object.entries(apiRoutes) as [keyof typeof handlers, RouteGroup][])
      for (const [name, row] of Object.entries(rows))
        if (wanted(row)) bind(group, name, row, handlers[group] as unknown as Readonly<Record<string, AnyHandler>>);
  };
  // Before `authenticate`: this is all that is open to callers without a credential.
  let document: string | undefined;
  app.get('/openapi.json', () => {
    document ??= options.document();
    return json(document, 200);
  });
  bindAll(({ needs }) => needs === 'sign-in');
  app.use('*', async function authenticate(context, next) {
    context.set('caller', actIn(context, await authenticator.authenticate(context, context.get('requestId'))));
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

const allRows: readonly RouteRow[] = Object.values(apiRoutes).flatMap((rows: RouteGroup) => Object.values(rows));

/** Rows whose answers bear an ETag: those that some change is compared with. */
const isVersioned: ReadonlySet<RouteRow> = new Set(
  Object.values(apiRoutes).flatMap((rows: RouteGroup) =>
    Object.values(rows).flatMap(({ changes }) => {
      const row = changes === undefined ? undefined : rows[changes];
      return row === undefined ? [] : [row];
    }),
  ),
);

const pathInFront = ({ path }: RouteRow): string => path.slice(prefix.length).replace(/\{(\w+)\}/g, ':$1');

const methodsByPath: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(Object.groupBy(allRows, pathInFront)).map(([path, rows = []]) => [
    path,
    rows.map(({ method }) => method.toUpperCase()),
  ]),
);
