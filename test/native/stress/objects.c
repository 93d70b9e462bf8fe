/* Random numbers, sessions, objects, and secret keys that the token generates. */
#include <stdio.h>
#include <string.h>

#include "worker.h"

enum { CKM_HKDF_KEY_GEN_3_0 = 0x402c };

bool random_job(struct worker *w) {
  static const CK_BYTE zeros[16];

  w->job = "random";
  w->size = 16 + size_of_message(w, largest - 16);
  guard(w->got + w->size);
  memset(w->got, 0, w->size);
  TRY(C_GenerateRandom, w->session, w->got, w->size);
  check_guard(w, w->got + w->size);
  /* Sixteen zeros at a fixed place have a probability of 2^-128: such bytes were not written. */
  if (memcmp(w->got, zeros, 16) == 0) wrong_result(w, "the beginning was not written", 0);
  if (memcmp(w->got + w->size - 16, zeros, 16) == 0) wrong_result(w, "the end was not written", w->size - 16);
  return true;
}

bool sessions_job(struct worker *w) {
  CK_SESSION_HANDLE session = 0;
  CK_SESSION_INFO info;

  w->job = "sessions";
  w->size = 0;
  TRY(C_OpenSession, slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
  TRY(C_GetSessionInfo, session, &info);
  if (info.state != CKS_RO_USER_FUNCTIONS) wrong_result(w, "the state of a session", info.state);
  TRY(C_CloseSession, session);
  return true;
}

bool objects_job(struct worker *w) {
  CK_OBJECT_CLASS class = CKO_DATA;
  CK_BYTE id[16];
  CK_ULONG size = size_of_message(w, 8192);
  CK_ATTRIBUTE template[] = {VALUE(CKA_CLASS, class), {CKA_OBJECT_ID, id, sizeof id}, {CKA_VALUE, w->plain, size}};
  CK_ATTRIBUTE value = {CKA_VALUE, w->got, largest};
  CK_OBJECT_HANDLE object = 0;
  CK_OBJECT_HANDLE found[4];
  CK_ULONG count = 0;

  w->job = "objects";
  w->size = size;
  fill(w, id, sizeof id);
  fill(w, w->plain, size);
  TRY(C_CreateObject, w->session, template, COUNT(template), &object);
  TRY(C_FindObjectsInit, w->session, template, 2);
  TRY(C_FindObjects, w->session, found, COUNT(found), &count);
  TRY(C_FindObjectsFinal, w->session);
  /* In a storm the agent may have ended between the calls, and with it the object. */
  if ((count != 1 && !(w->storm && count == 0)) || (count == 1 && found[0] != object)) wrong_result(w, "objects found", count);
  TRY(C_GetAttributeValue, w->session, object, &value, 1);
  compare(w, w->got, value.ulValueLen, w->plain, size);
  TRY(C_DestroyObject, w->session, object);
  return true;
}

/**
 * A generated key whose value can be read: OpenSSL gets the same results with that value, for the
 * key and its copy.
 */
bool generation_job(struct worker *w) {
  static const CK_ULONG aes_lengths[] = {16, 24, 32};
  static atomic_uint turn;
  const unsigned next = next_of(&turn, DIGESTS + 3);
  const struct digest *digest = &digests[next % DIGESTS];
  CK_ULONG length = 1 + below(w, 64);
  CK_MECHANISM generation = {0, NULL, 0};
  CK_MECHANISM mechanism = {digest->hmac, NULL, 0};
  CK_ATTRIBUTE template[] = {VALUE(CKA_VALUE_LEN, length), VALUE(CKA_SENSITIVE, no), VALUE(CKA_EXTRACTABLE, yes), VALUE(CKA_DERIVE, yes)};
  CK_BYTE value[64];
  CK_BYTE got[64];
  CK_ATTRIBUTE read = {CKA_VALUE, value, sizeof value};
  CK_OBJECT_HANDLE key = 0;
  CK_OBJECT_HANDLE copy = 0;
  CK_ULONG written = sizeof got;
  CK_ULONG expected;

  w->job = "a secret key of the token's making";
  switch (next) {
    case DIGESTS:
      generation.mechanism = CKM_AES_KEY_GEN;
      mechanism.mechanism = CKM_AES_CMAC;
      length = aes_lengths[below(w, COUNT(aes_lengths))];
      break;
    case DIGESTS + 1: generation.mechanism = CKM_GENERIC_SECRET_KEY_GEN; break;
    case DIGESTS + 2: generation.mechanism = CKM_HKDF_KEY_GEN_3_0; break;
    default: generation.mechanism = digest->generation;
  }
  w->size = size_of_message(w, 65536);
  fill(w, w->plain, w->size);
  TRY(C_GenerateKey, w->session, &generation, template, COUNT(template), &key);
  TRY(C_GetAttributeValue, w->session, key, &read, 1);
  if (read.ulValueLen != length) wrong_result(w, "a key of another length", read.ulValueLen);
  TRY(C_CopyObject, w->session, key, NULL, 0, &copy);
  if (!compare_value(w, copy, value, read.ulValueLen)) return false;
  TRY(C_DestroyObject, w->session, key);
  /* A key for HKDF signs nothing. */
  if (generation.mechanism != CKM_HKDF_KEY_GEN_3_0) {
    expected = reference_mac(generation.mechanism == CKM_AES_KEY_GEN ? NULL : digest->name, value, length, w->plain, w->size, w->expected);
    TRY(C_SignInit, w->session, &mechanism, copy);
    TRY(C_Sign, w->session, w->plain, w->size, got, &written);
    compare(w, got, written, w->expected, expected);
  }
  TRY(C_DestroyObject, w->session, copy);
  covered(w, generation.mechanism);
  return true;
}
