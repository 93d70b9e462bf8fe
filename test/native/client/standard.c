/*
 * A C program that loads a PKCS#11 library by its path and checks what only C can see: where output is written and where it
 * is not, null pointers, structures that are misaligned. The token must be ours, with nothing in it that it would mind.
 * Prints what is wrong; the exit code is the number of faults. test/conformance/standard.test.ts runs it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptoki.h"

static CK_FUNCTION_LIST_3_2 *p11;
static int faults;

#define IS(call, wanted)                                                                                                 \
  do {                                                                                                                   \
    const CK_RV is_ = (call);                                                                                            \
    if (is_ != (wanted)) {                                                                                               \
      faults++;                                                                                                          \
      printf("line %d: %s is 0x%lx and not %s\n", __LINE__, #call, is_, #wanted);                                        \
    }                                                                                                                    \
  } while (0)
#define HOLDS(condition)                                                                                                 \
  do {                                                                                                                   \
    if (!(condition)) {                                                                                                  \
      faults++;                                                                                                          \
      printf("line %d: %s does not hold\n", __LINE__, #condition);                                                       \
    }                                                                                                                    \
  } while (0)

enum { CKR_AEAD_DECRYPT_FAILED_ = 0x42 };
static CK_BBOOL yes = CK_TRUE;
static CK_SESSION_HANDLE session;

static CK_OBJECT_HANDLE make_key(CK_BBOOL token) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_AES;
  CK_BYTE value[32];
  CK_OBJECT_HANDLE key = 0;
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},   {CKA_VALUE, value, sizeof value},
      {CKA_TOKEN, &token, sizeof token}, {CKA_ENCRYPT, &yes, sizeof yes},      {CKA_DECRYPT, &yes, sizeof yes},
  };

  memset(value, 0x5a, sizeof value);
  IS(p11->C_CreateObject(session, template, 6, &key), CKR_OK);
  return key;
}

static int all(const CK_BYTE *bytes, size_t length, CK_BYTE is) {
  for (size_t i = 0; i < length; i++)
    if (bytes[i] != is) return 0;
  return 1;
}

/* --- messages ------------------------------------------------------------------------------------------------------------ */

