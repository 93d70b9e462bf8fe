// Dual-function cryptographic functions, PKCS#11 2.40 section 5.13: two running operations fed with the same part. As the
// standard has it, what a Final gives out is the caller's to digest or sign.
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import { operationMissing } from '../errors.ts';
import type { GuardedHandlers } from '../guards.ts';
import { step } from '../operations/running.ts';
import type { Later, Session } from '../session.ts';

type Summary = 'digest' | 'sign' | 'verify';

/** Encrypts a part, and feeds the clear part to the other operation if there was room for the result. */
const encryptAnd = (session: Session, other: Summary, part: Uint8Array, out: OutBuffer): Later<BytesOutput> => {
  if (session[other] === null || session.encrypt === null) throw operationMissing();
  return step(session, 'encrypt', false, (encrypt) => {
    const result = encrypt.update(part, out);
    if (!(result instanceof LengthOnly)) feed(session, other, part);
    return result;
  });
};

/** Decrypts a part, and feeds the clear result to the other operation. */
const decryptAnd = (session: Session, other: Summary, part: Uint8Array, out: OutBuffer): Later<BytesOutput> => {
  if (session[other] === null || session.decrypt === null) throw operationMissing();
  return step(session, 'decrypt', false, (decrypt) => {
    const result = decrypt.update(part, out);
    if (result instanceof Promise) return result.then((clear) => feedClear(session, other, clear, out));
    return feedClear(session, other, result, out);
  });
};

const feedClear = (session: Session, other: Summary, clear: BytesOutput, out: OutBuffer): BytesOutput => {
  if (typeof clear === 'number') feed(session, other, out.space.subarray(0, clear));
  else if (!(clear instanceof LengthOnly)) feed(session, other, clear);
  return clear;
};

const feed = (session: Session, other: Summary, part: Uint8Array): void => {
  step(session, other, false, (operation) => operation.update(part));
};

export const dual = {
  C_DigestEncryptUpdate: (session, { part, encryptedPart }) => encryptAnd(session, 'digest', part, encryptedPart),
  C_DecryptDigestUpdate: (session, { encryptedPart, part }) => decryptAnd(session, 'digest', encryptedPart, part),
  C_SignEncryptUpdate: (session, { part, encryptedPart }) => encryptAnd(session, 'sign', part, encryptedPart),
  C_DecryptVerifyUpdate: (session, { encryptedPart, part }) => decryptAnd(session, 'verify', encryptedPart, part),
} as const satisfies GuardedHandlers;
