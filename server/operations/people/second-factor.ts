// The second step of a sign-in, by a one-time password or a recovery code. Passkeys have a file of
// their own.

import { canonicalJson } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import { foldUserName } from '../../domain/user.ts';
import type { Repositories } from '../../ports/store.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { FactorPorts, Factors } from './factors.ts';
import type { Lockout } from './lockout.ts';
import type { OneTimePasswords } from './one-time-passwords.ts';
import type { SessionCaller, SignInOrigin, StartedSession } from './people-operations.ts';
import { findSelf } from './profile.ts';
import type { RecoveryCodes } from './recovery-codes.ts';
import type { Sessions } from './session-secrets.ts';
import type { SignIn } from './sign-in.ts';

/** Takes one of the two, which the caller wipes. */
export const createSecondFactor =
  (
    { store }: Pick<FactorPorts, 'store'>,
    {
      sessions,
      signIn,
      lockout,
      factors: { usable, prove },
      oneTimePasswords: { matchStep, useStep },
      recoveryCodes: { recoveryHashes },
    }: {
      readonly sessions: Sessions;
      readonly signIn: SignIn;
      readonly lockout: Lockout;
      readonly factors: Factors;
      readonly oneTimePasswords: OneTimePasswords;
      readonly recoveryCodes: RecoveryCodes;
    },
  ) =>
  async (
    caller: SessionCaller,
    given: { readonly code: Uint8Array } | { readonly recoveryCode: Uint8Array },
    from: SignInOrigin,
  ): Promise<StartedSession> => {
    const user = await findSelf(store.read, caller);
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
      const data = recoveryHashes(user.id, given.recoveryCode).map((hash) => canonicalJson({ hash }));
      const factor = factors.find((each) => each.kind === 'recovery-code' && data.includes(each.data));
      if (factor !== undefined)
        use = async (tx) => {
          if ((await tx.factors.get(factor.id)) === undefined)
            throw new ServiceError('unauthenticated', 'the recovery code was already used');
          await tx.factors.remove(factor.id);
          await recordEvent(tx, 'recovery-code.used', caller.actor, about('user', user), {
            name: user.name,
            left: (await tx.factors.list(user.id)).filter(({ kind }) => kind === 'recovery-code').length,
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
