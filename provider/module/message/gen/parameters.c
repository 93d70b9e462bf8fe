/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. Attributes and parameters of mechanisms as data. */

#include "message/argument_codec.h"

enum attribute_kind codec_attribute_kind(CK_ATTRIBUTE_TYPE type) {
  switch (type) {
    case 0x00000000UL /* CKA_CLASS */:
    case 0x00000080UL /* CKA_CERTIFICATE_TYPE */:
    case 0x00000087UL /* CKA_CERTIFICATE_CATEGORY */:
    case 0x00000088UL /* CKA_JAVA_MIDP_SECURITY_DOMAIN */:
    case 0x00000100UL /* CKA_KEY_TYPE */:
    case 0x00000121UL /* CKA_MODULUS_BITS */:
    case 0x00000133UL /* CKA_PRIME_BITS */:
    case 0x00000134UL /* CKA_SUBPRIME_BITS */:
    case 0x00000160UL /* CKA_VALUE_BITS */:
    case 0x00000161UL /* CKA_VALUE_LEN */:
    case 0x00000166UL /* CKA_KEY_GEN_MECHANISM */:
    case 0x00000201UL /* CKA_AUTH_PIN_FLAGS */:
    case 0x00000300UL /* CKA_HW_FEATURE_TYPE */:
    case 0x00000400UL /* CKA_PIXEL_X */:
    case 0x00000401UL /* CKA_PIXEL_Y */:
    case 0x00000402UL /* CKA_RESOLUTION */:
    case 0x00000403UL /* CKA_CHAR_ROWS */:
    case 0x00000404UL /* CKA_CHAR_COLUMNS */:
    case 0x00000406UL /* CKA_BITS_PER_PIXEL */:
    case 0x00000500UL /* CKA_MECHANISM_TYPE */:
      return KIND_ULONG;
    case 0x00000001UL /* CKA_TOKEN */:
    case 0x00000002UL /* CKA_PRIVATE */:
    case 0x00000086UL /* CKA_TRUSTED */:
    case 0x00000103UL /* CKA_SENSITIVE */:
    case 0x00000104UL /* CKA_ENCRYPT */:
    case 0x00000105UL /* CKA_DECRYPT */:
    case 0x00000106UL /* CKA_WRAP */:
    case 0x00000107UL /* CKA_UNWRAP */:
    case 0x00000108UL /* CKA_SIGN */:
    case 0x00000109UL /* CKA_SIGN_RECOVER */:
    case 0x0000010aUL /* CKA_VERIFY */:
    case 0x0000010bUL /* CKA_VERIFY_RECOVER */:
    case 0x0000010cUL /* CKA_DERIVE */:
    case 0x00000162UL /* CKA_EXTRACTABLE */:
    case 0x00000163UL /* CKA_LOCAL */:
    case 0x00000164UL /* CKA_NEVER_EXTRACTABLE */:
    case 0x00000165UL /* CKA_ALWAYS_SENSITIVE */:
    case 0x00000170UL /* CKA_MODIFIABLE */:
    case 0x00000171UL /* CKA_COPYABLE */:
    case 0x00000200UL /* CKA_SECONDARY_AUTH */:
    case 0x00000202UL /* CKA_ALWAYS_AUTHENTICATE */:
    case 0x00000210UL /* CKA_WRAP_WITH_TRUSTED */:
    case 0x00000301UL /* CKA_RESET_ON_INIT */:
    case 0x00000302UL /* CKA_HAS_RESET */:
    case 0x00000405UL /* CKA_COLOR */:
      return KIND_BOOLEAN;
    case 0x00000110UL /* CKA_START_DATE */:
    case 0x00000111UL /* CKA_END_DATE */:
      return KIND_DATE;
    case 0x40000211UL /* CKA_WRAP_TEMPLATE */:
    case 0x40000212UL /* CKA_UNWRAP_TEMPLATE */:
    case 0x40000213UL /* CKA_DERIVE_TEMPLATE */:
      return KIND_TEMPLATE;
    case 0x40000600UL /* CKA_ALLOWED_MECHANISMS */:
      return KIND_MECHANISMS;
    default:
      return KIND_BYTES;
  }
}

