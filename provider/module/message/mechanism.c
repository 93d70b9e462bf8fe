/* Mechanisms and their parameters as bytes; see argument_codec.h. */
#include "message/argument_codec.h"

#include <string.h>

enum { CKM_FEEDBACK_KDF = 0x3ad /* CKM_SP800_108_FEEDBACK_KDF, 3.0 */ };

/**
 * CK_GCM_PARAMS before 2.40 errata, still sent by older callers: without the length of the IV in
 * bits.
 */
struct old_gcm_params {
  CK_BYTE_PTR pIv;
  CK_ULONG ulIvLen;
  CK_BYTE_PTR pAAD;
  CK_ULONG ulAADLen;
  CK_ULONG ulTagBits;
};

/** A parameter in the layout of its form's row. */
union parameter {
  CK_GCM_PARAMS gcm;
  CK_SP800_108_FEEDBACK_KDF_PARAMS kdf;
};

static CK_RV put_inner(struct buffer *buffer, const void *bytes, CK_ULONG length) {
  if ((bytes == NULL && length != 0) || length > BUFFER_MAX) return CKR_MECHANISM_PARAM_INVALID;
  buffer_put_array(buffer, bytes, length);
  return CKR_OK;
}

static CK_RV put_prf_data(struct buffer *buffer, const CK_PRF_DATA_PARAM *data) {
  enum { ITERATION_VARIABLE = 1, COUNTER = 2, DKM_LENGTH = 3, BYTE_ARRAY = 4 };
  CK_SP800_108_DKM_LENGTH_FORMAT format = {0, CK_FALSE, 0};
  CK_SP800_108_COUNTER_FORMAT counter;
  const bool bytes = data->type == BYTE_ARRAY;

  if (data->pValue == NULL && data->ulValueLen != 0) return CKR_MECHANISM_PARAM_INVALID;
  if (data->type == DKM_LENGTH && data->ulValueLen == sizeof format) {
    memcpy(&format, data->pValue, sizeof format);
  } else if ((data->type == ITERATION_VARIABLE || data->type == COUNTER) && data->ulValueLen == sizeof counter) {
    memcpy(&counter, data->pValue, sizeof counter);
    format = (CK_SP800_108_DKM_LENGTH_FORMAT){0, counter.bLittleEndian, counter.ulWidthInBits};
  } else if (!bytes && data->ulValueLen != 0) {
    return CKR_MECHANISM_PARAM_INVALID;
  }
  buffer_put_u64(buffer, data->type);
  buffer_put_u8(buffer, format.bLittleEndian != CK_FALSE);
  buffer_put_u64(buffer, format.ulWidthInBits);
  buffer_put_u64(buffer, format.dkmLengthMethod);
  return bytes ? put_inner(buffer, data->pValue, data->ulValueLen) : put_inner(buffer, NULL, 0);
}

static CK_RV put_prf_rows(struct buffer *buffer, const void *rows, CK_ULONG count) {
  enum { DATA_MAX = 64 };
  CK_PRF_DATA_PARAM data;

  if (count > DATA_MAX || (rows == NULL && count != 0)) return CKR_MECHANISM_PARAM_INVALID;
  buffer_put_u32(buffer, (uint32_t)count);
  for (CK_ULONG i = 0; i < count; i++) {
    CK_RV rv;

    memcpy(&data, (const unsigned char *)rows + i * sizeof data, sizeof data);
    rv = put_prf_data(buffer, &data);
    if (rv != CKR_OK) return rv;
  }
  return CKR_OK;
}

/** The members of a structure, as its row has them. */
static CK_RV put_members(struct buffer *buffer, const unsigned char *structure, const struct parameter_row *row) {
  CK_RV rv = CKR_OK;

  for (const struct parameter_member *member = row->members; member->kind != MEMBER_END && rv == CKR_OK; member++) {
    const unsigned char *const at = structure + member->at;
    const void *pointer;

    switch (member->kind) {
      case MEMBER_END: break;
      case MEMBER_ULONG: buffer_put_u64(buffer, codec_load(at)); break;
      case MEMBER_FLAG: buffer_put_u8(buffer, *at != CK_FALSE); break;
      case MEMBER_ARRAY: buffer_put_array(buffer, at, 16); break;
      case MEMBER_BYTES:
      case MEMBER_PRF_DATA:
        memcpy(&pointer, at, sizeof pointer);
        rv = (member->kind == MEMBER_BYTES ? put_inner : put_prf_rows)(buffer, pointer, codec_load(structure + member->count_at));
        break;
    }
  }
  return rv;
}

static bool is_old_gcm(const CK_MECHANISM *mechanism, enum parameter_form form) {
  return form == FORM_GCM && mechanism->ulParameterLen == sizeof(struct old_gcm_params);
}

/**
 * Whether the parameter is CK_SP800_108_KDF_PARAMS: in the counter and the double pipeline mode.
 */
static bool is_plain_kdf(const CK_MECHANISM *mechanism, enum parameter_form form) {
  return form == FORM_SP800 && mechanism->mechanism != CKM_FEEDBACK_KDF;
}

/**
 * The form in which this parameter travels: the mechanism's own if its length fits, else flat bytes
 * for the agent to refuse.
 */
static enum parameter_form form_of(const CK_MECHANISM *mechanism) {
  const enum parameter_form form = codec_parameter_form(mechanism->mechanism);
  const CK_ULONG length = mechanism->ulParameterLen;

  if (length == 0) return FORM_NONE;
  if (is_plain_kdf(mechanism, form)) return length == sizeof(CK_SP800_108_KDF_PARAMS) ? form : FORM_BYTES;
  return length == codec_parameters[form].length || is_old_gcm(mechanism, form) ? form : FORM_BYTES;
}

/** The parameter in the layout of its form, in the caller's memory or in `space`. */
static const void *laid_out(const CK_MECHANISM *mechanism, enum parameter_form form, union parameter *space) {
  if (is_old_gcm(mechanism, form)) {
    struct old_gcm_params old;
    memcpy(&old, mechanism->pParameter, sizeof old);
    space->gcm = (CK_GCM_PARAMS){old.pIv, old.ulIvLen, old.ulIvLen * 8, old.pAAD, old.ulAADLen, old.ulTagBits};
    return space;
  }
  if (is_plain_kdf(mechanism, form)) {
    CK_SP800_108_KDF_PARAMS plain;
    memcpy(&plain, mechanism->pParameter, sizeof plain);
    space->kdf = (CK_SP800_108_FEEDBACK_KDF_PARAMS){plain.prfType, plain.ulNumberOfDataParams, plain.pDataParams, 0, NULL,
                                                    plain.ulAdditionalDerivedKeys, NULL};
    return space;
  }
  return mechanism->pParameter;
}

static CK_RV put_parameter(struct buffer *buffer, const CK_MECHANISM *mechanism, enum parameter_form form) {
  union parameter space;

  if (form == FORM_NONE) return CKR_OK;
  if (form == FORM_BYTES) return put_inner(buffer, mechanism->pParameter, mechanism->ulParameterLen);
  return put_members(buffer, laid_out(mechanism, form, &space), &codec_parameters[form]);
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
  /*
   * The parameter for GCM is absent, or the structure that comes with the first message. That is as
   * long as CK_GCM_PARAMS and must not be taken for one.
   */
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
  /*
   * Only the length of a flat parameter (an IV) matters; what is inside makes no difference to
   * being accepted.
   */
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
