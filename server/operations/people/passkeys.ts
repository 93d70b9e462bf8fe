// Passkeys: created by a user who is signed in; then a complete sign-in, because the authenticator verifies its user, or the second
// factor after a password. A challenge is in the database until it is answered, once.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName } from '../../domain/user.ts';
import type { IdentityProvider, PasskeyCredential, PasskeyQuestion, Passkeys } from '../../ports/identity.ts';
import type { StoredAttempt, StoredFactor, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { checkName } from '../shared/names.ts';
import { type Factors, newFactor } from './factors.ts';
import type { PasskeyOperations, SessionCaller, SignInOrigin, StartedSession } from './interface.ts';
import type { Lockout } from './lockout.ts';
import { findSelf } from './profile.ts';
import { refuseOwnSecret } from './provided.ts';
import type { Sessions } from './sessions.ts';
import type { SignIn } from './sign-in.ts';

const holdsMs = 5 * 60_000;

const credentialOf = ({ data }: StoredFactor): PasskeyCredential => JSON.parse(data) as PasskeyCredential;

/** The challenge that an answer says it answers, and who the authenticator says it is of; checked afterwards. */
const readAnswer = (
  answer: object,
): { readonly challenge: string; readonly credentialId: string; readonly userId: string | null } | undefined => {
  try {
    const { id, response } = answer as { id?: unknown; response?: { clientDataJSON?: unknown; userHandle?: unknown } };
    const { challenge } = JSON.parse(Buffer.from(String(response?.clientDataJSON), 'base64url').toString('utf8')) as {
      challenge?: unknown;
    };
    if (typeof challenge !== 'string' || typeof id !== 'string') return undefined;
    const handle = response?.userHandle;
    return {
      challenge,
      credentialId: id,
      userId: typeof handle === 'string' ? Buffer.from(handle, 'base64url').toString('utf8') : null,
    };
  } catch {
    return undefined;
  }
};

const doesNotHold = (): ServiceError =>
  new ServiceError('unauthenticated', 'the passkey is not valid', {
    hint: 'try again, or sign in with your password',
  });

export const createPasskeyOperations = (
  {
    store,
    ring,
    clock,
    passkeys,
    provider,
  }: Pick<Ports, 'store' | 'ring' | 'clock'> & {
    readonly passkeys: Passkeys;
    readonly provider: IdentityProvider | undefined;
  },
  sessions: Sessions,
  signIn: SignIn,
  factors: Factors,
  lockout: Lockout,
) => {
  const hashOf = (challenge: string): string => ring.hashToken('sign-in-attempt', `passkey\0${challenge}`);

  const requireAvailable = (): void => {
    if (!passkeys.available())
      throw new ServiceError(
        'conflict',
        'passkeys require a host name, not an IP address, in the address of the service',
        {
          hint: 'set server.public_url or the first of server.public_names in dke.toml',
        },
      );
  };

  const keep = async (
    kind: StoredAttempt['kind'],
    userId: string | null,
    { options, challenge }: PasskeyQuestion,
  ): Promise<object> => {
    const expiresAt = clock.now() + holdsMs;
    await store.write((tx) => tx.attempts.insert({ hash: hashOf(challenge), kind, userId, data: '{}', expiresAt }), {
      durable: false,
    });
    return options;
  };

  /** The challenge of a response; it is used up by this. */
  const take = async (kind: StoredAttempt['kind'], userId: string | null, challenge: string): Promise<boolean> => {
    const attempt = await store.write((tx) => tx.attempts.take(hashOf(challenge)), { durable: false });
    return attempt?.kind === kind && attempt.userId === userId && attempt.expiresAt > clock.now();
  };

  const passkeysOf = async (userId: string): Promise<readonly StoredFactor[]> =>
    factors.usable(await store.read.factors.list(userId)).filter(({ kind }) => kind === 'passkey');

  /** Keeps that a passkey was used, unless it was removed meanwhile. A counter never goes back. */
  const keepUse = async (tx: Repositories, { id, counter }: StoredFactor): Promise<void> => {
    const current = await tx.factors.get(id);
    if (current === undefined) throw doesNotHold();
    await tx.factors.update({ ...current, counter: Math.max(current.counter, counter), lastUsedAt: clock.now() });
  };

  /** The factor whose passkey gave this answer, with its new counter; undefined: none. */
  const verify = async (user: StoredUser, answer: object, challenge: string, credentialId: string) => {
    const factor = (await passkeysOf(user.id)).find((each) => credentialOf(each).id === credentialId);
    if (factor === undefined) return undefined;
    const verified = await passkeys.verify(answer, challenge, { ...credentialOf(factor), counter: factor.counter });
    return verified === null ? undefined : { ...factor, counter: verified.counter };
  };

  const operations: PasskeyOperations = {
    beginNew: async (caller) => {
      requireAvailable();
      const user = await findSelf(store.read, caller);
      refuseOwnSecret(provider, user);
      await factors.requireRecent(caller);
      const known = await passkeysOf(user.id);
      return keep('passkey-registration', user.id, await passkeys.askForNew(user, known.map(credentialOf)));
    },

    finishNew: async (caller, name, answer, from) => {
      checkName(name);
      const user = await findSelf(store.read, caller);
      refuseOwnSecret(provider, user);
      await factors.requireRecent(caller);
      const read = readAnswer(answer);
      const asked = read !== undefined && (await take('passkey-registration', user.id, read.challenge));
      const made = asked ? await passkeys.verifyNew(answer, read.challenge) : null;
      if (made === null)
        throw new ServiceError('validation', 'the answer of the authenticator is not valid', { hint: 'start again' });
      const data = canonicalJson({ ...made.credential, transports: [...made.credential.transports] });
      const now = clock.now();
      const factor = newFactor(now, user.id, { kind: 'passkey', name, data, counter: made.counter, confirmedAt: now });
      const started = await store.write(async (tx) => {
        factors.requireRoom((await tx.factors.list(user.id)).filter(({ confirmedAt }) => confirmedAt !== null));
        await tx.factors.insert(factor);
        await factors.record(tx, 'second-factor.added', caller, user, factor);
        return factors.prove(tx, user, from, caller);
      });
      sessions.forget();
      return sessions.open(started, from);
    },

    begin: async (from) => {
      requireAvailable();
      lockout.admit(from.peer);
      return keep('passkey-sign-in', null, await passkeys.ask([]));
    },

    finish: async (answer, from) => {
      lockout.admit(from.peer);
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
      requireAvailable();
      const user = await findSelf(store.read, caller);
      const known = await passkeysOf(user.id);
      if (known.length === 0)
        throw new ServiceError('not-found', 'the user has no passkey', { hint: 'use a code instead' });
      return keep('passkey-second-factor', user.id, await passkeys.ask(known.map(credentialOf)));
    },
  };

  const giveSecond = async (caller: SessionCaller, answer: object, from: SignInOrigin): Promise<StartedSession> => {
    lockout.admit(from.peer);
    const user = await findSelf(store.read, caller);
    await factors.sessionOf(caller);
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
