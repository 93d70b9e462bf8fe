// The standard's attribute tables as rows: which objects have an attribute, who may give it, its
// default, and how it may change (PKCS#11 2.40, sections 4.1 to 4.10 and, for key types, mechanisms
// 2.1, 2.3, 2.7 and 2.8; the footnotes of table 10 are the columns here). `template.ts` reads the
// rows; nothing here reads a template.
import { isMasterKeyLabel, isMetadataLabel } from '../../../server/base/master-keys.ts';
import { type AttributeName, attributes, CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { type Attribute, type AttributeValue, unavailableInformation } from '../../schema/types.ts';
import type { ReadonlyAttributes } from './attribute-blob.ts';

/** How an object comes to be. */
export type Origin =
  | { readonly how: 'create' }
  /**
   * `keyType` and `objectClass` are what the mechanism makes: a secret key, or one half of a pair.
   * `otherHalf` is the template of the pair's other half.
   */
  | {
      readonly how: 'generate';
      readonly mechanism: number;
      readonly keyType: number;
      readonly objectClass: number;
      readonly otherHalf?: readonly Attribute[];
    }
  | { readonly how: 'unwrap' }
  /** `base` are the attributes of the key that it is derived from. */
  | { readonly how: 'derive'; readonly base: ReadonlyAttributes };

export type ObjectKind = 'data' | 'certificate' | 'public' | 'private' | 'secret';

export interface Circumstances {
  readonly origin: Origin;
  readonly loggedIn: boolean;
  /** What was given so far, CLASS, KEY_TYPE and TOKEN included. */
  readonly given: ReadonlyAttributes;
  /**
   * Whether the template, or that of the pair's other half, sets one of these attributes to true.
   */
  readonly asksFor: (...types: readonly number[]) => boolean;
}

/** raise: from false to true only; lower: from true to false only. */
export type Change = 'free' | 'never' | 'raise' | 'lower';
/**
 * `never` is for what belongs to the object but not into this template; `read-only` for what the
 * token alone decides.
 */
export type Given = 'needed' | 'may' | 'never' | 'read-only';

export interface Rule {
  /** In C_CreateObject's template. */
  readonly create: Given;
  /** In the template of a key that is generated, unwrapped or derived. */
  readonly generate: Given;
  /** Changes that C_SetAttributeValue (`set`) and C_CopyObject (`copy`) may make. */
  readonly set: Change;
  readonly copy: Change;
  /**
   * The value when none is given; null: the object then does not have it in its map (key material,
   * and what follows from it).
   */
  readonly otherwise: AttributeValue | null | ((circumstances: Circumstances) => AttributeValue);
  /** Keys of these types only. */
  readonly keyTypes?: readonly number[];
}

interface Row {
  readonly name: AttributeName;
  readonly of: readonly ObjectKind[];
  readonly rule: Rule;
}

const all: readonly ObjectKind[] = ['data', 'certificate', 'public', 'private', 'secret'];
const keys: readonly ObjectKind[] = ['public', 'private', 'secret'];
/** Kinds of object that have something to keep secret. */
const secrets: readonly ObjectKind[] = ['private', 'secret'];

const noBytes = new Uint8Array(0);
const rsa = [CKK.RSA];
const curves = [CKK.EC, CKK.EC_EDWARDS, CKK.EC_MONTGOMERY];

type Otherwise = Rule['otherwise'];
const make = (create: Given, generate: Given, set: Change, copy: Change, otherwise: Otherwise): Rule => ({
  create,
  generate,
  set,
  copy,
  otherwise,
});
const free = (otherwise: Otherwise): Rule => make('may', 'may', 'free', 'free', otherwise);
const fixed = (copy: Change, otherwise: Otherwise): Rule => make('may', 'may', 'never', copy, otherwise);
const computed = (otherwise: Otherwise): Rule => make('read-only', 'read-only', 'never', 'never', otherwise);
/** Key material and what follows from it: given when the key is created, never otherwise. */
const material = (create: Given, keyTypes: readonly number[]): Rule => ({
  ...make(create, 'never', 'never', 'never', null),
  keyTypes,
});

/** What the standard leaves to the token: a key is useful for all that its type can do. */
const ofType =
  (...types: readonly number[]): ((circumstances: Circumstances) => boolean) =>
  ({ given }) =>
    types.includes(Number(given.get(CKA.KEY_TYPE)));

/** A master key of a database: what it encrypts must be read again (server/base/master-keys.ts). */
export const isMasterKey = (attributes: ReadonlyAttributes): boolean => {
  const label = attributes.get(CKA.LABEL);
  return (
    attributes.get(CKA.CLASS) === CKO.SECRET_KEY &&
    attributes.get(CKA.KEY_TYPE) === CKK.AES &&
    label instanceof Uint8Array &&
    isMasterKeyLabel(label)
  );
};

/** A master key, or the object of data that describes one: neither may end with a session. */
export const outlivesSession = (attributes: ReadonlyAttributes): boolean => {
  const label = attributes.get(CKA.LABEL);
  return (
    isMasterKey(attributes) ||
    (attributes.get(CKA.CLASS) === CKO.DATA && label instanceof Uint8Array && isMetadataLabel(label))
  );
};

/**
 * A key that decrypts wraps no sensitive key (key-roles.ts). Where a template asks for wrapping or
 * unwrapping, the key does not decrypt unless the template asks for that too. A master key always
 * does: databases ask for both and name nothing else.
 */
const decryptsUnlessItWraps =
  (type: number): ((circumstances: Circumstances) => boolean) =>
  ({ given, asksFor }) =>
    given.get(CKA.KEY_TYPE) === type && (isMasterKey(given) || !asksFor(CKA.WRAP, CKA.UNWRAP));

const row = (name: AttributeName, of: readonly ObjectKind[], rule: Rule): Row => ({ name, of, rule });

const rows: readonly Row[] = [
  // 4.2 and 4.4: common to all, and to all that is stored
  row('CLASS', all, make('needed', 'may', 'never', 'never', null)),
  // A database that does not name it keeps its master key, and what it encrypts, beyond the
  // session.
  row(
    'TOKEN',
    all,
    fixed('free', ({ given }) => outlivesSession(given)),
  ),
  // The standard leaves the default to the token: a secret or private key is private wherever a
  // user is logged in who could see it, and on the token always, so that a master key is never used
  // without C_Login.
  row(
    'PRIVATE',
    secrets,
    fixed('raise', ({ given, loggedIn }) => loggedIn || given.get(CKA.TOKEN) === true),
  ),
  row('PRIVATE', ['data', 'certificate', 'public'], fixed('raise', false)),
  row('MODIFIABLE', all, fixed('free', true)),
  row('COPYABLE', all, fixed('lower', true)),
  row('DESTROYABLE', all, fixed('free', true)),
  row('LABEL', all, free(noBytes)),
  row('UNIQUE_ID', all, computed(null)),

  // 4.5: data objects
  row('APPLICATION', ['data'], free(noBytes)),
  row('OBJECT_ID', ['data'], free(noBytes)),
  row('VALUE', ['data'], make('may', 'never', 'free', 'free', null)),
  // Not in the standard's table; databases name it, and other tokens accept it. An object has it
  // when it was given.
  row('ID', ['data'], make('may', 'never', 'free', 'free', null)),

  // 4.6: certificates
  row('CERTIFICATE_TYPE', ['certificate'], make('needed', 'never', 'never', 'never', null)),
  row('VALUE', ['certificate'], make('may', 'never', 'never', 'never', null)),
  // Only a security officer could set it, and there is none here.
  row('TRUSTED', ['certificate', 'public', 'secret'], fixed('never', false)),
  row('CERTIFICATE_CATEGORY', ['certificate'], fixed('never', 0)),
  row('CHECK_VALUE', ['certificate', 'secret'], fixed('never', null)),
  row('SUBJECT', ['certificate'], make('needed', 'never', 'never', 'never', null)),
  row('ISSUER', ['certificate'], free(noBytes)),
  row('SERIAL_NUMBER', ['certificate'], free(noBytes)),
  row('OWNER', ['certificate'], fixed('never', noBytes)),
  row('AC_ISSUER', ['certificate'], free(noBytes)),
  row('ATTR_TYPES', ['certificate'], free(noBytes)),
  row('URL', ['certificate'], fixed('never', noBytes)),
  row('HASH_OF_SUBJECT_PUBLIC_KEY', ['certificate'], fixed('never', noBytes)),
  row('HASH_OF_ISSUER_PUBLIC_KEY', ['certificate'], fixed('never', noBytes)),
  row('NAME_HASH_ALGORITHM', ['certificate'], fixed('never', null)),
  row('JAVA_MIDP_SECURITY_DOMAIN', ['certificate'], fixed('never', 0)),
  row('PUBLIC_KEY_INFO', ['certificate'], fixed('never', noBytes)),

  // 4.7: keys. KEY_TYPE is known from the mechanism of a generated key.
  row('KEY_TYPE', keys, make('needed', 'may', 'never', 'never', null)),
  row('ID', ['certificate', ...keys], free(noBytes)),
  row('START_DATE', ['certificate', ...keys], free(noBytes)),
  row('END_DATE', ['certificate', ...keys], free(noBytes)),
  row('DERIVE', ['public', 'secret'], free(false)),
  row('DERIVE', ['private'], free(ofType(CKK.EC, CKK.EC_MONTGOMERY))),
  row(
    'LOCAL',
    keys,
    computed(({ origin }) => origin.how === 'generate'),
  ),
  row(
    'KEY_GEN_MECHANISM',
    keys,
    computed(({ origin }) => (origin.how === 'generate' ? origin.mechanism : unavailableInformation)),
  ),
  row('ALLOWED_MECHANISMS', keys, fixed('never', [])),

  // 4.8: public keys
  row('SUBJECT', ['public', 'private'], free(noBytes)),
  row('ENCRYPT', ['public'], free(ofType(CKK.RSA))),
  row('VERIFY', ['public'], free(ofType(CKK.RSA, CKK.EC, CKK.EC_EDWARDS))),
  // NSS verifies by C_VerifyRecover where the token offers it, with public keys that it imports
  // with CKA_VERIFY alone.
  row(
    'VERIFY_RECOVER',
    ['public'],
    free(({ given }) => given.get(CKA.KEY_TYPE) === CKK.RSA && given.get(CKA.VERIFY) === true),
  ),
  row('WRAP', ['public'], free(ofType(CKK.RSA))),
  row('WRAP_TEMPLATE', ['public', 'secret'], fixed('never', [])),
  row('PUBLIC_KEY_INFO', ['public', 'private'], make('may', 'never', 'never', 'never', null)),

  // 4.9: private keys
  row('DECRYPT', ['private'], free(decryptsUnlessItWraps(CKK.RSA))),
  row('SIGN', ['private'], free(ofType(CKK.RSA, CKK.EC, CKK.EC_EDWARDS))),
  row('SIGN_RECOVER', ['private'], free(false)),
  row('UNWRAP', ['private'], free(ofType(CKK.RSA))),
  row('ALWAYS_AUTHENTICATE', ['private'], fixed('never', false)),

  // 4.9 and 4.10: what is secret. Sensitive unless asked otherwise; a master key is asked back for
  // WRAP and UNWRAP by databases that may not have named them.
  row('SENSITIVE', secrets, make('may', 'may', 'raise', 'raise', true)),
  // 5.14: a key that is unwrapped is extractable by default, as it was where it came from.
  row(
    'EXTRACTABLE',
    secrets,
    make('may', 'may', 'lower', 'lower', ({ origin }) => origin.how === 'unwrap'),
  ),
  row(
    'ALWAYS_SENSITIVE',
    secrets,
    computed(
      ({ origin, given }) =>
        given.get(CKA.SENSITIVE) !== false &&
        (origin.how === 'generate' || (origin.how === 'derive' && origin.base.get(CKA.ALWAYS_SENSITIVE) === true)),
    ),
  ),
  row(
    'NEVER_EXTRACTABLE',
    secrets,
    computed(
      ({ origin, given }) =>
        given.get(CKA.EXTRACTABLE) !== true &&
        (origin.how === 'generate' || (origin.how === 'derive' && origin.base.get(CKA.NEVER_EXTRACTABLE) === true)),
    ),
  ),
  row('WRAP_WITH_TRUSTED', secrets, make('may', 'may', 'raise', 'raise', false)),
  row('UNWRAP_TEMPLATE', secrets, fixed('never', [])),
  row('DERIVE_TEMPLATE', secrets, fixed('never', [])),

  // 4.10: secret keys
  row('ENCRYPT', ['secret'], free(ofType(CKK.AES))),
  row('DECRYPT', ['secret'], free(decryptsUnlessItWraps(CKK.AES))),
  row('SIGN', ['secret'], free(true)),
  row('VERIFY', ['secret'], free(true)),
  row('WRAP', ['secret'], free(ofType(CKK.AES))),
  row('UNWRAP', ['secret'], free(ofType(CKK.AES))),
  row('VALUE', ['secret'], make('needed', 'never', 'never', 'never', null)),
  // May be given with C_CreateObject as long as it is true: several programs do.
  row('VALUE_LEN', ['secret'], fixed('never', null)),

  // Mechanisms 2.1: RSA keys
  row('MODULUS', ['public', 'private'], material('needed', rsa)),
  row('MODULUS_BITS', ['public'], { ...make('read-only', 'needed', 'never', 'never', null), keyTypes: rsa }),
  row('PUBLIC_EXPONENT', ['public'], { ...make('needed', 'may', 'never', 'never', null), keyTypes: rsa }),
  row('PUBLIC_EXPONENT', ['private'], material('may', rsa)),
  row('PRIVATE_EXPONENT', ['private'], material('needed', rsa)),
  // Computed where they are not given.
  row('PRIME_1', ['private'], material('may', rsa)),
  row('PRIME_2', ['private'], material('may', rsa)),
  row('EXPONENT_1', ['private'], material('may', rsa)),
  row('EXPONENT_2', ['private'], material('may', rsa)),
  row('COEFFICIENT', ['private'], material('may', rsa)),

  // Mechanisms 2.3: keys on elliptic curves
  row('EC_PARAMS', ['public'], { ...make('needed', 'needed', 'never', 'never', null), keyTypes: curves }),
  row('EC_PARAMS', ['private'], material('needed', curves)),
  row('EC_POINT', ['public'], material('needed', curves)),
  row('VALUE', ['private'], material('needed', curves)),
];

const tableOf = (kind: ObjectKind): ReadonlyMap<number, Rule> =>
  new Map(rows.filter(({ of }) => of.includes(kind)).map(({ name, rule }) => [attributes[name].type, rule]));

/**
 * The rules of attributes, by kind of object, then by attribute. Objects of a kind do not have an
 * attribute without a rule.
 */
export const rules: Readonly<Record<ObjectKind, ReadonlyMap<number, Rule>>> = {
  data: tableOf('data'),
  certificate: tableOf('certificate'),
  public: tableOf('public'),
  private: tableOf('private'),
  secret: tableOf('secret'),
};

/** The classes of object that can be made. */
const kinds: ReadonlyMap<number, ObjectKind> = new Map([
  [CKO.DATA, 'data'],
  [CKO.CERTIFICATE, 'certificate'],
  [CKO.PUBLIC_KEY, 'public'],
  [CKO.PRIVATE_KEY, 'private'],
  [CKO.SECRET_KEY, 'secret'],
]);

/** Undefined for classes that this token cannot hold. */
export const kindOf = (objectClass: unknown): ObjectKind | undefined => kinds.get(Number(objectClass));

/** The rule for an attribute of an object of this kind and, for keys, type. */
export const ruleFor = (kind: ObjectKind, keyType: unknown, type: number): Rule | undefined => {
  const rule = rules[kind].get(type);
  return rule?.keyTypes?.includes(Number(keyType)) === false ? undefined : rule;
};

/** Types of secret key, with the lengths of value, in bytes, that they have. */
const aesLengths: ReadonlySet<number> = new Set([16, 24, 32]);
const maxGenericBytes = 512;
const secretTypes: ReadonlyMap<number, (bytes: number) => boolean> = new Map([
  [CKK.AES, (bytes: number) => aesLengths.has(bytes)],
  ...[
    CKK.GENERIC_SECRET,
    CKK.HKDF,
    CKK.SHA_1_HMAC,
    CKK.SHA224_HMAC,
    CKK.SHA256_HMAC,
    CKK.SHA384_HMAC,
    CKK.SHA512_HMAC,
    CKK.SHA512_224_HMAC,
    CKK.SHA512_256_HMAC,
    CKK.SHA3_224_HMAC,
    CKK.SHA3_256_HMAC,
    CKK.SHA3_384_HMAC,
    CKK.SHA3_512_HMAC,
  ].map((type) => [type, (bytes: number) => bytes >= 1 && bytes <= maxGenericBytes] as const),
]);
const pairTypes: ReadonlySet<number> = new Set([CKK.RSA, CKK.EC, CKK.EC_EDWARDS, CKK.EC_MONTGOMERY]);

export const isKeyType = (kind: ObjectKind, keyType: number): boolean =>
  kind === 'secret' ? secretTypes.has(keyType) : pairTypes.has(keyType);

/** Whether a secret key of this type may have so many bytes. */
export const fitsKeyType = (keyType: number, bytes: number): boolean => secretTypes.get(keyType)?.(bytes) === true;
