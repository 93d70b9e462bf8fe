// The mechanisms that this token carries: one row each, with what C_GetMechanismInfo says of it, which keys it takes, and
// how its parameter becomes the core's. PKCS#11 mechanisms 2.40: 2.1 RSA, 2.3 elliptic curves (Edwards curves: 3.0), 2.7 generic
// secrets, 2.8 AES, 2.9 to 2.11 AES modes and MACs, 2.17 to 2.21 digests and HMAC (SHA-3: 3.0).
//
// Left out on purpose: raw RSA, MD5, DES. RSA encryption with PKCS#1 v1.5 padding (padding oracles), signatures over SHA-1 and RSA keys below 2048
// bits need a compatibility switch of the application.
import type {
  CipherParameters,
  Digest,
  KeyDescription,
  MacParameters,
  OaepParameters,
  RsaEncryptionParameters,
  SignatureParameters,
  Sp800108Parameters,
} from '../../../addon/core.ts';
import type { CompatibilitySwitch } from '../../../server/base/compatibility.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKD, CKF, CKG, CKK, DKM_LENGTH, HKDF_SALT, PRF_DATA } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import type { Mechanism, MechanismParameter, PrfData } from '../../schema/types.ts';
import { mechanismInvalid, parameterInvalid } from '../errors.ts';

export interface CipherRow {
  /** Turns Cryptoki's parameter into the core's. Throws CKR_MECHANISM_PARAM_INVALID. */
  readonly parameters: (parameter: MechanismParameter | null) => CipherParameters;
  /** Bytes that whole input must be a multiple of, in this direction. */
  readonly encryptUnit: number;
  readonly decryptUnit: number;
}

export interface MacRow {
  readonly parameters: MacParameters;
  /** Length of the whole MAC. */
  readonly length: number;
  /** Whether the caller says how much of it it wants (CK_MAC_GENERAL_PARAMS). */
  readonly general: boolean;
}

export interface SignatureRow {
  /** What the mechanism makes of the data before it is signed; null: the data is signed as it is. */
  readonly digest: Digest | null;
  /** Without a digest data comes in one piece, unless its parts are collected here and signed at the end. */
  readonly collects?: true;
  /** Bytes that stand before the digest in what is signed (the DigestInfo of PKCS#1). */
  readonly prefix: Uint8Array;
  /**
   * Turns Cryptoki's parameter into the core's, for input that is hashed already, and for this key. Throws
   * CKR_MECHANISM_PARAM_INVALID.
   */
  readonly parameters: (parameter: MechanismParameter | null, key: KeyDescription) => SignatureParameters;
}

/** How the core wraps a key: AES key wrap (`padded`: RFC 5649), under a cipher, or with OAEP. */
export type WrapParameters =
  | { readonly way: 'key-wrap'; readonly padded: boolean; readonly iv?: Uint8Array }
  | { readonly way: 'cipher'; readonly cipher: CipherParameters }
  | { readonly way: 'oaep'; readonly oaep: OaepParameters };
export type WrapRow = (parameter: MechanismParameter | null) => WrapParameters;

/** How the core derives a key. `digest` is what HKDF works with. */
export type DeriveParameters =
  /** `point`: as it was given, bare or in an OCTET STRING, until the curve is known. */
  | { readonly way: 'ecdh'; readonly point: Uint8Array; readonly kdf: Digest | null; readonly shared: Uint8Array }
  | {
      readonly way: 'hkdf';
      readonly digest: Digest;
      readonly steps: 'both' | 'extract' | 'expand';
      readonly salt: Uint8Array;
      /** The handle of the key whose value is the salt; null when there is none. */
      readonly saltKey: number | null;
      readonly info: Uint8Array;
    }
  | {
      readonly way: 'sp800-108';
      readonly prf: MacParameters;
      /** Everything but the length of the derived key, which stands in what the PRF takes: see `partsFor`. */
      readonly data: readonly PrfData[];
      readonly feedback: boolean;
      readonly iv: Uint8Array;
    }
  | {
      readonly way: 'encryption';
      readonly cipher: Extract<CipherParameters, { readonly algorithm: 'aes-ecb' | 'aes-cbc' }>;
      readonly data: Uint8Array;
    };
