/* Mechanisms and their parameters as bytes; see codec.h. */
#include "codec.h"

#include <string.h>

enum { CKM_FEEDBACK_KDF = 0x3ad /* CKM_SP800_108_FEEDBACK_KDF, 3.0 */ };

/** CK_GCM_PARAMS before 2.40 errata, still sent by older callers: without the length of the IV in bits. */
struct old_gcm_params {
  CK_BYTE_PTR pIv;
  CK_ULONG ulIvLen;
  CK_BYTE_PTR pAAD;
  CK_ULONG ulAADLen;
  CK_ULONG ulTagBits;
};

/** CK_HKDF_PARAMS, 3.0. */
struct hkdf_params {
  CK_BBOOL bExtract;
  CK_BBOOL bExpand;
  CK_MECHANISM_TYPE prfHashMechanism;
  CK_ULONG ulSaltType;
  CK_BYTE_PTR pSalt;
  CK_ULONG ulSaltLen;
  CK_OBJECT_HANDLE hSaltKey;
  CK_BYTE_PTR pInfo;
  CK_ULONG ulInfoLen;
};

/** CK_CCM_PARAMS. */
struct ccm_params {
  CK_ULONG ulDataLen;
  CK_BYTE_PTR pNonce;
  CK_ULONG ulNonceLen;
  CK_BYTE_PTR pAAD;
  CK_ULONG ulAADLen;
  CK_ULONG ulMACLen;
};

/** CK_EDDSA_PARAMS, 3.0. */
struct eddsa_params {
  CK_BBOOL phFlag;
  CK_ULONG ulContextDataLen;
  CK_BYTE_PTR pContextData;
};

/** CK_KEY_DERIVATION_STRING_DATA. */
struct string_data {
  CK_BYTE_PTR pData;
  CK_ULONG ulLen;
};

/** CK_AES_CBC_ENCRYPT_DATA_PARAMS. */
struct cbc_data {
  CK_BYTE iv[16];
  CK_BYTE_PTR pData;
  CK_ULONG length;
};

/** CK_SP800_108_FEEDBACK_KDF_PARAMS, 3.0. */
struct feedback_kdf_params {
  CK_MECHANISM_TYPE prfType;
  CK_ULONG ulNumberOfDataParams;
  CK_VOID_PTR pDataParams;
  CK_ULONG ulIVLen;
  CK_BYTE_PTR pIV;
  CK_ULONG ulAdditionalDerivedKeys;
  CK_VOID_PTR pAdditionalDerivedKeys;
};

/** CK_SP800_108_KDF_PARAMS, for the counter and the double pipeline mode. */
struct kdf_params {
  CK_MECHANISM_TYPE prfType;
  CK_ULONG ulNumberOfDataParams;
  CK_VOID_PTR pDataParams;
  CK_ULONG ulAdditionalDerivedKeys;
  CK_VOID_PTR pAdditionalDerivedKeys;
};

/** CK_PRF_DATA_PARAM. */
struct prf_data {
  CK_ULONG type;
  CK_VOID_PTR pValue;
  CK_ULONG ulValueLen;
};

/** CK_SP800_108_COUNTER_FORMAT. */
struct counter_format {
  CK_BBOOL bLittleEndian;
  CK_ULONG ulWidthInBits;
};

/** CK_SP800_108_DKM_LENGTH_FORMAT. */
struct dkm_length_format {
  CK_ULONG dkmLengthMethod;
  CK_BBOOL bLittleEndian;
  CK_ULONG ulWidthInBits;
};

static CK_RV put_inner(struct buffer *buffer, const void *bytes, CK_ULONG length) {
  if ((bytes == NULL && length != 0) || length > BUFFER_MAX) return CKR_MECHANISM_PARAM_INVALID;
  buffer_put_array(buffer, bytes, length);
  return CKR_OK;
}

static CK_RV put_gcm(struct buffer *buffer, const CK_GCM_PARAMS *gcm) {
  CK_RV rv = put_inner(buffer, gcm->pIv, gcm->ulIvLen);

  if (rv != CKR_OK) return rv;
  buffer_put_u64(buffer, gcm->ulIvBits);
  rv = put_inner(buffer, gcm->pAAD, gcm->ulAADLen);
  buffer_put_u64(buffer, gcm->ulTagBits);
  return rv;
}

