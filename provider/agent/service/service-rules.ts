// What a key's template lays down for it, in the service's words: the service keeps these rules, so
// they bind callers without an agent, too. The agent checks them all, and in the standard's detail:
// the service does not tell CKM_SHA256_HMAC from CKM_SHA256_HMAC_GENERAL, nor know each attribute
// of a template.
import type { KeyAlgorithm, KeyRules, KeyUsage, ObjectClass, Prescription } from '../../../server/contract/tde.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKK, CKO } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import type { Attribute, AttributeValue } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { families } from '../operations/digest-families.ts';

type ServiceMechanism = NonNullable<KeyRules['mechanisms']>[number];

/** The service's names of the mechanisms that use keys. Those that make keys have none. */
export const serviceMechanisms: ReadonlyMap<number, readonly ServiceMechanism[]> = new Map<
  number,
  readonly ServiceMechanism[]
>([
  [CKM.AES_ECB, ['aes-ecb']],
  [CKM.AES_CBC, ['aes-cbc']],
  [CKM.AES_CBC_PAD, ['aes-cbc-pad']],
  [CKM.AES_CTR, ['aes-ctr']],
  [CKM.AES_GCM, ['aes-gcm']],
  [CKM.AES_CCM, ['aes-ccm']],
  [CKM.AES_KEY_WRAP, ['key-wrap']],
  [CKM.AES_KEY_WRAP_PAD, ['key-wrap-padded']],
  [CKM.AES_KEY_WRAP_KWP, ['key-wrap-padded']],
  [CKM.AES_ECB_ENCRYPT_DATA, ['aes-ecb-data']],
  [CKM.AES_CBC_ENCRYPT_DATA, ['aes-cbc-data']],
  [CKM.AES_CMAC, ['aes-cmac']],
  [CKM.AES_CMAC_GENERAL, ['aes-cmac']],
  [CKM.RSA_PKCS, ['rsa-pkcs1', 'rsa-pkcs1-encryption']],
  [CKM.RSA_PKCS_OAEP, ['rsa-oaep']],
  [CKM.RSA_PKCS_PSS, ['rsa-pss']],
  [CKM.ECDSA, ['ecdsa']],
  [CKM.EDDSA, ['ed25519', 'ed448']],
  [CKM.ECDH1_DERIVE, ['ecdh']],
  [CKM.ECDH1_COFACTOR_DERIVE, ['ecdh']],
  [CKM.HKDF_DERIVE, ['hkdf']],
  [CKM.HKDF_DATA, ['hkdf']],
  [CKM.SP800_108_COUNTER_KDF, ['sp800-108-counter']],
  [CKM.SP800_108_FEEDBACK_KDF, ['sp800-108-feedback']],
  ...families.flatMap(({ name, hmac, hmacGeneral, signatures }): (readonly [number, readonly ServiceMechanism[]])[] => [
    [hmac, [`hmac-${name}`]],
    [hmacGeneral, [`hmac-${name}`]],
    ...(signatures === null
      ? []
      : ([
          [signatures.pkcs1, ['rsa-pkcs1']],
          [signatures.pss, ['rsa-pss']],
          [signatures.ecdsa, ['ecdsa']],
        ] as const)),
  ]),
]);

const classes: ReadonlyMap<unknown, ObjectClass> = new Map([
  [CKO.SECRET_KEY, 'secret-key'],
  [CKO.PRIVATE_KEY, 'private-key'],
  [CKO.PUBLIC_KEY, 'public-key'],
]);
const algorithms: ReadonlyMap<unknown, readonly KeyAlgorithm[]> = new Map([
  [CKK.AES, ['aes']],
  [CKK.RSA, ['rsa']],
  [CKK.EC, ['ec', 'secp256k1', 'brainpool']],
  [CKK.EC_EDWARDS, ['ed25519', 'ed448']],
  [CKK.EC_MONTGOMERY, ['x25519', 'x448']],
]);
const flags = [
  [CKA.TOKEN, 'onToken'],
  [CKA.SENSITIVE, 'sensitive'],
  [CKA.EXTRACTABLE, 'extractable'],
  [CKA.MODIFIABLE, 'modifiable'],
  [CKA.DESTROYABLE, 'destroyable'],
  [CKA.PRIVATE, 'private'],
  [CKA.WRAP_WITH_TRUSTED, 'wrapWithTrusted'],
] as const satisfies readonly (readonly [number, keyof Prescription])[];
const uses = [
  [CKA.ENCRYPT, 'encrypt'],
  [CKA.DECRYPT, 'decrypt'],
  [CKA.WRAP, 'wrap'],
  [CKA.UNWRAP, 'unwrap'],
  [CKA.SIGN, 'sign'],
  [CKA.VERIFY, 'verify'],
  [CKA.DERIVE, 'derive'],
] as const satisfies readonly (readonly [number, KeyUsage])[];

/** What the service can check of a template. Undefined for none. */
const prescriptionOf = (template: AttributeValue | undefined): Prescription | undefined => {
  if (!Array.isArray(template) || template.length === 0) return undefined;
  const given = new Map((template as readonly Attribute[]).map(({ type, value }) => [type, value]));
  const keyType = given.get(CKA.KEY_TYPE);
  const length = given.get(CKA.VALUE_LEN);
  const objectClass = classes.get(given.get(CKA.CLASS));
  const used = (wanted: boolean): KeyUsage[] =>
    uses.filter(([type]) => given.get(type) === wanted).map(([, use]) => use);
  return {
    ...(objectClass === undefined ? {} : { class: objectClass }),
    ...(keyType === undefined ? {} : { algorithms: algorithms.get(keyType) ?? ['generic'] }),
    ...(typeof length === 'number' && length > 0 ? { bits: length * 8 } : {}),
    ...Object.fromEntries(
      flags.flatMap(([type, member]) => (typeof given.get(type) === 'boolean' ? [[member, given.get(type)]] : [])),
    ),
    usages: used(true),
    noUsages: used(false),
  };
};

/** The rules of a new key; undefined where its template has none. */
export const rulesOf = (attributes: ReadonlyAttributes): KeyRules | undefined => {
  const allowed = attributes.get(CKA.ALLOWED_MECHANISMS);
  const rules: Record<string, unknown> = {
    mechanisms:
      Array.isArray(allowed) && allowed.length > 0
        ? [...new Set((allowed as readonly number[]).flatMap((type) => serviceMechanisms.get(type) ?? []))]
        : undefined,
    wrapWithTrusted: attributes.get(CKA.WRAP_WITH_TRUSTED) === true ? true : undefined,
    wraps: prescriptionOf(attributes.get(CKA.WRAP_TEMPLATE)),
    unwraps: prescriptionOf(attributes.get(CKA.UNWRAP_TEMPLATE)),
    derives: prescriptionOf(attributes.get(CKA.DERIVE_TEMPLATE)),
  };
  const given = Object.entries(rules).filter(([, rule]) => rule !== undefined);
  return given.length === 0 ? undefined : (Object.fromEntries(given) as KeyRules);
};