export type DeriveRow = (parameter: MechanismParameter | null) => DeriveParameters;

export interface MechanismRow {
  readonly type: number;
  /** In the unit that the standard uses for this mechanism: bytes for AES and HMAC, bits for generic secrets. */
  readonly minKeySize: number;
  readonly maxKeySize: number;
  readonly flags: number;
  /** Further flags, for applications with a compatibility switch. */
  readonly switched?: { readonly flags: number; readonly by: CompatibilitySwitch };
  readonly keyTypes: readonly number[];
  readonly cipher?: CipherRow;
  readonly mac?: MacRow;
  readonly digest?: { readonly name: Digest; readonly length: number };
  readonly signature?: SignatureRow;
  readonly rsaEncryption?: (parameter: MechanismParameter | null) => RsaEncryptionParameters;
  readonly wrap?: WrapRow;
  readonly derive?: DeriveRow;
  /** What it derives is an object of data, not a key. */
  readonly derivesData?: true;
  /** The type of key that it makes. */
  readonly generates?: number;
  /** The type of the pair of keys that it makes. */
  readonly generatesPair?: number;
}

const pairTypes: ReadonlySet<number> = new Set([CKK.RSA, CKK.EC, CKK.EC_EDWARDS, CKK.EC_MONTGOMERY]);

/** Whether a mechanism works with the halves of a pair: one for what anybody may do, one for what its owner does. */
export const isAsymmetric = ({ keyTypes }: MechanismRow): boolean => keyTypes.some((type) => pairTypes.has(type));

const none = (parameter: MechanismParameter | null): void => {
  if (parameter !== null && !(parameter.kind === 'bytes' && parameter.bytes.length === 0)) throw parameterInvalid();
};
const iv16 = (parameter: MechanismParameter | null): Uint8Array => {
  if (parameter?.kind !== 'bytes' || parameter.bytes.length !== 16) throw parameterInvalid();
  return parameter.bytes;
};

const ecbParameters: CipherParameters = { algorithm: 'aes-ecb' };
const counter = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'ctr') throw parameterInvalid();
  const { counterBits, block } = parameter;
  if (block.length !== 16 || counterBits < 1 || counterBits > 128) throw parameterInvalid();
  return { algorithm: 'aes-ctr', iv: block, counterBits };
};
/** Bytes of an IV of GCM: the standard has 256, the cryptographic library half of that. */
export const mostGcmIv = 128;
const galois = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'gcm') throw parameterInvalid();
  const { iv, aad, tagBits } = parameter;
  // Shorter tags than 96 bits forge too easily (SP 800-38D, section 5.2.1.2 allows them for special uses only).
  if (iv.length < 1 || iv.length > mostGcmIv || tagBits % 8 !== 0 || tagBits < 96 || tagBits > 128)
    throw parameterInvalid();
  return { algorithm: 'aes-gcm', iv, aad, tagLength: tagBits / 8 };
};

/** The most that CCM's length field holds beside a nonce (SP 800-38C, A.1), and that the core takes. */
const mostInCcm = (nonceLength: number): number => Math.min(256 ** (15 - nonceLength) - 1, 2 ** 31);
const counterWithMac = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'ccm') throw parameterInvalid();
  const { nonce, aad, macLength, dataLength } = parameter;
  if (nonce.length < 7 || nonce.length > 13) throw parameterInvalid();
  if (macLength % 2 !== 0 || macLength < 4 || macLength > 16) throw parameterInvalid();
  if (dataLength < 0 || dataLength > mostInCcm(nonce.length)) throw parameterInvalid();
  return { algorithm: 'aes-ccm', iv: nonce, aad, tagLength: macLength, dataLength };
};

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
/** The initial value is the caller's, 8 bytes, 4 where the length is padded (RFC 5649), or the one that the RFC fixes. */
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

/** What the standard has for one digest: the mechanisms and types that its rows are made of. */
interface DigestFamily {
  readonly name: Digest;
  readonly digest: number;
  readonly hmac: number;
  readonly hmacGeneral: number;
  readonly keyGen: number;
  readonly keyType: number;
  /** Null where the standard has no signatures over it, nor mask and key derivation functions with it. */
  readonly signatures: {
    readonly pkcs1: number;
    readonly pss: number;
    readonly ecdsa: number;
    readonly mask: number;
    readonly kdf: number;
    /** RFC 8017, section 9.2, note 1: the DigestInfo up to the digest. */
    readonly info: string;
  } | null;
}

