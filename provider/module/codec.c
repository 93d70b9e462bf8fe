/* Cryptoki's arguments as bytes; see codec.h. */
#include "codec.h"

#include <stdlib.h>
#include <string.h>

enum {
  DEPTH_MAX = 8,           /* templates in templates, as in p11-kit */
  ATTRIBUTES_MAX = 4096,   /* in one template */
  LIST_MAX = 1 << 16       /* handles, slots or mechanisms in one answer: half a frame */
};

enum { CKM_FEEDBACK_KDF = 0x3ad /* CKM_SP800_108_FEEDBACK_KDF, 3.0 */ };

static const CK_ULONG unavailable = CK_UNAVAILABLE_INFORMATION;

CK_ULONG codec_load(const void *from) {
  CK_ULONG value;
  memcpy(&value, from, sizeof value);
  return value;
}

void codec_store(void *to, CK_ULONG value) { memcpy(to, &value, sizeof value); }

/* --- input --------------------------------------------------------------------------------------------------------- */

CK_RV codec_put_bytes(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG length) {
  static const unsigned char nothing[1];

  if (bytes == NULL && length != 0) return CKR_ARGUMENTS_BAD;
  if (length > BUFFER_MAX) return CKR_DATA_LEN_RANGE;
  buffer_put_u8(buffer, 1);
  buffer_put_array(buffer, bytes == NULL ? nothing : bytes, length);
  return CKR_OK;
}

static CK_RV put_attributes(struct buffer *buffer, const unsigned char *attributes, CK_ULONG count, int depth);

static CK_RV put_attribute(struct buffer *buffer, const CK_ATTRIBUTE *attribute, int depth) {
  const CK_ULONG length = attribute->ulValueLen;
  const unsigned char *value = attribute->pValue;
  CK_ULONG number;

  if (attribute->type > UINT32_MAX) return CKR_ATTRIBUTE_TYPE_INVALID;
  buffer_put_u32(buffer, (uint32_t)attribute->type);
  if (length == unavailable) {
    buffer_put_u8(buffer, 0);
    return CKR_OK;
  }
  if (length > BUFFER_MAX || (value == NULL && length != 0)) return CKR_ATTRIBUTE_VALUE_INVALID;
  buffer_put_u8(buffer, 1);
  buffer_put_u32(buffer, (uint32_t)length);
  switch (codec_attribute_kind(attribute->type)) {
    case KIND_BOOLEAN:
      if (length != 1) return CKR_ATTRIBUTE_VALUE_INVALID;
      buffer_put_u8(buffer, *value != 0);
      return CKR_OK;
    case KIND_ULONG:
      if (length != sizeof number) return CKR_ATTRIBUTE_VALUE_INVALID;
      memcpy(&number, value, sizeof number);
      buffer_put_u64(buffer, number);
      return CKR_OK;
    case KIND_DATE:
      if (length != 0 && length != sizeof(CK_DATE)) return CKR_ATTRIBUTE_VALUE_INVALID;
      buffer_put_array(buffer, value, length);
      return CKR_OK;
    case KIND_MECHANISMS:
      if (length % sizeof number != 0) return CKR_ATTRIBUTE_VALUE_INVALID;
      buffer_put_u32(buffer, (uint32_t)(length / sizeof number));
      for (CK_ULONG at = 0; at < length; at += sizeof number) {
        memcpy(&number, value + at, sizeof number);
        buffer_put_u64(buffer, number);
      }
      return CKR_OK;
    case KIND_TEMPLATE:
      if (length % sizeof *attribute != 0 || depth >= DEPTH_MAX) return CKR_ATTRIBUTE_VALUE_INVALID;
      return put_attributes(buffer, value, length / sizeof *attribute, depth + 1);
    case KIND_BYTES:
      break;
  }
  buffer_put_array(buffer, value, length);
  return CKR_OK;
}

