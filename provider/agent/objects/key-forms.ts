// The two forms of a key of a pair: Cryptoki's attributes (PKCS#11 mechanisms 2.40, sections 2.1
// and 2.3; for Edwards and Montgomery curves 3.0, section 2.3), and the DER that the core takes and
// gives (SubjectPublicKeyInfo, RFC 5280 and 8410; PKCS#8, RFC 5208 and 5958).
import { type Curve, core } from '../../../addon/core.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type AttributeValue, CryptokiError } from '../../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from './attribute-blob.ts';
import { bitString, DerReader, der, encodeDer, sequence, tags, unsigned, withoutLeadingZeros } from './der.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const rsaEncryption = hex('2a864886f70d010101');
const ecPublicKey = hex('2a8648ce3d0201');

interface CurveRow {
  readonly curve: Curve;
  readonly keyType: number;
  /**
   * The content of its object identifier: of the curve, or of a key whose value is a row of bytes
   * (RFC 8410).
   */
  readonly oid: Buffer;
  /**
   * What CKA_EC_PARAMS may be: the object identifier, and for some curves a name (3.0, section
   * 2.3).
   */
  readonly names: readonly Buffer[];
  /** The size of the curve in bits, as the core counts them. */
  readonly bits: number;
  /** Bytes of a bare point: uncompressed, or a row of bytes. */
  readonly pointLength: number;
}

const curveRow = (
  curve: Curve,
  keyType: number,
  oidHex: string,
  bits: number,
  length: number,
  name?: string,
): CurveRow => {
  const oid = hex(oidHex);
  const names = [encodeDer(der(tags.oid, oid))];
  if (name !== undefined) names.push(encodeDer(der(tags.printableString, Buffer.from(name))));
  return { curve, keyType, oid, names, bits, pointLength: length };
};
const weierstrass = (curve: Curve, oidHex: string, bits: number): CurveRow =>
  curveRow(curve, CKK.EC, oidHex, bits, 1 + 2 * Math.ceil(bits / 8));

const curveRows: readonly CurveRow[] = [
  weierstrass('p224', '2b81040021', 224),
  weierstrass('p256', '2a8648ce3d030107', 256),
  weierstrass('p384', '2b81040022', 384),
  weierstrass('p521', '2b81040023', 521),
  weierstrass('secp256k1', '2b8104000a', 256),
  weierstrass('brainpool-p256r1', '2b2403030208010107', 256),
  weierstrass('brainpool-p384r1', '2b240303020801010b', 384),
  weierstrass('brainpool-p512r1', '2b240303020801010d', 512),
  curveRow('ed25519', CKK.EC_EDWARDS, '2b6570', 256, 32, 'edwards25519'),
  curveRow('ed448', CKK.EC_EDWARDS, '2b6571', 448, 57, 'edwards448'),
  curveRow('x25519', CKK.EC_MONTGOMERY, '2b656e', 256, 32, 'curve25519'),
  curveRow('x448', CKK.EC_MONTGOMERY, '2b656f', 448, 56, 'curve448'),
];
/** The curve, of those whose keys are a row of bytes, by the key's object identifier. */
const rawCurve = (oid: Uint8Array): CurveRow | undefined =>
  curveRows.find((row) => row.keyType !== CKK.EC && same(row.oid, oid));

const curveRefused = (): CryptokiError =>
  new CryptokiError(CKR.CURVE_NOT_SUPPORTED, 'CKA_EC_PARAMS does not name a curve that this token supports');

const bytesOf = (attributes: ReadonlyMap<number, AttributeValue>, type: number): Uint8Array => {
  const value = attributes.get(type);
  return value instanceof Uint8Array ? value : new Uint8Array(0);
};
const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** The curve that CKA_EC_PARAMS names. Throws CKR_CURVE_NOT_SUPPORTED. */
const rowOf = (keyType: number, attributes: ReadonlyAttributes): CurveRow => {
  const given = bytesOf(attributes, CKA.EC_PARAMS);
  const found = curveRows.find((row) => row.keyType === keyType && row.names.some((name) => same(name, given)));
  if (found === undefined) throw curveRefused();
  return found;
};

/**
 * The curve that CKA_EC_PARAMS names, by the core's name and with its size in bits. Throws
 * CKR_CURVE_NOT_SUPPORTED.
 */
export const curveOf = (keyType: number, attributes: ReadonlyAttributes): Pick<CurveRow, 'curve' | 'bits'> =>
  rowOf(keyType, attributes);

