// The two forms of a key of a pair: Cryptoki's attributes (PKCS#11 mechanisms 2.40, sections 2.1 and 2.3; for Edwards curves
// 3.0, section 2.3), and the DER that the core takes and gives (SubjectPublicKeyInfo, RFC 5280 and 8410; PKCS#8, RFC 5208
// and 5958).
import { type Curve, core } from '../../addon/core.ts';
import { CKA } from '../schema/attributes.ts';
import { CKK } from '../schema/constants.ts';
import { CKR } from '../schema/return-values.ts';
import { type AttributeValue, CryptokiError } from '../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from './attribute-blob.ts';
import { bitString, DerReader, der, encodeDer, sequence, tags, unsigned, withoutLeadingZeros } from './der.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const rsaEncryption = hex('2a864886f70d010101');
const ecPublicKey = hex('2a8648ce3d0201');
const ed25519 = hex('2b6570');

/** Curves by the content of their object identifier. */
const curves: readonly (readonly [Curve, Buffer])[] = [
  ['p256', hex('2a8648ce3d030107')],
  ['p384', hex('2b81040022')],
  ['p521', hex('2b81040023')],
];
/** The two names that 3.0 has for the curve of Ed25519 in CKA_EC_PARAMS. */
const edwardsNames = [
  encodeDer(der(tags.oid, ed25519)),
  encodeDer(der(tags.printableString, Buffer.from('edwards25519'))),
];

const curveRefused = (): CryptokiError =>
  new CryptokiError(CKR.CURVE_NOT_SUPPORTED, 'CKA_EC_PARAMS names none of the curves that this token has');

const bytesOf = (attributes: ReadonlyMap<number, AttributeValue>, type: number): Uint8Array => {
  const value = attributes.get(type);
  return value instanceof Uint8Array ? value : new Uint8Array(0);
};
const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** The curve that CKA_EC_PARAMS names. Throws CKR_CURVE_NOT_SUPPORTED. */
export const curveOf = (keyType: number, attributes: ReadonlyAttributes): Curve | 'ed25519' => {
  const given = bytesOf(attributes, CKA.EC_PARAMS);
  if (keyType === CKK.EC_EDWARDS) {
    if (edwardsNames.some((name) => same(name, given))) return 'ed25519';
    throw curveRefused();
  }
  const found = curves.find(([, oid]) => same(encodeDer(der(tags.oid, oid)), given));
  if (found === undefined) throw curveRefused();
  return found[0];
};

const curveOid = (name: Curve): Buffer => curves.find(([each]) => each === name)?.[1] ?? Buffer.alloc(0);

