// The mechanisms that this token carries: one row each, with what C_GetMechanismInfo says of it, which keys it takes, and
// how its parameter becomes the core's. PKCS#11 mechanisms 2.40: 2.7 generic secrets, 2.8 AES, 2.9 to 2.11 AES modes and
// MACs, 2.17 to 2.21 digests and HMAC.
import type { CipherParameters, Digest, MacParameters } from '../../../addon/core.ts';
import { CKF, CKK } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import type { Mechanism, MechanismParameter } from '../../schema/types.ts';
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

export interface MechanismRow {
  readonly type: number;
  /** In the unit that the standard uses for this mechanism: bytes for AES and HMAC, bits for generic secrets. */
  readonly minKeySize: number;
  readonly maxKeySize: number;
  readonly flags: number;
  readonly keyTypes: readonly number[];
  readonly cipher?: CipherRow;
  readonly mac?: MacRow;
  readonly digest?: { readonly name: Digest; readonly length: number };
  /** The type of key that it makes. */
  readonly generates?: number;
}

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
const galois = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'gcm') throw parameterInvalid();
  const { iv, aad, tagBits } = parameter;
  // Shorter tags than 96 bits forge too easily (SP 800-38D, section 5.2.1.2 allows them for special uses only).
  if (iv.length < 1 || iv.length > 256 || tagBits % 8 !== 0 || tagBits < 96 || tagBits > 128) throw parameterInvalid();
  return { algorithm: 'aes-gcm', iv, aad, tagLength: tagBits / 8 };
};

const aesCipher = (type: number, encryptUnit: number, decryptUnit: number, parameters: CipherRow['parameters']) => ({
  type,
  minKeySize: 16,
  maxKeySize: 32,
  flags: CKF.ENCRYPT | CKF.DECRYPT,
  keyTypes: [CKK.AES],
  cipher: { parameters, encryptUnit, decryptUnit },
});

const digests = {
  sha1: 20,
  sha224: 28,
  sha256: 32,
  sha384: 48,
  sha512: 64,
} as const satisfies Record<Digest, number>;
const digest = (type: number, name: Digest): MechanismRow => ({
  type,
  minKeySize: 0,
  maxKeySize: 0,
  flags: CKF.DIGEST,
  keyTypes: [],
  digest: { name, length: digests[name] },
});
const hmac = (type: number, name: Digest, keyType: number, general: boolean): MechanismRow => ({
  type,
  minKeySize: 1,
  maxKeySize: 512,
  flags: CKF.SIGN | CKF.VERIFY,
  keyTypes: [CKK.GENERIC_SECRET, keyType],
  mac: { parameters: { algorithm: 'hmac', digest: name }, length: digests[name], general },
});
const cmac = (type: number, general: boolean): MechanismRow => ({
  type,
  minKeySize: 16,
  maxKeySize: 32,
  flags: CKF.SIGN | CKF.VERIFY,
  keyTypes: [CKK.AES],
  mac: { parameters: { algorithm: 'aes-cmac' }, length: 16, general },
});

export const mechanismRows: readonly MechanismRow[] = [
  { type: CKM.AES_KEY_GEN, minKeySize: 16, maxKeySize: 32, flags: CKF.GENERATE, keyTypes: [], generates: CKK.AES },
  aesCipher(CKM.AES_ECB, 16, 16, (parameter) => {
    none(parameter);
    return ecbParameters;
  }),
  aesCipher(CKM.AES_CBC, 16, 16, (parameter) => ({ algorithm: 'aes-cbc', iv: iv16(parameter) })),
  aesCipher(CKM.AES_CBC_PAD, 1, 16, (parameter) => ({ algorithm: 'aes-cbc-pad', iv: iv16(parameter) })),
  aesCipher(CKM.AES_CTR, 1, 1, counter),
  aesCipher(CKM.AES_GCM, 1, 1, galois),
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
  digest(CKM.SHA_1, 'sha1'),
  digest(CKM.SHA224, 'sha224'),
  digest(CKM.SHA256, 'sha256'),
  digest(CKM.SHA384, 'sha384'),
  digest(CKM.SHA512, 'sha512'),
  hmac(CKM.SHA_1_HMAC, 'sha1', CKK.SHA_1_HMAC, false),
  hmac(CKM.SHA_1_HMAC_GENERAL, 'sha1', CKK.SHA_1_HMAC, true),
  hmac(CKM.SHA224_HMAC, 'sha224', CKK.SHA224_HMAC, false),
  hmac(CKM.SHA224_HMAC_GENERAL, 'sha224', CKK.SHA224_HMAC, true),
  hmac(CKM.SHA256_HMAC, 'sha256', CKK.SHA256_HMAC, false),
  hmac(CKM.SHA256_HMAC_GENERAL, 'sha256', CKK.SHA256_HMAC, true),
  hmac(CKM.SHA384_HMAC, 'sha384', CKK.SHA384_HMAC, false),
  hmac(CKM.SHA384_HMAC_GENERAL, 'sha384', CKK.SHA384_HMAC, true),
  hmac(CKM.SHA512_HMAC, 'sha512', CKK.SHA512_HMAC, false),
  hmac(CKM.SHA512_HMAC_GENERAL, 'sha512', CKK.SHA512_HMAC, true),
];

const byType = new Map(mechanismRows.map((row) => [row.type, row]));

/** Undefined: not carried. */
export const findMechanism = (type: number): MechanismRow | undefined => byType.get(type);

/** The row for a function that needs one of these flags. Throws CKR_MECHANISM_INVALID. */
export const mechanismFor = (mechanism: Mechanism, flag: number): MechanismRow => {
  const row = byType.get(mechanism.type);
  if (row === undefined || (row.flags & flag) === 0) throw mechanismInvalid();
  return row;
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