const families: readonly DigestFamily[] = [
  {
    name: 'sha1',
    digest: CKM.SHA_1,
    hmac: CKM.SHA_1_HMAC,
    hmacGeneral: CKM.SHA_1_HMAC_GENERAL,
    keyGen: CKM.SHA_1_KEY_GEN,
    keyType: CKK.SHA_1_HMAC,
    signatures: {
      pkcs1: CKM.SHA1_RSA_PKCS,
      pss: CKM.SHA1_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA1,
      mask: CKG.MGF1_SHA1,
      kdf: CKD.SHA1_KDF,
      info: '3021300906052b0e03021a05000414',
    },
  },
  {
    name: 'sha224',
    digest: CKM.SHA224,
    hmac: CKM.SHA224_HMAC,
    hmacGeneral: CKM.SHA224_HMAC_GENERAL,
    keyGen: CKM.SHA224_KEY_GEN,
    keyType: CKK.SHA224_HMAC,
    signatures: {
      pkcs1: CKM.SHA224_RSA_PKCS,
      pss: CKM.SHA224_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA224,
      mask: CKG.MGF1_SHA224,
      kdf: CKD.SHA224_KDF,
      info: '302d300d06096086480165030402040500041c',
    },
  },
  {
    name: 'sha256',
    digest: CKM.SHA256,
    hmac: CKM.SHA256_HMAC,
    hmacGeneral: CKM.SHA256_HMAC_GENERAL,
    keyGen: CKM.SHA256_KEY_GEN,
    keyType: CKK.SHA256_HMAC,
    signatures: {
      pkcs1: CKM.SHA256_RSA_PKCS,
      pss: CKM.SHA256_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA256,
      mask: CKG.MGF1_SHA256,
      kdf: CKD.SHA256_KDF,
      info: '3031300d060960864801650304020105000420',
    },
  },
  {
    name: 'sha384',
    digest: CKM.SHA384,
    hmac: CKM.SHA384_HMAC,
    hmacGeneral: CKM.SHA384_HMAC_GENERAL,
    keyGen: CKM.SHA384_KEY_GEN,
    keyType: CKK.SHA384_HMAC,
    signatures: {
      pkcs1: CKM.SHA384_RSA_PKCS,
      pss: CKM.SHA384_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA384,
      mask: CKG.MGF1_SHA384,
      kdf: CKD.SHA384_KDF,
      info: '3041300d060960864801650304020205000430',
    },
  },
  {
    name: 'sha512',
    digest: CKM.SHA512,
    hmac: CKM.SHA512_HMAC,
    hmacGeneral: CKM.SHA512_HMAC_GENERAL,
    keyGen: CKM.SHA512_KEY_GEN,
    keyType: CKK.SHA512_HMAC,
    signatures: {
      pkcs1: CKM.SHA512_RSA_PKCS,
      pss: CKM.SHA512_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA512,
      mask: CKG.MGF1_SHA512,
      kdf: CKD.SHA512_KDF,
      info: '3051300d060960864801650304020305000440',
    },
  },
  {
    name: 'sha512-224',
    digest: CKM.SHA512_224,
    hmac: CKM.SHA512_224_HMAC,
    hmacGeneral: CKM.SHA512_224_HMAC_GENERAL,
    keyGen: CKM.SHA512_224_KEY_GEN,
    keyType: CKK.SHA512_224_HMAC,
    signatures: null,
  },
  {
    name: 'sha512-256',
    digest: CKM.SHA512_256,
    hmac: CKM.SHA512_256_HMAC,
    hmacGeneral: CKM.SHA512_256_HMAC_GENERAL,
    keyGen: CKM.SHA512_256_KEY_GEN,
    keyType: CKK.SHA512_256_HMAC,
    signatures: null,
  },
  {
    name: 'sha3-224',
    digest: CKM.SHA3_224,
    hmac: CKM.SHA3_224_HMAC,
    hmacGeneral: CKM.SHA3_224_HMAC_GENERAL,
    keyGen: CKM.SHA3_224_KEY_GEN,
    keyType: CKK.SHA3_224_HMAC,
    signatures: {
      pkcs1: CKM.SHA3_224_RSA_PKCS,
      pss: CKM.SHA3_224_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA3_224,
      mask: CKG.MGF1_SHA3_224,
      kdf: CKD.SHA3_224_KDF,
      info: '302d300d06096086480165030402070500041c',
    },
  },
  {
    name: 'sha3-256',
    digest: CKM.SHA3_256,
    hmac: CKM.SHA3_256_HMAC,
    hmacGeneral: CKM.SHA3_256_HMAC_GENERAL,
    keyGen: CKM.SHA3_256_KEY_GEN,
    keyType: CKK.SHA3_256_HMAC,
    signatures: {
      pkcs1: CKM.SHA3_256_RSA_PKCS,
      pss: CKM.SHA3_256_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA3_256,
      mask: CKG.MGF1_SHA3_256,
      kdf: CKD.SHA3_256_KDF,
      info: '3031300d060960864801650304020805000420',
    },
  },
  {
    name: 'sha3-384',
    digest: CKM.SHA3_384,
    hmac: CKM.SHA3_384_HMAC,
    hmacGeneral: CKM.SHA3_384_HMAC_GENERAL,
    keyGen: CKM.SHA3_384_KEY_GEN,
    keyType: CKK.SHA3_384_HMAC,
    signatures: {
      pkcs1: CKM.SHA3_384_RSA_PKCS,
      pss: CKM.SHA3_384_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA3_384,
      mask: CKG.MGF1_SHA3_384,
      kdf: CKD.SHA3_384_KDF,
      info: '3041300d060960864801650304020905000430',
    },
  },
  {
    name: 'sha3-512',
    digest: CKM.SHA3_512,
    hmac: CKM.SHA3_512_HMAC,
    hmacGeneral: CKM.SHA3_512_HMAC_GENERAL,
    keyGen: CKM.SHA3_512_KEY_GEN,
    keyType: CKK.SHA3_512_HMAC,
    signatures: {
      pkcs1: CKM.SHA3_512_RSA_PKCS,
      pss: CKM.SHA3_512_RSA_PKCS_PSS,
      ecdsa: CKM.ECDSA_SHA3_512,
      mask: CKG.MGF1_SHA3_512,
      kdf: CKD.SHA3_512_KDF,
      info: '3051300d060960864801650304020a05000440',
    },
  },
];
const digestOf = (select: (family: DigestFamily) => number | undefined): ReadonlyMap<number, Digest> =>
  new Map(
    families.flatMap((family) => {
      const number = select(family);
      return number === undefined ? [] : [[number, family.name] as const];
    }),
  );
