// Templates against the rules of the standard (PKCS#11 2.40, section 4.1): what a template says of
// a new object, and what it may change in one. The rows are in `attribute-rules.ts`. No key bytes
// are kept here: key material is handed on as it came.
import { attributeKind, attributeName, attributes, CKA } from '../../schema/attributes.ts';
import { CKO } from '../../schema/constants.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Attribute, type AttributeValue, CryptokiError } from '../../schema/types.ts';
import { ToldError, tell } from '../causes.ts';
import type { AttributeMap, ReadonlyAttributes } from './attribute-blob.ts';
import {
  type Change,
  fitsKeyType,
  isKeyType,
  isMasterKey,
  kindOf,
  type ObjectKind,
  type Origin,
  outlivesSession,
  ruleFor,
  rules,
} from './attribute-rules.ts';

const known: ReadonlySet<number> = new Set(Object.values(attributes).map(({ type }) => type));

const refuse = (rv: number, type: number, message: string): CryptokiError =>
  new CryptokiError(rv, `${attributeName(type)} ${message}`);

export const equalValues = (a: AttributeValue, b: AttributeValue): boolean => {
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (typeof a !== 'object' || typeof b !== 'object' || b instanceof Uint8Array) return a === b;
  return (
    a.length === b.length &&
    a.every((each, i) => {
      const other = b[i];
      if (typeof each !== 'object' || typeof other !== 'object') return each === other;
      return each.type === other.type && sameOrNull(each.value, other.value);
    })
  );
};
export const sameOrNull = (a: AttributeValue | null, b: AttributeValue | null): boolean =>
  a === null || b === null ? a === b : equalValues(a, b);

/** A value of the right kind and length, or CKR_ATTRIBUTE_VALUE_INVALID. */
const checkedValue = ({ type, value, length }: Attribute): AttributeValue => {
  const bad = (wanted: string): CryptokiError => refuse(CKR.ATTRIBUTE_VALUE_INVALID, type, `must be ${wanted}`);
  if (value === null) throw bad('was given with a value');
  switch (attributeKind(type)) {
    case 'boolean':
    case 'byteBoolean':
      if (typeof value !== 'boolean' || length !== 1) throw bad('a CK_BBOOL');
      return value;
    case 'ulong':
      if ((typeof value !== 'number' && typeof value !== 'bigint') || length !== 8) throw bad('a CK_ULONG');
      return value;
    case 'date':
      if (!(value instanceof Uint8Array) || !isDate(value)) throw bad('a CK_DATE, or empty');
      return value;
    case 'template':
    case 'mechanisms':
      if (typeof value !== 'object' || value instanceof Uint8Array) throw bad('a list');
      // What is kept in an object's map outlives the call and is shown to every caller: no place
      // for key material.
      if (isTemplate(value) && value.some((each) => attributeKind(each.type) === 'secret')) {
        throw bad('without key material');
      }
      return value;
    default:
      if (!(value instanceof Uint8Array)) throw bad('bytes');
      return value;
  }
};

const isDate = (value: Uint8Array): boolean =>
  value.length === 0 || (value.length === 8 && value.every((digit) => digit >= 0x30 && digit <= 0x39));

/** The template as a map: known attributes only, each with one value. */
const readTemplate = (template: readonly Attribute[]): AttributeMap => {
  const given: AttributeMap = new Map();
  for (const attribute of template) {
    const { type } = attribute;
    if (!known.has(type)) throw refuse(CKR.ATTRIBUTE_TYPE_INVALID, type, 'is not an attribute of Cryptoki');
    const value = checkedValue(attribute);
    const before = given.get(type);
    if (before !== undefined && !equalValues(before, value)) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'has two values');
    }
    given.set(type, value);
  }
  return given;
};

export interface NewObject {
  readonly kind: ObjectKind;
  /**
   * Every attribute but key material, VALUE, VALUE_LEN, CHECK_VALUE and what follows from the key.
   */
  readonly attributes: AttributeMap;
  /** VALUE as it was given: a view that does not outlive the call. */
  readonly value: Uint8Array | null;
  /** The other secret attributes of a private key: views too. */
  readonly material: ReadonlyMap<number, Uint8Array>;
  /** Bytes of secret key to make; null when the mechanism decides, and for other objects. */
  readonly length: number | null;
  /** CHECK_VALUE as it was given, to be compared with the true one. */
  readonly checkValue: Uint8Array | null;
}