static CK_RV put_attributes(struct buffer *buffer, const unsigned char *attributes, CK_ULONG count, int depth) {
  CK_ATTRIBUTE attribute;
  CK_RV rv;

  if (count > ATTRIBUTES_MAX) return CKR_ARGUMENTS_BAD;
  buffer_put_u32(buffer, (uint32_t)count);
  for (CK_ULONG i = 0; i < count; i++) {
    memcpy(&attribute, attributes + i * sizeof attribute, sizeof attribute);
    rv = put_attribute(buffer, &attribute, depth);
    if (rv != CKR_OK) return rv;
  }
  return CKR_OK;
}

CK_RV codec_put_template(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  if (attributes == NULL && count != 0) return CKR_ARGUMENTS_BAD;
  return put_attributes(buffer, (const unsigned char *)attributes, count, 0);
}

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

/* --- output -------------------------------------------------------------------------------------------------------- */

CK_RV codec_put_room(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG_PTR length, enum dialect dialect) {
  CK_ULONG room;

  if (length == NULL) return CKR_ARGUMENTS_BAD;
  room = codec_load(length);
  if (bytes == NULL) {
    buffer_put_u32(buffer, 0);
  } else if (room == 0) {
    /* Room for nothing is not the same as asking for the length; p11-kit 0.24 cannot say so, but answers alike. */
    buffer_put_u32(buffer, dialect == DIALECT_P11KIT_24 ? 0 : BUFFER_NULL);
  } else {
    buffer_put_u32(buffer, room > BUFFER_MAX ? BUFFER_MAX : (uint32_t)room);
  }
  return CKR_OK;
}

CK_RV codec_put_list_room(struct buffer *buffer, const void *list, CK_ULONG count) {
  buffer_put_u32(buffer, list == NULL ? 0 : count > LIST_MAX ? LIST_MAX : (uint32_t)count);
  return CKR_OK;
}

static CK_RV put_queries(struct buffer *buffer, const unsigned char *attributes, CK_ULONG count, enum dialect dialect,
                         int depth) {
  CK_ATTRIBUTE attribute;
  CK_RV rv;

  if (count > ATTRIBUTES_MAX || depth > DEPTH_MAX) return CKR_ARGUMENTS_BAD;
  buffer_put_u32(buffer, (uint32_t)count);
  for (CK_ULONG i = 0; i < count; i++) {
    memcpy(&attribute, attributes + i * sizeof attribute, sizeof attribute);
    if (attribute.type > UINT32_MAX) return CKR_ATTRIBUTE_TYPE_INVALID;
    buffer_put_u32(buffer, (uint32_t)attribute.type);
    if (attribute.pValue == NULL) {
      buffer_put_u32(buffer, 0);
      continue;
    }
    if (attribute.ulValueLen == 0) buffer_put_u32(buffer, dialect == DIALECT_OWN ? BUFFER_NULL : 0);
    else buffer_put_u32(buffer, attribute.ulValueLen > BUFFER_MAX ? BUFFER_MAX : (uint32_t)attribute.ulValueLen);
    if (dialect == DIALECT_P11KIT_24 || codec_attribute_kind(attribute.type) != KIND_TEMPLATE) continue;
    if (attribute.ulValueLen == 0 && dialect != DIALECT_OWN) continue;
    rv = put_queries(buffer, attribute.pValue, attribute.ulValueLen / sizeof attribute, dialect, depth + 1);
    if (rv != CKR_OK) return rv;
  }
  return CKR_OK;
}

CK_RV codec_put_query(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count, enum dialect dialect) {
  if (attributes == NULL && count != 0) return CKR_ARGUMENTS_BAD;
  return put_queries(buffer, (const unsigned char *)attributes, count, dialect, 0);
}

CK_RV codec_get_bytes(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG_PTR length) {
  const CK_ULONG room = codec_load(length);
  const unsigned char *from;
  size_t got;

  if (buffer_get_u8(buffer) == 0) {
    got = buffer_get_u32(buffer);
    if (buffer->failed) return CKR_DEVICE_ERROR;
    codec_store(length, got);
    return bytes == NULL ? CKR_OK : CKR_BUFFER_TOO_SMALL;
  }
  from = buffer_get_array(buffer, &got);
  if (buffer->failed) return CKR_DEVICE_ERROR;
  codec_store(length, got);
  if (bytes == NULL) return CKR_OK;
  if (got > room) return CKR_BUFFER_TOO_SMALL;
  if (got > 0) memcpy(bytes, from, got);
  return CKR_OK;
}

