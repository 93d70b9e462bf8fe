// Templates against the rules of the standard: which attribute an object of a class has, who may give it, what it is when
// nobody does, and how it may change (PKCS#11 2.40, sections 4.1 to 4.10; the footnotes of its table 10 are the columns here).
// Objects that this token makes: data objects and secret keys. No key bytes are kept here: VALUE is handed on as it came.
import { type AttributeName, attributeKind, attributeName, attributes, CKA } from '../schema/attributes.ts';
import { CKK, CKO } from '../schema/constants.ts';
import { CKR } from '../schema/return-values.ts';
import { type Attribute, type AttributeValue, CryptokiError, unavailableInformation } from '../schema/types.ts';
import type { AttributeMap, ReadonlyAttributes } from './attribute-blob.ts';

/** How an object comes to be. */
export type Origin =
  | { readonly how: 'create' }
  /** `keyType` is what the mechanism makes. */
  | { readonly how: 'generate'; readonly mechanism: number; readonly keyType: number };

interface Circumstances {
  readonly origin: Origin;
  readonly loggedIn: boolean;
  /** What was given so far, CLASS, KEY_TYPE and TOKEN included. */
  readonly given: ReadonlyAttributes;
}

/** raise: from false to true only; lower: from true to false only. */
type Change = 'free' | 'never' | 'raise' | 'lower';
interface Rule {
  readonly of: 'any' | 'data' | 'key';
  /** In C_CreateObject's and in C_GenerateKey's template; `read-only` is for what the token alone decides. */
  readonly create: 'needed' | 'may' | 'read-only';
  readonly generate: 'may' | 'never' | 'read-only';
  /** By C_SetAttributeValue and by C_CopyObject. */
  readonly set: Change;
  readonly copy: Change;
  /** The value when none is given; null: the object then does not have it in its map (VALUE, and what needs the key). */
  readonly otherwise: AttributeValue | null | ((circumstances: Circumstances) => AttributeValue);
}

const noBytes = new Uint8Array(0);
const isAes = ({ given }: Circumstances): boolean => given.get(CKA.KEY_TYPE) === CKK.AES;

const usage = (otherwise: Rule['otherwise']): Rule => ({
  of: 'key',
  create: 'may',
  generate: 'may',
  set: 'free',
  copy: 'free',
  otherwise,
});
const computed = (of: Rule['of'], otherwise: Rule['otherwise']): Rule => ({
  of,
  create: 'read-only',
  generate: 'read-only',
  set: 'never',
  copy: 'never',
  otherwise,
});
const fixed = (of: Rule['of'], copy: Change, otherwise: Rule['otherwise']): Rule => ({
  of,
  create: 'may',
  generate: 'may',
  set: 'never',
  copy,
  otherwise,
});
const free = (of: Rule['of'], otherwise: Rule['otherwise']): Rule => ({
  of,
  create: 'may',
  generate: 'may',
  set: 'free',
  copy: 'free',
  otherwise,
});

const rules = {
  // 4.2 and 4.4: common to all, and to all that is stored
  CLASS: { of: 'any', create: 'needed', generate: 'may', set: 'never', copy: 'never', otherwise: CKO.SECRET_KEY },
  TOKEN: fixed('any', 'free', false),
  // The standard leaves the default to the token: a key is private wherever somebody is logged in who could see it, and a
  // token key always, so that nobody uses a master key without C_Login.
  PRIVATE: fixed('any', 'raise', ({ given, loggedIn }) =>
    given.get(CKA.CLASS) === CKO.SECRET_KEY ? loggedIn || given.get(CKA.TOKEN) === true : false,
  ),
  MODIFIABLE: fixed('any', 'free', true),
  COPYABLE: fixed('any', 'lower', true),
  DESTROYABLE: fixed('any', 'free', true),
  LABEL: free('any', noBytes),
  UNIQUE_ID: computed('any', null),
  // 4.5: data objects
  APPLICATION: free('data', noBytes),
  OBJECT_ID: free('data', noBytes),
  VALUE: { of: 'any', create: 'may', generate: 'never', set: 'free', copy: 'never', otherwise: null },
  // 4.7: keys
  KEY_TYPE: {
    of: 'key',
    create: 'needed',
    generate: 'may',
    set: 'never',
    copy: 'never',
    otherwise: ({ origin }) => (origin.how === 'generate' ? origin.keyType : CKK.GENERIC_SECRET),
  },
  ID: free('key', noBytes),
  START_DATE: free('key', noBytes),
  END_DATE: free('key', noBytes),
  DERIVE: usage(false),
  LOCAL: computed('key', ({ origin }) => origin.how === 'generate'),
  KEY_GEN_MECHANISM: computed('key', ({ origin }) =>
    origin.how === 'generate' ? origin.mechanism : unavailableInformation,
  ),
  ALLOWED_MECHANISMS: fixed('key', 'never', []),
  // 4.10: secret keys. What the standard leaves to the token: secret unless asked otherwise, and useful for all that the
  // type of key can do; a master key is asked back for WRAP and UNWRAP by databases that may not have named them.
  SENSITIVE: { of: 'key', create: 'may', generate: 'may', set: 'raise', copy: 'raise', otherwise: true },
  EXTRACTABLE: { of: 'key', create: 'may', generate: 'may', set: 'lower', copy: 'lower', otherwise: false },
  ENCRYPT: usage(isAes),
  DECRYPT: usage(isAes),
  SIGN: usage(true),
  VERIFY: usage(true),
  WRAP: usage(isAes),
  UNWRAP: usage(isAes),
  ALWAYS_SENSITIVE: computed(
    'key',
    ({ origin, given }) => origin.how === 'generate' && given.get(CKA.SENSITIVE) !== false,
  ),
  NEVER_EXTRACTABLE: computed(
    'key',
    ({ origin, given }) => origin.how === 'generate' && given.get(CKA.EXTRACTABLE) !== true,
  ),
  CHECK_VALUE: fixed('key', 'never', null),
  WRAP_WITH_TRUSTED: { of: 'key', create: 'may', generate: 'may', set: 'raise', copy: 'raise', otherwise: false },
  // Only a security officer could set it, and there is none here.
  TRUSTED: fixed('key', 'never', false),
  WRAP_TEMPLATE: fixed('key', 'never', []),
  UNWRAP_TEMPLATE: fixed('key', 'never', []),
  // May be given with C_CreateObject as long as it is true: several programs do.
  VALUE_LEN: fixed('key', 'never', null),
} as const satisfies Partial<Record<AttributeName, Rule>>;