const digestByMechanism = digestOf(({ digest }) => digest);
const digestByMask = digestOf(({ signatures }) => signatures?.mask);
/** CKD_NULL, and the KDFs of X9.63 by digest. */
const digestByKdf: ReadonlyMap<number, Digest | null> = new Map<number, Digest | null>([
  [CKD.NULL, null],
  ...digestOf(({ signatures }) => signatures?.kdf),
]);

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

const noBytes = new Uint8Array(0);

/** Signatures over SHA-1 are verified. Making one helps an attacker who can make collisions, so it needs a switch. */
const signatureFlags = (name: Digest | null): Pick<MechanismRow, 'flags' | 'switched'> =>
  name === 'sha1'
    ? { flags: CKF.VERIFY, switched: { flags: CKF.SIGN, by: 'sha1-signatures' } }
    : { flags: CKF.SIGN | CKF.VERIFY };

const rsaSizes = { minKeySize: 2048, maxKeySize: 4096, keyTypes: [CKK.RSA] };
const ecSizes = { minKeySize: 224, maxKeySize: 521, keyTypes: [CKK.EC] };
/** Bits of the field, as the standard counts them: 255 for edwards25519 and curve25519, 448 for the others. */
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

/** A signature that bears its data: what was signed comes out of it again. */
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
      // RFC 8017, section 9.1.1: digest and salt must fit into the modulus, with two bytes to spare.
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

