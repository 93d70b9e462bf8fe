// The mechanisms that this token carries: one row each, with what C_GetMechanismInfo says of it,
// which keys it takes, and how its parameter becomes the core's. PKCS#11 mechanisms 2.40: 2.1 RSA,
// 2.3 elliptic curves (Edwards curves: 3.0), 2.7 generic secrets, 2.8 AES, 2.9 to 2.11 AES modes
// and MACs, 2.17 to 2.21 digests and HMAC (SHA-3: 3.0).
//
// Left out on purpose: raw RSA, MD5, DES. RSA encryption with PKCS#1 v1.5 padding (padding
// oracles), signatures over SHA-1 and RSA keys below 2048 bits need a compatibility switch of the
// application.
import type { Digest } from '../../../addon/core.ts';
import type { CompatibilitySwitch } from '../../../server/base/compatibility-switches.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKF, CKK } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import type { Mechanism } from '../../schema/types.ts';
import { mechanismInvalid, parameterInvalid } from '../return-values.ts';
import { type DigestFamily, digestByMask, digestByMechanism, families } from './digest-families.ts';
import {
  counter,
  counterWithMac,
  ecbParameters,
  ecdh,
  encryption,
  galois,
  hkdf,
  iv16,
  noBytes,
  none,
  oaep,
  pureEdwards,
} from './mechanism-parameters.ts';
import type { CipherRow, MechanismRow, WrapRow } from './mechanism-row.ts';
import { blockKdf } from './sp800-108.ts';

const wrapFlags = CKF.WRAP | CKF.UNWRAP;
/** Secrets for HMAC and HKDF, in bytes. */
const secretSizes = { minKeySize: 1, maxKeySize: 512 };
const aesSizes = { minKeySize: 16, maxKeySize: 32, keyTypes: [CKK.AES] };
const aesCipher = (
  type: number,
  encryptUnit: number,
  decryptUnit: number,
  parameters: CipherRow['parameters'],
): MechanismRow => ({
  type,
  ...aesSizes,
  flags: CKF.ENCRYPT | CKF.DECRYPT,
  cipher: { parameters, encryptUnit, decryptUnit },
});
/** A cipher that wraps keys too: those that chain, so that equal halves of a key do not show. */
const wrapping = (row: MechanismRow): MechanismRow => {
  const { cipher } = row;
  if (cipher === undefined) return row;
  const wrap: WrapRow = (parameter) => ({ way: 'cipher', cipher: cipher.parameters(parameter) });
  return { ...row, flags: row.flags | wrapFlags, wrap };
};
/** A cipher that the message-based functions of 3.0 take too, in one piece and in parts. */
const perMessage = (row: MechanismRow): MechanismRow => ({
  ...row,
  flags: row.flags | CKF.MESSAGE_ENCRYPT | CKF.MESSAGE_DECRYPT | CKF.MULTI_MESSAGE,
});
/**
 * The initial value is the caller's, 8 bytes, 4 where the length is padded (RFC 5649), or the one
 * that the RFC fixes.
 */
const keyWrap = (type: number, padded: boolean): MechanismRow => ({
  type,
  ...aesSizes,
  flags: wrapFlags,
  wrap: (parameter) => {
    if (parameter?.kind !== 'bytes' || parameter.bytes.length === 0) {
      none(parameter);
      return { way: 'key-wrap', padded };
    }
    if (parameter.bytes.length !== (padded ? 4 : 8)) throw parameterInvalid();
    return { way: 'key-wrap', padded, iv: parameter.bytes };
  },
});

