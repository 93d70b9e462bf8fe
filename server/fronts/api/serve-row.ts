// Serves one row of the contract. For each request, in this order: how often, who may call, path,
// query, body, its place, If-Match, the handler, the answer. Who calls is known before
// (authenticate.ts), but for signing in.

import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { serviceTenantId } from '../../base/ids.ts';
import { LimitRefused } from '../../base/limit-refusals.ts';
import { takeText } from '../../base/secret-member.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Shares } from '../../base/shares.ts';
import { type Clock, toRfc3339 } from '../../base/time.ts';
import { type RouteRow, replaces, tenantParameter } from '../../contract/api/row.ts';
import { versioned } from '../../contract/api/versioned.ts';
import type { Grant } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Operations } from '../../operations/index.ts';
import type { SignInOrigin } from '../../operations/people/people-operations.ts';
import type { KeptAnswer } from '../../operations/shared/answer-once.ts';
import type { Unconfirmed } from '../../ports/fleet.ts';
import { type Admission, admitCaller, admitStranger } from '../shared/admission.ts';
import { answerInPieces } from '../shared/outbox.ts';
import { piecesOf, readBody } from '../shared/read-body.ts';
import { HttpRefusal, ValidationError } from './api-problem.ts';
import { type Caller, type createAuthenticator, isOwnSite } from './authenticate.ts';
import { always, createStillAllowed, type StillAllowed, whileAllowed, withholdsAnswer } from './credential-end.ts';
import { entityTag, matches } from './entity-tag.ts';
import { StreamedFile } from './export.ts';
import { BoundAnswer, type Created, SecretJson, SessionChange } from './handlers/handler.ts';
import { type Idempotency, idempotencyHeader } from './idempotency-key.ts';
import { readJson, readQuery, requireNoNul } from './validate.ts';

/** Who calls, in the tenant that they act in. */
export type TenantCaller = Omit<Caller, 'actor'> & { readonly actor: TenantActor };

interface Variables {
  requestId: string;
  caller: TenantCaller;
  /** The row of the request changes nothing. */
  readsOnly: boolean | undefined;
  /** Which nodes have not confirmed the change, and until when they may act on what was before. */
  unconfirmed: Unconfirmed | undefined;
}
export interface ApiEnv {
  Variables: Variables;
  Bindings: HttpBindings;
}
type ApiContext = Context<ApiEnv>;

interface Call {
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
  readonly stillAllowed: StillAllowed;
  /** Releases the place of the call; of a file, when it is sent. */
  readonly release: () => void;
}
/** A handler as it is called here; the rows and `Handlers` have checked the types. */
export type AnyHandler = (call: Call) => Promise<unknown>;

/** What all rows share. */
export interface Shared {
  readonly operations: Operations;
  readonly authenticator: ReturnType<typeof createAuthenticator>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Who calls, read again while the request is under way: that extends no session. */
  readonly callerAgain: (context: ApiContext, how: 'fresh' | undefined) => Promise<TenantCaller>;
  readonly idempotency: Idempotency;
  /** For exports and for what takes long. */
  readonly shares: Shares;
  /** Runs once the answer has been handed to the socket. */
  readonly afterSent: (context: Context, done: () => void) => void;
}
export interface Served extends Shared {
  readonly row: RouteRow;
  readonly handler: AnyHandler;
  /** Reads what `If-Match` is compared with. */
  readonly current: AnyHandler | undefined;
}

/** Largest body, in bytes: the longest request has a few names. */
const maxBody = 64 * 1024;

export const json = (
  value: unknown,
  status: 200 | 201 | 202,
  headers: Readonly<Record<string, string>> = {},
): Response =>
  answerInPieces(typeof value === 'string' ? value : JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });

