// Encryption and decryption functions, PKCS#11 2.40 sections 5.8 and 5.9. The hot path of a
// database: with a session key, nothing here waits.
import { core, type Direction } from '../../../addon/core.ts';
import { isShortRsa } from '../../../server/base/compatibility-switches.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF } from '../../schema/constants.ts';
import { LengthOnly, type Mechanism } from '../../schema/types.ts';
import { isTrue } from '../objects/object-view.ts';
import { isChained } from '../operations/cipher-lengths.ts';
import { type LocalKey, localKey, tokenKey, tokenPublicKey } from '../operations/find-key.ts';
import { type FreshIv, freshIv } from '../operations/initial-values.ts';
import { LocalCipher } from '../operations/local-cipher.ts';
import type { MechanismRow } from '../operations/mechanism-row.ts';
import { mechanismFor, switchFor } from '../operations/mechanisms.ts';
import { serviceMessages } from '../operations/message-streams.ts';
import { LocalRsaCipher, ServiceRsaCipher } from '../operations/rsa-cipher.ts';
import { ServiceAead } from '../operations/service-aead.ts';
import { ServiceCipher } from '../operations/service-cipher.ts';
import { keyTooShort, mechanismInvalid } from '../return-values.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import { begin, checkIdle, checkWhole, step } from '../sessions/session-state.ts';
import type { GuardedHandlers } from './guards.ts';

const flags = { encrypt: CKF.ENCRYPT, decrypt: CKF.DECRYPT } as const satisfies Record<Direction, number>;

const init = (session: Session, direction: Direction, mechanism: Mechanism | null, key: number): Later<void> => {
  // A null mechanism ends what is running (3.0, section 5.8.1; also 2.40, errata 1).
  if (mechanism === null) return session.cancel(direction);
  const cycle = checkIdle(session, direction);
  const row = mechanismFor(mechanism, flags[direction]);
  if (row.rsaEncryption !== undefined) return initRsa(session, direction, row, mechanism, key, cycle);
  const { cipher } = row;
  if (cipher === undefined) throw mechanismInvalid();
  const local = localKey(session.application, key, row, direction);
  if (local === undefined) return initOnToken(session, direction, row, mechanism, key, cycle);
  const parameters = cipher.parameters(mechanism.parameter);
  const start = (iv: FreshIv | null): void =>
    begin(session, direction, new LocalCipher(cipher, local, direction, parameters, iv), cycle);
  const iv = freshIv(session.application, local.view, local.key, direction, parameters);
  return iv instanceof Promise ? iv.then(start) : start(iv);
};

/** RSA encryption: with a private key of the token by the service, otherwise here. */
const initRsa = (
  session: Session,
  direction: Direction,
  row: MechanismRow,
  mechanism: Mechanism,
  handle: number,
  cycle: number,
): Later<void> => {
  const { application } = session;
  const parameters = row.rsaEncryption?.(mechanism.parameter);
  if (parameters === undefined) throw mechanismInvalid();
  const start = (): Later<void> => {
    const local = localKey(application, handle, row, direction);
    if (local !== undefined) return startHere({ ...local, key: local.key.share() });
    if (direction === 'encrypt') return tokenPublicKey(application, handle, row, direction).then(startHere);
    return tokenKey(application, handle, row, direction).then((view) =>
      begin(session, direction, new ServiceRsaCipher(application, view, parameters), cycle),
    );
  };
  const startHere = (local: LocalKey): Later<void> => {
    const operation = new LocalRsaCipher(application, local, direction, parameters);
    if (direction === 'decrypt' || !isShortRsa(core.describe(local.key.ref).bits))
      return begin(session, direction, operation, cycle);
    return application.permit(['short-rsa-keys'], keyTooShort).then(
      () => begin(session, direction, operation, cycle),
      (error: unknown) => {
        operation.cancel();
        throw error;
      },
    );
  };
  const name = switchFor(row, flags[direction]);
  return name === null ? start() : application.permit([name], mechanismInvalid).then(start);
};

const initOnToken = async (
  session: Session,
  direction: Direction,
  row: MechanismRow,
  mechanism: Mechanism,
  handle: number,
  cycle: number,
): Promise<void> => {
  const { application } = session;
  const { cipher } = row;
  if (cipher === undefined) throw mechanismInvalid();
  const parameters = cipher.parameters(mechanism.parameter);
  const view = await tokenKey(application, handle, row, direction);
  const isPrivate = isTrue(view, CKA.PRIVATE);
  const iv = await freshIv(application, view, null, direction, parameters);
  const operation = isChained(parameters)
    ? new ServiceCipher(application, cipher, handle, direction, parameters, isPrivate)
    : new ServiceAead(serviceMessages(application, handle), cipher, direction, parameters, iv, isPrivate);
  begin(session, direction, operation, cycle);
};

export const cipher = {
  C_EncryptInit: (session, { mechanism, key }) => init(session, 'encrypt', mechanism, key),
  C_Encrypt: (session, { data, encryptedData }) => {
    checkWhole(session, 'encrypt');
    if (data instanceof LengthOnly) {
      return step(session, 'encrypt', false, (operation) => operation.announce(data.length, encryptedData));
    }
    return step(session, 'encrypt', true, (operation) => operation.whole(data, encryptedData));
  },
  C_EncryptUpdate: (session, { part, encryptedPart }) =>
    step(session, 'encrypt', false, (operation) =>
      part instanceof LengthOnly
        ? operation.announcePart(part.length, encryptedPart)
        : operation.update(part, encryptedPart),
    ),
  C_EncryptFinal: (session, { lastEncryptedPart }) =>
    step(session, 'encrypt', true, (operation) => operation.final(lastEncryptedPart)),

  C_DecryptInit: (session, { mechanism, key }) => init(session, 'decrypt', mechanism, key),
  C_Decrypt: (session, { encryptedData, data }) => {
    checkWhole(session, 'decrypt');
    if (encryptedData instanceof LengthOnly) {
      return step(session, 'decrypt', false, (operation) => operation.announce(encryptedData.length, data));
    }
    return step(session, 'decrypt', true, (operation) => operation.whole(encryptedData, data));
  },
  C_DecryptUpdate: (session, { encryptedPart, part }) =>
    step(session, 'decrypt', false, (operation) =>
      encryptedPart instanceof LengthOnly
        ? operation.announcePart(encryptedPart.length, part)
        : operation.update(encryptedPart, part),
    ),
  C_DecryptFinal: (session, { lastPart }) => step(session, 'decrypt', true, (operation) => operation.final(lastPart)),
} as const satisfies GuardedHandlers;
