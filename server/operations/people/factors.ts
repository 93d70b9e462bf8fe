// Second factors: one-time passwords, whose secret is a key record like every other, and recovery codes, kept as keyed hashes. A code
// counts once. Passkeys have a file of their own.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import {
  encodeBase32,
  plainRecoveryCode,
  totpDigits,
  totpMessage,
  totpSecretBytes,
  totpSteps,
  truncateMac,
} from '../../domain/one-time-password.ts';
import { changesAnything } from '../../domain/sign-in.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName, hasSecondFactor, type UserView } from '../../domain/user.ts';
import type { StoredFactor, StoredSession, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RecordPlace } from '../../ports/records.ts';
import type { Repositories } from '../../ports/store.ts';
import { checkName } from '../shared/names.ts';
import type { ClaimedRoles } from './claimed-roles.ts';
import type { FactorOperations, SessionCaller, SignInOrigin, StartedSession } from './interface.ts';
import type { Lockout } from './lockout.ts';
import { findSelf } from './profile.ts';
import { holderOf, type Sessions, sessionEnded } from './sessions.ts';
import type { SignIn } from './sign-in.ts';
import { viewUser } from './views.ts';

export type FactorPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'people'>;

const mostFactors = 10;
const recoveryCodes = 10;
/** To change what you sign in with, you must have signed in recently. */
const recentMs = 15 * 60_000;

const placeOf = (factorId: string, userId: string): RecordPlace => ({
  tenantId: serviceTenantId,
  objectId: factorId,
  version: 1,
  class: 'second-factor',
  attributes: canonicalJson({ algorithm: 'generic', bits: totpSecretBytes * 8, userId }),
});

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

