// What second factors have in common: who may change them, how they are recorded and removed, and
// the new value of a session after two factors were verified. The kinds: one-time-passwords.ts,
// recovery-codes.ts, passkeys.ts.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { changesAnything } from '../../domain/sign-in.ts';
import { hasSecondFactor, type UserView } from '../../domain/user.ts';
import type { StoredFactor, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ClaimedRoles } from './claimed-roles.ts';
import type { FactorOperations, SessionCaller, SignInOrigin } from './people-operations.ts';
import { findSelf } from './profile.ts';
import { requireRecent } from './recent-sign-in.ts';
import type { Sessions } from './session-secrets.ts';
import { viewUser } from './shown-users.ts';
import { holderOf } from './start-session.ts';
import { removeFactor } from './user-records.ts';

export type FactorPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'people'>;

const mostFactors = 10;

export const newFactor = (
  now: number,
  userId: string,
  what: Pick<StoredFactor, 'kind' | 'name' | 'data'> & Partial<Pick<StoredFactor, 'counter' | 'confirmedAt'>>,
): StoredFactor => ({
  id: newId(now),
  userId,
  counter: 0,
  confirmedAt: null,
  createdAt: now,
  lastUsedAt: null,
  integrity: 'ok',
  ...what,
});

export const createFactors = (ports: FactorPorts, sessions: Sessions, claimedRoles: ClaimedRoles) => {
  const { store, people } = ports;

  const usable = (factors: readonly StoredFactor[]): readonly StoredFactor[] =>
    factors.filter(({ integrity }) => integrity === 'ok');

  /**
   * The session continues under a new value, now that two factors were shown. It ends when it would
   * have ended.
   */
  const prove = async (tx: Repositories, user: StoredUser, from: SignInOrigin, caller: SessionCaller) => {
    const session = await sessions.requireLive(tx, caller.sessionId);
    await claimedRoles.give(tx, session, from);
    await tx.sessions.remove(session.id);
    const how = { method: session.method, proved: 2 } as const;
    return sessions.insert(tx, holderOf(user), how, from, caller.actor, session);
  };

  const record = (
    tx: Repositories,
    kind: 'second-factor.added' | 'second-factor.removed',
    caller: SessionCaller,
    user: StoredUser,
    factor: Pick<StoredFactor, 'kind' | 'name'>,
  ): Promise<unknown> =>
    recordEvent(tx, kind, caller.actor, about('user', user), {
      name: user.name,
      kind: factor.kind,
      factor: factor.name,
      ...(kind === 'second-factor.removed' ? { by: 'user' } : {}),
    });

  const requireRoom = (factors: readonly StoredFactor[]): void => {
    if (factors.filter(({ kind }) => kind !== 'recovery-code').length >= mostFactors)
      throw new ServiceError('conflict', `a user can have at most ${mostFactors} second factors`, {
        hint: 'remove one first',
      });
  };

  const operations: Pick<FactorOperations, 'remove'> = {
    remove: async (caller, id): Promise<UserView> => {
      await requireRecent(ports, caller);
      const view = await store.write(async (tx) => {
        const user = await findSelf(tx, caller);
        const factors = await tx.factors.list(user.id);
        const factor = factors.find((each) => each.id === id && each.kind !== 'recovery-code');
        if (factor === undefined) throw new ServiceError('not-found', 'second factor not found');
        const rest = factors.filter((each) => each.id !== id);
        if (!hasSecondFactor(rest)) {
          if (people.secondFactor === 'required' && changesAnything(user.grants))
            throw new ServiceError('conflict', 'this is your last second factor, and your roles require one', {
              hint: 'set up another one first',
            });
          for (const each of rest) await removeFactor(tx, each);
        }
        await removeFactor(tx, factor);
        if (factor.confirmedAt !== null) await record(tx, 'second-factor.removed', caller, user, factor);
        return viewUser(ports, tx, user);
      });
      sessions.forget();
      return view;
    },
  };

  return { operations, requireRoom, prove, record, usable };
};
export type Factors = ReturnType<typeof createFactors>;
