// The digests, with the mechanisms, key types and functions that the standard has for each: PKCS#11
// mechanisms 2.40, 2.17 to 2.21 (SHA-3: 3.0).
import type { Digest } from '../../../addon/core.ts';
import { CKD, CKG, CKK } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';

/** What the standard has for one digest: the mechanisms and types that its rows are made of. */
export interface DigestFamily {
  readonly name: Digest;
  readonly digest: number;
  readonly hmac: number;
  readonly hmacGeneral: number;
  readonly keyGen: number;
  readonly keyType: number;
  /**
   * Null where the standard has no signatures over it, nor mask and key derivation functions with
   * it.
   */
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

export const families: readonly DigestFamily[] = [
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
export const digestByMechanism = digestOf(({ digest }) => digest);
export const digestByMask = digestOf(({ signatures }) => signatures?.mask);
/** CKD_NULL, and the KDFs of X9.63 by digest. */
export const digestByKdf: ReadonlyMap<number, Digest | null> = new Map<number, Digest | null>([
  [CKD.NULL, null],
  ...digestOf(({ signatures }) => signatures?.kdf),
]);
