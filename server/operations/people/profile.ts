// What people do with themselves.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { effectiveGrants } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName } from '../../domain/user.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { completeGrants } from '../access/grants.ts';
import { createToken, listTokens, revokeToken } from '../access/manage-tokens.ts';
import { refuseLongToken, refuseOwnSecret } from '../access/provider-managed-users.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { sessionEnded } from './find-session.ts';
import type { Lockout } from './lockout.ts';
import { checkPassword } from './passwords.ts';
import type { ProfileOperations, SessionCaller } from './people-operations.ts';
import { requireRecent } from './recent-sign-in.ts';
import type { Sessions } from './session-secrets.ts';
import { viewUser } from './shown-users.ts';
import type { SignIn } from './sign-in.ts';
import { holderOf } from './start-session.ts';

/**
 * The user who signed in to a session. 'not-found' for a session of a token, also of a user's own
 * one: a program that has the token must not become the user.
 */
export const findSelf = async (
  from: Pick<Repositories, 'users' | 'sessions'>,
  { actor, sessionId }: SessionCaller,
): Promise<StoredUser> => {
  const session = await from.sessions.get(everyTenant, sessionId);
  if (session === undefined && actor.kind === 'user') throw sessionEnded();
  const user = session?.holder.kind === 'user' ? await from.users.get(everyTenant, session.holder.id) : undefined;
  if (user === undefined)
    throw new ServiceError('not-found', 'a token has no profile', { hint: 'sign in as a user, not with a token' });
  return user;
};

/** What is the user's own, in every tenant. */
const everywhere = ({ actor }: SessionCaller): TenantActor => ({
  ...actor,
  tenantId: serviceTenantId,
  reach: everyTenant,
});

const longestTokenMs = 366 * 86_400_000;

export const createProfile = (
  ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'passwords' | 'usage'> & {
    readonly provider: IdentityProvider | undefined;
  },
  sessions: Sessions,
  signIn: SignIn,
  lockout: Lockout,
): ProfileOperations => {
  const { store, clock, passwords } = ports;
  return {
    get: async (caller) => viewUser(ports, store.read, await findSelf(store.read, caller)),

    changePassword: async (caller, current, next, from) => {
      try {
        const user = await findSelf(store.read, caller);
        refuseOwnSecret(ports.provider, user);
        // The current password is a proof, too.
        if (user.password === null) await requireRecent(ports, caller);
        else {
          if (current === undefined)
            throw new ServiceError('validation', 'the current password is missing', { hint: 'send it as "current"' });
          const attempt = await lockout.begin(foldUserName(user.name), from.peer);
          if ((await passwords.verify(current, user.password, from.peer)) === 'wrong') {
            await signIn.refuse({ method: 'password', reason: 'wrong-password', user }, attempt, from);
            throw new ServiceError('validation', 'the current password is wrong');
          }
          await store.write((tx) => attempt.succeeded(tx, true), { durable: false });
          if (current.equals(next))
            throw new ServiceError('validation', 'the new password is the same as the current one');
        }
        checkPassword(next, user.name);
        const password = await passwords.hash(next, from.peer);
        const made = await store.write(async (tx) => {
          const session = await sessions.requireLive(tx, caller.sessionId);
          const now = await findSelf(tx, caller);
          refuseOwnSecret(ports.provider, now);
          if (now.password !== user.password)
            throw new ServiceError('conflict', 'the password was changed in the meantime', {
              hint: 'sign in with the new password',
            });
          await tx.users.update({
            ...now,
            password,
            hasPassword: true,
            passwordChangedAt: clock.now(),
            mustChangePassword: false,
          });
          const ended = await tx.sessions.removeOf({ kind: 'user', id: user.id }, null);
          await recordEvent(tx, 'password.changed', caller.actor, about('user', user), {
            name: user.name,
            by: 'user',
            sessionsEnded: Math.max(0, ended - 1),
          });
          return sessions.insert(tx, holderOf(user), session, from, caller.actor, session);
        });
        sessions.forget();
        return await sessions.open(made, from);
      } finally {
        current?.fill(0);
        next.fill(0);
      }
    },

    createToken: async (caller, { name, expiresAt, grants: chosen }) => {
      const user = await findSelf(store.read, caller);
      if (expiresAt > clock.now() + longestTokenMs)
        throw new ServiceError('validation', "a user's own token can be valid for at most one year");
      refuseLongToken(ports.provider, user, expiresAt - clock.now());
      const actor: TenantActor = {
        ...caller.actor,
        tenantId: user.tenantId ?? serviceTenantId,
        reach: user.tenantId ?? everyTenant,
      };
      const grants = chosen === undefined ? caller.grants : completeGrants(actor, chosen);
      if (effectiveGrants(grants, caller.grants).length < grants.length)
        throw new ServiceError('validation', 'a token cannot have more permissions than its owner', {
          hint: 'GET /api/session shows your roles',
        });
      const requireLive = async (tx: Repositories): Promise<void> => {
        await sessions.requireLive(tx, caller.sessionId);
      };
      return createToken(ports, requireLive)(actor, caller.grants, { name, expiresAt, grants, ownerId: user.id });
    },

    tokens: async (caller, query) => {
      const { id } = await findSelf(store.read, caller);
      return listTokens(ports)(everywhere(caller), { ...query, userId: id });
    },
    revokeToken: async (caller, id) => {
      const user = await findSelf(store.read, caller);
      const token = await store.read.tokens.get(everyTenant, id);
      if (token === undefined || token.ownerId !== user.id) throw new ServiceError('not-found', 'token not found');
      return revokeToken(ports)(everywhere(caller), [], id);
    },
    sessions: async (caller, query) => {
      const { id } = await findSelf(store.read, caller);
      return sessions.list(everyTenant, id, query);
    },
    endSession: async (caller, id) => {
      const user = await findSelf(store.read, caller);
      return sessions.end(caller.actor, everyTenant, id, user.id);
    },
    endOtherSessions: async (caller) => {
      const ended = await store.write(async (tx) => {
        const user = await findSelf(tx, caller);
        await sessions.requireLive(tx, caller.sessionId);
        const count = await tx.sessions.removeOf({ kind: 'user', id: user.id }, caller.sessionId);
        if (count > 0)
          await recordEvent(tx, 'session.ended', caller.actor, about('user', user), { name: user.name, by: 'user' });
        return count;
      });
      sessions.forget();
      return ended;
    },
  };
};