/**
 * Pure Ed25519 and Ed448 (RFC 8032, section 5), which is what no parameter means (3.1, section 6.3.15). With CK_EDDSA_PARAMS the signature
 * is Ed25519ctx, Ed25519ph or Ed448ph, which the core's cryptographic library does not have, or Ed448, which it has without a context.
 */
const pureEdwards = (parameter: MechanismParameter | null, { curve }: KeyDescription): SignatureParameters => {
  if (curve !== 'ed448') {
    none(parameter);
    return { algorithm: 'ed25519' };
  }
  if (parameter?.kind !== 'eddsa') none(parameter);
  else if (parameter.prehash || parameter.context.length > 0) throw parameterInvalid();
  return { algorithm: 'ed448' };
};

const oaep = (parameter: MechanismParameter | null): OaepParameters => {
  if (parameter?.kind !== 'oaep') throw parameterInvalid();
  const hash = digestByMechanism.get(parameter.hash);
  const mgfDigest = digestByMask.get(parameter.mgf);
  const { source, label } = parameter;
  if (hash === undefined || mgfDigest === undefined) throw parameterInvalid();
  // CKZ_DATA_SPECIFIED; older programs leave the source out when there is no label.
  if (source !== 1 && !(source === 0 && label.length === 0)) throw parameterInvalid();
  return { padding: 'oaep', digest: hash, mgfDigest, label };
};

const ecdh: DeriveRow = (parameter) => {
  if (parameter?.kind !== 'ecdh1') throw parameterInvalid();
  const kdf = digestByKdf.get(parameter.kdf);
  const { shared, publicData } = parameter;
  if (kdf === undefined || (kdf === null && shared.length > 0)) throw parameterInvalid();
  return { way: 'ecdh', point: publicData, kdf, shared };
};
const hkdfSalts: ReadonlySet<number> = new Set(Object.values(HKDF_SALT));
const hkdf: DeriveRow = (parameter) => {
  if (parameter?.kind !== 'hkdf') throw parameterInvalid();
  const { extract, expand, hash, saltType, info } = parameter;
  const digest = digestByMechanism.get(hash);
  if (digest === undefined || (!extract && !expand)) throw parameterInvalid();
  const steps = extract && expand ? 'both' : extract ? 'extract' : 'expand';
  // The salt is the extraction's, the info the expansion's: what a step does not take is not looked at.
  const given = extract ? saltType : HKDF_SALT.NULL;
  if (!hkdfSalts.has(given)) throw parameterInvalid();
  const salt = given === HKDF_SALT.DATA ? parameter.salt : noBytes;
  const saltKey = given === HKDF_SALT.KEY ? parameter.saltKey : null;
  return { way: 'hkdf', digest, steps, salt, saltKey, info: expand ? info : noBytes };
};

const prfs: ReadonlyMap<number, MacParameters> = new Map<number, MacParameters>([
  [CKM.AES_CMAC, { algorithm: 'aes-cmac' }],
  ...families.map(({ hmac: type, name }) => [type, { algorithm: 'hmac', digest: name }] as const),
]);

const inWholeBytes = (bits: number, most: number): boolean => bits >= 8 && bits <= most && bits % 8 === 0;

/** SP 800-108 (3.0, section 2.42): one iteration variable, at most one more counter and one length, any number of bytes. */
const blockKdf =
  (feedback: boolean): DeriveRow =>
  (parameter) => {
    if (parameter?.kind !== 'sp800') throw parameterInvalid();
    const prf = prfs.get(parameter.prf);
    const { data, iv, additionalKeys } = parameter;
    // One call derives one key here.
    if (prf === undefined || additionalKeys !== 0) throw parameterInvalid();
    const of = (type: number): readonly PrfData[] => data.filter((each) => each.type === type);
    const [variables, counters, lengths] = [
      of(PRF_DATA.ITERATION_VARIABLE),
      of(PRF_DATA.COUNTER),
      of(PRF_DATA.DKM_LENGTH),
    ];
    // The variable is the counter; in feedback mode it is the block before, and has no format.
    const numbered = feedback ? counters : variables;
    const fits =
      variables.length === 1 &&
      counters.length <= (feedback ? 1 : 0) &&
      lengths.length <= 1 &&
      variables.length + counters.length + lengths.length + of(PRF_DATA.BYTE_ARRAY).length === data.length &&
      numbered.every(({ bits }) => inWholeBytes(bits, 32)) &&
      lengths.every(
        ({ bits, method }) => inWholeBytes(bits, 64) && (method === DKM_LENGTH.KEYS || method === DKM_LENGTH.SEGMENTS),
      ) &&
      (!feedback || variables.every(({ bits }) => bits === 0)) &&
      iv.length <= mostBlockData &&
      data.reduce((sum, { bytes }) => sum + bytes.length, 8) <= mostBlockData;
    if (!fits) throw parameterInvalid();
    return { way: 'sp800-108', prf, data, feedback, iv };
  };