/* length, and of each member: kind, place, and the place of its length or count */
const struct parameter_row codec_parameters[] = {
    [FORM_ULONG] = {sizeof(CK_ULONG), {{MEMBER_ULONG, 0, 0}}},
    [FORM_CTR] = {sizeof(CK_AES_CTR_PARAMS), {{MEMBER_ULONG, offsetof(CK_AES_CTR_PARAMS, ulCounterBits), 0}, {MEMBER_ARRAY, offsetof(CK_AES_CTR_PARAMS, cb), 0}}},
    [FORM_GCM] = {sizeof(CK_GCM_PARAMS), {{MEMBER_BYTES, offsetof(CK_GCM_PARAMS, pIv), offsetof(CK_GCM_PARAMS, ulIvLen)}, {MEMBER_ULONG, offsetof(CK_GCM_PARAMS, ulIvBits), 0}, {MEMBER_BYTES, offsetof(CK_GCM_PARAMS, pAAD), offsetof(CK_GCM_PARAMS, ulAADLen)}, {MEMBER_ULONG, offsetof(CK_GCM_PARAMS, ulTagBits), 0}}},
    [FORM_PSS] = {sizeof(CK_RSA_PKCS_PSS_PARAMS), {{MEMBER_ULONG, offsetof(CK_RSA_PKCS_PSS_PARAMS, hashAlg), 0}, {MEMBER_ULONG, offsetof(CK_RSA_PKCS_PSS_PARAMS, mgf), 0}, {MEMBER_ULONG, offsetof(CK_RSA_PKCS_PSS_PARAMS, sLen), 0}}},
    [FORM_OAEP] = {sizeof(CK_RSA_PKCS_OAEP_PARAMS), {{MEMBER_ULONG, offsetof(CK_RSA_PKCS_OAEP_PARAMS, hashAlg), 0}, {MEMBER_ULONG, offsetof(CK_RSA_PKCS_OAEP_PARAMS, mgf), 0}, {MEMBER_ULONG, offsetof(CK_RSA_PKCS_OAEP_PARAMS, source), 0}, {MEMBER_BYTES, offsetof(CK_RSA_PKCS_OAEP_PARAMS, pSourceData), offsetof(CK_RSA_PKCS_OAEP_PARAMS, ulSourceDataLen)}}},
    [FORM_ECDH1] = {sizeof(CK_ECDH1_DERIVE_PARAMS), {{MEMBER_ULONG, offsetof(CK_ECDH1_DERIVE_PARAMS, kdf), 0}, {MEMBER_BYTES, offsetof(CK_ECDH1_DERIVE_PARAMS, pSharedData), offsetof(CK_ECDH1_DERIVE_PARAMS, ulSharedDataLen)}, {MEMBER_BYTES, offsetof(CK_ECDH1_DERIVE_PARAMS, pPublicData), offsetof(CK_ECDH1_DERIVE_PARAMS, ulPublicDataLen)}}},
    [FORM_HKDF] = {sizeof(CK_HKDF_PARAMS), {{MEMBER_FLAG, offsetof(CK_HKDF_PARAMS, bExtract), 0}, {MEMBER_FLAG, offsetof(CK_HKDF_PARAMS, bExpand), 0}, {MEMBER_ULONG, offsetof(CK_HKDF_PARAMS, prfHashMechanism), 0}, {MEMBER_ULONG, offsetof(CK_HKDF_PARAMS, ulSaltType), 0}, {MEMBER_BYTES, offsetof(CK_HKDF_PARAMS, pSalt), offsetof(CK_HKDF_PARAMS, ulSaltLen)}, {MEMBER_ULONG, offsetof(CK_HKDF_PARAMS, hSaltKey), 0}, {MEMBER_BYTES, offsetof(CK_HKDF_PARAMS, pInfo), offsetof(CK_HKDF_PARAMS, ulInfoLen)}}},
    [FORM_CCM] = {sizeof(CK_CCM_PARAMS), {{MEMBER_ULONG, offsetof(CK_CCM_PARAMS, ulDataLen), 0}, {MEMBER_BYTES, offsetof(CK_CCM_PARAMS, pNonce), offsetof(CK_CCM_PARAMS, ulNonceLen)}, {MEMBER_BYTES, offsetof(CK_CCM_PARAMS, pAAD), offsetof(CK_CCM_PARAMS, ulAADLen)}, {MEMBER_ULONG, offsetof(CK_CCM_PARAMS, ulMACLen), 0}}},
    [FORM_EDDSA] = {sizeof(CK_EDDSA_PARAMS), {{MEMBER_FLAG, offsetof(CK_EDDSA_PARAMS, phFlag), 0}, {MEMBER_BYTES, offsetof(CK_EDDSA_PARAMS, pContextData), offsetof(CK_EDDSA_PARAMS, ulContextDataLen)}}},
    [FORM_DATA] = {sizeof(CK_KEY_DERIVATION_STRING_DATA), {{MEMBER_BYTES, offsetof(CK_KEY_DERIVATION_STRING_DATA, pData), offsetof(CK_KEY_DERIVATION_STRING_DATA, ulLen)}}},
    [FORM_IVDATA] = {sizeof(CK_AES_CBC_ENCRYPT_DATA_PARAMS), {{MEMBER_ARRAY, offsetof(CK_AES_CBC_ENCRYPT_DATA_PARAMS, iv), 0}, {MEMBER_BYTES, offsetof(CK_AES_CBC_ENCRYPT_DATA_PARAMS, pData), offsetof(CK_AES_CBC_ENCRYPT_DATA_PARAMS, length)}}},
    [FORM_SP800] = {sizeof(CK_SP800_108_FEEDBACK_KDF_PARAMS), {{MEMBER_ULONG, offsetof(CK_SP800_108_FEEDBACK_KDF_PARAMS, prfType), 0}, {MEMBER_ULONG, offsetof(CK_SP800_108_FEEDBACK_KDF_PARAMS, ulAdditionalDerivedKeys), 0}, {MEMBER_BYTES, offsetof(CK_SP800_108_FEEDBACK_KDF_PARAMS, pIV), offsetof(CK_SP800_108_FEEDBACK_KDF_PARAMS, ulIVLen)}, {MEMBER_PRF_DATA, offsetof(CK_SP800_108_FEEDBACK_KDF_PARAMS, pDataParams), offsetof(CK_SP800_108_FEEDBACK_KDF_PARAMS, ulNumberOfDataParams)}}},
};

