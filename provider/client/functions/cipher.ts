// Encryption and decryption functions, PKCS#11 2.40 sections 5.8 and 5.9. The hot path of a database: with a session key,
// nothing here waits.
import type { Direction } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKF } from '../../schema/constants.ts';
import type { Mechanism } from '../../schema/types.ts';
import { mechanismInvalid } from '../errors.ts';
import type { GuardedHandlers } from '../guards.ts';
import { isTrue } from '../object-view.ts';
import { LocalCipher, LocalOaep, ServiceCipher, ServiceOaep } from '../operations/cipher.ts';
import { freshIv } from '../operations/initial-values.ts';
import { localKey, tokenKey, tokenPublicKey } from '../operations/keys.ts';
import { type MechanismRow, mechanismFor } from '../operations/mechanisms.ts';
import { begin, checkIdle, checkWhole, step } from '../operations/running.ts';
import type { Later, Session } from '../session.ts';

const flags = { encrypt: CKF.ENCRYPT, decrypt: CKF.DECRYPT } as const satisfies Record<Direction, number>;

const init = (session: Session, direction: Direction, mechanism: Mechanism | null, key: number): Later<void> => {
  // A null mechanism ends what is running (3.0, section 5.8.1; also 2.40, errata 1).
  if (mechanism === null) return session.cancel(direction);
  const turn = checkIdle(session, direction);
  const row = mechanismFor(mechanism, flags[direction]);
  const { cipher, oaep } = row;
  const local = localKey(session.application, key, row, direction);
  if (oaep !== undefined) {
    const parameters = oaep(mechanism.parameter);
    if (local !== undefined) {
      return begin(session, direction, new LocalOaep(local.key.share(), direction, parameters, local.private));
    }
    if (direction === 'decrypt') {
      const { application } = session;
      return tokenKey(application, key, row, direction).then((view) =>
        begin(session, direction, new ServiceOaep(application, view, parameters), turn),
      );
    }
    const found = tokenPublicKey(session.application, key, row, direction);
    return found.then(({ key, private: isPrivate }) =>
      begin(session, direction, new LocalOaep(key, direction, parameters, isPrivate), turn),
    );
  }
  if (cipher === undefined) throw mechanismInvalid();
  if (local === undefined) return initOnToken(session, direction, row, mechanism, key, turn);
  const parameters = cipher.parameters(mechanism.parameter);
  const iv = freshIv(session.application, local.view, local.key, direction, parameters);
  begin(session, direction, new LocalCipher(cipher, local.key.ref, direction, parameters, iv, local.private));
};

const initOnToken = async (
  session: Session,
  direction: Direction,
  row: MechanismRow,
  mechanism: Mechanism,
  handle: number,
  turn: number,
): Promise<void> => {
  const { application } = session;
  const { cipher } = row;
  if (cipher === undefined) throw mechanismInvalid();
  const parameters = cipher.parameters(mechanism.parameter);
  const view = await tokenKey(application, handle, row, direction);
  const iv = freshIv(application, view, null, direction, parameters);
  const isPrivate = isTrue(view, CKA.PRIVATE);
  begin(session, direction, new ServiceCipher(application, cipher, handle, direction, parameters, iv, isPrivate), turn);
};

export const cipher = {
  C_EncryptInit: (session, { mechanism, key }) => init(session, 'encrypt', mechanism, key),
  C_Encrypt: (session, { data, encryptedData }) => {
    checkWhole(session.encrypt);
    return step(session, 'encrypt', true, (operation) => operation.whole(data, encryptedData));
  },
  C_EncryptUpdate: (session, { part, encryptedPart }) =>
    step(session, 'encrypt', false, (operation) => operation.update(part, encryptedPart)),
  C_EncryptFinal: (session, { lastEncryptedPart }) =>
    step(session, 'encrypt', true, (operation) => operation.final(lastEncryptedPart)),

  C_DecryptInit: (session, { mechanism, key }) => init(session, 'decrypt', mechanism, key),
  C_Decrypt: (session, { encryptedData, data }) => {
    checkWhole(session.decrypt);
    return step(session, 'decrypt', true, (operation) => operation.whole(encryptedData, data));
  },
  C_DecryptUpdate: (session, { encryptedPart, part }) =>
    step(session, 'decrypt', false, (operation) => operation.update(encryptedPart, part)),
  C_DecryptFinal: (session, { lastPart }) => step(session, 'decrypt', true, (operation) => operation.final(lastPart)),
} as const satisfies GuardedHandlers;
