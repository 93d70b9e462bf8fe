/*
 * A C program that loads a PKCS#11 library by its path and uses the mechanisms whose parameter is a
 * structure with pointers in it: does the memory behind the pointers reach the token, and is the
 * result the published one (SP 800-38A and 38C, RFC 5869, RFC 8032). Prints the faults; the exit
 * code is the number of faults. test/conformance/c-programs.test.ts runs it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "message/cryptoki.h"

static CK_FUNCTION_LIST *p11;
static CK_SESSION_HANDLE session;

/* What the headers of 2.40 do not have. */
enum { CKM_EDDSA_ = 0x1057, CKM_HKDF_DERIVE_ = 0x402a, CKM_HKDF_DATA_ = 0x402b, CKK_EC_EDWARDS_ = 0x40, HKDF_DATA = 2, HKDF_KEY = 4 };
struct ccm {
  CK_ULONG data_length;
  CK_BYTE *nonce;
  CK_ULONG nonce_length;
  CK_BYTE *aad;
  CK_ULONG aad_length;
  CK_ULONG mac_length;
};
struct eddsa {
  CK_BBOOL prehash;
  CK_ULONG context_length;
  CK_BYTE *context;
};
struct hkdf {
  CK_BBOOL extract;
  CK_BBOOL expand;
  CK_MECHANISM_TYPE hash;
  CK_ULONG salt_type;
  CK_BYTE *salt;
  CK_ULONG salt_length;
  CK_OBJECT_HANDLE salt_key;
  CK_BYTE *info;
  CK_ULONG info_length;
};
struct string {
  CK_BYTE *data;
  CK_ULONG length;
};
struct cbc {
  CK_BYTE iv[16];
  CK_BYTE *data;
  CK_ULONG length;
};

static CK_BBOOL yes = CK_TRUE;
static CK_BBOOL no = CK_FALSE;
static CK_OBJECT_CLASS secret = CKO_SECRET_KEY;
static CK_KEY_TYPE generic = CKK_GENERIC_SECRET;

static void count(CK_BYTE *bytes, size_t length, CK_BYTE from) {
  for (size_t i = 0; i < length; i++) bytes[i] = (CK_BYTE)(from + i);
}

static size_t unhex(const char *text, CK_BYTE *bytes) {
  const size_t length = strlen(text) / 2;
  for (size_t i = 0; i < length; i++) {
    const char digits[] = {text[2 * i], text[2 * i + 1], 0};
    bytes[i] = (CK_BYTE)strtoul(digits, NULL, 16);
  }
  return length;
}

static int equals(const CK_BYTE *bytes, CK_ULONG length, const char *text) {
  CK_BYTE wanted[128];
  return unhex(text, wanted) == length && memcmp(bytes, wanted, length) == 0;
}

static CK_OBJECT_HANDLE make_key(CK_KEY_TYPE type, CK_BYTE *value, CK_ULONG length, CK_BBOOL token, CK_BBOOL sensitive) {
  CK_OBJECT_HANDLE key = 0;
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &secret, sizeof secret}, {CKA_KEY_TYPE, &type, sizeof type},  {CKA_VALUE, value, length},
      {CKA_TOKEN, &token, sizeof token},   {CKA_DERIVE, &yes, sizeof yes},      {CKA_SENSITIVE, &sensitive, sizeof sensitive},
      {CKA_EXTRACTABLE, &yes, sizeof yes},
  };
  IS(p11->C_CreateObject(session, template, sizeof template / sizeof *template, &key), CKR_OK);
  return key;
}

static int has_value(CK_OBJECT_HANDLE object, const char *wanted) {
  CK_BYTE value[128];
  CK_ATTRIBUTE asked = {CKA_VALUE, value, sizeof value};
  IS(p11->C_GetAttributeValue(session, object, &asked, 1), CKR_OK);
  return equals(value, asked.ulValueLen, wanted);
}