static CK_RV put_prf_data(struct buffer *buffer, const struct prf_data *data) {
  enum { ITERATION_VARIABLE = 1, COUNTER = 2, DKM_LENGTH = 3, BYTE_ARRAY = 4 };
  struct dkm_length_format format = {0, CK_FALSE, 0};
  struct counter_format counter;
  const bool bytes = data->type == BYTE_ARRAY;

  if (data->pValue == NULL && data->ulValueLen != 0) return CKR_MECHANISM_PARAM_INVALID;
  if (data->type == DKM_LENGTH && data->ulValueLen == sizeof format) {
    memcpy(&format, data->pValue, sizeof format);
  } else if ((data->type == ITERATION_VARIABLE || data->type == COUNTER) && data->ulValueLen == sizeof counter) {
    memcpy(&counter, data->pValue, sizeof counter);
    format = (struct dkm_length_format){0, counter.bLittleEndian, counter.ulWidthInBits};
  } else if (!bytes && data->ulValueLen != 0) {
    return CKR_MECHANISM_PARAM_INVALID;
  }
  buffer_put_u64(buffer, data->type);
  buffer_put_u8(buffer, format.bLittleEndian != CK_FALSE);
  buffer_put_u64(buffer, format.ulWidthInBits);
  buffer_put_u64(buffer, format.dkmLengthMethod);
  return bytes ? put_inner(buffer, data->pValue, data->ulValueLen) : put_inner(buffer, NULL, 0);
}

static CK_RV put_kdf(struct buffer *buffer, const struct feedback_kdf_params *kdf) {
  enum { DATA_MAX = 64 };
  const unsigned char *rows = kdf->pDataParams;
  struct prf_data data;
  CK_RV rv;

  if (kdf->ulNumberOfDataParams > DATA_MAX || (rows == NULL && kdf->ulNumberOfDataParams != 0)) return CKR_MECHANISM_PARAM_INVALID;
  buffer_put_u64(buffer, kdf->prfType);
  buffer_put_u64(buffer, kdf->ulAdditionalDerivedKeys);
  rv = put_inner(buffer, kdf->pIV, kdf->ulIVLen);
  if (rv != CKR_OK) return rv;
  buffer_put_u32(buffer, (uint32_t)kdf->ulNumberOfDataParams);
  for (CK_ULONG i = 0; i < kdf->ulNumberOfDataParams; i++) {
    memcpy(&data, rows + i * sizeof data, sizeof data);
    rv = put_prf_data(buffer, &data);
    if (rv != CKR_OK) return rv;
  }
  return CKR_OK;
}

/** The form in which this parameter travels: the mechanism's own if its length fits, else flat bytes for the agent to refuse. */
static enum parameter_form form_of(const CK_MECHANISM *mechanism) {
  enum parameter_form form = codec_parameter_form(mechanism->mechanism);
  const CK_ULONG length = mechanism->ulParameterLen;
  bool fits = true;

  if (length == 0) return FORM_NONE;
  switch (form) {
    case FORM_NONE: fits = false; break;
    case FORM_BYTES: break;
    case FORM_ULONG: fits = length == sizeof(CK_ULONG); break;
    case FORM_CTR: fits = length == sizeof(CK_AES_CTR_PARAMS); break;
    case FORM_GCM: fits = length == sizeof(CK_GCM_PARAMS) || length == sizeof(struct old_gcm_params); break;
    case FORM_PSS: fits = length == sizeof(CK_RSA_PKCS_PSS_PARAMS); break;
    case FORM_OAEP: fits = length == sizeof(CK_RSA_PKCS_OAEP_PARAMS); break;
    case FORM_ECDH1: fits = length == sizeof(CK_ECDH1_DERIVE_PARAMS); break;
    case FORM_HKDF: fits = length == sizeof(struct hkdf_params); break;
    case FORM_CCM: fits = length == sizeof(struct ccm_params); break;
    case FORM_EDDSA: fits = length == sizeof(struct eddsa_params); break;
    case FORM_DATA: fits = length == sizeof(struct string_data); break;
    case FORM_IVDATA: fits = length == sizeof(struct cbc_data); break;
    case FORM_SP800:
      fits = length == (mechanism->mechanism == CKM_FEEDBACK_KDF ? sizeof(struct feedback_kdf_params) : sizeof(struct kdf_params));
      break;
  }
  return fits ? form : FORM_BYTES;
}

