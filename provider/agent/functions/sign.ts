// Signing and MACing functions, PKCS#11 2.40 sections 5.11 and 5.12.
import { leastVerifiedMac } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import { LengthOnly, type Mechanism } from '../../schema/types.ts';
import { isTrue } from '../objects/object-view.ts';
import { bringPublicKey, type LocalKey, localKey, tokenKey, tokenPublicKey } from '../operations/find-key.ts';
import { LocalSign, LocalVerify, ServiceSign, ServiceVerify } from '../operations/mac.ts';
import { macLength } from '../operations/mechanism-parameters.ts';
import type { MacRow, MechanismRow, SignatureRow } from '../operations/mechanism-row.ts';
import { mechanismFor, switchFor } from '../operations/mechanisms.ts';
import { LocalSignature, LocalVerification, ServiceSignature } from '../operations/signature.ts';
import { mechanismInvalid, parameterInvalid } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import { begin, checkIdle, checkWhole, step } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

type Purpose = 'sign' | 'verify';
const flags = { sign: CKF.SIGN, verify: CKF.VERIFY } as const satisfies Record<Purpose, number>;

/** CKM_RSA_PKCS_PSS with SHA-1 in its parameter. */
const isOverSha1 = ({ parameter }: Mechanism): boolean => parameter?.kind === 'pss' && parameter.hash === CKM.SHA_1;

const init = (session: Session, purpose: Purpose, mechanism: Mechanism | null, key: number): Later<void> => {
  if (mechanism === null) return session.cancel(purpose);
  const cycle = checkIdle(session, purpose);
  const row = mechanismFor(mechanism, flags[purpose]);
  const { mac, signature } = row;
  if (signature !== undefined) {
    const start = () => initSignature(session, purpose, row, signature, mechanism, key, cycle);
    const name = switchFor(row, flags[purpose]);
    if (name !== null) return session.application.permit([name], mechanismInvalid).then(start);
    if (purpose === 'sign' && isOverSha1(mechanism))
      return session.application.permit(['sha1-signatures'], parameterInvalid).then(start);
    return start();
  }
  if (mac === undefined) throw mechanismInvalid();
  const local = localKey(session.application, key, row, purpose);
  const length = macLength(mac, mechanism);
  if (purpose === 'verify' && length < leastVerifiedMac) throw parameterInvalid();
  if (local === undefined) return initOnToken(session, purpose, row, mac, length, key, cycle);
  if (purpose === 'sign') begin(session, 'sign', new LocalSign(mac, length, local.key.ref, local.private));
  else begin(session, 'verify', new LocalVerify(mac, length, local.key.ref, local.private));
};

const initSignature = (
  session: Session,
  purpose: Purpose,
  row: MechanismRow,
  signature: SignatureRow,
  mechanism: Mechanism,
  key: number,
  cycle: number,
): Later<void> => {
  const local = localKey(session.application, key, row, purpose);
  if (local !== undefined)
    return beginSignature(session, purpose, signature, mechanism, { ...local, key: local.key.share() }, cycle);
  if (purpose === 'sign') return beginOnToken(session, row, signature, mechanism, key, cycle);
  const found = tokenPublicKey(session.application, key, row, purpose);
  return found.then((brought) => beginSignature(session, purpose, signature, mechanism, brought, cycle));
};

/** With a private key of the token: what is signed is hashed here, and travels to the service. */
const beginOnToken = async (
  session: Session,
  row: MechanismRow,
  signature: SignatureRow,
  mechanism: Mechanism,
  handle: number,
  cycle: number,
): Promise<void> => {
  const { application } = session;
  const view = await tokenKey(application, handle, row, 'sign');
  const { key } = bringPublicKey(view);
  let operation: ServiceSignature;
  try {
    operation = new ServiceSignature(application, signature, mechanism, view, key);
  } catch (error) {
    key.release();
    throw error;
  }
  begin(session, 'sign', operation, cycle);
};

/** `local.key` is the operation's from here on. */
const beginSignature = (
  session: Session,
  purpose: Purpose,
  row: SignatureRow,
  mechanism: Mechanism,
  { key, private: isPrivate }: LocalKey,
  cycle: number,
): void => {
  let operation: LocalSignature | LocalVerification;
  try {
    operation =
      purpose === 'sign'
        ? new LocalSignature(session.application, row, mechanism, key, isPrivate)
        : new LocalVerification(row, mechanism, key, isPrivate);
  } catch (error) {
    key.release();
    throw error;
  }
  if (operation instanceof LocalSignature) begin(session, 'sign', operation, cycle);
  else begin(session, 'verify', operation, cycle);
};

const initOnToken = async (
  session: Session,
  purpose: Purpose,
  row: MechanismRow,
  mac: MacRow,
  length: number,
  handle: number,
  cycle: number,
): Promise<void> => {
  const { application } = session;
  const view = await tokenKey(application, handle, row, purpose);
  const isPrivate = isTrue(view, CKA.PRIVATE);
  if (purpose === 'sign') begin(session, 'sign', new ServiceSign(application, mac, length, handle, isPrivate), cycle);
  else begin(session, 'verify', new ServiceVerify(application, mac, length, handle, isPrivate), cycle);
};

export const sign = {
  C_SignInit: (session, { mechanism, key }) => init(session, 'sign', mechanism, key),
  C_Sign: (session, { data, signature }) => {
    checkWhole(session, 'sign');
    if (data instanceof LengthOnly) {
      return step(session, 'sign', false, (operation) => operation.announce(data.length, signature));
    }
    return step(session, 'sign', true, (operation) => operation.whole(data, signature));
  },
  C_SignUpdate: (session, { part }) => step(session, 'sign', false, (operation) => operation.update(part)),
  C_SignFinal: (session, { signature }) => step(session, 'sign', true, (operation) => operation.final(signature)),

  C_VerifyInit: (session, { mechanism, key }) => init(session, 'verify', mechanism, key),
  C_Verify: (session, { data, signature }) => {
    checkWhole(session, 'verify');
    if (data instanceof LengthOnly) {
      return step(session, 'verify', false, (operation) => operation.announce(data.length, signature));
    }
    return step(session, 'verify', true, (operation) => operation.whole(data, signature));
  },
  C_VerifyUpdate: (session, { part }) => step(session, 'verify', false, (operation) => operation.update(part)),
  C_VerifyFinal: (session, { signature }) => step(session, 'verify', true, (operation) => operation.final(signature)),
} as const satisfies GuardedHandlers;