/* SP 800-38C, example 3. */
static void aes_ccm(CK_BBOOL token) {
  static const char sealed[] = "e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5484392fbc1b09951";
  CK_BYTE value[16], nonce[12], aad[20], data[24], out[32], back[24];
  struct ccm ccm = {sizeof data, nonce, sizeof nonce, aad, sizeof aad, 8};
  CK_MECHANISM mechanism = {CKM_AES_CCM, &ccm, sizeof ccm};
  CK_ULONG length = sizeof out, part = sizeof out, done = 0;
  CK_OBJECT_HANDLE key;

  count(value, sizeof value, 0x40), count(nonce, sizeof nonce, 0x10), count(aad, sizeof aad, 0), count(data, sizeof data, 0x20);
  key = make_key(CKK_AES, value, sizeof value, token, CK_FALSE);
  IS(p11->C_EncryptInit(session, &mechanism, key), CKR_OK);
  IS(p11->C_EncryptUpdate(session, data, 10, out, &part), CKR_OK);
  HOLDS(part == 10);
  done = part;
  part = sizeof out - done;
  IS(p11->C_EncryptUpdate(session, data + 10, 14, out + done, &part), CKR_OK);
  done += part;
  length = sizeof out - done;
  IS(p11->C_EncryptFinal(session, out + done, &length), CKR_OK);
  HOLDS(equals(out, done + length, sealed));
  IS(p11->C_EncryptInit(session, &mechanism, key), CKR_MECHANISM_PARAM_INVALID);
  IS(p11->C_DecryptInit(session, &mechanism, key), CKR_OK);
  length = sizeof back;
  IS(p11->C_Decrypt(session, out, sizeof out, back, &length), CKR_OK);
  HOLDS(length == sizeof data && memcmp(back, data, sizeof data) == 0);
  ccm.nonce = NULL;
  IS(p11->C_DecryptInit(session, &mechanism, key), CKR_MECHANISM_PARAM_INVALID);
  ccm.nonce = nonce;
  mechanism.ulParameterLen = sizeof ccm - 1;
  IS(p11->C_DecryptInit(session, &mechanism, key), CKR_MECHANISM_PARAM_INVALID);
}

/* RFC 5869, A.1. */
static void hkdf(CK_BBOOL token) {
  static const char derived[] = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865";
  CK_BYTE value[22], salt[13], info[10];
  CK_ULONG wanted = 42;
  struct hkdf hkdf = {CK_TRUE, CK_TRUE, CKM_SHA256, HKDF_DATA, salt, sizeof salt, 0, info, sizeof info};
  CK_MECHANISM mechanism = {CKM_HKDF_DERIVE_, &hkdf, sizeof hkdf};
  CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &wanted, sizeof wanted},
                             {CKA_CLASS, &secret, sizeof secret},
                             {CKA_KEY_TYPE, &generic, sizeof generic},
                             {CKA_SENSITIVE, &no, sizeof no},
                             {CKA_EXTRACTABLE, &yes, sizeof yes}};
  CK_OBJECT_HANDLE base, made = 0;

  memset(value, 0x0b, sizeof value);
  count(salt, sizeof salt, 0), count(info, sizeof info, 0xf0);
  base = make_key(CKK_GENERIC_SECRET, value, sizeof value, token, CK_FALSE);
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 5, &made), CKR_OK);
  HOLDS(has_value(made, derived));
  hkdf.salt_type = HKDF_KEY;
  hkdf.salt_key = make_key(CKK_GENERIC_SECRET, salt, sizeof salt, token, CK_FALSE);
  hkdf.salt = NULL;
  hkdf.salt_length = 0;
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 5, &made), CKR_OK);
  HOLDS(has_value(made, derived));
  mechanism.mechanism = CKM_HKDF_DATA_;
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 1, &made), CKR_OK);
  HOLDS(has_value(made, derived));
  hkdf.info = NULL;
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 1, &made), CKR_MECHANISM_PARAM_INVALID);
}