static CK_RV put_parameter(struct buffer *buffer, const CK_MECHANISM *mechanism, enum parameter_form form) {
  const void *parameter = mechanism->pParameter;
  CK_RV rv;

  switch (form) {
    case FORM_NONE:
      return CKR_OK;
    case FORM_BYTES:
      return put_inner(buffer, parameter, mechanism->ulParameterLen);
    case FORM_ULONG:
      buffer_put_u64(buffer, codec_load(parameter));
      return CKR_OK;
    case FORM_CTR: {
      CK_AES_CTR_PARAMS ctr;
      memcpy(&ctr, parameter, sizeof ctr);
      buffer_put_u64(buffer, ctr.ulCounterBits);
      buffer_put_array(buffer, ctr.cb, sizeof ctr.cb);
      return CKR_OK;
    }
    case FORM_GCM: {
      CK_GCM_PARAMS gcm;
      if (mechanism->ulParameterLen == sizeof gcm) {
        memcpy(&gcm, parameter, sizeof gcm);
      } else {
        struct old_gcm_params old;
        memcpy(&old, parameter, sizeof old);
        gcm = (CK_GCM_PARAMS){old.pIv, old.ulIvLen, old.ulIvLen * 8, old.pAAD, old.ulAADLen, old.ulTagBits};
      }
      return put_gcm(buffer, &gcm);
    }
    case FORM_PSS: {
      CK_RSA_PKCS_PSS_PARAMS pss;
      memcpy(&pss, parameter, sizeof pss);
      buffer_put_u64(buffer, pss.hashAlg);
      buffer_put_u64(buffer, pss.mgf);
      buffer_put_u64(buffer, pss.sLen);
      return CKR_OK;
    }
    case FORM_OAEP: {
      CK_RSA_PKCS_OAEP_PARAMS oaep;
      memcpy(&oaep, parameter, sizeof oaep);
      buffer_put_u64(buffer, oaep.hashAlg);
      buffer_put_u64(buffer, oaep.mgf);
      buffer_put_u64(buffer, oaep.source);
      return put_inner(buffer, oaep.pSourceData, oaep.ulSourceDataLen);
    }
    case FORM_ECDH1: {
      CK_ECDH1_DERIVE_PARAMS ecdh;
      memcpy(&ecdh, parameter, sizeof ecdh);
      buffer_put_u64(buffer, ecdh.kdf);
      rv = put_inner(buffer, ecdh.pSharedData, ecdh.ulSharedDataLen);
      if (rv != CKR_OK) return rv;
      return put_inner(buffer, ecdh.pPublicData, ecdh.ulPublicDataLen);
    }
    case FORM_HKDF: {
      struct hkdf_params hkdf;
      memcpy(&hkdf, parameter, sizeof hkdf);
      buffer_put_u8(buffer, hkdf.bExtract != CK_FALSE);
      buffer_put_u8(buffer, hkdf.bExpand != CK_FALSE);
      buffer_put_u64(buffer, hkdf.prfHashMechanism);
      buffer_put_u64(buffer, hkdf.ulSaltType);
      rv = put_inner(buffer, hkdf.pSalt, hkdf.ulSaltLen);
      if (rv != CKR_OK) return rv;
      buffer_put_u64(buffer, hkdf.hSaltKey);
      return put_inner(buffer, hkdf.pInfo, hkdf.ulInfoLen);
    }
    case FORM_CCM: {
      struct ccm_params ccm;
      memcpy(&ccm, parameter, sizeof ccm);
      buffer_put_u64(buffer, ccm.ulDataLen);
      rv = put_inner(buffer, ccm.pNonce, ccm.ulNonceLen);
      if (rv != CKR_OK) return rv;
      rv = put_inner(buffer, ccm.pAAD, ccm.ulAADLen);
      buffer_put_u64(buffer, ccm.ulMACLen);
      return rv;
    }
    case FORM_EDDSA: {
      struct eddsa_params eddsa;
      memcpy(&eddsa, parameter, sizeof eddsa);
      buffer_put_u8(buffer, eddsa.phFlag != CK_FALSE);
      return put_inner(buffer, eddsa.pContextData, eddsa.ulContextDataLen);
    }
    case FORM_DATA: {
      struct string_data string;
      memcpy(&string, parameter, sizeof string);
      return put_inner(buffer, string.pData, string.ulLen);
    }
    case FORM_IVDATA: {
      struct cbc_data cbc;
      memcpy(&cbc, parameter, sizeof cbc);
      buffer_put_array(buffer, cbc.iv, sizeof cbc.iv);
      return put_inner(buffer, cbc.pData, cbc.length);
    }
    case FORM_SP800: {
      struct feedback_kdf_params kdf;
      if (mechanism->mechanism == CKM_FEEDBACK_KDF) {
        memcpy(&kdf, parameter, sizeof kdf);
      } else {
        struct kdf_params plain;
        memcpy(&plain, parameter, sizeof plain);
        kdf = (struct feedback_kdf_params){plain.prfType, plain.ulNumberOfDataParams, plain.pDataParams, 0, NULL,
                                           plain.ulAdditionalDerivedKeys, NULL};
      }
      return put_kdf(buffer, &kdf);
    }
  }
  return CKR_MECHANISM_PARAM_INVALID;
}

