// Signatures with message recovery, PKCS#11 2.40 sections 5.11 (C_SignRecoverInit, C_SignRecover)
// and 5.12 (C_VerifyRecoverInit, C_VerifyRecover): CKM_RSA_PKCS, whose signature contains its data.
// Raw RSA, which has no padding at all, is not carried.
import { CKF } from '../../schema/constants.ts';
import type { Mechanism } from '../../schema/types.ts';
import { bringPublicKey, type LocalKey, localKey, tokenKeyOnce, tokenPublicKey } from '../operations/find-key.ts';
import type { MechanismRow, SignatureRow } from '../operations/mechanism-row.ts';
import { mechanismFor } from '../operations/mechanisms.ts';
import { LocalRecovery, LocalSignature, ServiceSignature } from '../operations/signature.ts';
import { mechanismInvalid } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import type { RecoverOperation } from '../sessions/operation.ts';
import { begin, checkIdle, step } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

type Kind = 'signRecover' | 'verifyRecover';
const flags = { signRecover: CKF.SIGN_RECOVER, verifyRecover: CKF.VERIFY_RECOVER } as const;

const init = (session: Session, kind: Kind, mechanism: Mechanism | null, handle: number): Later<void> => {
  if (mechanism === null) return session.cancel(kind);
  const cycle = checkIdle(session, kind);
  const { application } = session;
  const row = mechanismFor(mechanism, flags[kind]);
  const { signature } = row;
  if (signature === undefined) throw mechanismInvalid();
  const start = ({ key, private: isPrivate }: LocalKey): RecoverOperation =>
    kind === 'signRecover'
      ? new LocalSignature(application, signature, mechanism, key, isPrivate)
      : new LocalRecovery(mechanism, key, isPrivate);
  const local = localKey(application, handle, row, kind);
  if (local !== undefined) return beginWith(session, kind, { ...local, key: local.key.share() }, start, cycle);
  if (kind === 'signRecover') return signOnToken(session, row, signature, mechanism, handle, cycle);
  return tokenPublicKey(application, handle, row, kind).then((key) => beginWith(session, kind, key, start, cycle));
};

/** `local.key` is the operation's from here on. */
const beginWith = (
  session: Session,
  kind: Kind,
  local: LocalKey,
  start: (local: LocalKey) => RecoverOperation,
  cycle: number,
): void => {
  let operation: RecoverOperation;
  try {
    operation = start(local);
  } catch (error) {
    local.key.release();
    throw error;
  }
  begin(session, kind, operation, cycle);
};

/**
 * The service signs if the key may sign: to it there is one permission. CKA_SIGN_RECOVER is asked
 * for here.
 */
const signOnToken = async (
  session: Session,
  row: MechanismRow,
  signature: SignatureRow,
  mechanism: Mechanism,
  handle: number,
  cycle: number,
): Promise<void> => {
  const { application } = session;
  const view = await tokenKeyOnce(application, handle, row, 'signRecover', 'key');
  await application.ask('checkUse', handle, { usage: 'sign' });
  const start = ({ key }: LocalKey) => new ServiceSignature(application, signature, mechanism, view, key);
  beginWith(session, 'signRecover', bringPublicKey(view), start, cycle);
};

export const recover = {
  C_SignRecoverInit: (session, { mechanism, key }) => init(session, 'signRecover', mechanism, key),
  C_SignRecover: (session, { data, signature }) =>
    step(session, 'signRecover', true, (operation) => operation.whole(data, signature)),

  C_VerifyRecoverInit: (session, { mechanism, key }) => init(session, 'verifyRecover', mechanism, key),
  C_VerifyRecover: (session, { signature, data }) =>
    step(session, 'verifyRecover', true, (operation) => operation.whole(signature, data)),
} as const satisfies GuardedHandlers;