/**
 * Bytes of a bare point on a curve: uncompressed, or a row of bytes. 0 for keys that are on none.
 */
export const pointLength = (curve: Curve | undefined): number =>
  curveRows.find((row) => row.curve === curve)?.pointLength ?? 0;

/**
 * The point itself, whether given as the standard says, in an OCTET STRING, or bare. `length`: of a
 * bare point on its curve. It decides, and not how the bytes begin: one bare point in 256 on P-256
 * begins like an OCTET STRING of the rest.
 */
export const pointOf = (given: Uint8Array, length: number): Uint8Array => {
  if (given.length === length) return given;
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
  const { oid } = rowOf(keyType, attributes);
  if (keyType !== CKK.EC) return sequence(der(tags.oid, oid));
  return sequence(der(tags.oid, ecPublicKey), der(tags.oid, oid));
};

/** SubjectPublicKeyInfo from a public key's attributes. */
export const encodePublicKey = (keyType: number, attributes: ReadonlyAttributes): Buffer => {
  const key =
    keyType === CKK.RSA
      ? [sequence(unsigned(bytesOf(attributes, CKA.MODULUS)), unsigned(bytesOf(attributes, CKA.PUBLIC_EXPONENT)))]
      : pointOf(bytesOf(attributes, CKA.EC_POINT), rowOf(keyType, attributes).pointLength);
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

/** Whether all numbers that PKCS#8 has of an RSA private key are given. */
export const isWholeRsaKey = (attributes: ReadonlyAttributes, material: ReadonlyMap<number, Uint8Array>): boolean =>
  attributes.has(CKA.PUBLIC_EXPONENT) && privateIntegers.every((type) => material.has(type));

/** Modulus, public exponent, private exponent and both primes; empty where one is not given. */
export const rsaNumbers = (
  attributes: ReadonlyAttributes,
  material: ReadonlyMap<number, Uint8Array>,
): readonly Uint8Array[] => [
  bytesOf(attributes, CKA.MODULUS),
  bytesOf(attributes, CKA.PUBLIC_EXPONENT),
  ...[CKA.PRIVATE_EXPONENT, CKA.PRIME_1, CKA.PRIME_2].map((type) => bytesOf(material, type)),
];

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
    if (keyType !== CKK.EC) return der(tags.octetString, value);
    return sequence(number(1), der(tags.octetString, value));
  };
  return encodeDer(sequence(number(0), algorithmOf(keyType, attributes), der(tags.octetString, [key()])));
};

const bitsOf = (modulus: Uint8Array): number => (modulus.length - 1) * 8 + (32 - Math.clz32(modulus[0] ?? 0));

/**
 * What a public key's SubjectPublicKeyInfo says, as attributes; `which` half of the pair they are
 * for.
 */
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
  const curve = rawCurve(oid)?.oid ?? algorithm.take(tags.oid);
  made.set(CKA.EC_PARAMS, encodeDer(der(tags.oid, curve)));
  if (which === 'public') made.set(CKA.EC_POINT, encodeDer(der(tags.octetString, key)));
  return made;
};

/** Bits of a number in big-endian bytes. */
export const numberBits = (number: Uint8Array): number => {
  const bytes = withoutLeadingZeros(number);
  return bytes.length === 0 ? 0 : bytes.length * 8 - Math.clz32(bytes[0] ?? 0) + 24;
};

/** Whether a number that was given is the one that a key has. */
export const sameNumber = (given: AttributeValue | undefined, own: AttributeValue | undefined): boolean =>
  given instanceof Uint8Array && own instanceof Uint8Array && same(withoutLeadingZeros(given), own);

/**
 * The material of a private key from its PKCS#8, as attributes: views on it. The caller wipes the
 * PKCS#8 when it is done with them.
 */
export const privateMaterial = (pkcs8: Buffer): ReadonlyMap<number, Buffer> => {
  const info = new DerReader(pkcs8).into(tags.sequence);
  info.unsigned();
  const oid = info.into(tags.sequence).take(tags.oid);
  const key = info.into(tags.octetString);
  if (rawCurve(oid) !== undefined) return new Map([[CKA.VALUE, key.take(tags.octetString)]]);
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

/** The type of a key of a pair that is in the core; undefined for other keys. */
export const keyTypeOf = (key: Parameters<typeof core.describe>[0]): number | undefined => {
  const { kind, curve } = core.describe(key);
  if (kind === 'rsa-private' || kind === 'rsa-public') return CKK.RSA;
  return curveRows.find((row) => row.curve === curve)?.keyType;
};
