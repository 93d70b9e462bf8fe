// Cryptoki's mechanisms that have a form on the wire (pkcs11t.h 2.40, and those that 3.0 added):
// number and form of the parameter, one row each. A mechanism without a row travels too, as long as
// its parameter is flat bytes; whether the token carries out a mechanism is the agent's business,
// not this table's. CKM_EDDSA is one of those: its parameter is optional and a structure of
// pointers, so only the form without one travels.
import type { ParameterForm } from './parameters.ts';

const row = <T extends number, P extends ParameterForm>(type: T, parameter: P) => ({
  type,
  parameter,
});

export const mechanisms = {
  // RSA
  RSA_PKCS_KEY_PAIR_GEN: row(0x00000000, 'none'),
  RSA_PKCS: row(0x00000001, 'none'),
  RSA_X_509: row(0x00000003, 'none'),
  SHA1_RSA_PKCS: row(0x00000006, 'none'),
  SHA224_RSA_PKCS: row(0x00000046, 'none'),
  SHA256_RSA_PKCS: row(0x00000040, 'none'),
  SHA384_RSA_PKCS: row(0x00000041, 'none'),
  SHA512_RSA_PKCS: row(0x00000042, 'none'),
  SHA3_224_RSA_PKCS: row(0x00000066, 'none'),
  SHA3_256_RSA_PKCS: row(0x00000060, 'none'),
  SHA3_384_RSA_PKCS: row(0x00000061, 'none'),
  SHA3_512_RSA_PKCS: row(0x00000062, 'none'),
  RSA_PKCS_OAEP: row(0x00000009, 'oaep'),
  RSA_PKCS_PSS: row(0x0000000d, 'pss'),
  SHA1_RSA_PKCS_PSS: row(0x0000000e, 'pss'),
  SHA224_RSA_PKCS_PSS: row(0x00000047, 'pss'),
  SHA256_RSA_PKCS_PSS: row(0x00000043, 'pss'),
  SHA384_RSA_PKCS_PSS: row(0x00000044, 'pss'),
  SHA512_RSA_PKCS_PSS: row(0x00000045, 'pss'),
  SHA3_224_RSA_PKCS_PSS: row(0x00000067, 'pss'),
  SHA3_256_RSA_PKCS_PSS: row(0x00000063, 'pss'),
  SHA3_384_RSA_PKCS_PSS: row(0x00000064, 'pss'),
  SHA3_512_RSA_PKCS_PSS: row(0x00000065, 'pss'),
  // elliptic curves
  EC_KEY_PAIR_GEN: row(0x00001040, 'none'),
  EC_EDWARDS_KEY_PAIR_GEN: row(0x00001055, 'none'),
  EC_MONTGOMERY_KEY_PAIR_GEN: row(0x00001056, 'none'),
  ECDSA: row(0x00001041, 'none'),
  ECDSA_SHA1: row(0x00001042, 'none'),
  ECDSA_SHA224: row(0x00001043, 'none'),
  ECDSA_SHA256: row(0x00001044, 'none'),
  ECDSA_SHA384: row(0x00001045, 'none'),
  ECDSA_SHA512: row(0x00001046, 'none'),
  ECDSA_SHA3_224: row(0x00001047, 'none'),
  ECDSA_SHA3_256: row(0x00001048, 'none'),
  ECDSA_SHA3_384: row(0x00001049, 'none'),
  ECDSA_SHA3_512: row(0x0000104a, 'none'),
  EDDSA: row(0x00001057, 'eddsa'),
  ECDH1_DERIVE: row(0x00001050, 'ecdh1'),
  ECDH1_COFACTOR_DERIVE: row(0x00001051, 'ecdh1'),
  // digests
  MD5: row(0x00000210, 'none'),
  SHA_1: row(0x00000220, 'none'),
  SHA224: row(0x00000255, 'none'),
  SHA256: row(0x00000250, 'none'),
  SHA384: row(0x00000260, 'none'),
  SHA512: row(0x00000270, 'none'),
  SHA512_224: row(0x00000048, 'none'),
  SHA512_256: row(0x0000004c, 'none'),
  SHA3_224: row(0x000002b5, 'none'),
  SHA3_256: row(0x000002b0, 'none'),
  SHA3_384: row(0x000002c0, 'none'),
  SHA3_512: row(0x000002d0, 'none'),
  // generic secrets and HMAC
  GENERIC_SECRET_KEY_GEN: row(0x00000350, 'none'),
  SHA_1_HMAC: row(0x00000221, 'none'),
  SHA_1_HMAC_GENERAL: row(0x00000222, 'ulong'),
  SHA224_HMAC: row(0x00000256, 'none'),
  SHA224_HMAC_GENERAL: row(0x00000257, 'ulong'),
  SHA256_HMAC: row(0x00000251, 'none'),
  SHA256_HMAC_GENERAL: row(0x00000252, 'ulong'),
  SHA384_HMAC: row(0x00000261, 'none'),
  SHA384_HMAC_GENERAL: row(0x00000262, 'ulong'),
  SHA512_HMAC: row(0x00000271, 'none'),
  SHA512_HMAC_GENERAL: row(0x00000272, 'ulong'),
  SHA512_224_HMAC: row(0x00000049, 'none'),
  SHA512_224_HMAC_GENERAL: row(0x0000004a, 'ulong'),
  SHA512_256_HMAC: row(0x0000004d, 'none'),
  SHA512_256_HMAC_GENERAL: row(0x0000004e, 'ulong'),
  SHA3_224_HMAC: row(0x000002b6, 'none'),
  SHA3_224_HMAC_GENERAL: row(0x000002b7, 'ulong'),
  SHA3_256_HMAC: row(0x000002b1, 'none'),
  SHA3_256_HMAC_GENERAL: row(0x000002b2, 'ulong'),
  SHA3_384_HMAC: row(0x000002c1, 'none'),
  SHA3_384_HMAC_GENERAL: row(0x000002c2, 'ulong'),
  SHA3_512_HMAC: row(0x000002d1, 'none'),
  SHA3_512_HMAC_GENERAL: row(0x000002d2, 'ulong'),
  SHA_1_KEY_GEN: row(0x00004003, 'none'),
  SHA224_KEY_GEN: row(0x00004004, 'none'),
  SHA256_KEY_GEN: row(0x00004005, 'none'),
  SHA384_KEY_GEN: row(0x00004006, 'none'),
  SHA512_KEY_GEN: row(0x00004007, 'none'),
  SHA512_224_KEY_GEN: row(0x00004008, 'none'),
  SHA512_256_KEY_GEN: row(0x00004009, 'none'),
  SHA3_224_KEY_GEN: row(0x000002b8, 'none'),
  SHA3_256_KEY_GEN: row(0x000002b3, 'none'),
  SHA3_384_KEY_GEN: row(0x000002c3, 'none'),
  SHA3_512_KEY_GEN: row(0x000002d3, 'none'),
  // AES
  AES_KEY_GEN: row(0x00001080, 'none'),
  AES_ECB: row(0x00001081, 'none'),
  AES_CBC: row(0x00001082, 'bytes'),
  AES_CBC_PAD: row(0x00001085, 'bytes'),
  AES_CTR: row(0x00001086, 'ctr'),
  AES_GCM: row(0x00001087, 'gcm'),
  AES_CCM: row(0x00001088, 'ccm'),
  AES_CTS: row(0x00001089, 'bytes'),
  AES_OFB: row(0x00002104, 'bytes'),
  AES_CFB8: row(0x00002106, 'bytes'),
  AES_CFB64: row(0x00002105, 'bytes'),
  AES_CFB128: row(0x00002107, 'bytes'),
  AES_CFB1: row(0x00002108, 'bytes'),
  AES_MAC: row(0x00001083, 'none'),
  AES_MAC_GENERAL: row(0x00001084, 'ulong'),
  AES_CMAC: row(0x0000108a, 'none'),
  AES_CMAC_GENERAL: row(0x0000108b, 'ulong'),
  AES_KEY_WRAP: row(0x00002109, 'bytes'),
  AES_KEY_WRAP_PAD: row(0x0000210a, 'bytes'),
  AES_KEY_WRAP_KWP: row(0x0000210b, 'bytes'),
  AES_ECB_ENCRYPT_DATA: row(0x00001104, 'data'),
  AES_CBC_ENCRYPT_DATA: row(0x00001105, 'ivdata'),
  // triple DES
  DES3_KEY_GEN: row(0x00000131, 'none'),
  DES3_ECB: row(0x00000132, 'none'),
  DES3_CBC: row(0x00000133, 'bytes'),
  DES3_CBC_PAD: row(0x00000136, 'bytes'),
  DES3_CMAC: row(0x00000138, 'none'),
  DES3_CMAC_GENERAL: row(0x00000137, 'ulong'),
  // key derivation
  DH_PKCS_KEY_PAIR_GEN: row(0x00000020, 'none'),
  DH_PKCS_DERIVE: row(0x00000021, 'bytes'),
  CONCATENATE_BASE_AND_KEY: row(0x00000360, 'ulong'),
  CONCATENATE_BASE_AND_DATA: row(0x00000362, 'data'),
  CONCATENATE_DATA_AND_BASE: row(0x00000363, 'data'),
  XOR_BASE_AND_DATA: row(0x00000364, 'data'),
  EXTRACT_KEY_FROM_KEY: row(0x00000365, 'ulong'),
  SP800_108_COUNTER_KDF: row(0x000003ac, 'sp800'),
  SP800_108_FEEDBACK_KDF: row(0x000003ad, 'sp800'),
  SP800_108_DOUBLE_PIPELINE_KDF: row(0x000003ae, 'sp800'),
  HKDF_DERIVE: row(0x0000402a, 'hkdf'),
  HKDF_DATA: row(0x0000402b, 'hkdf'),
  HKDF_KEY_GEN: row(0x0000402c, 'none'),
} as const satisfies Record<string, { type: number; parameter: ParameterForm }>;

export type MechanismName = keyof typeof mechanisms;

/** Only the numbers: `CKM.AES_CBC` is CKM_AES_CBC. */
export const CKM = Object.fromEntries(Object.entries(mechanisms).map(([name, { type }]) => [name, type])) as {
  readonly [Name in MechanismName]: (typeof mechanisms)[Name]['type'];
};

const parameters = new Map<number, ParameterForm>(
  Object.values(mechanisms).map(({ type, parameter }) => [type, parameter]),
);
const names = new Map<number, string>(Object.entries(mechanisms).map(([name, { type }]) => [type, `CKM_${name}`]));

/** The form of a mechanism's parameter; bytes for a mechanism without a row. */
export const parameterKind = (type: number): ParameterForm => parameters.get(type) ?? 'bytes';

/** The name, or the number in hexadecimal when there is no row. */
export const mechanismName = (type: number): string => names.get(type) ?? `0x${type.toString(16).padStart(8, '0')}`;
