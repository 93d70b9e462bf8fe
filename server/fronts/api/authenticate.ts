// Who calls: an API token in `Authorization`, or the session cookie of the pages. A change that
// comes with a cookie must come from our own pages: browsers say so in Sec-Fetch-Site and Origin,
// and scripts elsewhere cannot.

import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { ServiceError } from '../../base/service-error.ts';
import { sessionCookie } from '../../contract/api/sign-in-routes.ts';
import type { Grant } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Operations } from '../../operations/index.ts';
import type { SessionCaller, SessionLook, SignInOrigin } from '../../operations/people/people-operations.ts';

/** A page asks on its own: nothing was pressed. It makes a session last no longer. */
export const ownRequestHeader = 'x-dke-own-request';

export interface Caller {
  readonly actor: Actor;
  /** What the caller may do. */
  readonly grants: readonly Grant[];
  /** Null when a token was presented. */
  readonly session: SessionCaller | null;
}

/** Null: the caller may act in several, or in the platform. */
export const onlyTenantOf = ({ grants }: Caller): string | null => {
  const tenants = new Set(grants.map(({ tenantId }) => tenantId));
  return tenants.size === 1 ? (grants[0]?.tenantId ?? null) : null;
};

const missing = (): ServiceError =>
  new ServiceError('unauthenticated', 'no credential', {
    hint: 'send Authorization: Bearer TOKEN (dke token create NAME --role ROLE), or sign in: dke login, or the console',
  });

const changes = (method: string): boolean => method !== 'GET' && method !== 'HEAD';

/**
 * Throws 'forbidden' when a browser says that another site made this request. True when it says
 * that ours did.
 */
export const isOwnSite = (context: Context): boolean => {
  const site = context.req.header('sec-fetch-site');
  const origin = context.req.header('origin');
  const foreign =
    (site !== undefined && site !== 'same-origin') ||
    (origin !== undefined && origin !== new URL(context.req.url).origin);
  if (foreign) {
    throw new ServiceError('forbidden', 'the request comes from another site', {
      hint: 'use the console at its public address, or send a token',
    });
  }
  return site !== undefined || origin !== undefined;
};

const bindingCookie = '__Host-dke-sign-in';
const bindingAttributes = { path: '/', secure: true, httpOnly: true, sameSite: 'Lax' } as const;
const attributes = { path: '/', secure: true, httpOnly: true, sameSite: 'Strict' } as const;

export const createAuthenticator = (
  operations: Pick<Operations, 'authenticateAdmin' | 'sessions'>,
  peerOf: (context: Context) => string | null,
) => ({
  /**
   * Throws 'unauthenticated' or 'forbidden'. What a page reads on its own does not make its session
   * last longer: `readsOnly` is what the row says of the request, and a change is always a use.
   * `again`: a further look while the request is under way. Tokens know no pages, so each request
   * of theirs is a use.
   */
  async authenticate(
    context: Context,
    requestId: string,
    { readsOnly = false, again }: { readonly readsOnly?: boolean; readonly again?: SessionLook } = {},
  ): Promise<Caller> {
    const authorization = context.req.header('authorization');
    if (authorization !== undefined) {
      const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(authorization)?.[1];
      if (token === undefined) throw missing();
      return { ...(await operations.authenticateAdmin(token, requestId, peerOf(context), again)), session: null };
    }
    const value = getCookie(context, sessionCookie);
    if (value === undefined) throw missing();
    const isUse = !readsOnly || context.req.header(ownRequestHeader) === undefined;
    const session = await operations.sessions.authenticate(value, requestId, peerOf(context), again ?? { isUse });
    if (changes(context.req.method) && !isOwnSite(context)) {
      throw new ServiceError('forbidden', 'a change with a session cookie must have an Origin header', {
        hint: 'browsers send it automatically; in other clients, send Authorization: Bearer <API token>',
      });
    }
    return { actor: session.actor, grants: session.grants, session };
  },

  originOf: (context: Context, requestId: string): SignInOrigin => ({
    requestId,
    peer: peerOf(context),
    agent: context.req.header('user-agent') ?? null,
    before: getCookie(context, sessionCookie),
  }),

  /**
   * The cookie of a sign-in at the OpenID provider: browsers send it also when another site leads
   * back here.
   */
  bindingOf: (context: Context): string | undefined => getCookie(context, bindingCookie),
  setBinding(context: Context, value: string | null): void {
    if (value === null) deleteCookie(context, bindingCookie, bindingAttributes);
    else setCookie(context, bindingCookie, value, { ...bindingAttributes, maxAge: 600 });
  },

  setSession(context: Context, value: string | null): void {
    if (value === null) deleteCookie(context, sessionCookie, attributes);
    else setCookie(context, sessionCookie, value, attributes);
  },
});
