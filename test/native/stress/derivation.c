/*
 * Keys that are derived from secret keys: HKDF, the KDFs of SP 800-108, and AES encryption of data.
 */
#include <stdio.h>
#include <string.h>

#include "worker.h"

/* What the headers of 2.40 do not have. */
enum {
  CKM_HKDF_DERIVE_3_0 = 0x402a,
  CKM_HKDF_DATA_3_0 = 0x402b,
  CKM_SP800_108_COUNTER_KDF_3_0 = 0x3ac,
  CKM_SP800_108_FEEDBACK_KDF_3_0 = 0x3ad,
  SALT_NULL = 1,
  SALT_DATA = 2,
  SALT_KEY = 4,
  PRF_VARIABLE = 1,
  PRF_COUNTER = 2,
  PRF_LENGTH = 3,
  PRF_BYTES = 4,
};
struct hkdf_params {
  CK_BBOOL extract, expand;
  CK_MECHANISM_TYPE hash;
  CK_ULONG salt_type;
  CK_BYTE *salt;
  CK_ULONG salt_length;
  CK_OBJECT_HANDLE salt_key;
  CK_BYTE *info;
  CK_ULONG info_length;
};
struct counter_format {
  CK_BBOOL little_endian;
  CK_ULONG bits;
};
struct length_format {
  CK_ULONG method;
  CK_BBOOL little_endian;
  CK_ULONG bits;
};
struct prf_data {
  CK_ULONG type;
  void *value;
  CK_ULONG length;
};
struct counter_params {
  CK_MECHANISM_TYPE prf;
  CK_ULONG count;
  struct prf_data *data;
  CK_ULONG additional;
  void *keys;
};
struct feedback_params {
  CK_MECHANISM_TYPE prf;
  CK_ULONG count;
  struct prf_data *data;
  CK_ULONG iv_length;
  CK_BYTE *iv;
  CK_ULONG additional;
  void *keys;
};

/** Derives an object of `size` bytes, whose value is compared with `w->expected`. */
static bool derives(struct worker *w, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE base, CK_ULONG size) {
  const bool data = mechanism->mechanism == CKM_HKDF_DATA_3_0;
  CK_OBJECT_CLASS class = data ? CKO_DATA : CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_GENERIC_SECRET;
  CK_ATTRIBUTE template[] = {VALUE(CKA_CLASS, class), VALUE(CKA_VALUE_LEN, size), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_SENSITIVE, no),
                             VALUE(CKA_EXTRACTABLE, yes)};
  CK_OBJECT_HANDLE derived = 0;

  TRY(C_DeriveKey, w->session, mechanism, base, template, data ? 2 : COUNT(template), &derived);
  if (!compare_value(w, derived, w->expected, size)) return false;
  TRY(C_DestroyObject, w->session, derived);
  covered(w, mechanism->mechanism);
  return true;
}

bool hkdf_job(struct worker *w) {
  static const CK_ULONG salts[] = {SALT_NULL, SALT_DATA, SALT_KEY};
  const struct digest *digest = any_digest(w);
  const enum reference_hkdf_step step = (enum reference_hkdf_step)below(w, 3);
  CK_BYTE salt[48];
  CK_BYTE info[256];
  CK_BYTE output[64];
  const CK_ULONG hash_length = reference_digest(digest->name, salt, 0, output);
  const CK_ULONG size = step == HKDF_EXTRACT ? hash_length : 16 + below(w, 200);
  struct hkdf_params parameter = {step != HKDF_EXPAND,
                                  step != HKDF_EXTRACT,
                                  digest->digest,
                                  step == HKDF_EXPAND ? SALT_NULL : salts[below(w, COUNT(salts))],
                                  salt,
                                  1 + below(w, sizeof salt),
                                  0,
                                  info,
                                  below(w, sizeof info)};
  CK_MECHANISM mechanism = {once_in(w, 4) ? CKM_HKDF_DATA_3_0 : CKM_HKDF_DERIVE_3_0, &parameter, sizeof parameter};

  w->job = "HKDF";
  w->size = size;
  if (!need_secret(w)) return false;
  fill(w, salt, sizeof salt);
  fill(w, info, sizeof info);
  if (parameter.salt_type == SALT_KEY && !create_secret(w, false, CKK_GENERIC_SECRET, salt, parameter.salt_length, &parameter.salt_key)) return false;
  if (parameter.salt_type == SALT_NULL) parameter.salt_length = 0;
  reference_hkdf(step, digest->name, w->secret, w->secret_length, salt, parameter.salt_length, info, parameter.info_length, w->expected, size);
  if (!derives(w, &mechanism, w->generic, size)) return false;
  if (parameter.salt_key != 0) TRY(C_DestroyObject, w->session, parameter.salt_key);
  return true;
}

