/*
 * A C program that loads a PKCS#11 library by its path and sends long messages through the
 * message-based functions (3.0, sections 5.9 and 5.11): one call, calls in parts, results that are
 * longer than an answer. C_Decrypt opens the results: the other tests compare that with OpenSSL.
 * Prints the faults; the exit code is the number of faults. test/conformance/c-programs.test.ts
 * runs it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "message/cryptoki.h"

enum { MEBI = 1 << 20, LONGEST = 5 * MEBI + 321, SPARE = 64, TAG = 16, AEAD_DECRYPT_FAILED = 0x42 };

static struct CK_FUNCTION_LIST_3_0 *p11;
static CK_SESSION_HANDLE session;
static CK_BYTE *data;
static CK_BYTE *sealed;
static CK_BYTE *place;
static CK_BYTE aad[] = "additional";
static CK_BYTE iv[12];
static CK_BYTE tag[TAG];

static CK_OBJECT_HANDLE make_key(CK_BBOOL token) {
  CK_BBOOL yes = CK_TRUE;
  CK_ULONG length = 32;
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
  CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof length},
                             {CKA_TOKEN, &token, sizeof token},
                             {CKA_ENCRYPT, &yes, sizeof yes},
                             {CKA_DECRYPT, &yes, sizeof yes}};
  CK_OBJECT_HANDLE key = 0;

  IS(p11->C_GenerateKey(session, &mechanism, template, 4, &key), CKR_OK);
  return key;
}

static CK_GCM_MESSAGE_PARAMS message(void) {
  return (CK_GCM_MESSAGE_PARAMS){.pIv = iv, .ulIvLen = sizeof iv, .pTag = tag, .ulTagBits = TAG * 8};
}

/** What was encrypted, with its tag behind it, is opened by another function. */
static void opens(CK_OBJECT_HANDLE key, CK_ULONG length) {
  CK_GCM_PARAMS gcm = {.pIv = iv, .ulIvLen = sizeof iv, .ulIvBits = sizeof iv * 8, .pAAD = aad, .ulAADLen = sizeof aad, .ulTagBits = TAG * 8};
  CK_MECHANISM mechanism = {CKM_AES_GCM, &gcm, sizeof gcm};
  CK_ULONG room = length;

  memcpy(sealed + length, tag, TAG);
  memset(place, 0xee, length + SPARE);
  IS(p11->C_DecryptInit(session, &mechanism, key), CKR_OK);
  IS(p11->C_Decrypt(session, sealed, length + TAG, place, &room), CKR_OK);
  HOLDS(room == length && memcmp(place, data, length) == 0);
}

/** Parts of a third each, the last one with the rest. */
static void seal_in_parts(CK_ULONG length) {
  CK_GCM_MESSAGE_PARAMS parameter = message();
  const CK_ULONG third = length / 3;
  CK_ULONG written = 0;

  iv[0]++;
  IS(p11->C_EncryptMessageBegin(session, &parameter, sizeof parameter, aad, sizeof aad), CKR_OK);
  for (int part = 0; part < 3; part++) {
    const CK_ULONG from = (CK_ULONG)part * third;
    const CK_ULONG size = part == 2 ? length - from : third;
    CK_ULONG room = size - 1;
    if (size > 0) IS(p11->C_EncryptMessageNext(session, &parameter, sizeof parameter, data + from, size, sealed + written, &room, part == 2 ? CKF_END_OF_MESSAGE : 0), CKR_BUFFER_TOO_SMALL);
    HOLDS(size == 0 || room == size);
    room = size;
    IS(p11->C_EncryptMessageNext(session, &parameter, sizeof parameter, data + from, size, sealed + written, &room, part == 2 ? CKF_END_OF_MESSAGE : 0), CKR_OK);
    written += room;
  }
  HOLDS(written == length);
}