/** The point itself, whether given as the standard says, in an OCTET STRING, or bare. */
export const pointOf = (given: Uint8Array): Uint8Array => {
  try {
    const reader = new DerReader(given);
    const point = reader.take(tags.octetString);
    if (reader.done) return point;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return given;
};

const algorithmOf = (keyType: number, attributes: ReadonlyAttributes) => {
  if (keyType === CKK.RSA) return sequence(der(tags.oid, rsaEncryption), der(tags.null, []));
  const curve = curveOf(keyType, attributes);
  if (curve === 'ed25519') return sequence(der(tags.oid, ed25519));
  return sequence(der(tags.oid, ecPublicKey), der(tags.oid, curveOid(curve)));
};

/** SubjectPublicKeyInfo from a public key's attributes. */
export const encodePublicKey = (keyType: number, attributes: ReadonlyAttributes): Buffer => {
  const key =
    keyType === CKK.RSA
      ? [sequence(unsigned(bytesOf(attributes, CKA.MODULUS)), unsigned(bytesOf(attributes, CKA.PUBLIC_EXPONENT)))]
      : pointOf(bytesOf(attributes, CKA.EC_POINT));
  return encodeDer(sequence(algorithmOf(keyType, attributes), bitString(key)));
};

const privateIntegers = [
  CKA.PRIVATE_EXPONENT,
  CKA.PRIME_1,
  CKA.PRIME_2,
  CKA.EXPONENT_1,
  CKA.EXPONENT_2,
  CKA.COEFFICIENT,
] as const;
const number = (value: number) => unsigned(Buffer.of(value));

/** PKCS#8 from a private key's attributes and material. The caller wipes it. */
export const encodePrivateKey = (
  keyType: number,
  attributes: ReadonlyAttributes,
  material: ReadonlyMap<number, Uint8Array>,
): Buffer => {
  const value = material.get(CKA.VALUE) ?? new Uint8Array(0);
  const key = (): ReturnType<typeof sequence> => {
    if (keyType === CKK.RSA) {
      const open = [CKA.MODULUS, CKA.PUBLIC_EXPONENT].map((type) => unsigned(bytesOf(attributes, type)));
      return sequence(number(0), ...open, ...privateIntegers.map((type) => unsigned(bytesOf(material, type))));
    }
    const curve = curveOf(keyType, attributes);
    if (curve === 'ed25519') return der(tags.octetString, value);
    return sequence(number(1), der(tags.octetString, value));
  };
  return encodeDer(sequence(number(0), algorithmOf(keyType, attributes), der(tags.octetString, [key()])));
};

const bitsOf = (modulus: Uint8Array): number => (modulus.length - 1) * 8 + (32 - Math.clz32(modulus[0] ?? 0));

/** What a public key's SubjectPublicKeyInfo says, as attributes; `which` half of the pair they are for. */
export const publicAttributes = (spki: Buffer, which: 'public' | 'private'): AttributeMap => {
  const info = new DerReader(spki).into(tags.sequence);
  const algorithm = info.into(tags.sequence);
  const oid = algorithm.take(tags.oid);
  const key = info.bitString();
  const made: AttributeMap = new Map([[CKA.PUBLIC_KEY_INFO, spki]]);
  if (same(oid, rsaEncryption)) {
    const numbers = new DerReader(key).into(tags.sequence);
    const modulus = Buffer.from(numbers.unsigned());
    made.set(CKA.MODULUS, modulus);
    made.set(CKA.PUBLIC_EXPONENT, Buffer.from(numbers.unsigned()));
    if (which === 'public') made.set(CKA.MODULUS_BITS, bitsOf(modulus));
    return made;
  }
  const curve = same(oid, ed25519) ? ed25519 : algorithm.take(tags.oid);
  made.set(CKA.EC_PARAMS, encodeDer(der(tags.oid, curve)));
  if (which === 'public') made.set(CKA.EC_POINT, encodeDer(der(tags.octetString, key)));
  return made;
};

/** Whether a number that was given is the one that a key has. */
export const sameNumber = (given: AttributeValue | undefined, own: AttributeValue | undefined): boolean =>
  given instanceof Uint8Array && own instanceof Uint8Array && same(withoutLeadingZeros(given), own);

/**
 * The material of a private key from its PKCS#8, as attributes: views on it. The caller wipes the PKCS#8 when it is done with
 * them.
 */
export const privateMaterial = (pkcs8: Buffer): ReadonlyMap<number, Buffer> => {
  const info = new DerReader(pkcs8).into(tags.sequence);
  info.unsigned();
  const oid = info.into(tags.sequence).take(tags.oid);
  const key = info.into(tags.octetString);
  if (same(oid, ed25519)) return new Map([[CKA.VALUE, key.take(tags.octetString)]]);
  const numbers = key.into(tags.sequence);
  numbers.unsigned();
  if (!same(oid, rsaEncryption)) return new Map([[CKA.VALUE, numbers.take(tags.octetString)]]);
  numbers.unsigned();
  numbers.unsigned();
  return new Map(privateIntegers.map((type) => [type, numbers.unsigned()]));
};

/** Attributes of a private key that are its material: never in an object's map. */
export const isMaterial = (keyType: unknown, type: number): boolean =>
  keyType === CKK.RSA ? (privateIntegers as readonly number[]).includes(type) : type === CKA.VALUE;

const keyTypes = {
  'rsa-private': CKK.RSA,
  'rsa-public': CKK.RSA,
  'ec-private': CKK.EC,
  'ec-public': CKK.EC,
  'ed25519-private': CKK.EC_EDWARDS,
  'ed25519-public': CKK.EC_EDWARDS,
} as const;

/** The type of a key of a pair that is in the core; undefined for other keys. */
export const keyTypeOf = (key: Parameters<typeof core.describe>[0]): number | undefined => {
  const { kind } = core.describe(key);
  return kind in keyTypes ? keyTypes[kind as keyof typeof keyTypes] : undefined;
};