static void messages(CK_BBOOL token) {
  const CK_OBJECT_HANDLE key = make_key(token);
  CK_BYTE iv[16];  /* twelve, and what must stay as it is */
  CK_BYTE tag[20]; /* sixteen, and what must stay as it is */
  CK_BYTE data[40] = "what is to be kept between two parties";
  CK_BYTE aad[8] = "open";
  CK_BYTE sealed[48];
  CK_BYTE opened[48];
  CK_GCM_MESSAGE_PARAMS parameter = {iv, 12, 0, 0 /* CKG_NO_GENERATE */, tag, 128};
  CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
  /* The same structure where no compiler would put it. */
  CK_BYTE misaligned[sizeof parameter + 1];
  CK_ULONG length = sizeof sealed;

  memset(iv, 0x11, sizeof iv);
  memset(tag, 0xee, sizeof tag);
  memset(sealed, 0xee, sizeof sealed);

  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_OPERATION_NOT_INITIALIZED);
  /* The mechanism's own parameter: none, or the structure, which is as long as CK_GCM_PARAMS and is none. */
  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_OK);
  IS(p11->C_MessageEncryptFinal(session), CKR_OK);
  mechanism.pParameter = &parameter;
  mechanism.ulParameterLen = 5;
  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_MECHANISM_PARAM_INVALID);
  mechanism.ulParameterLen = sizeof parameter;
  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_OK);

  /* Null pointers. */
  length = sizeof sealed;
  IS(p11->C_EncryptMessage(session, NULL, sizeof parameter, aad, 8, data, 40, sealed, &length), CKR_MECHANISM_PARAM_INVALID);
  IS(p11->C_EncryptMessage(session, &parameter, 8, aad, 8, data, 40, sealed, &length), CKR_MECHANISM_PARAM_INVALID);
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, NULL, 8, data, 40, sealed, &length), CKR_ARGUMENTS_BAD);
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, NULL, 40, sealed, &length), CKR_ARGUMENTS_BAD);
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, NULL), CKR_ARGUMENTS_BAD);
  parameter.pTag = NULL;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_MECHANISM_PARAM_INVALID);
  parameter.pTag = tag;
  parameter.pIv = NULL;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_MECHANISM_PARAM_INVALID);
  parameter.pIv = iv;

  /* A query and too little room write nothing but the length. */
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, NULL, &length), CKR_OK);
  HOLDS(length == 40);
  length = 39;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length), CKR_BUFFER_TOO_SMALL);
  HOLDS(length == 40 && all(sealed, sizeof sealed, 0xee) && all(tag, sizeof tag, 0xee) && all(iv, sizeof iv, 0x11));

  /* The caller's IV stays, ciphertext and tag come, and nothing behind them changes. */
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length), CKR_OK);
  HOLDS(length == 40 && all(sealed + 40, 8, 0xee) && !all(sealed, 40, 0xee));
  HOLDS(all(iv, sizeof iv, 0x11) && all(tag + 16, 4, 0xee) && !all(tag, 16, 0xee));
  length = sizeof sealed;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, 8, data, 40, sealed, &length),
     CKR_MECHANISM_PARAM_INVALID);

  mechanism = (CK_MECHANISM){CKM_AES_GCM, NULL, 0};
  IS(p11->C_MessageDecryptInit(session, &mechanism, key), CKR_OK);
  length = sizeof opened;
  IS(p11->C_DecryptMessage(session, &parameter, sizeof parameter, aad, 8, sealed, 40, opened, &length), CKR_OK);
  HOLDS(length == 40 && memcmp(opened, data, 40) == 0);
  tag[3] ^= 1;
  memset(opened, 0xee, sizeof opened);
  IS(p11->C_DecryptMessage(session, &parameter, sizeof parameter, aad, 8, sealed, 40, opened, &length),
     CKR_AEAD_DECRYPT_FAILED_);
  HOLDS(all(opened, sizeof opened, 0xee));
  tag[3] ^= 1;

  /* A generated IV comes back behind its fixed bits; encrypted in parts, in place, with the structure misaligned. */
  parameter.ivGenerator = 1; /* CKG_GENERATE */
  memcpy(misaligned + 1, &parameter, sizeof parameter);
  IS(p11->C_EncryptMessageBegin(session, misaligned + 1, sizeof parameter, aad, 8), CKR_OK);
  HOLDS(!all(iv, 12, 0x11) && all(iv + 12, 4, 0x11));
  memcpy(sealed, data, 40);
  length = 24;
  IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed, 24, sealed, &length, 0), CKR_OK);
  if (length == 24) {
    length = 16;
    IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed + 24, 16, sealed + 24, &length,
                                 CKF_END_OF_MESSAGE),
       CKR_OK);
    HOLDS(length == 16);
  } else {
    /* A key of the service's: everything comes at the end. */
    HOLDS(length == 0 && token);
    length = 16;
    IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed + 24, 16, sealed, &length,
                                 CKF_END_OF_MESSAGE),
       CKR_BUFFER_TOO_SMALL);
    HOLDS(length == 40);
    IS(p11->C_EncryptMessageNext(session, misaligned + 1, sizeof parameter, sealed + 24, 16, sealed, &length,
                                 CKF_END_OF_MESSAGE),
       CKR_OK);
  }
  IS(p11->C_MessageEncryptFinal(session), CKR_OK);
  IS(p11->C_MessageEncryptFinal(session), CKR_OPERATION_NOT_INITIALIZED);

  IS(p11->C_DecryptMessageBegin(session, &parameter, sizeof parameter, aad, 8), CKR_OK);
  length = sizeof opened;
  IS(p11->C_DecryptMessageNext(session, &parameter, sizeof parameter, sealed, 40, opened, &length, CKF_END_OF_MESSAGE), CKR_OK);
  HOLDS(length == 40 && memcmp(opened, data, 40) == 0);
  IS(p11->C_MessageDecryptInit(session, NULL, 0), CKR_OK);
  IS(p11->C_MessageDecryptFinal(session), CKR_OPERATION_NOT_INITIALIZED);
  IS(p11->C_DestroyObject(session, key), CKR_OK);
}

int main(int count, char **arguments) {
  CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);
  CK_VERSION version = {3, 2};
  CK_INTERFACE_PTR interface;
  void *library;

  if (count != 2) return 99;
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 99;
  }
  *(void **)&get_interface = dlsym(library, "C_GetInterface");
  if (get_interface == NULL || get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0) != CKR_OK) return 99;
  p11 = interface->pFunctionList;
  IS(p11->C_Initialize(NULL), CKR_OK);
  IS(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), CKR_OK);
  IS(p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "any", 3), CKR_OK);
  messages(CK_FALSE);
  messages(CK_TRUE);
  IS(p11->C_Finalize(NULL), CKR_OK);
  if (faults == 0) printf("as the standard has it\n");
  return faults;
}
