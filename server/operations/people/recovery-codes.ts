// Recovery codes replace a second factor that is lost. They are kept as keyed hashes, and each
// counts once.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import { encodeBase32, plainRecoveryCode } from '../../domain/one-time-password.ts';
import { hasSecondFactor } from '../../domain/user.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { type FactorPorts, newFactor } from './factors.ts';
import type { FactorOperations } from './people-operations.ts';
import { findSelf } from './profile.ts';
import { requireRecent } from './recent-sign-in.ts';
import type { Sessions } from './session-secrets.ts';

const recoveryCodes = 10;

export const createRecoveryCodes = ({ store, core, ring, clock }: FactorPorts, sessions: Sessions) => {
  /** The hash of a code as rows have it now, then the hashes that earlier versions wrote. */
  const recoveryHashes = (userId: string, code: Uint8Array): readonly [string, ...string[]] => {
    const plain = plainRecoveryCode(code);
    const message = Buffer.concat([Buffer.from(`${userId}\0`), plain]);
    try {
      return [ring.hashToken('recovery-code', message), ...ring.formerHashes('recovery-code', message)];
    } finally {
      core.wipe(plain);
      core.wipe(message);
    }
  };

  const operations: Pick<FactorOperations, 'makeRecoveryCodes'> = {
    makeRecoveryCodes: async (caller) => {
      const user = await findSelf(store.read, caller);
      await requireRecent({ store, clock }, caller);
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
          const data = canonicalJson({ hash: recoveryHashes(user.id, code)[0] });
          await tx.factors.insert(newFactor(now, user.id, { kind: 'recovery-code', name: '', data, confirmedAt: now }));
        }
        await recordEvent(tx, 'recovery-codes.created', caller.actor, about('user', user), {
          name: user.name,
          count: codes.length,
        });
      });
      return codes;
    },
  };

  return { operations, recoveryHashes };
};
export type RecoveryCodes = ReturnType<typeof createRecoveryCodes>;