/** The attributes of a new object, or why there cannot be one. */
export const newObject = (template: readonly Attribute[], origin: Origin, loggedIn: boolean): NewObject => {
  const given = readTemplate(template);
  const objectClass = classOf(given, origin);
  const kind = kindOf(objectClass);
  if (kind === undefined) throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.CLASS, 'cannot be created by this token');
  if (origin.how !== 'create' && (kind === 'data' || kind === 'certificate')) {
    throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.CLASS, 'does not fit the mechanism');
  }
  given.set(CKA.CLASS, objectClass);
  const keyType = kind === 'data' || kind === 'certificate' ? null : keyTypeOf(given, kind, origin);
  if (keyType !== null) given.set(CKA.KEY_TYPE, keyType);

  for (const [type, value] of given) checkGiven(type, value, kind, keyType, origin);
  for (const [type, rule] of rules[kind]) {
    const wanted = origin.how === 'create' ? rule.create : origin.how === 'generate' ? rule.generate : 'may';
    if (wanted === 'needed' && ruleFor(kind, keyType, type) !== undefined && !given.has(type)) {
      throw refuse(CKR.TEMPLATE_INCOMPLETE, type, 'is missing');
    }
  }
  const taken = take(given);
  const length = kind === 'secret' && keyType !== null ? keyLength(keyType, taken, origin) : null;

  // Before the defaults, which the caller did not request.
  const wanted = new Set([...given].flatMap(([type, value]) => (value === true ? [type] : [])));
  for (const { type, value } of origin.how === 'generate' ? (origin.otherHalf ?? []) : []) {
    if (value === true) wanted.add(type);
  }
  const asksFor = (...types: readonly number[]) => types.some((type) => wanted.has(type));
  const circumstances = { origin, loggedIn, given, asksFor };
  for (const [type, { otherwise }] of rules[kind]) {
    if (given.has(type) || otherwise === null) continue;
    given.set(type, typeof otherwise === 'function' ? otherwise(circumstances) : otherwise);
  }
  checkMasterKey(given);
  const { value, material, checkValue } = taken;
  return { kind, attributes: given, value, material, length, checkValue };
};

/**
 * Refuses a master key under which nothing could be read: it does not decrypt, or it, or its
 * metadata, is gone after the session.
 */
const checkMasterKey = (attributes: ReadonlyAttributes): void => {
  const needed = [
    ...(isMasterKey(attributes) ? [CKA.DECRYPT] : []),
    ...(outlivesSession(attributes) ? [CKA.TOKEN] : []),
  ];
  const missing = needed.find((type) => attributes.get(type) !== true);
  if (missing !== undefined) throw new ToldError(tell('master-key-attribute', { attribute: attributeName(missing) }));
};

const classOf = (given: ReadonlyAttributes, origin: Origin): number => {
  const objectClass = given.get(CKA.CLASS);
  if (origin.how === 'generate') {
    if (objectClass !== undefined && objectClass !== origin.objectClass) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.CLASS, 'does not fit the mechanism');
    }
    return origin.objectClass;
  }
  if (objectClass === undefined) {
    // A derived key is a secret key here, whether the template says so or not.
    if (origin.how === 'derive') return CKO.SECRET_KEY;
    throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.CLASS, 'is missing');
  }
  return Number(objectClass);
};

const keyTypeOf = (given: ReadonlyAttributes, kind: ObjectKind, origin: Origin): number => {
  const keyType = given.get(CKA.KEY_TYPE);
  if (origin.how === 'generate') {
    if (keyType !== undefined && keyType !== origin.keyType) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.KEY_TYPE, 'does not fit the mechanism');
    }
    return origin.keyType;
  }
  if (keyType === undefined) throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.KEY_TYPE, 'is missing');
  if (!isKeyType(kind, Number(keyType))) {
    throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.KEY_TYPE, 'is not a type that this token supports');
  }
  return Number(keyType);
};

const checkGiven = (
  type: number,
  value: AttributeValue,
  kind: ObjectKind,
  keyType: number | null,
  origin: Origin,
): void => {
  const rule = ruleFor(kind, keyType, type);
  // Section 4.1.1: an attribute of another class of object makes the template inconsistent, not the
  // attribute invalid.
  if (rule === undefined) throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'is not an attribute of this class of object');
  const who = origin.how === 'create' ? rule.create : rule.generate;
  if (who === 'read-only') throw refuse(CKR.ATTRIBUTE_READ_ONLY, type, 'is set by the token');
  if (who === 'never')
    throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'cannot be given for a key that the token creates');
  if (type === CKA.TRUSTED && value === true) throw refuse(CKR.ATTRIBUTE_READ_ONLY, type, 'cannot be set by the user');
  if (type === CKA.ALWAYS_AUTHENTICATE && value === true) {
    throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, type, 'is not supported: this token checks no PIN');
  }
};