bool counter_kdf_job(struct worker *w) {
  const struct digest *digest = once_in(w, 4) ? NULL : any_digest(w);
  const bool feedback = once_in(w, 2);
  CK_BYTE label[64];
  CK_BYTE context[64];
  CK_BYTE iv[64];
  CK_BYTE zero = 0;
  struct counter_format counter = {CK_FALSE, 32};
  struct length_format length = {1, CK_FALSE, 32};
  struct prf_data data[6];
  CK_ULONG count = 0;
  const CK_ULONG size = 16 + below(w, 200);
  const CK_ULONG label_length = 1 + below(w, sizeof label);
  const CK_ULONG context_length = 1 + below(w, sizeof context);
  CK_ULONG iv_length = 0;
  struct counter_params counter_parameter;
  struct feedback_params feedback_parameter;
  CK_MECHANISM mechanism;

  w->job = feedback ? "SP 800-108 in feedback mode" : "SP 800-108 in counter mode";
  w->size = size;
  if (!need_secret(w)) return false;
  fill(w, label, sizeof label);
  fill(w, context, sizeof context);
  fill(w, iv, sizeof iv);
  if (feedback) data[count++] = (struct prf_data){PRF_VARIABLE, NULL, 0};
  data[count++] = (struct prf_data){feedback ? PRF_COUNTER : PRF_VARIABLE, &counter, sizeof counter};
  data[count++] = (struct prf_data){PRF_BYTES, label, label_length};
  data[count++] = (struct prf_data){PRF_BYTES, &zero, 1};
  data[count++] = (struct prf_data){PRF_BYTES, context, context_length};
  data[count++] = (struct prf_data){PRF_LENGTH, &length, sizeof length};
  if (feedback && once_in(w, 2)) iv_length = digest == NULL ? 16 : reference_digest(digest->name, label, 0, w->expected);
  counter_parameter = (struct counter_params){digest == NULL ? CKM_AES_CMAC : digest->hmac, count, data, 0, NULL};
  feedback_parameter = (struct feedback_params){counter_parameter.prf, count, data, iv_length, iv_length == 0 ? NULL : iv, 0, NULL};
  mechanism = feedback ? (CK_MECHANISM){CKM_SP800_108_FEEDBACK_KDF_3_0, &feedback_parameter, sizeof feedback_parameter}
                       : (CK_MECHANISM){CKM_SP800_108_COUNTER_KDF_3_0, &counter_parameter, sizeof counter_parameter};
  reference_kbkdf(feedback, digest == NULL ? NULL : digest->name, w->secret, w->secret_length, label, label_length, context, context_length,
                  iv_length == 0 ? NULL : iv, iv_length, w->expected, size);
  return derives(w, &mechanism, digest == NULL ? w->aes : w->generic, size);
}

/** The key is the beginning of the encrypted data. */
bool encryption_kdf_job(struct worker *w) {
  const bool chained = once_in(w, 2);
  CK_BYTE data[256];
  const CK_ULONG length = 16 * (1 + below(w, sizeof data / 16));
  const CK_ULONG size = 1 + below(w, length);
  CK_AES_CBC_ENCRYPT_DATA_PARAMS with_iv = {.pData = data, .length = length};
  CK_KEY_DERIVATION_STRING_DATA alone = {data, length};
  CK_MECHANISM mechanism = chained ? (CK_MECHANISM){CKM_AES_CBC_ENCRYPT_DATA, &with_iv, sizeof with_iv}
                                   : (CK_MECHANISM){CKM_AES_ECB_ENCRYPT_DATA, &alone, sizeof alone};
  char name[16];
  struct reference_cipher reference = {.name = name, .key = w->secret, .iv = with_iv.iv, .iv_length = 16};

  w->job = "a key by encryption of data";
  w->size = size;
  if (!need_secret(w)) return false;
  fill(w, data, length);
  fill(w, with_iv.iv, sizeof with_iv.iv);
  snprintf(name, sizeof name, "AES-%lu-%s", w->secret_length * 8, chained ? "CBC" : "ECB");
  reference_encrypt(&reference, data, length, w->expected);
  return derives(w, &mechanism, w->aes, size);
}
