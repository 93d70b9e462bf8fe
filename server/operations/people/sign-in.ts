// The end of every sign-in: a user who has proved their identity gets a session, and a refused one
// is recorded. The ways: sign-in-by-password.ts, redeem-invitation.ts, passkeys.ts, open-id.ts.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { Actor } from '../../domain/actor.ts';
import { nextStep, type SignInMethod } from '../../domain/sign-in.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Attempt } from './lockout.ts';
import type { SignInOrigin, StartedSession } from './people-operations.ts';
import { type Sessions, userActor } from './session-secrets.ts';
import { holderOf } from './start-session.ts';

export type SignInPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'passwords' | 'people' | 'meter'>;

/** A person who is not known yet. */
export const unknownPerson = ({ requestId, peer }: Pick<SignInOrigin, 'requestId' | 'peer'>): Actor => ({
  kind: 'service',
  id: 'sign-in',
  name: 'sign-in',
  requestId,
  peer,
});

export const createSignIn = ({ store, clock, people, meter }: SignInPorts, sessions: Sessions) => {
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

  return { refuse, admit };
};
export type SignIn = ReturnType<typeof createSignIn>;