enum parameter_form codec_parameter_form(CK_MECHANISM_TYPE type) {
  switch (type) {
    case 0x00000000UL /* CKM_RSA_PKCS_KEY_PAIR_GEN */:
    case 0x00000001UL /* CKM_RSA_PKCS */:
    case 0x00000003UL /* CKM_RSA_X_509 */:
    case 0x00000006UL /* CKM_SHA1_RSA_PKCS */:
    case 0x00000046UL /* CKM_SHA224_RSA_PKCS */:
    case 0x00000040UL /* CKM_SHA256_RSA_PKCS */:
    case 0x00000041UL /* CKM_SHA384_RSA_PKCS */:
    case 0x00000042UL /* CKM_SHA512_RSA_PKCS */:
    case 0x00000066UL /* CKM_SHA3_224_RSA_PKCS */:
    case 0x00000060UL /* CKM_SHA3_256_RSA_PKCS */:
    case 0x00000061UL /* CKM_SHA3_384_RSA_PKCS */:
    case 0x00000062UL /* CKM_SHA3_512_RSA_PKCS */:
    case 0x00001040UL /* CKM_EC_KEY_PAIR_GEN */:
    case 0x00001055UL /* CKM_EC_EDWARDS_KEY_PAIR_GEN */:
    case 0x00001056UL /* CKM_EC_MONTGOMERY_KEY_PAIR_GEN */:
    case 0x00001041UL /* CKM_ECDSA */:
    case 0x00001042UL /* CKM_ECDSA_SHA1 */:
    case 0x00001043UL /* CKM_ECDSA_SHA224 */:
    case 0x00001044UL /* CKM_ECDSA_SHA256 */:
    case 0x00001045UL /* CKM_ECDSA_SHA384 */:
    case 0x00001046UL /* CKM_ECDSA_SHA512 */:
    case 0x00001047UL /* CKM_ECDSA_SHA3_224 */:
    case 0x00001048UL /* CKM_ECDSA_SHA3_256 */:
    case 0x00001049UL /* CKM_ECDSA_SHA3_384 */:
    case 0x0000104aUL /* CKM_ECDSA_SHA3_512 */:
    case 0x00000210UL /* CKM_MD5 */:
    case 0x00000220UL /* CKM_SHA_1 */:
    case 0x00000255UL /* CKM_SHA224 */:
    case 0x00000250UL /* CKM_SHA256 */:
    case 0x00000260UL /* CKM_SHA384 */:
    case 0x00000270UL /* CKM_SHA512 */:
    case 0x00000048UL /* CKM_SHA512_224 */:
    case 0x0000004cUL /* CKM_SHA512_256 */:
    case 0x000002b5UL /* CKM_SHA3_224 */:
    case 0x000002b0UL /* CKM_SHA3_256 */:
    case 0x000002c0UL /* CKM_SHA3_384 */:
    case 0x000002d0UL /* CKM_SHA3_512 */:
    case 0x00000350UL /* CKM_GENERIC_SECRET_KEY_GEN */:
    case 0x00000221UL /* CKM_SHA_1_HMAC */:
    case 0x00000256UL /* CKM_SHA224_HMAC */:
    case 0x00000251UL /* CKM_SHA256_HMAC */:
    case 0x00000261UL /* CKM_SHA384_HMAC */:
    case 0x00000271UL /* CKM_SHA512_HMAC */:
    case 0x00000049UL /* CKM_SHA512_224_HMAC */:
    case 0x0000004dUL /* CKM_SHA512_256_HMAC */:
    case 0x000002b6UL /* CKM_SHA3_224_HMAC */:
    case 0x000002b1UL /* CKM_SHA3_256_HMAC */:
    case 0x000002c1UL /* CKM_SHA3_384_HMAC */:
    case 0x000002d1UL /* CKM_SHA3_512_HMAC */:
    case 0x00004003UL /* CKM_SHA_1_KEY_GEN */:
    case 0x00004004UL /* CKM_SHA224_KEY_GEN */:
    case 0x00004005UL /* CKM_SHA256_KEY_GEN */:
    case 0x00004006UL /* CKM_SHA384_KEY_GEN */:
    case 0x00004007UL /* CKM_SHA512_KEY_GEN */:
    case 0x00004008UL /* CKM_SHA512_224_KEY_GEN */:
    case 0x00004009UL /* CKM_SHA512_256_KEY_GEN */:
    case 0x000002b8UL /* CKM_SHA3_224_KEY_GEN */:
    case 0x000002b3UL /* CKM_SHA3_256_KEY_GEN */:
    case 0x000002c3UL /* CKM_SHA3_384_KEY_GEN */:
    case 0x000002d3UL /* CKM_SHA3_512_KEY_GEN */:
    case 0x00001080UL /* CKM_AES_KEY_GEN */:
    case 0x00001081UL /* CKM_AES_ECB */:
    case 0x00001083UL /* CKM_AES_MAC */:
    case 0x0000108aUL /* CKM_AES_CMAC */:
    case 0x00000131UL /* CKM_DES3_KEY_GEN */:
    case 0x00000132UL /* CKM_DES3_ECB */:
    case 0x00000138UL /* CKM_DES3_CMAC */:
    case 0x00000020UL /* CKM_DH_PKCS_KEY_PAIR_GEN */:
    case 0x0000402cUL /* CKM_HKDF_KEY_GEN */:
      return FORM_NONE;
    case 0x00000009UL /* CKM_RSA_PKCS_OAEP */:
      return FORM_OAEP;
    case 0x0000000dUL /* CKM_RSA_PKCS_PSS */:
    case 0x0000000eUL /* CKM_SHA1_RSA_PKCS_PSS */:
    case 0x00000047UL /* CKM_SHA224_RSA_PKCS_PSS */:
    case 0x00000043UL /* CKM_SHA256_RSA_PKCS_PSS */:
    case 0x00000044UL /* CKM_SHA384_RSA_PKCS_PSS */:
    case 0x00000045UL /* CKM_SHA512_RSA_PKCS_PSS */:
    case 0x00000067UL /* CKM_SHA3_224_RSA_PKCS_PSS */:
    case 0x00000063UL /* CKM_SHA3_256_RSA_PKCS_PSS */:
    case 0x00000064UL /* CKM_SHA3_384_RSA_PKCS_PSS */:
    case 0x00000065UL /* CKM_SHA3_512_RSA_PKCS_PSS */:
      return FORM_PSS;
    case 0x00001057UL /* CKM_EDDSA */:
      return FORM_EDDSA;
    case 0x00001050UL /* CKM_ECDH1_DERIVE */:
    case 0x00001051UL /* CKM_ECDH1_COFACTOR_DERIVE */:
      return FORM_ECDH1;
    case 0x00000222UL /* CKM_SHA_1_HMAC_GENERAL */:
    case 0x00000257UL /* CKM_SHA224_HMAC_GENERAL */:
    case 0x00000252UL /* CKM_SHA256_HMAC_GENERAL */:
    case 0x00000262UL /* CKM_SHA384_HMAC_GENERAL */:
    case 0x00000272UL /* CKM_SHA512_HMAC_GENERAL */:
    case 0x0000004aUL /* CKM_SHA512_224_HMAC_GENERAL */:
    case 0x0000004eUL /* CKM_SHA512_256_HMAC_GENERAL */:
    case 0x000002b7UL /* CKM_SHA3_224_HMAC_GENERAL */:
    case 0x000002b2UL /* CKM_SHA3_256_HMAC_GENERAL */:
    case 0x000002c2UL /* CKM_SHA3_384_HMAC_GENERAL */:
    case 0x000002d2UL /* CKM_SHA3_512_HMAC_GENERAL */:
    case 0x00001084UL /* CKM_AES_MAC_GENERAL */:
    case 0x0000108bUL /* CKM_AES_CMAC_GENERAL */:
    case 0x00000137UL /* CKM_DES3_CMAC_GENERAL */:
    case 0x00000360UL /* CKM_CONCATENATE_BASE_AND_KEY */:
    case 0x00000365UL /* CKM_EXTRACT_KEY_FROM_KEY */:
      return FORM_ULONG;
    case 0x00001086UL /* CKM_AES_CTR */:
      return FORM_CTR;
    case 0x00001087UL /* CKM_AES_GCM */:
      return FORM_GCM;
    case 0x00001088UL /* CKM_AES_CCM */:
      return FORM_CCM;
    case 0x00001104UL /* CKM_AES_ECB_ENCRYPT_DATA */:
    case 0x00000362UL /* CKM_CONCATENATE_BASE_AND_DATA */:
    case 0x00000363UL /* CKM_CONCATENATE_DATA_AND_BASE */:
    case 0x00000364UL /* CKM_XOR_BASE_AND_DATA */:
      return FORM_DATA;
    case 0x00001105UL /* CKM_AES_CBC_ENCRYPT_DATA */:
      return FORM_IVDATA;
    case 0x000003acUL /* CKM_SP800_108_COUNTER_KDF */:
    case 0x000003adUL /* CKM_SP800_108_FEEDBACK_KDF */:
    case 0x000003aeUL /* CKM_SP800_108_DOUBLE_PIPELINE_KDF */:
      return FORM_SP800;
    case 0x0000402aUL /* CKM_HKDF_DERIVE */:
    case 0x0000402bUL /* CKM_HKDF_DATA */:
      return FORM_HKDF;
    default:
      return FORM_BYTES;
  }
}
