// One-time passwords as a second factor. The secret is a key record like every other; a code counts
// once.

import { canonicalJson } from '../../base/bytes.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import {
  encodeBase32,
  totpDigits,
  totpMessage,
  totpSecretBytes,
  totpSteps,
  truncateMac,
} from '../../domain/one-time-password.ts';
import { RecordOwner } from '../../ports/key-record.ts';
import type { StoredFactor } from '../../ports/people.ts';
import type { Repositories } from '../../ports/store.ts';
import { checkName } from '../shared/names.ts';
import { type FactorPorts, type Factors, newFactor } from './factors.ts';
import type { FactorOperations } from './people-operations.ts';
import { findSelf } from './profile.ts';
import { requireRecent } from './recent-sign-in.ts';
import type { Sessions } from './session-secrets.ts';
import { removeFactor } from './user-records.ts';

const ownerOf = ({ id, userId, integrity }: Pick<StoredFactor, 'id' | 'userId' | 'integrity'>): RecordOwner =>
  new RecordOwner(
    'user_factors',
    { tenantId: serviceTenantId, id, integrity },
    canonicalJson({ algorithm: 'generic', bits: totpSecretBytes * 8, userId }),
  );

export const createOneTimePasswords = (
  { store, core, ring, clock }: FactorPorts,
  sessions: Sessions,
  factors: Factors,
) => {
  /** The step whose code this is; undefined: of none that counts. */
  const matchStep = async (factor: StoredFactor, code: Uint8Array): Promise<number | undefined> => {
    const record = await store.read.records.of(ownerOf(factor)).get(1, 'second-factor');
    if (record === undefined || code.length !== totpDigits) return undefined;
    const key = ring.open(record);
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

  const operations: Pick<FactorOperations, 'begin' | 'confirm'> = {
    begin: async (caller, name) => {
      checkName(name);
      const user = await findSelf(store.read, caller);
      await requireRecent({ store, clock }, caller);
      const secret = Buffer.alloc(totpSecretBytes);
      core.random(secret);
      const text = Buffer.from(encodeBase32(secret));
      const factor = newFactor(clock.now(), user.id, { kind: 'totp', name, data: '{}' });
      const key = core.importSecret('generic', secret);
      core.wipe(secret);
      try {
        const sealed = ring.seal(ownerOf(factor), 1, 'second-factor', key);
        await store.write(async (tx) => {
          await sessions.requireLive(tx, caller.sessionId);
          const known = await tx.factors.list(user.id);
          // What was started before and never used gives its place up.
          for (const each of known) if (each.kind === 'totp' && each.confirmedAt === null) await removeFactor(tx, each);
          factors.requireRoom(known.filter(({ confirmedAt }) => confirmedAt !== null));
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
      await requireRecent({ store, clock }, caller);
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
        await factors.record(tx, 'second-factor.added', caller, user, factor);
        return factors.prove(tx, user, from, caller);
      });
      sessions.forget();
      return sessions.open(made, from);
    },
  };

  return { operations, matchStep, useStep };
};
export type OneTimePasswords = ReturnType<typeof createOneTimePasswords>;
