// Dual-function cryptographic functions, PKCS#11 2.40 section 5.13: two running operations fed with
// the same part. As the standard has it, what a Final gives out is the caller's to digest or sign.
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import { wipeAfterReply } from '../operations/collected-parts.ts';
import { operationMissing } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import { andThen, type Later } from '../sessions/later.ts';
import { step } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

type Summary = 'digest' | 'sign' | 'verify';

/**
 * Encrypts a part, and feeds the clear part to the other operation if there was room for the
 * result.
 */
const encryptAnd = (
  session: Session,
  other: Summary,
  part: Uint8Array | LengthOnly,
  out: OutBuffer,
): Later<BytesOutput> => {
  if (session[other] === null || session.encrypt === null) throw operationMissing();
  if (part instanceof LengthOnly) {
    return step(session, 'encrypt', false, (encrypt) => encrypt.announcePart(part.length, out));
  }
  return step(session, 'encrypt', false, (encrypt) => {
    const result = encrypt.update(part, out);
    if (result instanceof LengthOnly) return result;
    return afterFeeding(feed(session, other, part), result, out);
  });
};

/** Decrypts a part, and feeds the clear result to the other operation. */
const decryptAnd = (
  session: Session,
  other: Summary,
  part: Uint8Array | LengthOnly,
  out: OutBuffer,
): Later<BytesOutput> => {
  if (session[other] === null || session.decrypt === null) throw operationMissing();
  if (part instanceof LengthOnly) {
    return step(session, 'decrypt', false, (decrypt) => decrypt.announcePart(part.length, out));
  }
  return step(session, 'decrypt', false, (decrypt) => {
    const result = decrypt.update(part, out);
    if (result instanceof Promise) return result.then((clear) => feedClear(session, other, clear, out));
    return feedClear(session, other, result, out);
  });
};

const feedClear = (session: Session, other: Summary, clear: BytesOutput, out: OutBuffer): Later<BytesOutput> => {
  if (clear instanceof LengthOnly) return clear;
  const part = typeof clear === 'number' ? out.space.subarray(0, clear) : clear;
  return afterFeeding(feed(session, other, part), clear, out);
};

const feed = (session: Session, other: Summary, part: Uint8Array): Later<void> =>
  step(session, other, false, (operation) => operation.update(part));

/**
 * The result of one operation, once the other one has taken its part. Where that takes a request to
 * the service, the result is copied: its memory is wiped, or another call's, by then.
 */
const afterFeeding = (fed: Later<void>, result: Later<BytesOutput>, out: OutBuffer): Later<BytesOutput> => {
  if (!(fed instanceof Promise)) return result;
  const kept = andThen(result, (bytes) => {
    if (bytes instanceof LengthOnly) return bytes;
    return Uint8Array.from(typeof bytes === 'number' ? out.space.subarray(0, bytes) : bytes);
  });
  return Promise.all([kept, fed]).then(([bytes]) => (bytes instanceof LengthOnly ? bytes : wipeAfterReply(bytes)));
};

export const dual = {
  C_DigestEncryptUpdate: (session, { part, encryptedPart }) => encryptAnd(session, 'digest', part, encryptedPart),
  C_DecryptDigestUpdate: (session, { encryptedPart, part }) => decryptAnd(session, 'digest', encryptedPart, part),
  C_SignEncryptUpdate: (session, { part, encryptedPart }) => encryptAnd(session, 'sign', part, encryptedPart),
  C_DecryptVerifyUpdate: (session, { encryptedPart, part }) => decryptAnd(session, 'verify', encryptedPart, part),
} as const satisfies GuardedHandlers;