const ruleRows: ReadonlyMap<number, Rule> = new Map(
  Object.entries(rules).map(([name, rule]) => [attributes[name as keyof typeof rules].type, rule as Rule]),
);
const known: ReadonlySet<number> = new Set(Object.values(attributes).map(({ type }) => type));

const refuse = (rv: number, type: number, message: string): CryptokiError =>
  new CryptokiError(rv, `${attributeName(type)} ${message}`);

/** The classes of object that can be made. */
const classes: ReadonlyMap<number, 'data' | 'key'> = new Map([
  [CKO.DATA, 'data'],
  [CKO.SECRET_KEY, 'key'],
]);

/** Types of secret key, with the lengths of value, in bytes, that they have. */
const aesLengths: ReadonlySet<number> = new Set([16, 24, 32]);
export const maxGenericBytes = 512;
const keyTypes: ReadonlyMap<number, (bytes: number) => boolean> = new Map([
  [CKK.AES, (bytes: number) => aesLengths.has(bytes)],
  ...[CKK.GENERIC_SECRET, CKK.SHA_1_HMAC, CKK.SHA224_HMAC, CKK.SHA256_HMAC, CKK.SHA384_HMAC, CKK.SHA512_HMAC].map(
    (type) => [type, (bytes: number) => bytes >= 1 && bytes <= maxGenericBytes] as const,
  ),
]);

/** Whether an attribute belongs to objects of this class at all, for C_GetAttributeValue. */
export const hasAttribute = (objectClass: number, type: number): boolean => {
  const rule = ruleRows.get(type);
  return rule !== undefined && (rule.of === 'any' || rule.of === classes.get(objectClass));
};

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
const sameOrNull = (a: AttributeValue | null, b: AttributeValue | null): boolean =>
  a === null || b === null ? a === b : equalValues(a, b);

/** A value of the right kind and length, or CKR_ATTRIBUTE_VALUE_INVALID. */
const checkedValue = ({ type, value, length }: Attribute): AttributeValue => {
  const bad = (wanted: string): CryptokiError => refuse(CKR.ATTRIBUTE_VALUE_INVALID, type, `must be ${wanted}`);
  if (value === null) throw bad('given with a value');
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
  /** Every attribute but VALUE, VALUE_LEN, CHECK_VALUE and UNIQUE_ID. */
  readonly attributes: AttributeMap;
  /** VALUE as it was given: a view that does not outlive the call. */
  readonly value: Uint8Array | null;
  /** Bytes of key to make; null for data objects. */
  readonly length: number | null;
  /** CHECK_VALUE as it was given, to be compared with the true one. */
  readonly checkValue: Uint8Array | null;
}

/** The attributes of a new object, or why there cannot be one. */
export const newObject = (template: readonly Attribute[], origin: Origin, loggedIn: boolean): NewObject => {
  const given = readTemplate(template);
  const objectClass = classOf(given, origin);
  const kind = classes.get(objectClass);
  if (kind === undefined) throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.CLASS, 'is not one that this token can make');
  given.set(CKA.CLASS, objectClass);

  for (const [type, value] of given) checkGiven(type, value, kind, origin);
  for (const [type, rule] of ruleRows) {
    if (
      origin.how === 'create' &&
      rule.create === 'needed' &&
      rule.of !== 'any' &&
      rule.of === kind &&
      !given.has(type)
    ) {
      throw refuse(CKR.TEMPLATE_INCOMPLETE, type, 'is missing');
    }
  }
  const taken = take(given);
  const length = kind === 'key' ? keyLength(given, taken, origin) : null;

  const circumstances = { origin, loggedIn, given };
  for (const [type, { of, otherwise }] of ruleRows) {
    if (given.has(type) || otherwise === null || (of !== 'any' && of !== kind)) continue;
    given.set(type, typeof otherwise === 'function' ? otherwise(circumstances) : otherwise);
  }
  return { attributes: given, value: taken.value, length, checkValue: taken.checkValue };
};

