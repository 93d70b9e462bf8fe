// One object as Cryptoki sees it, wherever it lives: a session object, whose key is in the addon,
// or a token object, whose key is with the service. Also the way between Cryptoki's attributes and
// the fields of the TDE API's contract.
import { type Curve, core, type KeyRef } from '../../../addon/core.ts';
import type { CreateObject, KeyAlgorithm, KeyUsage, ObjectClass, TokenObject } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import { type AttributeValue, unavailableInformation } from '../../schema/types.ts';
import { rulesOf } from '../service/service-rules.ts';
import { type AttributeMap, decodeAttributes, encodeAttributes, type ReadonlyAttributes } from './attribute-blob.ts';
import { kindOf, type ObjectKind, ruleFor } from './attribute-rules.ts';
import { curveOf, isMaterial, publicAttributes } from './key-forms.ts';
import type { KeyIdentity } from './used-ivs.ts';

/**
 * A key in the addon that several session objects may share: a copy of an object has the same key.
 */
export class SharedKey {
  readonly ref: KeyRef;
  /** What its used IVs are remembered under, after the first request. */
  identity: KeyIdentity | null = null;
  #owners = 1;

  constructor(ref: KeyRef) {
    this.ref = ref;
  }
  share(): this {
    this.#owners++;
    return this;
  }
  release(): void {
    if (--this.#owners === 0) core.release(this.ref);
  }
}

export interface SessionObject {
  readonly where: 'session';
  readonly handle: number;
  /** Every attribute but a key's VALUE. */
  readonly attributes: AttributeMap;
  readonly key: SharedKey | null;
  /** The session that made it, with which it goes. */
  readonly session: { readonly closed: boolean; readonly objects: Set<SessionObject> };
  /**
   * How often the user had logged out when it was made: a private object goes with the next time.
   */
  readonly logouts: number;
}

export interface TokenView {
  readonly where: 'token';
  readonly handle: number;
  /** Every attribute but VALUE. */
  readonly attributes: ReadonlyAttributes;
  readonly object: TokenObject;
}

export type ObjectView = SessionObject | TokenView;

export const isTrue = (view: ObjectView, type: number): boolean => view.attributes.get(type) === true;

export const kindOfView = ({ attributes }: ObjectView): ObjectKind | undefined => kindOf(attributes.get(CKA.CLASS));

/**
 * Whether VALUE may be read: secret and private keys when they are extractable and not sensitive,
 * all else always.
 */
export const isReadable = (view: ObjectView): boolean => {
  const kind = kindOfView(view);
  if (kind !== 'secret' && kind !== 'private') return true;
  return isTrue(view, CKA.EXTRACTABLE) && view.attributes.get(CKA.SENSITIVE) === false;
};

/** Attributes that are not in a view's map because they are, or may be, the secret itself. */
export const isValue = (view: ObjectView, type: number): boolean => {
  const kind = kindOfView(view);
  if (kind === 'private') return isMaterial(view.attributes.get(CKA.KEY_TYPE), type);
  return type === CKA.VALUE && kind !== 'public';
};

const classNumbers = {
  data: CKO.DATA,
  certificate: CKO.CERTIFICATE,
  'public-key': CKO.PUBLIC_KEY,
  'private-key': CKO.PRIVATE_KEY,
  'secret-key': CKO.SECRET_KEY,
} as const satisfies Record<ObjectClass, number>;

/** The service's word for a class; undefined when it stores no such objects. */
export const classNamed = (objectClass: number): ObjectClass | undefined =>
  (Object.keys(classNumbers) as ObjectClass[]).find((name) => classNumbers[name] === objectClass);

const usageAttributes = {
  encrypt: CKA.ENCRYPT,
  decrypt: CKA.DECRYPT,
  wrap: CKA.WRAP,
  unwrap: CKA.UNWRAP,
  sign: CKA.SIGN,
  verify: CKA.VERIFY,
  derive: CKA.DERIVE,
} as const satisfies Record<KeyUsage, number>;
const usageRows = Object.entries(usageAttributes) as [KeyUsage, number][];

export const usagesOf = (attributes: ReadonlyAttributes): KeyUsage[] =>
  usageRows.filter(([, type]) => attributes.get(type) === true).map(([name]) => name);

export const usageAttribute = (usage: KeyUsage): number => usageAttributes[usage];

/** Attributes that have a field of their own in the contract, or follow from one. */
const fields: ReadonlySet<number> = new Set([
  CKA.CLASS,
  CKA.TOKEN,
  CKA.PRIVATE,
  CKA.MODIFIABLE,
  CKA.DESTROYABLE,
  CKA.LABEL,
  CKA.UNIQUE_ID,
  CKA.SENSITIVE,
  CKA.EXTRACTABLE,
  CKA.ALWAYS_SENSITIVE,
  CKA.NEVER_EXTRACTABLE,
  CKA.LOCAL,
  CKA.VALUE_LEN,
  CKA.CHECK_VALUE,
  ...Object.values(usageAttributes),
]);

/** The attributes that the service keeps without looking into them. */
export const blobOf = (attributes: ReadonlyAttributes): string => {
  // The service computes check values of keys only.
  const isCertificate = attributes.get(CKA.CLASS) === CKO.CERTIFICATE;
  const isKept = (type: number): boolean => !fields.has(type) || (isCertificate && type === CKA.CHECK_VALUE);
  return encodeAttributes(new Map([...attributes].filter(([type]) => isKept(type)))).toString('base64');
};

const labelOf = (attributes: ReadonlyAttributes): string => {
  const label = attributes.get(CKA.LABEL);
  return label instanceof Uint8Array ? Buffer.from(label).toString('base64') : '';
};

/**
 * What to ask of the service for a new token object. `bits` is a key's size where it is known
 * before the key.
 */
export const describeNew = (attributes: ReadonlyAttributes, bits: number | null): CreateObject => {
  const is = (type: number): boolean => attributes.get(type) === true;
  const objectClass = classNamed(Number(attributes.get(CKA.CLASS))) ?? 'data';
  const kept = objectClass === 'secret-key' || objectClass === 'private-key';
  const rules = rulesOf(attributes);
  return {
    class: objectClass,
    label: labelOf(attributes),
    algorithm: objectClass === 'data' || objectClass === 'certificate' ? null : algorithmOf(attributes),
    bits,
    usages: usagesOf(attributes),
    sensitive: is(CKA.SENSITIVE),
    extractable: kept ? is(CKA.EXTRACTABLE) : true,
    modifiable: is(CKA.MODIFIABLE),
    destroyable: is(CKA.DESTROYABLE),
    private: is(CKA.PRIVATE),
    attributes: blobOf(attributes),
    ...(rules === undefined ? {} : { rules }),
  };
};

const algorithms: ReadonlyMap<unknown, KeyAlgorithm> = new Map([
  [CKK.AES, 'aes'],
  [CKK.RSA, 'rsa'],
  // The curve of a key that is still wrapped is not known: any algorithm of its family represents
  // all.
  [CKK.EC, 'ec'],
  [CKK.EC_EDWARDS, 'ed25519'],
  [CKK.EC_MONTGOMERY, 'x25519'],
]);
const curveAlgorithms = {
  p224: 'ec',
  p256: 'ec',
  p384: 'ec',
  p521: 'ec',
  secp256k1: 'secp256k1',
  'brainpool-p256r1': 'brainpool',
  'brainpool-p384r1': 'brainpool',
  'brainpool-p512r1': 'brainpool',
  ed25519: 'ed25519',
  ed448: 'ed448',
  x25519: 'x25519',
  x448: 'x448',
} as const satisfies Record<Curve, KeyAlgorithm>;
/** What the service calls a key of this type. */
export const algorithmOf = (attributes: ReadonlyAttributes): KeyAlgorithm => {
  const keyType = Number(attributes.get(CKA.KEY_TYPE));
  if (attributes.has(CKA.EC_PARAMS)) return curveAlgorithms[curveOf(keyType, attributes).curve];
  return algorithms.get(keyType) ?? 'generic';
};

const keyTypes = {
  aes: CKK.AES,
  generic: CKK.GENERIC_SECRET,
  rsa: CKK.RSA,
  ec: CKK.EC,
  secp256k1: CKK.EC,
  brainpool: CKK.EC,
  ed25519: CKK.EC_EDWARDS,
  ed448: CKK.EC_EDWARDS,
  x25519: CKK.EC_MONTGOMERY,
  x448: CKK.EC_MONTGOMERY,
} as const satisfies Record<KeyAlgorithm, number>;
const keyTypeOf = (algorithm: KeyAlgorithm | null): number =>
  algorithm === null ? CKK.VENDOR_DEFINED : keyTypes[algorithm];

const noBytes = new Uint8Array(0);

/**
 * What an object has that was made elsewhere, in the console for instance, and so without
 * attributes of the agent's.
 */
const defaultsOf = ({ class: objectClass, algorithm, local }: TokenObject): AttributeMap => {
  const common: [number, AttributeValue][] = [[CKA.COPYABLE, true]];
  if (objectClass === 'data') return new Map([...common, [CKA.APPLICATION, noBytes], [CKA.OBJECT_ID, noBytes]]);
  if (objectClass !== 'secret-key') return new Map(common);
  return new Map([
    ...common,
    [CKA.KEY_TYPE, keyTypeOf(algorithm)],
    [CKA.ID, noBytes],
    [CKA.START_DATE, noBytes],
    [CKA.END_DATE, noBytes],
    [CKA.KEY_GEN_MECHANISM, local && algorithm === 'aes' ? CKM.AES_KEY_GEN : unavailableInformation],
    [CKA.WRAP_WITH_TRUSTED, false],
    [CKA.TRUSTED, false],
  ]);
};

/**
 * A token object's attributes, from the contract's fields and the agent's own. Throws RangeError
 * for bytes of another format.
 */
export const viewOf = (object: TokenObject): TokenView => {
  const attributes = decodeAttributes(Buffer.from(object.attributes, 'base64'));
  const set = attributes.set.bind(attributes);
  set(CKA.CLASS, classNumbers[object.class]);
  set(CKA.TOKEN, true);
  set(CKA.PRIVATE, object.private);
  set(CKA.MODIFIABLE, object.modifiable && object.owned);
  set(CKA.DESTROYABLE, object.destroyable && object.owned);
  set(CKA.LABEL, Buffer.from(object.label, 'base64'));
  set(CKA.UNIQUE_ID, Buffer.from(object.id, 'utf8'));
  for (const [type, value] of defaultsOf(object)) if (!attributes.has(type)) set(type, value);
  const kind = kindOf(classNumbers[object.class]);
  if (kind === 'public' || kind === 'private' || kind === 'secret') {
    const keyType = attributes.get(CKA.KEY_TYPE);
    const setIfHas = (type: number, value: AttributeValue) => {
      if (ruleFor(kind, keyType, type) !== undefined) set(type, value);
    };
    // The standard calls a copy of a local key local (4.7); to the service, what came to it with a
    // value was made elsewhere. How a key was generated is kept with it, and with its copies.
    const mechanism = attributes.get(CKA.KEY_GEN_MECHANISM);
    set(CKA.LOCAL, object.local || (mechanism !== undefined && mechanism !== unavailableInformation));
    setIfHas(CKA.SENSITIVE, object.sensitive);
    setIfHas(CKA.EXTRACTABLE, object.extractable);
    setIfHas(CKA.ALWAYS_SENSITIVE, object.alwaysSensitive);
    setIfHas(CKA.NEVER_EXTRACTABLE, object.neverExtractable);
    for (const [usage, type] of usageRows) setIfHas(type, object.usages.includes(usage));
    if (object.bits !== null) setIfHas(CKA.VALUE_LEN, object.bits / 8);
    if (object.publicKey !== null && kind !== 'secret') {
      // What the agent's own attributes say was compared with the key when it was made.
      for (const [type, value] of publicAttributes(Buffer.from(object.publicKey, 'base64'), kind)) {
        if (!attributes.has(type)) set(type, value);
      }
    }
    if (object.checkValue !== null) set(CKA.CHECK_VALUE, Buffer.from(object.checkValue, 'base64'));
  }
  return { where: 'token', handle: object.handle, attributes, object };
};
