// Message-based encryption and decryption functions, PKCS#11 3.0 sections 5.9 and 5.11.
// Message-based signatures are not carried: no mechanism of ours has any.
import { CKA } from '../../schema/attributes.ts';
import { CKF } from '../../schema/constants.ts';
import { type BytesOutput, LengthOnly, type Mechanism, type MessageResult } from '../../schema/types.ts';
import { isTrue } from '../objects/object-view.ts';
import { localKey, tokenKey } from '../operations/find-key.ts';
import { InitialValues } from '../operations/initial-values.ts';
import { mechanismFor } from '../operations/mechanisms.ts';
import { DecryptMessages, EncryptMessages } from '../operations/message.ts';
import { localMessages, serviceMessages } from '../operations/message-streams.ts';
import { operationActive } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import type { MessageStep } from '../sessions/operation.ts';
import { begin, checkIdle, step, stepOn } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

type Kind = 'messageEncrypt' | 'messageDecrypt';
const rows = {
  messageEncrypt: { flag: CKF.MESSAGE_ENCRYPT, usage: 'encrypt' },
  messageDecrypt: { flag: CKF.MESSAGE_DECRYPT, usage: 'decrypt' },
} as const;

const init = (session: Session, kind: Kind, mechanism: Mechanism | null, handle: number): Later<void> => {
  if (mechanism === null) return session.cancel(kind);
  const cycle = checkIdle(session, kind);
  const { application } = session;
  const { flag, usage } = rows[kind];
  const row = mechanismFor(mechanism, flag);
  const local = localKey(application, handle, row, usage);
  if (local !== undefined) {
    const key = localMessages(local.key.ref, local.view.attributes);
    if (kind === 'messageDecrypt') return begin(session, kind, new DecryptMessages(key, local.private));
    const values = new InitialValues(application, local.view, local.key);
    return begin(session, kind, new EncryptMessages(key, values, local.private));
  }
  return tokenKey(application, handle, row, usage).then((view) => {
    const key = serviceMessages(application, handle);
    const isPrivate = isTrue(view, CKA.PRIVATE);
    if (kind === 'messageDecrypt') return begin(session, kind, new DecryptMessages(key, isPrivate), cycle);
    const values = new InitialValues(application, view, null);
    return begin(session, kind, new EncryptMessages(key, values, isPrivate), cycle);
  });
};

/** Ends the operation. A message that was started completes first. */
const final = (session: Session, kind: Kind): Later<void> => {
  if (session[kind]?.inMessage) throw operationActive();
  return step(session, kind, true, () => undefined);
};

const sealed = (later: Later<MessageStep>): Later<{ ciphertext: BytesOutput; parameter: MessageResult }> => {
  const names = ({ data, result }: MessageStep) => ({ ciphertext: data, parameter: result });
  return later instanceof Promise ? later.then(names) : names(later);
};
const sealedPart = (later: Later<MessageStep>): Later<{ ciphertextPart: BytesOutput; parameter: MessageResult }> => {
  const names = ({ data, result }: MessageStep) => ({ ciphertextPart: data, parameter: result });
  return later instanceof Promise ? later.then(names) : names(later);
};
const opened = (later: Later<MessageStep>): Later<BytesOutput> =>
  later instanceof Promise ? later.then(({ data }) => data) : later.data;

const unchanged: MessageResult = { iv: null, tag: null };
const isLast = (flags: number): boolean => (flags & CKF.END_OF_MESSAGE) !== 0;

export const message = {
  C_MessageEncryptInit: (session, { mechanism, key }) => init(session, 'messageEncrypt', mechanism, key),
  C_EncryptMessage: (session, { parameter, associatedData, plaintext, ciphertext }) =>
    sealed(
      stepOn(session, 'messageEncrypt', (operation) =>
        plaintext instanceof LengthOnly
          ? { data: operation.announce(parameter, plaintext.length, ciphertext), result: unchanged }
          : operation.whole(parameter, associatedData, plaintext, ciphertext),
      ),
    ),
  C_EncryptMessageBegin: (session, { parameter, associatedData }) =>
    stepOn(session, 'messageEncrypt', (operation) => operation.begin(parameter, associatedData)),
  C_EncryptMessageNext: (session, { parameter, plaintextPart, ciphertextPart, flags }) =>
    sealedPart(
      stepOn(session, 'messageEncrypt', (operation) =>
        plaintextPart instanceof LengthOnly
          ? { data: operation.announcePart(plaintextPart.length, ciphertextPart, isLast(flags)), result: unchanged }
          : operation.next(parameter, plaintextPart, ciphertextPart, isLast(flags)),
      ),
    ),
  C_MessageEncryptFinal: (session) => final(session, 'messageEncrypt'),

  C_MessageDecryptInit: (session, { mechanism, key }) => init(session, 'messageDecrypt', mechanism, key),
  C_DecryptMessage: (session, { parameter, associatedData, ciphertext, plaintext }) =>
    opened(
      stepOn(session, 'messageDecrypt', (operation) =>
        ciphertext instanceof LengthOnly
          ? { data: operation.announce(parameter, ciphertext.length, plaintext), result: unchanged }
          : operation.whole(parameter, associatedData, ciphertext, plaintext),
      ),
    ),
  C_DecryptMessageBegin: (session, { parameter, associatedData }) =>
    stepOn(session, 'messageDecrypt', (operation): Later<void> => {
      operation.begin(parameter, associatedData);
    }),
  C_DecryptMessageNext: (session, { parameter, ciphertextPart, plaintextPart, flags }) =>
    opened(
      stepOn(session, 'messageDecrypt', (operation) =>
        ciphertextPart instanceof LengthOnly
          ? { data: operation.announcePart(ciphertextPart.length, plaintextPart, isLast(flags)), result: unchanged }
          : operation.next(parameter, ciphertextPart, plaintextPart, isLast(flags)),
      ),
    ),
  C_MessageDecryptFinal: (session) => final(session, 'messageDecrypt'),
} as const satisfies GuardedHandlers;