CK_RV codec_get_exactly(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG length) {
  const unsigned char *from = NULL;
  size_t got = 0;

  if (buffer_get_u8(buffer) != 0) from = buffer_get_array(buffer, &got);
  else got = buffer_get_u32(buffer);
  if (buffer->failed || got != length || (got > 0 && from == NULL)) return CKR_DEVICE_ERROR;
  if (got > 0) memcpy(bytes, from, got);
  return CKR_OK;
}

CK_RV codec_get_list(struct buffer *buffer, CK_ULONG_PTR list, CK_ULONG room, CK_ULONG_PTR count) {
  const bool present = buffer_get_u8(buffer) != 0;
  const uint32_t got = buffer_get_u32(buffer);

  if (buffer->failed) return CKR_DEVICE_ERROR;
  if (present && got > (buffer->length - buffer->at) / 8) return CKR_DEVICE_ERROR;
  codec_store(count, got);
  if (list == NULL) return CKR_OK;
  if (!present || got > room) return got == 0 ? CKR_OK : CKR_BUFFER_TOO_SMALL;
  for (uint32_t i = 0; i < got; i++) codec_store(list + i, buffer_get_u64(buffer));
  return CKR_OK;
}

CK_RV codec_get_result(struct buffer *buffer, CK_ULONG_PTR result) {
  const CK_ULONG value = buffer_get_u64(buffer);

  if (buffer->failed) return CKR_DEVICE_ERROR;
  codec_store(result, value);
  return CKR_OK;
}

CK_RV codec_get_message(struct buffer *buffer, const struct message_place *place, bool write) {
  size_t iv_length;
  size_t tag_length;
  const unsigned char *iv = buffer_get_array(buffer, &iv_length);
  const unsigned char *tag = buffer_get_array(buffer, &tag_length);

  if (buffer->failed || (iv != NULL && iv_length != place->iv_length) ||
      (tag != NULL && (place->tag == NULL || tag_length != place->tag_length)))
    return CKR_DEVICE_ERROR;
  if (write && iv != NULL && iv_length > 0) memcpy(place->iv, iv, iv_length);
  if (write && tag != NULL && tag_length > 0) memcpy(place->tag, tag, tag_length);
  return CKR_OK;
}

/** Reads one value and copies it to `to` if that is not null and `room` suffices; its length in memory goes to `length`. */
static CK_RV get_value(struct buffer *buffer, CK_ATTRIBUTE_TYPE type, unsigned char *to, CK_ULONG room, CK_ULONG told,
                       CK_ULONG *length, int depth);

/** Reads one attribute into the caller's row. CKR_BUFFER_TOO_SMALL goes into `rv`, anything else is returned. */
static CK_RV get_answer(struct buffer *buffer, unsigned char *row, CK_RV *rv, int depth) {
  CK_ATTRIBUTE attribute;
  CK_ULONG length;
  CK_ULONG told;
  CK_RV read;

  if (row != NULL) memcpy(&attribute, row, sizeof attribute);
  else attribute = (CK_ATTRIBUTE){0, NULL, 0};
  told = buffer_get_u32(buffer);
  if (buffer->failed || (row != NULL && depth == 0 && told != attribute.type)) return CKR_DEVICE_ERROR;
  attribute.type = told;
  if (buffer_get_u8(buffer) == 0) {
    attribute.ulValueLen = unavailable;
  } else {
    told = buffer_get_u32(buffer);
    read = get_value(buffer, attribute.type, attribute.pValue, attribute.ulValueLen, told, &length, depth);
    if (read == CKR_BUFFER_TOO_SMALL) {
      *rv = read;
      attribute.ulValueLen = unavailable;
    } else if (read != CKR_OK) {
      return read;
    } else {
      attribute.ulValueLen = length;
    }
  }
  if (buffer->failed) return CKR_DEVICE_ERROR;
  if (row != NULL) memcpy(row, &attribute, sizeof attribute);
  return CKR_OK;
}

