// Digest functions, PKCS#11 2.40 section 5.10.
import { CKF } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError, LengthOnly } from '../../schema/types.ts';
import { kindOfView, type ObjectView } from '../objects/object-view.ts';
import { DigestOperation } from '../operations/digest.ts';
import { noParameter } from '../operations/mechanism-parameters.ts';
import { mechanismFor } from '../operations/mechanisms.ts';
import { keyInvalid, mechanismInvalid } from '../return-values.ts';
import { begin, checkIdle, checkWhole, step } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

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
    checkWhole(session, 'digest');
    if (data instanceof LengthOnly) {
      return step(session, 'digest', false, (operation) => operation.announce(data.length, digest));
    }
    return step(session, 'digest', true, (operation) => operation.whole(data, digest));
  },
  C_DigestUpdate: (session, { part }) => step(session, 'digest', false, (operation) => operation.update(part)),
  C_DigestFinal: (session, { digest }) => step(session, 'digest', true, (operation) => operation.final(digest)),

  // C_DigestKey, section 5.10. A digest of a key's value is a way to test guesses at it: no key of
  // ours is digested.
  C_DigestKey: (session, { key }) =>
    step(session, 'digest', true, () => {
      const refuse = (view: ObjectView): never => {
        const kind = kindOfView(view);
        if (kind === 'data' || kind === 'certificate') throw keyInvalid();
        throw new CryptokiError(CKR.KEY_INDIGESTIBLE, 'keys of this token cannot be digested');
      };
      const { application } = session;
      const view = application.sessionObject(key, 'key');
      return view === undefined ? application.tokenObject(key, 'key', false).then(refuse) : refuse(view);
    }),
} as const satisfies GuardedHandlers;