export const createFactors = (
  ports: FactorPorts,
  sessions: Sessions,
  signIn: SignIn,
  lockout: Lockout,
  claimedRoles: ClaimedRoles,
) => {
  const { store, core, ring, clock, people } = ports;

  /** The step whose code this is; undefined: of none that counts. */
  const matchStep = async (factor: StoredFactor, code: Uint8Array): Promise<number | undefined> => {
    const record = await store.read.records.get(factor.id, 1, 'second-factor');
    if (record === undefined || code.length !== totpDigits) return undefined;
    const key = ring.open({ ...record, ...placeOf(factor.id, factor.userId) });
    try {
      const mac = Buffer.alloc(20);
      let found: number | undefined;
      // All of them are made, whichever it is.
      for (const step of totpSteps(clock.now(), factor.counter)) {
        core.mac(key, { algorithm: 'hmac', digest: 'sha1' }, totpMessage(step), mac);
        if (core.timingSafeEqual(truncateMac(mac), code)) found = step;
      }
      core.wipe(mac);
      return found;
    } finally {
      core.release(key);
    }
  };

  /** Marks a step as used; 'unauthenticated' when another request was faster with the same code. */
  const useStep = async (tx: Repositories, id: string, step: number, change: Partial<StoredFactor>): Promise<void> => {
    const factor = await tx.factors.get(id);
    if (factor === undefined || factor.counter >= step)
      throw new ServiceError('unauthenticated', 'the code was already used', { hint: 'wait for the next one' });
    await tx.factors.update({ ...factor, counter: step, lastUsedAt: clock.now(), ...change });
  };

  const usable = (factors: readonly StoredFactor[]): readonly StoredFactor[] =>
    factors.filter(({ integrity }) => integrity === 'ok');

  const recoveryHash = (userId: string, code: Uint8Array): string => {
    const plain = plainRecoveryCode(code);
    const message = Buffer.concat([Buffer.from(`${userId}\0`), plain]);
    try {
      return ring.hashToken('recovery-code', message);
    } finally {
      core.wipe(plain);
      core.wipe(message);
    }
  };

  const sessionOf = async ({ sessionId }: SessionCaller): Promise<StoredSession> => {
    const session = await store.read.sessions.get(everyTenant, sessionId);
    if (session === undefined) throw sessionEnded();
    return session;
  };

  /** 'forbidden' for a session that is older: another person may be using it. */
  const requireRecent = async (caller: SessionCaller): Promise<StoredSession> => {
    const session = await sessionOf(caller);
    if (clock.now() - session.createdAt > recentMs)
      throw new ServiceError('forbidden', 'this requires a sign-in within the last 15 minutes', {
        hint: 'sign out, sign in again, and repeat it',
      });
    return session;
  };

  /** The session goes on under a new value, now that two factors were shown. */
  const prove = async (tx: Repositories, user: StoredUser, from: SignInOrigin, caller: SessionCaller) => {
    const session = await sessions.requireLive(tx, caller.sessionId);
    await claimedRoles.give(tx, session, from);
    await tx.sessions.remove(session.id);
    return sessions.insert(tx, holderOf(user), { method: session.method, proved: 2 }, from, caller.actor);
  };

  const record = (
    tx: Repositories,
    kind: 'second-factor.added' | 'second-factor.removed',
    caller: SessionCaller,
    user: StoredUser,
    factor: Pick<StoredFactor, 'kind' | 'name'>,
  ): Promise<unknown> =>
    tx.audit.append({
      kind,
      actor: caller.actor,
      tenantId: user.tenantId ?? serviceTenantId,
      subject: { kind: 'user', id: user.id },
      details: {
        name: user.name,
        kind: factor.kind,
        factor: factor.name,
        ...(kind === 'second-factor.removed' ? { by: 'user' } : {}),
      },
    });

  const requireRoom = (factors: readonly StoredFactor[]): void => {
    if (factors.filter(({ kind }) => kind !== 'recovery-code').length >= mostFactors)
      throw new ServiceError('conflict', `a user can have at most ${mostFactors} second factors`, {
        hint: 'remove one first',
      });
  };

  const operations: FactorOperations = {
    begin: async (caller, name) => {
      checkName(name);
      const user = await findSelf(store.read, caller);
      await requireRecent(caller);
      const secret = Buffer.alloc(totpSecretBytes);
      core.random(secret);
      const text = Buffer.from(encodeBase32(secret));
      const factor = newFactor(clock.now(), user.id, { kind: 'totp', name, data: '{}' });
      const key = core.importSecret('generic', secret);
      core.wipe(secret);
      try {
        const sealed = ring.seal(placeOf(factor.id, user.id), key);
        await store.write(async (tx) => {
          await sessions.requireLive(tx, caller.sessionId);
          const factors = await tx.factors.list(user.id);
          // What was begun before and never used gives its place up.
          for (const { id, kind, confirmedAt } of factors)
            if (kind === 'totp' && confirmedAt === null) {
              await tx.records.wipe(id, 1, 'second-factor');
              await tx.factors.remove(id);
            }
          requireRoom(factors.filter(({ confirmedAt }) => confirmedAt !== null));
          await tx.factors.insert(factor);
          await tx.records.put(sealed);
        });
      } finally {
        core.release(key);
      }
      return { id: factor.id, account: user.name, secret: text };
    },

    confirm: async (caller, id, code, from) => {
      const user = await findSelf(store.read, caller);
      await requireRecent(caller);
      const factor = await store.read.factors.get(id);
      if (factor === undefined || factor.userId !== user.id || factor.kind !== 'totp' || factor.confirmedAt !== null)
        throw new ServiceError('not-found', 'no one-time password with this id is waiting for confirmation');
      const step = factor.integrity === 'ok' ? await matchStep(factor, code) : undefined;
      if (step === undefined)
        throw new ServiceError('validation', 'the code is wrong', {
          hint: 'check the clock of your device; the code changes every 30 seconds',
        });
      const made = await store.write(async (tx) => {
        await useStep(tx, id, step, { confirmedAt: clock.now() });
        await record(tx, 'second-factor.added', caller, user, factor);
        return prove(tx, user, from, caller);
      });
      sessions.forget();
      return sessions.open(made, from);
    },

    makeRecoveryCodes: async (caller) => {
      const user = await findSelf(store.read, caller);
      await requireRecent(caller);
      const codes = Array.from({ length: recoveryCodes }, () => {
        const bytes = Buffer.alloc(10);
        core.random(bytes);
        const code = Buffer.from(encodeBase32(bytes));
        core.wipe(bytes);
        return code;
      });
      await store.write(async (tx) => {
        await sessions.requireLive(tx, caller.sessionId);
        const factors = await tx.factors.list(user.id);
        if (!hasSecondFactor(factors))
          throw new ServiceError('conflict', 'recovery codes replace a second factor, and you have none', {
            hint: 'set up a second factor first',
          });
        for (const { id, kind } of factors) if (kind === 'recovery-code') await tx.factors.remove(id);
        const now = clock.now();
        for (const code of codes) {
          const data = canonicalJson({ hash: recoveryHash(user.id, code) });
          await tx.factors.insert(newFactor(now, user.id, { kind: 'recovery-code', name: '', data, confirmedAt: now }));
        }
        await tx.audit.append({
          kind: 'recovery-codes.made',
          actor: caller.actor,
          tenantId: user.tenantId ?? serviceTenantId,
          subject: { kind: 'user', id: user.id },
          details: { name: user.name, count: codes.length },
        });
      });
      return codes;
    },

    remove: async (caller, id): Promise<UserView> => {
      await requireRecent(caller);
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
          for (const each of rest) await tx.factors.remove(each.id);
        }
        if (factor.kind === 'totp') await tx.records.wipe(id, 1, 'second-factor');
        await tx.factors.remove(id);
        if (factor.confirmedAt !== null) await record(tx, 'second-factor.removed', caller, user, factor);
        return viewUser(ports, tx, user);
      });
      sessions.forget();
      return view;
    },
  };

  /** The second step of a sign-in. Takes one of the two, which the caller wipes. */
  const secondFactor = async (
    caller: SessionCaller,
    given: { readonly code: Uint8Array } | { readonly recoveryCode: Uint8Array },
    from: SignInOrigin,
  ): Promise<StartedSession> => {
    lockout.admit(from.peer);
    const user = await findSelf(store.read, caller);
    await sessionOf(caller);
    const attempt = await lockout.begin(foldUserName(user.name), from.peer);
    const factors = usable(await store.read.factors.list(user.id));
    const method = 'code' in given ? 'totp' : 'recovery-code';
    let use: ((tx: Repositories) => Promise<void>) | undefined;
    if ('code' in given) {
      for (const factor of factors) {
        const counts = factor.kind === 'totp' && factor.confirmedAt !== null;
        const step = counts ? await matchStep(factor, given.code) : undefined;
        if (step !== undefined) use = (tx) => useStep(tx, factor.id, step, {});
      }
    } else {
      const data = canonicalJson({ hash: recoveryHash(user.id, given.recoveryCode) });
      const factor = factors.find((each) => each.kind === 'recovery-code' && each.data === data);
      if (factor !== undefined)
        use = async (tx) => {
          if ((await tx.factors.get(factor.id)) === undefined)
            throw new ServiceError('unauthenticated', 'the recovery code was already used');
          await tx.factors.remove(factor.id);
          await tx.audit.append({
            kind: 'recovery-code.used',
            actor: caller.actor,
            tenantId: user.tenantId ?? serviceTenantId,
            subject: { kind: 'user', id: user.id },
            details: {
              name: user.name,
              left: (await tx.factors.list(user.id)).filter(({ kind }) => kind === 'recovery-code').length,
            },
          });
        };
    }
    if (use === undefined) {
      await signIn.refuse({ method, reason: 'wrong-code', user }, attempt, from);
      throw new ServiceError('unauthenticated', 'the code is wrong', {
        hint: 'each code is valid once and for about a minute; each recovery code is valid once',
      });
    }
    const spend = use;
    const made = await store.write(async (tx) => {
      await spend(tx);
      await attempt.succeeded(tx, true);
      return prove(tx, user, from, caller);
    });
    sessions.forget();
    return sessions.open(made, from);
  };

  return { operations, secondFactor, requireRecent, requireRoom, prove, record, sessionOf, usable };
};
export type Factors = ReturnType<typeof createFactors>;
