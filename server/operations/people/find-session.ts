// Who a session is of, and what they may do: read from the store, for each request whose session is
// not known in this process.

import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import { nextStep } from '../../domain/sign-in.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { StoredSession } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { holderOfToken } from '../access/manage-tokens.ts';
import type { ClaimedRoles } from './claimed-roles.ts';
import type { SessionCaller } from './people-operations.ts';

/** A session whose sign-in is not finished is valid for so long. */
const unfinishedMs = 15 * 60_000;
/** The last use is written so often. */
const touchEveryMs = 60_000;

export type Found = Omit<SessionCaller, 'actor'> & { readonly actor: Omit<Actor, 'requestId' | 'peer'> };
/** `isOfToken`: it ends with the token, on any node. */
export interface FoundSession {
  readonly found: Found;
  readonly isOfToken: boolean;
}

export const sessionEnded = (): ServiceError =>
  new ServiceError('unauthenticated', 'the session expired or was ended', {
    hint: 'sign in again: dke login, or the console',
  });

/** Throws 'unauthenticated' when there is no such session, or it may not be used. */
export const createFindSession = (
  {
    store,
    clock,
    people,
    log,
    provider,
  }: Pick<Ports, 'store' | 'clock' | 'people' | 'log'> & Partial<Pick<Ports, 'provider'>>,
  claimedRoles: ClaimedRoles,
) => {
  const isOver = (session: StoredSession, now: number): boolean =>
    now >= session.expiresAt || now >= session.usedAt + people.sessionIdleMs;
  /**
   * `isUse`: a person has asked; a page that asks on its own does not make a session last longer.
   */
  return async (hash: string, isUse = true): Promise<FoundSession> => {
    const session = await store.read.sessions.findByHash(hash);
    const now = clock.now();
    if (session === undefined || session.integrity !== 'ok' || isOver(session, now)) throw sessionEnded();
    const { id: sessionId, expiresAt, holder } = session;
    let found: Found;
    if (holder.kind === 'token') {
      const token = await store.read.tokens.get(everyTenant, holder.id);
      const holds =
        token !== undefined &&
        token.integrity === 'ok' &&
        token.kind === 'api' &&
        token.revokedAt === null &&
        (token.expiresAt === null || token.expiresAt > now);
      const acting = holds ? await holderOfToken(store.read, token, provider, now) : undefined;
      if (acting === undefined) throw sessionEnded();
      const { grants, ...actor } = acting;
      found = { actor, grants, sessionId, expiresAt, missing: null };
    } else {
      const user = await store.read.users.get(everyTenant, holder.id);
      if (user === undefined || user.integrity !== 'ok' || user.state !== 'active') throw sessionEnded();
      // One that was changed from outside is still asked for: an administrator removes it.
      const factors = await store.read.factors.list(user.id);
      const grants = (await claimedRoles.find(store.read, session)) ?? user.grants;
      const missing = nextStep({ ...user, grants }, factors, session.proved, people.secondFactor);
      if (missing !== null && now >= session.createdAt + unfinishedMs) throw sessionEnded();
      const { id, name } = user;
      found = {
        actor: { kind: 'user', id, name },
        grants: missing === null ? user.grants : [],
        sessionId,
        expiresAt,
        missing,
      };
    }
    if (isUse && now - session.usedAt >= Math.min(touchEveryMs, people.sessionIdleMs / 4))
      await store
        .write((tx) => tx.sessions.touch(session.id, now), { durable: false })
        // A database that takes no changes now does not keep people from reading.
        .catch((error: unknown) => log.warn('the last use of a session could not be written', { error }));
    return { found, isOfToken: holder.kind === 'token' };
  };
};

/**
 * The session of the caller as this unit of work sees it. Throws 'unauthenticated' when it was
 * ended in the meantime, or its user disabled: what the session would give must not outlast that.
 */
export const requireLive = async (tx: Repositories, sessionId: string): Promise<StoredSession> => {
  const session = await tx.sessions.get(everyTenant, sessionId);
  const user = session?.holder.kind === 'user' ? await tx.users.get(everyTenant, session.holder.id) : undefined;
  if (session?.integrity !== 'ok' || user?.integrity !== 'ok' || user.state !== 'active') throw sessionEnded();
  return session;
};