/** Bytes of what the core takes for one block, and of an IV. */
const mostBlockData = 4096;

const numberBytes = (value: number, bits: number, littleEndian: boolean): Buffer => {
  const bytes = Buffer.from(
    value
      .toString(16)
      .padStart(bits / 4, '0')
      .slice(-bits / 4),
    'hex',
  );
  return littleEndian ? bytes.reverse() : bytes;
};

/** What the core's PRF takes when the derived key has so many bytes. */
export const partsFor = (
  { prf, data, feedback, iv }: Extract<DeriveParameters, { way: 'sp800-108' }>,
  bytes: number,
): Sp800108Parameters => {
  const block = prf.algorithm === 'hmac' ? digestLengths[prf.digest] : 16;
  const fixed: Uint8Array[] = [];
  let length = 0;
  let [counterBytes, littleEndian, counterFirst] = [0, false, false];
  let counterAt: number | undefined;
  let previousAt: number | undefined;
  for (const each of data) {
    if (each.type === PRF_DATA.ITERATION_VARIABLE && feedback) {
      previousAt = length;
      counterFirst = counterAt === length;
    } else if (each.type === PRF_DATA.ITERATION_VARIABLE || each.type === PRF_DATA.COUNTER) {
      counterAt = length;
      counterBytes = each.bits / 8;
      littleEndian = each.littleEndian;
    } else {
      const whole = each.method === DKM_LENGTH.SEGMENTS ? Math.ceil(bytes / block) * block : bytes;
      const isLength = each.type === PRF_DATA.DKM_LENGTH;
      const added = isLength ? numberBytes(whole * 8, each.bits, each.littleEndian) : each.bytes;
      fixed.push(added);
      length += added.length;
    }
  }
  return { data: Buffer.concat(fixed), counterAt, counterBytes, littleEndian, previousAt, counterFirst, iv };
};

const blockKdfRow = (type: number, feedback: boolean): MechanismRow => ({
  type,
  ...secretSizes,
  flags: CKF.DERIVE,
  keyTypes: [CKK.GENERIC_SECRET, CKK.AES, ...families.map(({ keyType }) => keyType)],
  derive: blockKdf(feedback),
});

/** The key is the front of what the data encrypts to. */
const encryption: DeriveRow = (parameter) => {
  if (parameter?.kind !== 'data' && parameter?.kind !== 'ivdata') throw parameterInvalid();
  const { data } = parameter;
  if (data.length === 0 || data.length % 16 !== 0) throw parameterInvalid();
  if (parameter.kind === 'data') return { way: 'encryption', cipher: { algorithm: 'aes-ecb' }, data };
  if (parameter.iv.length !== 16) throw parameterInvalid();
  return { way: 'encryption', cipher: { algorithm: 'aes-cbc', iv: parameter.iv }, data };
};
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
  // Not for keys: their stream is that of AES_CTR, so whoever may encrypt could open what they wrapped.
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

/** The row for a function that needs one of these flags, perhaps under a switch: see `switchFor`. Throws CKR_MECHANISM_INVALID. */
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

/** Checks that a mechanism came without a parameter. */
export const noParameter = ({ parameter }: Mechanism): void => none(parameter);

/** The length of MAC that is asked for: all of it, or the caller's CK_MAC_GENERAL_PARAMS. */
export const macLength = (row: MacRow, { parameter }: Mechanism): number => {
  if (!row.general) {
    none(parameter);
    return row.length;
  }
  if (parameter?.kind !== 'ulong' || parameter.value < 1 || parameter.value > row.length) throw parameterInvalid();
  return parameter.value;
};
