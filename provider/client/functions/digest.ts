// Digest functions, PKCS#11 2.40 section 5.10.
import { CKF } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import { mechanismInvalid } from '../errors.ts';
import type { GuardedHandlers } from '../guards.ts';
import { DigestOperation } from '../operations/digest.ts';
import { mechanismFor, noParameter } from '../operations/mechanisms.ts';
import { begin, checkIdle, checkWhole, step } from '../operations/running.ts';

export const digest = {
  C_DigestInit: (session, { mechanism }) => {
    if (mechanism === null) return session.cancel('digest');
    checkIdle(session, 'digest');
    const { digest } = mechanismFor(mechanism, CKF.DIGEST);
    if (digest === undefined) throw mechanismInvalid();
    noParameter(mechanism);
    begin(session, 'digest', new DigestOperation(digest.name, digest.length));
  },
  C_Digest: (session, { data, digest }) => {
    checkWhole(session.digest);
    return step(session, 'digest', true, (operation) => operation.whole(data, digest));
  },
  C_DigestUpdate: (session, { part }) => step(session, 'digest', false, (operation) => operation.update(part)),
  C_DigestFinal: (session, { digest }) => step(session, 'digest', true, (operation) => operation.final(digest)),

  // C_DigestKey, section 5.10. A digest of a key's value is a way to test guesses at it: no key of ours is digested.
  C_DigestKey: (session) =>
    step(session, 'digest', true, () => {
      throw new CryptokiError(CKR.KEY_INDIGESTIBLE, 'keys of this token are not digested');
    }),
} as const satisfies GuardedHandlers;