const digest = (type: number, name: Digest): MechanismRow => ({
  type,
  minKeySize: 0,
  maxKeySize: 0,
  flags: CKF.DIGEST,
  keyTypes: [],
  digest: { name, length: digestLengths[name] },
});
const hmac = ({ name, keyType, ...types }: DigestFamily, general: boolean): MechanismRow => ({
  type: general ? types.hmacGeneral : types.hmac,
  ...secretSizes,
  flags: CKF.SIGN | CKF.VERIFY,
  keyTypes: [CKK.GENERIC_SECRET, keyType],
  mac: { parameters: { algorithm: 'hmac', digest: name }, length: digestLengths[name], general },
});
const secretKeyGen = (type: number, keyType: number): MechanismRow => ({
  type,
  ...secretSizes,
  flags: CKF.GENERATE,
  keyTypes: [],
  generates: keyType,
});
const cmac = (type: number, general: boolean): MechanismRow => ({
  type,
  minKeySize: 16,
  maxKeySize: 32,
  flags: CKF.SIGN | CKF.VERIFY,
  keyTypes: [CKK.AES],
  mac: { parameters: { algorithm: 'aes-cmac' }, length: 16, general },
});

/**
 * Signatures over SHA-1 are verified. Making one helps an attacker who can make collisions, so it
 * needs a switch.
 */
const signatureFlags = (name: Digest | null): Pick<MechanismRow, 'flags' | 'switched'> =>
  name === 'sha1'
    ? { flags: CKF.VERIFY, switched: { flags: CKF.SIGN, by: 'sha1-signatures' } }
    : { flags: CKF.SIGN | CKF.VERIFY };

const rsaSizes = { minKeySize: 2048, maxKeySize: 4096, keyTypes: [CKK.RSA] };
const ecSizes = { minKeySize: 224, maxKeySize: 521, keyTypes: [CKK.EC] };
/**
 * Bits of the field, as the standard counts them: 255 for edwards25519 and curve25519, 448 for the
 * others.
 */
const edwardsSizes = { minKeySize: 255, maxKeySize: 448, keyTypes: [CKK.EC_EDWARDS] };
const curveFlags = CKF.EC_F_P | CKF.EC_NAMEDCURVE | CKF.EC_UNCOMPRESS;

const pkcs1 = (type: number, name: Digest | null, info = ''): MechanismRow => ({
  type,
  ...rsaSizes,
  ...signatureFlags(name),
  signature: {
    digest: name,
    prefix: Buffer.from(info, 'hex'),
    parameters: (parameter) => {
      none(parameter);
      return { algorithm: 'rsa-pkcs1' };
    },
  },
});

/** CKM_RSA_PKCS also encrypts, for applications with the switch. */
const withEncryption = (row: MechanismRow): MechanismRow => ({
  ...row,
  switched: { flags: CKF.ENCRYPT | CKF.DECRYPT, by: 'rsa-pkcs1-encryption' },
  rsaEncryption: (parameter) => {
    none(parameter);
    return { padding: 'pkcs1' };
  },
});

/** A signature that contains its data: what was signed comes out of it again. */
const withRecovery = (row: MechanismRow): MechanismRow => ({
  ...row,
  flags: row.flags | CKF.SIGN_RECOVER | CKF.VERIFY_RECOVER,
});

const pss = (type: number, name: Digest | null): MechanismRow => ({
  type,
  ...rsaSizes,
  ...signatureFlags(name),
  signature: {
    digest: name,
    prefix: noBytes,
    parameters: (parameter, { bits }) => {
      if (parameter?.kind !== 'pss') throw parameterInvalid();
      const hash = digestByMechanism.get(parameter.hash);
      const mgfDigest = digestByMask.get(parameter.mgf);
      const { saltLength } = parameter;
      if (hash === undefined || mgfDigest === undefined || (name !== null && name !== hash)) throw parameterInvalid();
      // RFC 8017, section 9.1.1: digest and salt must fit into the modulus, with two bytes to
      // spare.
      const most = Math.ceil((bits - 1) / 8) - digestLengths[hash] - 2;
      if (!Number.isInteger(saltLength) || saltLength < 0 || saltLength > most) throw parameterInvalid();
      return { algorithm: 'rsa-pss', digest: hash, mgfDigest, saltLength, prehashed: true };
    },
  },
});

const ecdsa = (type: number, name: Digest | null): MechanismRow => ({
  type,
  ...ecSizes,
  ...signatureFlags(name),
  flags: signatureFlags(name).flags | curveFlags,
  signature: {
    digest: name,
    prefix: noBytes,
    parameters: (parameter) => {
      none(parameter);
      return { algorithm: 'ecdsa', encoding: 'p1363' };
    },
  },
});

