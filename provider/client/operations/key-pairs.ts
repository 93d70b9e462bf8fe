// Pairs of keys (PKCS#11 2.40, section 5.14; mechanisms 2.1 and 2.3) as session objects, made in the addon.
import { core, type KeyRef } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, CryptokiError } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../attribute-blob.ts';
import { curveOf, sameNumber } from '../key-forms.ts';
import { SharedKey } from '../object-view.ts';
import type { Later, Session } from '../session.ts';
import { type NewObject, newObject } from '../template.ts';
import { checkMayMake, keepInSession } from './objects.ts';

export interface Pair {
  readonly publicKey: number;
  readonly privateKey: number;
}

/** The only public exponent that this token makes keys with. */
const exponent = Buffer.of(1, 0, 1);
const [fewestBits, mostBits] = [2048, 4096];

/** A promise where finding the key takes long. */
const generate = (keyType: number, attributes: ReadonlyAttributes): Later<KeyRef> => {
  if (keyType !== CKK.RSA) {
    const curve = curveOf(keyType, attributes);
    return curve === 'ed25519' ? core.generateEd25519() : core.generateEc(curve);
  }
  const wanted = attributes.get(CKA.PUBLIC_EXPONENT);
  if (wanted !== undefined && !sameNumber(wanted, exponent)) {
    throw new CryptokiError(CKR.ATTRIBUTE_VALUE_INVALID, 'CKA_PUBLIC_EXPONENT is 65537 here');
  }
  const bits = Number(attributes.get(CKA.MODULUS_BITS));
  if (!Number.isInteger(bits) || bits < fewestBits || bits > mostBits) {
    throw new CryptokiError(CKR.KEY_SIZE_RANGE, `CKA_MODULUS_BITS is ${fewestBits} to ${mostBits} here`);
  }
  return core.generateRsaLater(bits);
};

/** C_GenerateKeyPair. */
export const generatePair = (
  session: Session,
  mechanism: number,
  keyType: number,
  publicTemplate: readonly Attribute[],
  privateTemplate: readonly Attribute[],
): Later<Pair> => {
  const { loggedIn } = session.application;
  const origin = { how: 'generate', mechanism, keyType } as const;
  const publicHalf = newObject(publicTemplate, { ...origin, objectClass: CKO.PUBLIC_KEY }, loggedIn);
  const privateHalf = newObject(privateTemplate, { ...origin, objectClass: CKO.PRIVATE_KEY }, loggedIn);
  for (const { attributes } of [publicHalf, privateHalf]) {
    checkMayMake(session, attributes);
    if (attributes.get(CKA.TOKEN) === true) {
      throw new CryptokiError(CKR.TEMPLATE_INCONSISTENT, 'pairs of keys are session objects here');
    }
  }
  const made = generate(keyType, publicHalf.attributes);
  if (made instanceof Promise) return made.then((key) => keepPair(session, key, publicHalf, privateHalf));
  return keepPair(session, made, publicHalf, privateHalf);
};

/** Both halves or neither. */
const keepPair = (session: Session, made: KeyRef, publicHalf: NewObject, privateHalf: NewObject): Pair => {
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
  try {
    return { publicKey: keepInSession(session, publicHalf.attributes, open), privateKey };
  } catch (error) {
    const half = application.sessionObject(privateKey, 'object');
    if (half !== undefined) application.removeObject(half);
    throw error;
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