/** Whether p11-kit has no form for it. */
static bool is_own_form(enum parameter_form form) { return form >= FORM_HKDF; }

CK_RV codec_put_mechanism(struct buffer *buffer, CK_MECHANISM_PTR given, enum dialect dialect) {
  CK_MECHANISM mechanism;
  enum parameter_form form;
  enum parameter_form own;

  if (given == NULL) {
    /* 3.0: cancels the operation. p11-kit before 0.26 has no form for it. */
    if (dialect == DIALECT_P11KIT_24) return CKR_ARGUMENTS_BAD;
    buffer_put_u32(buffer, BUFFER_NULL);
    return CKR_OK;
  }
  memcpy(&mechanism, given, sizeof mechanism);
  if (mechanism.mechanism >= UINT32_MAX) return CKR_MECHANISM_INVALID;
  if (mechanism.pParameter == NULL && mechanism.ulParameterLen != 0) return CKR_MECHANISM_PARAM_INVALID;
  own = codec_parameter_form(mechanism.mechanism);
  form = form_of(&mechanism);
  buffer_put_u32(buffer, (uint32_t)mechanism.mechanism);
  switch (dialect) {
    case DIALECT_OWN:
      buffer_put_u8(buffer, form);
      break;
    case DIALECT_P11KIT_26:
      if (is_own_form(own)) return CKR_MECHANISM_INVALID;
      if (own == FORM_NONE) return form == FORM_NONE ? CKR_OK : CKR_MECHANISM_PARAM_INVALID;
      if (form != FORM_NONE && form != own) return CKR_MECHANISM_PARAM_INVALID;
      buffer_put_u8(buffer, form != FORM_NONE);
      break;
    case DIALECT_P11KIT_24:
      /* Two mechanisms with a structure, and bytes for all else. */
      if (mechanism.mechanism == CKM_RSA_PKCS_PSS || mechanism.mechanism == CKM_RSA_PKCS_OAEP) {
        if (form != own) return CKR_MECHANISM_PARAM_INVALID;
        break;
      }
      if (form != FORM_NONE && own != FORM_NONE && own != FORM_BYTES) return CKR_MECHANISM_INVALID;
      if (form != FORM_NONE && form != FORM_BYTES) return CKR_MECHANISM_PARAM_INVALID;
      if (form == FORM_NONE) buffer_put_u32(buffer, BUFFER_NULL);
      break;
  }
  return put_parameter(buffer, &mechanism, form);
}

CK_RV codec_put_message_mechanism(struct buffer *buffer, CK_MECHANISM_PTR given) {
  CK_MECHANISM mechanism;

  if (given == NULL) {
    buffer_put_u32(buffer, BUFFER_NULL);
    return CKR_OK;
  }
  memcpy(&mechanism, given, sizeof mechanism);
  if (mechanism.mechanism >= UINT32_MAX) return CKR_MECHANISM_INVALID;
  /* None at all, or the structure that comes with the first message. It is as long as CK_GCM_PARAMS and must not be taken for one. */
  if (mechanism.mechanism == CKM_AES_GCM && mechanism.ulParameterLen != 0 &&
      (mechanism.pParameter == NULL || mechanism.ulParameterLen != sizeof(CK_GCM_MESSAGE_PARAMS)))
    return CKR_MECHANISM_PARAM_INVALID;
  buffer_put_u32(buffer, (uint32_t)mechanism.mechanism);
  buffer_put_u8(buffer, FORM_NONE);
  return CKR_OK;
}

