// Passkeys: created by a user who is signed in; then a complete sign-in, because the authenticator
// verifies its user, or the second factor after a password. A challenge is in the database until it
// is answered, once.

import { ServiceError } from '../../base/service-error.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName } from '../../domain/user.ts';
import type { StoredFactor, StoredUser } from '../../ports/people.ts';
import type { Repositories } from '../../ports/store.ts';
import { createAddPasskey, credentialOf, type PasskeyPorts, passkeysOf, requirePasskeys } from './add-passkey.ts';
import type { Attempts } from './attempts.ts';
import type { Factors } from './factors.ts';
import type { Lockout } from './lockout.ts';
import { createPasskeyChallenges, readAnswer } from './passkey-challenges.ts';
import type { PasskeyOperations, SessionCaller, SignInOrigin, StartedSession } from './people-operations.ts';
import { findSelf } from './profile.ts';
import type { Sessions } from './session-secrets.ts';
import type { SignIn } from './sign-in.ts';

const doesNotHold = (): ServiceError =>
  new ServiceError('unauthenticated', 'the passkey is not valid', {
    hint: 'try again, or sign in with your password',
  });

export const createPasskeyOperations = (
  ports: PasskeyPorts,
  attempts: Attempts,
  sessions: Sessions,
  signIn: SignIn,
  factors: Factors,
  lockout: Lockout,
) => {
  const { store, clock, passkeys } = ports;
  const challenges = createPasskeyChallenges(ports, attempts);
  const { keep, take } = challenges;

  /**
   * Keeps that a passkey was used, unless it was removed in the meantime. A counter never goes
   * back.
   */
  const keepUse = async (tx: Repositories, { id, counter }: StoredFactor): Promise<void> => {
    const current = await tx.factors.get(id);
    if (current === undefined) throw doesNotHold();
    await tx.factors.update({ ...current, counter: Math.max(current.counter, counter), lastUsedAt: clock.now() });
  };

  /** The factor whose passkey gave this answer, with its new counter; undefined: none. */
  const verify = async (user: StoredUser, answer: object, challenge: string, credentialId: string) => {
    const factor = (await passkeysOf(ports, factors, user.id)).find((each) => credentialOf(each).id === credentialId);
    if (factor === undefined) return undefined;
    const verified = await passkeys.verify(answer, challenge, { ...credentialOf(factor), counter: factor.counter });
    return verified === null ? undefined : { ...factor, counter: verified.counter };
  };

  const operations: PasskeyOperations = {
    ...createAddPasskey(ports, challenges, sessions, factors),

    begin: async () => {
      requirePasskeys(passkeys);
      return keep('passkey-sign-in', null, await passkeys.ask([]));
    },

    finish: async (answer, from) => {
      const read = readAnswer(answer);
      const asked = read !== undefined && (await take('passkey-sign-in', null, read.challenge));
      const user = asked && read.userId !== null ? await store.read.users.get(everyTenant, read.userId) : undefined;
      const sound = user !== undefined && user.integrity === 'ok' && user.state === 'active';
      const factor =
        sound && read !== undefined ? await verify(user, answer, read.challenge, read.credentialId) : undefined;
      if (!sound || factor === undefined) {
        const reason = !asked
          ? 'unknown-challenge'
          : user === undefined
            ? 'unknown-user'
            : sound
              ? 'wrong-passkey'
              : 'disabled';
        await signIn.refuse({ method: 'passkey', reason, user }, undefined, from);
        throw doesNotHold();
      }
      return signIn.admit(user, { method: 'passkey', proved: 2 }, undefined, from, async (tx, current) => {
        await keepUse(tx, factor);
        return current;
      });
    },

    beginSecond: async (caller) => {
      requirePasskeys(passkeys);
      const user = await findSelf(store.read, caller);
      const known = await passkeysOf(ports, factors, user.id);
      if (known.length === 0)
        throw new ServiceError('not-found', 'the user has no passkey', { hint: 'use a code instead' });
      return keep('passkey-second-factor', user.id, await passkeys.ask(known.map(credentialOf)));
    },
  };

  const giveSecond = async (caller: SessionCaller, answer: object, from: SignInOrigin): Promise<StartedSession> => {
    const user = await findSelf(store.read, caller);
    const attempt = await lockout.begin(foldUserName(user.name), from.peer);
    const read = readAnswer(answer);
    const asked = read !== undefined && (await take('passkey-second-factor', user.id, read.challenge));
    const factor = asked ? await verify(user, answer, read.challenge, read.credentialId) : undefined;
    if (factor === undefined) {
      await signIn.refuse({ method: 'passkey', reason: 'wrong-passkey', user }, attempt, from);
      throw doesNotHold();
    }
    const made = await store.write(async (tx) => {
      await keepUse(tx, factor);
      await attempt.succeeded(tx, true);
      return factors.prove(tx, user, from, caller);
    });
    sessions.forget();
    return sessions.open(made, from);
  };

  return { operations, giveSecond };
};
