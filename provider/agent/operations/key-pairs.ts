// Pairs of keys (PKCS#11 2.40, section 5.14; mechanisms 2.1 and 2.3): made in the addon when the
// private half is a session object, and by the service when it is one of the token. The public half
// may be either.
import { core, type KeyRef } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { curveOf, sameNumber } from '../objects/key-forms.ts';
import { describeNew, SharedKey } from '../objects/object-view.ts';
import { type NewObject, newObject } from '../objects/template.ts';
import type { Application } from '../sessions/application.ts';
import type { Session } from '../sessions/application-session.ts';
import type { Later } from '../sessions/later.ts';
import { bringPublicKey } from './find-key.ts';
import { checkMayMake, keepInSession, sendPublicKey } from './keep-object.ts';
import { queued } from './slow-work.ts';

export interface Pair {
  readonly publicKey: number;
  readonly privateKey: number;
}

/** The only public exponent that this token makes keys with. */
const exponent = Buffer.of(1, 0, 1);
const [fewestBits, mostBits] = [2048, 4096];

/** The size that the public half's template asks for: that of the modulus, or of the curve. */
const sizeOf = (keyType: number, attributes: ReadonlyAttributes): number => {
  if (keyType !== CKK.RSA) return curveOf(keyType, attributes).bits;
  const wanted = attributes.get(CKA.PUBLIC_EXPONENT);
  if (wanted !== undefined && !sameNumber(wanted, exponent)) {
    throw new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'CKA_PUBLIC_EXPONENT must be 65537');
  }
  const bits = Number(attributes.get(CKA.MODULUS_BITS));
  if (!Number.isInteger(bits) || bits < fewestBits || bits > mostBits) {
    throw new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, `CKA_MODULUS_BITS must be ${fewestBits} to ${mostBits}`);
  }
  return bits;
};

/** A promise where finding the key takes long. */
const generate = (application: Application, keyType: number, attributes: ReadonlyAttributes): Later<KeyRef> => {
  const bits = sizeOf(keyType, attributes);
  if (keyType === CKK.RSA) return queued('search', application, () => core.generateRsaLater(bits));
  return core.generateEc(curveOf(keyType, attributes).curve);
};

const isOnToken = ({ attributes }: NewObject): boolean => attributes.get(CKA.TOKEN) === true;

/** C_GenerateKeyPair. */
export const generatePair = (
  session: Session,
  mechanism: number,
  keyType: number,
  publicTemplate: readonly Attribute[],
  privateTemplate: readonly Attribute[],
): Later<Pair> => {
  const { loggedIn } = session.application;
  const half = (own: readonly Attribute[], otherHalf: readonly Attribute[], objectClass: number): NewObject =>
    newObject(own, { how: 'generate', mechanism, keyType, objectClass, otherHalf }, loggedIn);
  const publicHalf = half(publicTemplate, privateTemplate, CKO.PUBLIC_KEY);
  const privateHalf = half(privateTemplate, publicTemplate, CKO.PRIVATE_KEY);
  // The curve goes by the name that the public half's template gives it.
  const curve = publicHalf.attributes.get(CKA.EC_PARAMS);
  if (curve !== undefined) privateHalf.attributes.set(CKA.EC_PARAMS, curve);
  for (const { attributes } of [publicHalf, privateHalf]) checkMayMake(session, attributes);
  if (isOnToken(privateHalf)) return generateOnToken(session, keyType, publicHalf, privateHalf);
  const made = generate(session.application, keyType, publicHalf.attributes);
  if (made instanceof Promise) return made.then((key) => keepPair(session, key, publicHalf, privateHalf));
  return keepPair(session, made, publicHalf, privateHalf);
};

/** The service makes the pair. A public half for the session is brought here. */
const generateOnToken = async (
  session: Session,
  keyType: number,
  publicHalf: NewObject,
  privateHalf: NewObject,
): Promise<Pair> => {
  const { application } = session;
  const bits = sizeOf(keyType, publicHalf.attributes);
  const { answer } = await application.ask('generateKeyPair', null, {
    privateKey: describeNew(privateHalf.attributes, bits),
    publicKey: isOnToken(publicHalf) ? describeNew(publicHalf.attributes, bits) : null,
  });
  const privateKey = application.remember(answer.privateKey);
  if (answer.publicKey !== null) {
    return { publicKey: application.remember(answer.publicKey).handle, privateKey: privateKey.handle };
  }
  try {
    const publicKey = keepInSession(session, publicHalf.attributes, bringPublicKey(privateKey).key);
    return { publicKey, privateKey: privateKey.handle };
  } catch (error) {
    await application.ask('destroyObject', privateKey.handle, {});
    throw error;
  }
};

/** Keeps both halves of the pair, or neither when one of them fails. */
const keepPair = (session: Session, made: KeyRef, publicHalf: NewObject, privateHalf: NewObject): Later<Pair> => {
  const { application } = session;
  const key = new SharedKey(made);
  const open = openHalf(key);
  let privateKey: number;
  try {
    privateKey = keepInSession(session, privateHalf.attributes, key);
  } catch (error) {
    open.release();
    throw error;
  }
  const undo = (error: unknown): never => {
    const half = application.sessionObject(privateKey, 'object');
    if (half !== undefined) application.removeObject(half);
    throw error;
  };
  try {
    if (!isOnToken(publicHalf)) return { publicKey: keepInSession(session, publicHalf.attributes, open), privateKey };
    return sendPublicKey(session, publicHalf.attributes, open).then((publicKey) => ({ publicKey, privateKey }), undo);
  } catch (error) {
    return undo(error);
  }
};

/** The public half as a key of its own, which outlives the private one. */
const openHalf = (key: SharedKey): SharedKey => {
  try {
    return new SharedKey(core.importPublicKey(core.exportPublicKey(key.ref)));
  } catch (error) {
    key.release();
    throw error;
  }
};