CK_RV codec_put_message(struct buffer *buffer, const void *parameter, CK_ULONG length, enum tag_use tag,
                        struct message_place *place) {
  enum { NO_MESSAGE = 0, GCM_MESSAGE = 1, TAG_BITS_MAX = 128 };
  CK_GCM_MESSAGE_PARAMS gcm;
  CK_RV rv;

  *place = (struct message_place){0};
  if (parameter != NULL && length == sizeof gcm) memcpy(&gcm, parameter, sizeof gcm);
  else gcm = (CK_GCM_MESSAGE_PARAMS){.ulTagBits = CK_UNAVAILABLE_INFORMATION};
  /* The agent refuses it, but only after it has checked the session and its operation. */
  if (gcm.ulTagBits > TAG_BITS_MAX || (tag != TAG_UNUSED && gcm.pTag == NULL) || (gcm.pIv == NULL && gcm.ulIvLen != 0)) {
    buffer_put_u8(buffer, NO_MESSAGE);
    return CKR_OK;
  }
  *place = (struct message_place){gcm.pIv, gcm.ulIvLen, tag == TAG_WRITTEN ? gcm.pTag : NULL, (gcm.ulTagBits + 7) / 8};
  buffer_put_u8(buffer, GCM_MESSAGE);
  rv = put_inner(buffer, gcm.pIv, gcm.ulIvLen);
  if (rv != CKR_OK) return rv;
  buffer_put_u64(buffer, gcm.ulIvFixedBits);
  buffer_put_u64(buffer, gcm.ivGenerator);
  buffer_put_array(buffer, gcm.pTag, tag == TAG_READ ? place->tag_length : 0);
  buffer_put_u64(buffer, gcm.ulTagBits);
  return CKR_OK;
}

bool codec_init_repeats(const unsigned char *before, const unsigned char *now, size_t length) {
  enum { SIGNATURE = 8, KEY = 8 };
  size_t mechanism;
  size_t parameter;
  size_t key = length;

  /* The call's code and signature: `uM`, or `uMu` with a key at the end. */
  if (length < SIGNATURE) return false;
  mechanism = SIGNATURE + buffer_peek_u32(now + 4) + 8;
  parameter = mechanism + 5;
  if (length < parameter || now[SIGNATURE + 1] != 'M') return false;
  /* Under GCM and CCM an IV that comes again is refused when it encrypts. */
  if ((now[parameter - 1] == FORM_GCM || now[parameter - 1] == FORM_CCM) && buffer_peek_u32(now) == CODEC_ENCRYPT_INIT) return false;
  if (buffer_peek_u32(now + 4) == 3) {
    if (length < parameter + KEY) return false;
    key = length - KEY;
    /* A token object can be disabled or destroyed elsewhere at any moment: each Init asks. */
    if (buffer_peek_u32(now + key) == 0 && buffer_peek_u32(now + key + 4) < CODEC_FIRST_SESSION_OBJECT) return false;
  }
  /* Of a flat parameter (an IV) only the length matters; what is inside makes no difference to being accepted. */
  if (now[parameter - 1] == FORM_BYTES && length >= parameter + 4)
    return memcmp(before, now, parameter + 4) == 0 && memcmp(before + key, now + key, length - key) == 0;
  return memcmp(before, now, length) == 0;
}

bool codec_init_is_plain(const unsigned char *init, size_t length) {
  enum { SIGNATURE = 8, KEY = 8 };
  size_t mechanism;
  CK_MECHANISM_TYPE type;

  if (length < SIGNATURE || buffer_peek_u32(init + 4) != 3) return false;
  mechanism = SIGNATURE + 3 + 8;
  if (length < mechanism + 5 + KEY) return false;
  if (buffer_peek_u32(init + length - KEY) == 0 && buffer_peek_u32(init + length - KEY + 4) < CODEC_FIRST_SESSION_OBJECT) return false;
  type = buffer_peek_u32(init + mechanism);
  return type == CKM_AES_ECB || type == CKM_AES_CBC;
}