const blockKdfRow = (type: number, feedback: boolean): MechanismRow => ({
  type,
  ...secretSizes,
  flags: CKF.DERIVE,
  keyTypes: [CKK.GENERIC_SECRET, CKK.AES, ...families.map(({ keyType }) => keyType)],
  derive: blockKdf(feedback),
});

const encryptionRow = (type: number, kind: 'data' | 'ivdata'): MechanismRow => ({
  type,
  ...aesSizes,
  flags: CKF.DERIVE,
  derive: (parameter) => {
    if (parameter?.kind !== kind) throw parameterInvalid();
    return encryption(parameter);
  },
});

const hkdfRow = (type: number): MechanismRow => ({
  type,
  ...secretSizes,
  flags: CKF.DERIVE,
  keyTypes: [CKK.GENERIC_SECRET, CKK.HKDF],
  derive: hkdf,
});

/** The rows of one sort of signature, digest by digest. */
const signed = (
  make: (family: NonNullable<DigestFamily['signatures']> & Pick<DigestFamily, 'name'>) => MechanismRow,
): MechanismRow[] =>
  families.flatMap(({ name, signatures }) => (signatures === null ? [] : [make({ name, ...signatures })]));

export const mechanismRows: readonly MechanismRow[] = [
  {
    type: CKM.RSA_PKCS_KEY_PAIR_GEN,
    minKeySize: 2048,
    maxKeySize: 4096,
    flags: CKF.GENERATE_KEY_PAIR,
    keyTypes: [],
    generatesPair: CKK.RSA,
  },
  withEncryption(withRecovery(pkcs1(CKM.RSA_PKCS, null))),
  ...signed(({ name, pkcs1: type, info }) => pkcs1(type, name, info)),
  {
    type: CKM.RSA_PKCS_OAEP,
    ...rsaSizes,
    flags: CKF.ENCRYPT | CKF.DECRYPT | wrapFlags,
    rsaEncryption: oaep,
    wrap: (parameter) => ({ way: 'oaep', oaep: oaep(parameter) }),
  },
  pss(CKM.RSA_PKCS_PSS, null),
  ...signed(({ name, pss: type }) => pss(type, name)),
  {
    type: CKM.EC_KEY_PAIR_GEN,
    ...ecSizes,
    flags: CKF.GENERATE_KEY_PAIR | curveFlags,
    keyTypes: [],
    generatesPair: CKK.EC,
  },
  {
    type: CKM.EC_MONTGOMERY_KEY_PAIR_GEN,
    ...edwardsSizes,
    flags: CKF.GENERATE_KEY_PAIR | curveFlags,
    keyTypes: [],
    generatesPair: CKK.EC_MONTGOMERY,
  },
  {
    type: CKM.EC_EDWARDS_KEY_PAIR_GEN,
    ...edwardsSizes,
    flags: CKF.GENERATE_KEY_PAIR | curveFlags,
    keyTypes: [],
    generatesPair: CKK.EC_EDWARDS,
  },
  ecdsa(CKM.ECDSA, null),
  ...signed(({ name, ecdsa: type }) => ecdsa(type, name)),
  {
    type: CKM.EDDSA,
    ...edwardsSizes,
    flags: CKF.SIGN | CKF.VERIFY | curveFlags,
    signature: { digest: null, collects: true, prefix: noBytes, parameters: pureEdwards },
  },
  {
    type: CKM.ECDH1_DERIVE,
    ...ecSizes,
    keyTypes: [CKK.EC, CKK.EC_MONTGOMERY],
    flags: CKF.DERIVE | curveFlags,
    derive: ecdh,
  },
  // The cofactor of every curve in Weierstrass form here is 1.
  { type: CKM.ECDH1_COFACTOR_DERIVE, ...ecSizes, flags: CKF.DERIVE | curveFlags, derive: ecdh },
  hkdfRow(CKM.HKDF_DERIVE),
  { ...hkdfRow(CKM.HKDF_DATA), derivesData: true },
  blockKdfRow(CKM.SP800_108_COUNTER_KDF, false),
  blockKdfRow(CKM.SP800_108_FEEDBACK_KDF, true),
  { type: CKM.AES_KEY_GEN, minKeySize: 16, maxKeySize: 32, flags: CKF.GENERATE, keyTypes: [], generates: CKK.AES },
  aesCipher(CKM.AES_ECB, 16, 16, (parameter) => {
    none(parameter);
    return ecbParameters;
  }),
  wrapping(aesCipher(CKM.AES_CBC, 16, 16, (parameter) => ({ algorithm: 'aes-cbc', iv: iv16(parameter) }))),
  wrapping(aesCipher(CKM.AES_CBC_PAD, 1, 16, (parameter) => ({ algorithm: 'aes-cbc-pad', iv: iv16(parameter) }))),
  aesCipher(CKM.AES_CTR, 1, 1, counter),
  // Not for keys: their stream is that of AES_CTR, so a caller who may encrypt could open what they
  // wrapped.
  perMessage(aesCipher(CKM.AES_GCM, 1, 1, galois)),
  aesCipher(CKM.AES_CCM, 1, 1, counterWithMac),
  keyWrap(CKM.AES_KEY_WRAP, false),
  // 2.40 means RFC 5649 by this number, 3.0 by the other.
  keyWrap(CKM.AES_KEY_WRAP_PAD, true),
  keyWrap(CKM.AES_KEY_WRAP_KWP, true),
  encryptionRow(CKM.AES_ECB_ENCRYPT_DATA, 'data'),
  encryptionRow(CKM.AES_CBC_ENCRYPT_DATA, 'ivdata'),
  cmac(CKM.AES_CMAC, false),
  cmac(CKM.AES_CMAC_GENERAL, true),
  {
    type: CKM.GENERIC_SECRET_KEY_GEN,
    minKeySize: 8,
    maxKeySize: 4096,
    flags: CKF.GENERATE,
    keyTypes: [],
    generates: CKK.GENERIC_SECRET,
  },
  ...families.map(({ name, digest: type }) => digest(type, name)),
  ...families.flatMap((family) => [hmac(family, false), hmac(family, true)]),
  ...families.map(({ keyGen, keyType }) => secretKeyGen(keyGen, keyType)),
  secretKeyGen(CKM.HKDF_KEY_GEN, CKK.HKDF),
];