/** The body as it comes. */
const readFile = (incoming: IncomingMessage, type: string, admission: Admission): AsyncIterable<Uint8Array> => {
  if (incoming.headers['content-type'] !== type)
    throw new HttpRefusal('validation', 415, `this path requires a file: ${type}`);
  return piecesOf(incoming, admission);
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

/** Whether it changes something in the tenant acted in, which must not be deleted. */
const isInTenant = ({ method, needs, tenancy, whenDeleted }: RouteRow): boolean =>
  method !== 'get' &&
  needs !== 'signed-in' &&
  needs !== 'sign-in' &&
  (tenancy === undefined || tenancy === 'both') &&
  whenDeleted !== true;

/** Whether the caller may; answers who acts, and how far they see. */
const admit = (
  { operations: { access }, row }: Served,
  context: ApiContext,
  { actor, grants }: TenantCaller,
  path: Readonly<Record<string, string>>,
): TenantActor => {
  if (row.needs === 'signed-in' || row.needs === 'sign-in') return actor;
  const itself = row.tenancy === 'itself' ? (path.id ?? '') : null;
  if (itself !== null) access.requireTenant(grants, row.needs, itself);
  const scope = row.scope === undefined ? null : { kind: row.scope.kind, id: path[row.scope.parameter] ?? '' };
  access.check(grants, row.needs, row.tenancy === 'platform' ? null : (itself ?? actor.tenantId), scope);
  if (isInTenant(row)) access.requireChangeable(actor);
  const names = new URL(context.req.url).searchParams.has(tenantParameter);
  return row.namesCopies === true || (row.tenancy === 'both' && !names)
    ? access.reaching(actor, grants, row.needs)
    : actor;
};

const observe = async <T>({ operations }: Served, context: ApiContext, work: () => Promise<T>): Promise<T> => {
  const observed = await operations.observe(work);
  context.set('unconfirmed', observed);
  if ('refusal' in observed) throw observed.refusal;
  return observed.value;
};

interface Made {
  readonly created: Created<unknown>;
  readonly kept: KeptAnswer;
}

/** The answer with what was created. A secret is wiped when the connection has taken it. */
const sendCreated = ({ afterSent }: Served, context: ApiContext, { created: { answer }, kept }: Made): Response => {
  const headers = { location: kept.location };
  if (!(answer instanceof SecretJson)) return json(answer, 201, headers);
  const { bytes } = answer;
  afterSent(context, () => bytes.fill(0));
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    status: 201,
    headers: { 'content-type': 'application/json', ...headers },
  });
};

/** Creates something, once for each Idempotency-Key. */
const create = async (served: Served, context: ApiContext, call: Call, body: Buffer): Promise<Response> => {
  const { operations, idempotency, row, handler } = served;
  const collection = context.req.path.replace(/\/$/, '');
  const work = async (): Promise<Made> => {
    const created = (await handler(call)) as Created<unknown>;
    const kept = row.showsSecret !== undefined ? null : JSON.stringify(created.answer);
    return { created, kept: { location: `${collection}/${encodeURIComponent(created.id)}`, body: kept } };
  };
  const key = context.req.header(idempotencyHeader);
  if (key === undefined) return sendCreated(served, context, await work());
  let fresh: Made | undefined;
  const { id: actorId, tenantId } = context.get('caller').actor;
  const request = { key, actorId, requestId: context.get('requestId'), target: `${tenantId} ${collection}`, body };
  const { kept, repeated } = await idempotency.once(request, async () => {
    fresh = await work();
    return fresh.kept;
  });
  if (fresh !== undefined) return sendCreated(served, context, fresh);
  operations.confirm();
  const { location } = kept;
  if (kept.body === null)
    throw new HttpRefusal('conflict', 409, 'this request was completed before, and its secret was shown only then', {
      hint: `if the secret is lost, delete ${location} and create another`,
      headers: { location },
    });
  return json(kept.body, 201, { location, ...(repeated ? { 'idempotent-replayed': 'true' } : {}) });
};

/**
 * A place for an export, or for what takes long: while it is worked on and, of a file, while it is
 * sent.
 */
const takePlace = ({ row, shares }: Served, { id, tenantId }: TenantActor): (() => void) => {
  if (row.streams === undefined && row.long === undefined) return () => undefined;
  const release = shares.take(id, tenantId);
  if (release === undefined)
    throw new LimitRefused('exports', 'too many exports and long requests are in progress', {
      hint: 'wait until one of them has ended, or end one, and repeat the request',
      retryAfterSeconds: 5,
    });
  return release;
};

/** Before anything of the request is read. Throws 'rate-limited'; undefined: it has no body. */
const admission = (
  { operations, row }: Served,
  caller: TenantCaller | undefined,
  peer: string | null,
): Admission | undefined => {
  if (row.attempt !== undefined)
    return admitStranger(row.attempt === 'poll' ? operations.deviceSignIn : operations.signIn, peer);
  return caller === undefined ? undefined : admitCaller(caller.actor);
};

/**
 * The body of a request: of a row that takes none, and of a stranger's that is not counted, nothing
 * is read.
 */
const takeBody = async (
  { row }: Served,
  incoming: IncomingMessage,
  admitted: Admission | undefined,
  stillAllowed: StillAllowed,
): Promise<{ readonly bytes: Buffer; readonly file: AsyncIterable<Uint8Array> | undefined }> => {
  if (row.method === 'get' || admitted === undefined) return { bytes: Buffer.alloc(0), file: undefined };
  if (row.takes !== undefined)
    return { bytes: Buffer.alloc(0), file: whileAllowed(readFile(incoming, row.takes, admitted), stillAllowed) };
  return { bytes: await readBody(incoming, maxBody, admitted), file: undefined };
};