static CK_RV get_value(struct buffer *buffer, CK_ATTRIBUTE_TYPE type, unsigned char *to, CK_ULONG room, CK_ULONG told,
                       CK_ULONG *length, int depth) {
  const unsigned char *from;
  unsigned char number[sizeof(CK_ULONG)];
  uint32_t count;
  size_t got;
  CK_RV rv = CKR_OK;
  CK_RV read;

  switch (codec_attribute_kind(type)) {
    case KIND_BOOLEAN:
      number[0] = (unsigned char)buffer_get_u8(buffer);
      from = number;
      got = 1;
      break;
    case KIND_ULONG:
      codec_store(number, buffer_get_u64(buffer));
      from = number;
      got = sizeof number;
      break;
    case KIND_MECHANISMS:
      count = buffer_get_u32(buffer);
      if (buffer->failed || count > (buffer->length - buffer->at) / 8) return CKR_DEVICE_ERROR;
      /* With the length alone, the list is empty. */
      *length = count == 0 ? told : count * sizeof(CK_ULONG);
      if (to == NULL) {
        buffer_take(buffer, (size_t)count * 8);
        return CKR_OK;
      }
      if (*length > room) {
        buffer_take(buffer, (size_t)count * 8);
        return CKR_BUFFER_TOO_SMALL;
      }
      for (uint32_t i = 0; i < count; i++)
        codec_store(to + i * sizeof(CK_ULONG), buffer_get_u64(buffer));
      return CKR_OK;
    case KIND_TEMPLATE:
      if (depth >= DEPTH_MAX) return CKR_DEVICE_ERROR;
      count = buffer_get_u32(buffer);
      if (buffer->failed || count > (buffer->length - buffer->at) / 5) return CKR_DEVICE_ERROR;
      *length = count == 0 ? told : count * sizeof(CK_ATTRIBUTE);
      if (to != NULL && *length > room) rv = CKR_BUFFER_TOO_SMALL;
      for (uint32_t i = 0; i < count; i++) {
        unsigned char *row = to == NULL || rv == CKR_BUFFER_TOO_SMALL ? NULL : to + i * sizeof(CK_ATTRIBUTE);
        CK_RV inner = CKR_OK;
        read = get_answer(buffer, row, &inner, depth + 1);
        if (read != CKR_OK) return read;
      }
      return rv;
    default:
      from = buffer_get_array(buffer, &got);
      if (from == NULL) got = told;
      break;
  }
  if (buffer->failed) return CKR_DEVICE_ERROR;
  *length = got;
  if (to == NULL) return CKR_OK;
  if (got > room) return CKR_BUFFER_TOO_SMALL;
  if (from == NULL && got > 0) return CKR_DEVICE_ERROR;
  if (got > 0) memcpy(to, from, got);
  return CKR_OK;
}

CK_RV codec_get_answers(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  CK_RV rv = CKR_OK;
  CK_RV told;

  if (buffer_get_u32(buffer) != count || buffer->failed) return CKR_DEVICE_ERROR;
  for (CK_ULONG i = 0; i < count; i++) {
    CK_RV read = get_answer(buffer, (unsigned char *)attributes + i * sizeof *attributes, &rv, 0);
    if (read != CKR_OK) return read;
  }
  told = buffer_get_u64(buffer);
  if (buffer->failed) return CKR_DEVICE_ERROR;
  return told == CKR_OK ? rv : told;
}

void codec_get_text(struct buffer *buffer, CK_UTF8CHAR *text, size_t length) {
  size_t got;
  const unsigned char *from = buffer_get_array(buffer, &got);

  if (from == NULL || got != length) buffer->failed = true;
  else memcpy(text, from, length);
}

void codec_get_version(struct buffer *buffer, CK_VERSION *version) {
  version->major = (CK_BYTE)buffer_get_u8(buffer);
  version->minor = (CK_BYTE)buffer_get_u8(buffer);
}