const byType = new Map(mechanismRows.map((row) => [row.type, row]));

/** Undefined: not carried. */
export const findMechanism = (type: number): MechanismRow | undefined => byType.get(type);

/**
 * The row for a function that needs one of these flags, perhaps under a switch: see `switchFor`.
 * Throws CKR_MECHANISM_INVALID.
 */
export const mechanismFor = (mechanism: Mechanism, flag: number): MechanismRow => {
  const row = byType.get(mechanism.type);
  if (row === undefined || ((row.flags | (row.switched?.flags ?? 0)) & flag) === 0) throw mechanismInvalid();
  return row;
};

/** The compatibility switch that a function with this flag needs; null: none. */
export const switchFor = ({ flags, switched }: MechanismRow, flag: number): CompatibilitySwitch | null =>
  switched !== undefined && (flags & flag) === 0 ? switched.by : null;

const leastShortRsaBits = 1024;
const takesShortRsa = ({ keyTypes }: MechanismRow): boolean => keyTypes.includes(CKK.RSA);

/** Whether C_GetMechanismInfo depends on the compatibility switches. */
export const dependsOnSwitches = (row: MechanismRow): boolean => row.switched !== undefined || takesShortRsa(row);

/** What C_GetMechanismInfo says while these switches are on. */
export const underSwitches = (
  row: MechanismRow,
  on: readonly string[],
): { readonly minKeySize: number; readonly flags: number } => {
  const { switched } = row;
  const takesShort = takesShortRsa(row) && (on.includes('short-rsa-keys') || on.includes('short-rsa-verification'));
  return {
    minKeySize: takesShort ? leastShortRsaBits : row.minKeySize,
    flags: row.flags | (switched !== undefined && on.includes(switched.by) ? switched.flags : 0),
  };
};