static void open_in_parts(CK_ULONG length, CK_RV wanted, CK_BBOOL ends_empty) {
  CK_GCM_MESSAGE_PARAMS parameter = message();
  const CK_ULONG third = length / 3;
  CK_ULONG room = 0;
  CK_ULONG from = 0;

  memset(place, 0xee, length + SPARE);
  IS(p11->C_DecryptMessageBegin(session, &parameter, sizeof parameter, aad, sizeof aad), CKR_OK);
  for (int part = 0; part < (ends_empty ? 3 : 2); part++) {
    const CK_ULONG size = part == 2 ? length - from : third;
    room = length;
    IS(p11->C_DecryptMessageNext(session, &parameter, sizeof parameter, sealed + from, size, place, &room, 0), CKR_OK);
    HOLDS(room == 0 && place[0] == 0xee);
    from += size;
  }
  room = 0;
  IS(p11->C_DecryptMessageNext(session, &parameter, sizeof parameter, sealed + from, length - from, NULL, &room, CKF_END_OF_MESSAGE), CKR_OK);
  HOLDS(room == length);
  room = length - 1;
  IS(p11->C_DecryptMessageNext(session, &parameter, sizeof parameter, sealed + from, length - from, place, &room, CKF_END_OF_MESSAGE), CKR_BUFFER_TOO_SMALL);
  HOLDS(room == length);
  IS(p11->C_DecryptMessageNext(session, &parameter, sizeof parameter, sealed + from, length - from, place, &room, CKF_END_OF_MESSAGE), wanted);
  if (wanted == CKR_OK) {
    HOLDS(room == length && memcmp(place, data, length) == 0);
  } else {
    HOLDS(place[0] == 0xee && place[length - 1] == 0xee);
  }
  HOLDS(place[length] == 0xee);
}

static void messages(CK_BBOOL token, CK_ULONG length) {
  const CK_OBJECT_HANDLE key = make_key(token);
  CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
  CK_GCM_MESSAGE_PARAMS parameter = message();
  CK_ULONG room = 0;

  IS(p11->C_MessageEncryptInit(session, &mechanism, key), CKR_OK);
  iv[0]++;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, sizeof aad, data, length, NULL, &room), CKR_OK);
  HOLDS(room == length);
  room = length - 1;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, sizeof aad, data, length, sealed, &room), CKR_BUFFER_TOO_SMALL);
  room = length;
  IS(p11->C_EncryptMessage(session, &parameter, sizeof parameter, aad, sizeof aad, data, length, sealed, &room), CKR_OK);
  HOLDS(room == length);
  opens(key, length);
  seal_in_parts(length);
  opens(key, length);
  IS(p11->C_MessageEncryptFinal(session), CKR_OK);

  IS(p11->C_MessageDecryptInit(session, &mechanism, key), CKR_OK);
  memset(place, 0xee, length + SPARE);
  room = length;
  IS(p11->C_DecryptMessage(session, &parameter, sizeof parameter, aad, sizeof aad, sealed, length, place, &room), CKR_OK);
  HOLDS(room == length && memcmp(place, data, length) == 0);
  open_in_parts(length, CKR_OK, CK_FALSE);
  open_in_parts(length, CKR_OK, CK_TRUE);
  sealed[length / 2] ^= 1;
  open_in_parts(length, AEAD_DECRYPT_FAILED, CK_FALSE);
  memset(place, 0xee, length);
  room = length;
  IS(p11->C_DecryptMessage(session, &parameter, sizeof parameter, aad, sizeof aad, sealed, length, place, &room), AEAD_DECRYPT_FAILED);
  HOLDS(place[0] == 0xee && place[length - 1] == 0xee);
  IS(p11->C_MessageDecryptFinal(session), CKR_OK);
  IS(p11->C_DestroyObject(session, key), CKR_OK);
}

int main(int count_of_arguments, char **arguments) {
  CK_RV (*get)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, struct CK_INTERFACE **, CK_FLAGS);
  static const CK_ULONG lengths[] = {3 * 1000, MEBI - 8192 - TAG, MEBI - 8192, MEBI - 8191, MEBI, 2 * MEBI + 1, LONGEST};
  CK_VERSION version = {3, 0};
  struct CK_INTERFACE *found = NULL;
  void *library = count_of_arguments > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  void *symbol = library == NULL ? NULL : dlsym(library, "C_GetInterface");

  if (symbol == NULL) {
    fprintf(stderr, "usage: pkcs11-messages LIBRARY\n");
    return 255;
  }
  memcpy(&get, &symbol, sizeof get);
  data = malloc(LONGEST + SPARE);
  sealed = malloc(LONGEST + SPARE);
  place = malloc(LONGEST + SPARE);
  if (data == NULL || sealed == NULL || place == NULL) return 255;
  for (size_t i = 0; i < LONGEST; i++) data[i] = (CK_BYTE)(i * 7 + i / 251);
  IS(get((CK_UTF8CHAR_PTR) "PKCS 11", &version, &found, 0), CKR_OK);
  p11 = found->pFunctionList;
  IS(p11->C_Initialize(NULL), CKR_OK);
  IS(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), CKR_OK);
  IS(p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "any", 3), CKR_OK);
  for (CK_BBOOL token = CK_FALSE; token <= CK_TRUE; token++) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) messages(token, lengths[i]);
  }
  IS(p11->C_Finalize(NULL), CKR_OK);
  free(data);
  free(sealed);
  free(place);
  if (faults == 0) puts("as the standard has it");
  return faults > 254 ? 254 : faults;
}