interface Taken {
  readonly value: Uint8Array | null;
  readonly material: ReadonlyMap<number, Uint8Array>;
  readonly valueLength: number | null;
  readonly checkValue: Uint8Array | null;
}

/** Takes out what is not kept in the map. */
const take = (given: AttributeMap): Taken => {
  const material = new Map<number, Uint8Array>();
  for (const [type, value] of given) {
    if (attributeKind(type) !== 'secret' || !(value instanceof Uint8Array)) continue;
    material.set(type, value);
    given.delete(type);
  }
  const valueLength = given.get(CKA.VALUE_LEN);
  given.delete(CKA.VALUE_LEN);
  const checkValue = given.get(CKA.CHECK_VALUE);
  given.delete(CKA.CHECK_VALUE);
  return {
    value: material.get(CKA.VALUE) ?? null,
    material,
    valueLength: valueLength === undefined ? null : Number(valueLength),
    // An empty one asks for none to be kept; there is always one here, which does no harm.
    checkValue: checkValue instanceof Uint8Array && checkValue.length > 0 ? checkValue : null,
  };
};

const keyLength = (keyType: number, { value, valueLength }: Taken, origin: Origin): number | null => {
  if (origin.how === 'create') {
    if (value === null) throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.VALUE, 'is missing');
    if (!fitsKeyType(keyType, value.length)) {
      throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.VALUE, 'does not have the length of such a key');
    }
    if (valueLength !== null && valueLength !== value.length) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.VALUE_LEN, 'is not the length of the value');
    }
    return value.length;
  }
  if (valueLength === null) {
    if (origin.how === 'generate') throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.VALUE_LEN, 'is missing');
    return null;
  }
  if (!fitsKeyType(keyType, valueLength)) {
    throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.VALUE_LEN, 'is not a valid size for this type of key');
  }
  return valueLength;
};

/**
 * A template with the attributes that a key prescribes for what is made with it
 * (CKA_UNWRAP_TEMPLATE, CKA_DERIVE_TEMPLATE): what is not given is added, what contradicts is
 * refused.
 */
export const prescribed = (
  template: readonly Attribute[],
  prescription: AttributeValue | undefined,
): readonly Attribute[] => {
  if (!isTemplate(prescription)) return template;
  const added: Attribute[] = [];
  for (const wanted of prescription) {
    const given = template.find(({ type }) => type === wanted.type);
    if (given === undefined) added.push(wanted);
    else if (!sameOrNull(given.value, wanted.value)) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, wanted.type, 'does not match the template of the key that is used');
    }
  }
  return [...template, ...added];
};

/**
 * Whether an object has the attributes that a key asks for in what it wraps (CKA_WRAP_TEMPLATE).
 */
export const matchesTemplate = (object: ReadonlyAttributes, wanted: AttributeValue | undefined): boolean =>
  !isTemplate(wanted) || wanted.every(({ type, value }) => sameOrNull(object.get(type) ?? null, value));

const isTemplate = (value: AttributeValue | undefined): value is readonly Attribute[] =>
  Array.isArray(value) && typeof value[0] === 'object';

/**
 * What a template changes in an object, or why it may not. `by` is the function: setting and
 * copying differ. The result holds only what differs, VALUE included (a view that does not outlive
 * the call).
 */
export const changes = (
  template: readonly Attribute[],
  current: ReadonlyAttributes,
  by: 'set' | 'copy',
): AttributeMap => {
  const given = readTemplate(template);
  const kind = kindOf(current.get(CKA.CLASS));
  for (const [type, value] of given) {
    const rule = kind === undefined ? undefined : ruleFor(kind, current.get(CKA.KEY_TYPE), type);
    if (rule === undefined) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'is not an attribute of this class of object');
    }
    const before = current.get(type);
    if (before !== undefined && equalValues(before, value) && (by === 'copy' || rule.set !== 'never')) {
      given.delete(type);
      continue;
    }
    if (!mayBecome(rule[by], value)) throw refuse(CKR.ATTRIBUTE_READ_ONLY, type, 'cannot be changed in this way');
  }
  // Changes that make it readable, or have nothing to do with it, are none of this rule's.
  if ([CKA.DECRYPT, CKA.TOKEN, CKA.LABEL].some((type) => given.has(type)))
    checkMasterKey(new Map([...current, ...given]));
  return given;
};

const mayBecome = (change: Change, value: AttributeValue): boolean =>
  change === 'free' || (change === 'raise' && value === true) || (change === 'lower' && value === false);