/* SP 800-38A, F.1.1 and F.2.1. */
static void by_encryption(CK_BBOOL token) {
  CK_BYTE value[16], data[32];
  struct string string = {data, sizeof data};
  struct cbc cbc = {.data = data, .length = sizeof data};
  CK_MECHANISM mechanism = {CKM_AES_ECB_ENCRYPT_DATA, &string, sizeof string};
  CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret, sizeof secret},
                             {CKA_KEY_TYPE, &generic, sizeof generic},
                             {CKA_SENSITIVE, &no, sizeof no},
                             {CKA_EXTRACTABLE, &yes, sizeof yes}};
  CK_OBJECT_HANDLE base, made = 0;

  unhex("2b7e151628aed2a6abf7158809cf4f3c", value);
  unhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", data);
  count(cbc.iv, sizeof cbc.iv, 0);
  base = make_key(CKK_AES, value, sizeof value, token, CK_FALSE);
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 4, &made), CKR_OK);
  HOLDS(has_value(made, "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"));
  mechanism = (CK_MECHANISM){CKM_AES_CBC_ENCRYPT_DATA, &cbc, sizeof cbc};
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 4, &made), CKR_OK);
  HOLDS(has_value(made, "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"));
  base = make_key(CKK_AES, value, sizeof value, token, CK_TRUE);
  IS(p11->C_DeriveKey(session, &mechanism, base, template, 4, &made), CKR_KEY_FUNCTION_NOT_PERMITTED);
}

/* RFC 8032, 7.1, test 2. */
static void eddsa(CK_BBOOL token) {
  static const char expected[] =
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
  CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
  CK_KEY_TYPE type = CKK_EC_EDWARDS_;
  CK_BYTE value[32], curve[8], data[1] = {0x72}, context[1] = {7}, signature[64];
  CK_ULONG length = sizeof signature;
  const size_t curve_length = unhex("06032b6570", curve);
  CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class},
                             {CKA_KEY_TYPE, &type, sizeof type},
                             {CKA_EC_PARAMS, curve, curve_length},
                             {CKA_VALUE, value, sizeof value},
                             {CKA_TOKEN, &token, sizeof token}};
  struct eddsa parameter = {CK_FALSE, 0, NULL};
  CK_MECHANISM pure = {CKM_EDDSA_, NULL, 0};
  CK_MECHANISM other = {CKM_EDDSA_, &parameter, sizeof parameter};
  CK_OBJECT_HANDLE key = 0;

  unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", value);
  IS(p11->C_CreateObject(session, template, 5, &key), CKR_OK);
  IS(p11->C_SignInit(session, &pure, key), CKR_OK);
  IS(p11->C_Sign(session, data, sizeof data, signature, &length), CKR_OK);
  HOLDS(equals(signature, length, expected));
  IS(p11->C_SignInit(session, &pure, key), CKR_OK);
  IS(p11->C_SignUpdate(session, data, sizeof data), CKR_OK);
  IS(p11->C_SignFinal(session, signature, &length), CKR_OK);
  HOLDS(equals(signature, length, expected));
  /* Ed25519ctx without a context, and with one; Ed25519ph. */
  IS(p11->C_SignInit(session, &other, key), CKR_MECHANISM_PARAM_INVALID);
  parameter = (struct eddsa){CK_FALSE, sizeof context, context};
  IS(p11->C_SignInit(session, &other, key), CKR_MECHANISM_PARAM_INVALID);
  parameter = (struct eddsa){CK_TRUE, 0, NULL};
  IS(p11->C_SignInit(session, &other, key), CKR_MECHANISM_PARAM_INVALID);
}

int main(int count_of_arguments, char **arguments) {
  CK_RV (*list)(CK_FUNCTION_LIST_PTR_PTR);
  void *library = count_of_arguments > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  void *symbol = library == NULL ? NULL : dlsym(library, "C_GetFunctionList");

  if (symbol == NULL) {
    fprintf(stderr, "usage: pkcs11-parameters LIBRARY\n");
    return 255;
  }
  memcpy(&list, &symbol, sizeof list);
  IS(list(&p11), CKR_OK);
  IS(p11->C_Initialize(NULL), CKR_OK);
  IS(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), CKR_OK);
  IS(p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "any", 3), CKR_OK);
  for (CK_BBOOL token = CK_FALSE; token <= CK_TRUE; token++) {
    aes_ccm(token);
    hkdf(token);
    by_encryption(token);
    eddsa(token);
  }
  IS(p11->C_Finalize(NULL), CKR_OK);
  if (faults == 0) puts("as the standard has it");
  return faults > 254 ? 254 : faults;
}
