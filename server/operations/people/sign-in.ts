// Signing in: a user's name and password, or an invitation and a password to come. A user who is not there costs the same work and
// gets the same answer as one whose password is another.

import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { serviceTenantId } from '../../base/ids.ts';
import type { Actor } from '../../domain/actor.ts';
import { nextStep, type SignInMethod } from '../../domain/sign-in.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName } from '../../domain/user.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { looksLikeBearer } from '../access/bearer.ts';
import type { SignInOperations, SignInOrigin, StartedSession } from './interface.ts';
import type { Attempt, Lockout } from './lockout.ts';
import { checkPassword } from './passwords.ts';
import { holderOf, type Sessions, userActor } from './sessions.ts';

export type SignInPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'passwords' | 'people' | 'meter'>;

/** A person who is not known yet. */
const unknownPerson = ({ requestId, peer }: SignInOrigin): Actor => ({
  kind: 'service',
  id: 'sign-in',
  name: 'sign-in',
  requestId,
  peer,
});

export const createSignIn = (
  { store, ring, clock, passwords, people, meter }: SignInPorts,
  sessions: Sessions,
  lockout: Lockout,
) => {
  /** Records a refused sign-in. The name of an unknown user is not stored: it may be a password. */
  const refuse = async (
    refused: { readonly method: string; readonly reason: string; readonly user: StoredUser | undefined },
    attempt: Attempt | undefined,
    from: SignInOrigin,
  ): Promise<void> => {
    const { method, reason, user } = refused;
    meter.signIn('failed');
    await store.write(async (tx) => {
      const subject =
        user === undefined ? ({ kind: 'service', id: 'sign-in' } as const) : ({ kind: 'user', id: user.id } as const);
      await tx.audit.append({
        kind: 'sign-in.refused',
        actor: unknownPerson(from),
        tenantId: user?.tenantId ?? serviceTenantId,
        subject,
        details: { method, reason, ...(user === undefined ? {} : { name: user.name }) },
      });
      if (attempt?.lock?.lockedUntil != null && user !== undefined)
        await tx.audit.append({
          kind: 'user.locked',
          actor: unknownPerson(from),
          tenantId: user?.tenantId ?? serviceTenantId,
          subject,
          details: { name: user.name, failures: attempt.lock.failures, until: toRfc3339(attempt.lock.lockedUntil) },
        });
    });
  };

  /** The session of a user who has proved their identity. */
  const admit = async (
    user: StoredUser,
    how: { readonly method: SignInMethod; readonly proved: 1 | 2 },
    attempt: Attempt | undefined,
    from: SignInOrigin,
    /** What else is written in the same unit of work; answers the user as it is then. */
    change: (tx: Repositories, current: StoredUser) => Promise<StoredUser> = (_tx, current) => Promise.resolve(current),
    /** What is written about the session, once there is one. */
    follow: (tx: Repositories, sessionHash: string) => Promise<void> = () => Promise.resolve(),
  ): Promise<StartedSession> => {
    const made = await store.write(async (tx) => {
      const current = await tx.users.get(everyTenant, user.id);
      // Meanwhile an administrator may have disabled the user or removed the password.
      if (
        current === undefined ||
        current.state !== 'active' ||
        current.integrity !== 'ok' ||
        current.password !== user.password ||
        current.subject !== user.subject
      )
        throw new ServiceError('unauthenticated', 'the user was changed', { hint: 'sign in again' });
      const after = await change(tx, current);
      const step = nextStep(after, await tx.factors.list(user.id), how.proved, people.secondFactor);
      await attempt?.succeeded(tx, step !== 'second-factor');
      await tx.users.touch(user.id, clock.now());
      const started = await sessions.insert(tx, holderOf(after), how, from, userActor(after, from));
      await follow(tx, started.hash);
      return started;
    });
    meter.signIn('succeeded');
    return sessions.open(made, from);
  };

  const operations: Omit<SignInOperations, 'secondFactor' | 'hasPasskeys'> = {
    byPassword: async (name, password, from) => {
      try {
        lockout.admit(from.peer);
        const folded = foldUserName(name);
        const attempt = await lockout.begin(folded, from.peer);
        const user = await store.read.users.findByName(folded);
        const sound = user !== undefined && user.integrity === 'ok' && user.state === 'active';
        const verdict = await passwords.verify(password, sound ? user.password : null, from.peer);
        if (!sound || verdict === 'wrong') {
          const reason =
            user === undefined
              ? 'unknown-user'
              : user.integrity !== 'ok'
                ? 'tampered'
                : user.state !== 'active'
                  ? 'disabled'
                  : user.password === null
                    ? 'no-password'
                    : 'wrong-password';
          await refuse({ method: 'password', reason, user }, attempt, from);
          throw new ServiceError('unauthenticated', 'the user name or password is wrong', {
            hint: 'an administrator can send you an invitation to set a new password',
          });
        }
        const outdated = verdict === 'outdated' ? await passwords.hash(password, from.peer) : undefined;
        return await admit(user, { method: 'password', proved: 1 }, attempt, from, async (tx, current) => {
          if (outdated === undefined) return current;
          const after = { ...current, password: outdated };
          await tx.users.update(after);
          return after;
        });
      } finally {
        password.fill(0);
      }
    },

    redeem: async (invitation, password, from) => {
      try {
        lockout.admit(from.peer);
        const hash = looksLikeBearer('invitation', invitation) ? ring.hashToken('invitation', invitation) : undefined;
        const user = hash === undefined ? undefined : await store.read.users.findByInvitation(hash);
        const holds =
          user !== undefined &&
          user.integrity === 'ok' &&
          user.state === 'active' &&
          user.invitedUntil !== null &&
          user.invitedUntil > clock.now();
        if (!holds) {
          await refuse(
            { method: 'invitation', reason: user === undefined ? 'unknown' : 'expired', user },
            undefined,
            from,
          );
          throw new ServiceError('unauthenticated', 'the invitation is not valid', {
            hint: 'invitations are single-use and expire: ask an administrator for a new one',
          });
        }
        checkPassword(password, user.name);
        const stored = await passwords.hash(password, from.peer);
        const actor = userActor(user, from);
        const made = await store.write(async (tx) => {
          const current = await tx.users.get(everyTenant, user.id);
          if (current === undefined || current.invitationHash !== hash || current.state !== 'active')
            throw new ServiceError('unauthenticated', 'the invitation was already used');
          await tx.users.update({
            ...current,
            password: stored,
            hasPassword: true,
            passwordChangedAt: clock.now(),
            mustChangePassword: false,
            invitationHash: null,
            invitedUntil: null,
          });
          const sessionsEnded = await tx.sessions.removeOf({ kind: 'user', id: user.id }, null);
          await tx.audit.append({
            kind: 'password.changed',
            actor,
            tenantId: user?.tenantId ?? serviceTenantId,
            subject: { kind: 'user', id: user.id },
            details: { name: user.name, by: 'invitation', sessionsEnded },
          });
          await tx.users.touch(user.id, clock.now());
          const how = { method: 'invitation', proved: 1 } as const;
          return sessions.insert(tx, holderOf(user), how, from, actor);
        });
        sessions.forget();
        return await sessions.open(made, from);
      } finally {
        password.fill(0);
      }
    },
  };

  return { operations, refuse, admit };
};
export type SignIn = ReturnType<typeof createSignIn>;