/** `mayAnswer` throws where the answer is withheld. */
const carryOut = async (
  served: Served,
  context: ApiContext,
  call: Call,
  bytes: Buffer,
  mayAnswer: () => Promise<void>,
): Promise<Response> => {
  const { authenticator, row, handler } = served;
  if (row.creates) {
    const made = await observe(served, context, () => create(served, context, call, bytes));
    await mayAnswer();
    return made;
  }
  const given = await observe(served, context, () => handler(call));
  const { pendingNodes = [], pendingUntil = null } = context.get('unconfirmed') ?? {};
  if (given instanceof StreamedFile) {
    given.whenEnded(call.release);
    given.onlyWhile(call.stillAllowed);
    // The file also ends where the connection has ended before the file is read.
    served.afterSent(context, () => given.stop());
    return sendFile(given);
  }
  await mayAnswer();
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
    return json({ ...value, pendingNodes, pendingUntil: pendingUntil === null ? null : toRfc3339(pendingUntil) }, 200);
  return context.body(JSON.stringify(value), 200, {
    'content-type': 'application/json',
    ...(versioned.has(row) ? { etag: entityTag(value) } : {}),
  });
};

const answer = async (served: Served, context: ApiContext, call: Call, bytes: Buffer): Promise<Response> => {
  const { operations, current, row } = served;
  const ifMatch = context.req.header('if-match');
  const checkTag = async (): Promise<void> => {
    if (ifMatch === undefined || current === undefined) return;
    const before = await current({ ...call, query: {}, body: {} });
    if (!matches(ifMatch, entityTag(before)))
      throw new ServiceError(
        'precondition-failed',
        'the resource has changed since it was read (If-Match does not match)',
        { hint: 'read it again, check what changed, and repeat the request with the new ETag' },
      );
  };
  // A dry run changes nothing, so nothing else would check.
  await checkTag();
  // The check is repeated in the unit of work that makes the change: since the request came, the
  // caller may have lost what they were granted, the tenant may have been deleted, or the resource
  // changed.
  let isMade = false;
  const check = async (): Promise<void> => {
    await call.stillAllowed('fresh');
    if (isInTenant(row)) await operations.access.requireStillChangeable(call.actor);
    await checkTag();
    isMade = true;
  };
  const mayAnswer = async (): Promise<void> => {
    if (withholdsAnswer(row, call.query, isMade)) await call.stillAllowed();
  };
  return operations.preconditions.under(check, () => carryOut(served, context, call, bytes, mayAnswer));
};

/** A dry run replaces nothing. */
const requireTag = (row: RouteRow, context: ApiContext, query: Readonly<Record<string, unknown>>): void => {
  if (!replaces(row) || query.dryRun === true || context.req.header('if-match') !== undefined) return;
  throw new ServiceError(
    'precondition-required',
    'what replaces a resource must say which state of it is replaced (If-Match is missing)',
    { hint: 'read the resource and send its ETag as If-Match: then a change in between is not undone' },
  );
};

export const serveRow =
  (served: Served) =>
  async (context: ApiContext): Promise<Response> => {
    const { authenticator, callerAgain, clock, operations, row } = served;
    const from = authenticator.originOf(context, context.get('requestId'));
    const isOpen = row.needs === 'sign-in';
    if (isOpen && row.method !== 'get') isOwnSite(context);
    const admitted = admission(served, isOpen ? undefined : context.get('caller'), from.peer);
    const caller = isOpen ? strangerOf(from) : context.get('caller');
    const { grants, session } = caller;
    const path = context.req.param() as Record<string, string>;
    for (const value of Object.values(path)) requireNoNul(value);
    if (session?.missing != null && !row.unfinished?.includes(session.missing)) {
      const [detail, hint] = incomplete[session.missing];
      throw new ServiceError('sign-in-incomplete', detail, { hint });
    }
    const actor = admit(served, context, caller, path);
    const query = readQuery(row.query, context.req.url);
    requireTag(row, context, query);
    const stillAllowed = isOpen
      ? always
      : createStillAllowed(clock, async (how) => {
          const now = await callerAgain(context, how);
          const again = { actor: admit(served, context, now, path), grants: now.grants };
          operations.access.requireAsMuch(again, { actor, grants });
        });
    const { bytes, file } = await takeBody(served, context.env.incoming, admitted, stillAllowed);
    // The body may have been long in coming.
    await stillAllowed();
    const release = takePlace(served, actor);
    let secrets: Record<string, Buffer> = {};
    let isSending = false;
    try {
      secrets = takeSecrets(row, bytes);
      const body = readJson(row.body, context.req.header('content-type'), bytes);
      const { search } = new URL(context.req.url);
      const binding = authenticator.bindingOf(context);
      const asked = { path, query, body, file };
      const call = { actor, grants, session, from, search, binding, secrets, ...asked, stillAllowed, release };
      const response = await answer(served, context, call, bytes);
      isSending = row.streams !== undefined;
      return response;
    } finally {
      if (!isSending) release();
      for (const secret of Object.values(secrets)) secret.fill(0);
      if (isOpen) bytes.fill(0);
    }
  };
