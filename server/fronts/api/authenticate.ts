// Who calls: an API token in `Authorization`, or the session cookie of the pages. A change that comes with a
// cookie must come from our own pages: browsers say so in Sec-Fetch-Site and Origin, and scripts elsewhere cannot.

import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { ServiceError } from '../../base/errors.ts';
import type { Grant } from '../../domain/access.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Operations } from '../../operations/index.ts';
import { type Sessions, sessionCookie } from './sessions.ts';

export interface Caller {
  readonly actor: Actor;
  /** What the caller may do. */
  readonly grants: readonly Grant[];
  /** End of the session; null when a token was presented. */
  readonly sessionExpiresAt: number | null;
}

const missing = (): ServiceError =>
  new ServiceError('unauthenticated', 'no credential', {
    hint: 'send Authorization: Bearer <API token>, or sign in at the console',
  });

const changes = (method: string): boolean => method !== 'GET' && method !== 'HEAD';

/** Throws 'forbidden' when a browser says that another site made this request. True when it says that ours did. */
const isOwnSite = (context: Context): boolean => {
  const site = context.req.header('sec-fetch-site');
  const origin = context.req.header('origin');
  const foreign =
    (site !== undefined && site !== 'same-origin') ||
    (origin !== undefined && origin !== new URL(context.req.url).origin);
  if (foreign) {
    throw new ServiceError('forbidden', 'the request comes from another site', {
      hint: 'use the console at the address that the browser shows, or a token',
    });
  }
  return site !== undefined || origin !== undefined;
};

export const createAuthenticator = (
  operations: Pick<Operations, 'authenticateAdmin'>,
  sessions: Sessions,
  peerOf: (context: Context) => string | null,
) => ({
  /** Throws 'unauthenticated' or 'forbidden'. */
  async authenticate(context: Context, requestId: string): Promise<Caller> {
    const authorization = context.req.header('authorization');
    if (authorization !== undefined) {
      const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(authorization)?.[1];
      if (token === undefined) throw missing();
      return {
        ...(await operations.authenticateAdmin(token, requestId, peerOf(context))),
        sessionExpiresAt: null,
      };
    }
    const value = getCookie(context, sessionCookie);
    const session = value === undefined ? null : sessions.open(value);
    if (session === null) throw missing();
    if (changes(context.req.method) && !isOwnSite(context)) {
      throw new ServiceError('forbidden', 'a change with a session cookie must say where it comes from', {
        hint: 'browsers send Origin by themselves; other clients use Authorization: Bearer <API token>',
      });
    }
    return {
      ...(await operations.authenticateAdmin(session.token, requestId, peerOf(context))),
      sessionExpiresAt: session.expiresAt,
    };
  },

  /** Checks the token and sets the cookie. A session that the browser had before ends. */
  async signIn(context: Context, token: string, requestId: string): Promise<Caller> {
    isOwnSite(context);
    const { actor, grants } = await operations.authenticateAdmin(token, requestId, peerOf(context));
    const before = getCookie(context, sessionCookie);
    if (before !== undefined) sessions.end(before);
    const { value, expiresAt } = sessions.start(token);
    setCookie(context, sessionCookie, value, { path: '/', secure: true, httpOnly: true, sameSite: 'Strict' });
    return { actor, grants, sessionExpiresAt: expiresAt };
  },

  signOut(context: Context): void {
    const value = getCookie(context, sessionCookie);
    if (value !== undefined) sessions.end(value);
    deleteCookie(context, sessionCookie, { path: '/', secure: true, httpOnly: true, sameSite: 'Strict' });
  },
});

export type Authenticator = ReturnType<typeof createAuthenticator>;