const classOf = (given: ReadonlyAttributes, origin: Origin): number => {
  const objectClass = given.get(CKA.CLASS);
  if (origin.how === 'generate') {
    if (objectClass !== undefined && objectClass !== CKO.SECRET_KEY) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.CLASS, 'is not what the mechanism makes');
    }
    return CKO.SECRET_KEY;
  }
  if (objectClass === undefined) throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.CLASS, 'is missing');
  return Number(objectClass);
};

const checkGiven = (type: number, value: AttributeValue, kind: 'data' | 'key', origin: Origin): void => {
  const rule = ruleRows.get(type);
  // Section 4.1.1: an attribute of another class of object makes the template inconsistent, not the attribute invalid.
  if (rule === undefined || (rule.of !== 'any' && rule.of !== kind)) {
    throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'is not an attribute of this class of object');
  }
  const who = origin.how === 'create' ? rule.create : rule.generate;
  if (who === 'read-only') throw refuse(CKR.ATTRIBUTE_READ_ONLY, type, 'is decided by the token');
  if (who === 'never') throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'cannot be given for a generated key');
  if (type === CKA.TRUSTED && value === true) throw refuse(CKR.ATTRIBUTE_READ_ONLY, type, "is not the user's to set");
};

interface Taken {
  readonly value: Uint8Array | null;
  readonly valueLength: number | null;
  readonly checkValue: Uint8Array | null;
}

/** Takes out what is not kept in the map. */
const take = (given: AttributeMap): Taken => {
  const bytes = (type: number): Uint8Array | null => {
    const value = given.get(type);
    given.delete(type);
    return value instanceof Uint8Array ? value : null;
  };
  const valueLength = given.get(CKA.VALUE_LEN);
  given.delete(CKA.VALUE_LEN);
  const checkValue = bytes(CKA.CHECK_VALUE);
  return {
    value: bytes(CKA.VALUE),
    valueLength: valueLength === undefined ? null : Number(valueLength),
    // An empty one asks for none to be kept; there is always one here, which does no harm.
    checkValue: checkValue?.length === 0 ? null : checkValue,
  };
};

const keyLength = (given: ReadonlyAttributes, { value, valueLength }: Taken, origin: Origin): number => {
  const keyType = origin.how === 'generate' ? origin.keyType : Number(given.get(CKA.KEY_TYPE));
  if (origin.how === 'generate') {
    if (!sameOrNull(given.get(CKA.KEY_TYPE) ?? keyType, keyType)) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.KEY_TYPE, 'is not what the mechanism makes');
    }
    if (valueLength === null) throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.VALUE_LEN, 'is missing');
    if (!keyTypes.get(keyType)?.(valueLength)) {
      throw refuse(CKR.KEY_SIZE_RANGE, CKA.VALUE_LEN, 'is not a size of this type of key');
    }
    return valueLength;
  }
  const fits = keyTypes.get(keyType);
  if (fits === undefined)
    throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.KEY_TYPE, 'is not a type that this token can hold');
  if (value === null) throw refuse(CKR.TEMPLATE_INCOMPLETE, CKA.VALUE, 'is missing');
  if (!fits(value.length)) throw refuse(CKR.ATTRIBUTE_VALUE_INVALID, CKA.VALUE, 'is not as long as such a key is');
  if (valueLength !== null && valueLength !== value.length) {
    throw refuse(CKR.TEMPLATE_INCONSISTENT, CKA.VALUE_LEN, 'is not the length of the value');
  }
  return value.length;
};

/**
 * What a template changes in an object, or why it may not. `by` is the function: setting and copying differ. The result
 * holds only what differs, VALUE included (a view that does not outlive the call).
 */
export const changes = (
  template: readonly Attribute[],
  current: ReadonlyAttributes,
  by: 'set' | 'copy',
): AttributeMap => {
  const given = readTemplate(template);
  const kind = classes.get(Number(current.get(CKA.CLASS)));
  for (const [type, value] of given) {
    const rule = ruleRows.get(type);
    if (rule === undefined || (rule.of !== 'any' && rule.of !== kind)) {
      throw refuse(CKR.TEMPLATE_INCONSISTENT, type, 'is not an attribute of this class of object');
    }
    const before = current.get(type);
    if (before !== undefined && equalValues(before, value)) {
      given.delete(type);
      continue;
    }
    if (!mayBecome(type === CKA.VALUE && kind === 'key' ? 'never' : rule[by], value)) {
      throw refuse(CKR.ATTRIBUTE_READ_ONLY, type, 'cannot be changed so');
    }
  }
  return given;
};

const mayBecome = (change: Change, value: AttributeValue): boolean =>
  change === 'free' || (change === 'raise' && value === true) || (change === 'lower' && value === false);
