// Roles that the claim of the OpenID provider gives. They are given when the sign-in is complete:
// while it lacks a second factor, they are kept for its session only, so that a first factor
// changes nothing. Roles that the claim no longer gives are removed at once.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import { effectiveGrants, type Grant } from '../../domain/access.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { StoredAttempt, StoredSession, StoredUser } from '../../ports/people.ts';
import type { Repositories } from '../../ports/store.ts';
import { nameGrant } from '../access/grants.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { Attempts } from './attempts.ts';
import type { SignInOrigin } from './people-operations.ts';

/** How long claimed roles are kept: as long as a session may be unfinished. */
const keptMs = 15 * 60_000;

export const openIdActor = ({ requestId, peer }: Pick<SignInOrigin, 'requestId' | 'peer'>) =>
  ({ kind: 'service', id: 'openid', name: 'openid', requestId, peer }) as const;

export const sameGrants = (one: readonly Grant[], other: readonly Grant[]): boolean =>
  JSON.stringify(one.map(nameGrant).sort()) === JSON.stringify(other.map(nameGrant).sort());

/**
 * Whether another person could act as this user: then the provider's claim must not give it roles.
 */
export const isOwnedOtherwise = async (repositories: Repositories, user: StoredUser): Promise<boolean> =>
  user.tenantId !== null ||
  user.password !== null ||
  user.invitationHash !== null ||
  (await repositories.factors.list(user.id)).some(({ kind }) => kind === 'passkey');

/** Changes the roles, records that, and ends the sessions that have the earlier ones. */
export const setRoles = async (
  tx: Repositories,
  user: StoredUser,
  grants: readonly Grant[],
  from: Pick<SignInOrigin, 'requestId' | 'peer'>,
): Promise<StoredUser> => {
  const after: StoredUser = { ...user, grants };
  await tx.users.update(after);
  const sessionsEnded = await tx.sessions.removeOf({ kind: 'user', id: user.id }, null);
  await recordEvent(tx, 'user.changed', openIdActor(from), about('user', user), {
    name: user.name,
    changed: ['roles'],
    roles: grants.map(nameGrant),
    sessionsEnded,
  });
  return after;
};

export const createClaimedRoles = (attempts: Attempts) => {
  /** One for each user: a later sign-in takes the place of an earlier one that was not finished. */
  const textOf = (userId: string): string => `claimed\0${userId}`;
  const grantsIn = (
    attempt: StoredAttempt | undefined,
    { holder, hash }: StoredSession,
  ): readonly Grant[] | undefined => {
    if (attempt?.kind !== 'claimed-roles' || attempt.userId !== holder.id) return undefined;
    const { grants, session } = JSON.parse(attempt.data) as {
      readonly grants: readonly Grant[];
      readonly session: string;
    };
    return session === hash ? grants : undefined;
  };

  return {
    /** What waits for the end of this sign-in. */
    find: async (
      from: Pick<Repositories, 'attempts'>,
      session: StoredSession,
    ): Promise<readonly Grant[] | undefined> =>
      session.method === 'openid' && session.proved < 2
        ? grantsIn(await attempts.find(from, textOf(session.holder.id)), session)
        : undefined,
    forget: async (tx: Repositories, userId: string): Promise<void> => {
      await attempts.take(tx, textOf(userId));
    },
    /** The roles that stay until then; `keep` follows when there is a session. */
    narrow: async (
      tx: Repositories,
      user: StoredUser,
      claimed: readonly Grant[],
      from: SignInOrigin,
    ): Promise<StoredUser> => {
      const kept = effectiveGrants(user.grants, claimed);
      return sameGrants(user.grants, kept) ? user : setRoles(tx, user, kept, from);
    },
    keep: async (tx: Repositories, userId: string, sessionHash: string, claimed: readonly Grant[]): Promise<void> => {
      const grants = claimed.map(({ role, scope, tenantId }) => ({ role, scope: scope && { ...scope }, tenantId }));
      const data = canonicalJson({ grants, session: sessionHash });
      await attempts.keep(tx, { kind: 'claimed-roles', userId, data, value: textOf(userId), holdsMs: keptMs });
    },
    /**
     * Gives the user the roles that were kept for this session, once both factors were shown in it.
     */
    give: async (
      tx: Repositories,
      session: StoredSession,
      from: Pick<SignInOrigin, 'requestId' | 'peer'>,
    ): Promise<void> => {
      if (session.method !== 'openid') return;
      const grants = grantsIn(await attempts.take(tx, textOf(session.holder.id)), session);
      const user = grants && (await tx.users.get(everyTenant, session.holder.id));
      if (grants === undefined || user === undefined || sameGrants(user.grants, grants)) return;
      if (await isOwnedOtherwise(tx, user))
        throw new ServiceError('unauthenticated', 'the user was changed', { hint: 'sign in again' });
      await setRoles(tx, user, grants, from);
    },
  };
};
export type ClaimedRoles = ReturnType<typeof createClaimedRoles>;
