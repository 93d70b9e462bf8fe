/*
 * Every function of the list with null pointers where it wants memory, and with buffers that are
 * too small: an error code each, nothing written beyond what was given, and the library continues.
 * PKCS#11 2.40 section 5.2; 3.0 for what came later.
 */
#include "peer.h"
#include "../tests.h"

static struct peer peer;
static CK_FUNCTION_LIST_PTR list;

static int start(void **state) {
  (void)state;
  peer_start(&peer);
  peer_configure(&peer, PATIENT);
  if (C_GetFunctionList(&list) != CKR_OK) return -1;
  return list->C_Initialize(NULL) == CKR_OK ? 0 : -1;
}

static int stop(void **state) {
  (void)state;
  C_Finalize(NULL);
  peer_stop(&peer);
  return 0;
}

/*
 * The peer carries next to nothing: what gets through to it with sound arguments is
 * CKR_FUNCTION_NOT_SUPPORTED.
 */
#define REFUSED(call) assert_int_equal(call, CKR_ARGUMENTS_BAD)

/*
 * Beside C_Initialize, the agent hears C_SessionCancel alone: an error ends the operation that the
 * call would have gone on with.
 */
static void nothing_came_through(void) {
  int event;
  int width;

  for (const char *at = peer.events; sscanf(at, "%d %n", &event, &width) == 1; at += width) assert_true(event == 1 || event == 67);
}

TEST(null_outputs_are_refused) {
  CK_BYTE byte = 0;
  CK_MECHANISM digest = {CKM_SHA256, NULL, 0};

  REFUSED(list->C_GetInfo(NULL));
  REFUSED(list->C_GetSlotList(CK_TRUE, NULL, NULL));
  REFUSED(list->C_GetSlotInfo(0, NULL));
  REFUSED(list->C_GetTokenInfo(0, NULL));
  REFUSED(list->C_GetMechanismList(0, NULL, NULL));
  REFUSED(list->C_GetMechanismInfo(0, CKM_AES_CBC, NULL));
  REFUSED(list->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, NULL));
  REFUSED(list->C_GetSessionInfo(17, NULL));
  REFUSED(list->C_GetOperationState(17, NULL, NULL));
  REFUSED(list->C_CreateObject(17, NULL, 0, NULL));
  REFUSED(list->C_CopyObject(17, 1, NULL, 0, NULL));
  REFUSED(list->C_GetObjectSize(17, 1, NULL));
  REFUSED(list->C_FindObjects(17, NULL, 0, NULL));
  REFUSED(list->C_Encrypt(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_EncryptUpdate(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_EncryptFinal(17, NULL, NULL));
  REFUSED(list->C_Decrypt(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_DecryptUpdate(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_DecryptFinal(17, NULL, NULL));
  REFUSED(list->C_Digest(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_DigestFinal(17, NULL, NULL));
  REFUSED(list->C_Sign(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_SignFinal(17, NULL, NULL));
  REFUSED(list->C_SignRecover(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_VerifyRecover(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_DigestEncryptUpdate(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_DecryptDigestUpdate(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_SignEncryptUpdate(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_DecryptVerifyUpdate(17, &byte, 1, NULL, NULL));
  REFUSED(list->C_GenerateKey(17, &digest, NULL, 0, NULL));
  REFUSED(list->C_GenerateKeyPair(17, &digest, NULL, 0, NULL, 0, NULL, NULL));
  REFUSED(list->C_WrapKey(17, &digest, 1, 2, NULL, NULL));
  REFUSED(list->C_UnwrapKey(17, &digest, 1, &byte, 1, NULL, 0, NULL));
  REFUSED(list->C_DeriveKey(17, &digest, 1, NULL, 0, NULL));
  REFUSED(list->C_WaitForSlotEvent(CKF_DONT_BLOCK, NULL, NULL));
  nothing_came_through();
}

TEST(null_inputs_with_a_length_are_refused) {
  CK_BYTE byte = 0;
  CK_ULONG length = 1;
  CK_OBJECT_HANDLE handle;
  CK_MECHANISM digest = {CKM_SHA256, NULL, 0};
  CK_ATTRIBUTE hollow = {CKA_LABEL, NULL, 5};

  REFUSED(list->C_Login(17, CKU_USER, NULL, 4));
  REFUSED(list->C_InitPIN(17, NULL, 4));
  REFUSED(list->C_SetPIN(17, NULL, 4, &byte, 1));
  REFUSED(list->C_SetPIN(17, &byte, 1, NULL, 4));
  REFUSED(list->C_InitToken(0, NULL, 4, (CK_UTF8CHAR_PTR) "                                "));
  REFUSED(list->C_InitToken(0, &byte, 1, NULL));
  REFUSED(list->C_SetOperationState(17, NULL, 4, 0, 0));
  REFUSED(list->C_CreateObject(17, NULL, 3, &handle));
  REFUSED(list->C_CopyObject(17, 1, NULL, 3, &handle));
  REFUSED(list->C_SetAttributeValue(17, 1, NULL, 3));
  REFUSED(list->C_GetAttributeValue(17, 1, NULL, 3));
  REFUSED(list->C_FindObjectsInit(17, NULL, 3));
  REFUSED(list->C_Encrypt(17, NULL, 5, &byte, &length));
  REFUSED(list->C_EncryptUpdate(17, NULL, 5, &byte, &length));
  REFUSED(list->C_Decrypt(17, NULL, 5, &byte, &length));
  REFUSED(list->C_DecryptUpdate(17, NULL, 5, &byte, &length));
  REFUSED(list->C_Digest(17, NULL, 5, &byte, &length));
  REFUSED(list->C_DigestUpdate(17, NULL, 5));
  REFUSED(list->C_Sign(17, NULL, 5, &byte, &length));
  REFUSED(list->C_SignUpdate(17, NULL, 5));
  REFUSED(list->C_SignRecover(17, NULL, 5, &byte, &length));
  REFUSED(list->C_Verify(17, NULL, 5, &byte, 1));
  REFUSED(list->C_Verify(17, &byte, 1, NULL, 5));
  REFUSED(list->C_VerifyUpdate(17, NULL, 5));
  REFUSED(list->C_VerifyFinal(17, NULL, 5));
  REFUSED(list->C_VerifyRecover(17, NULL, 5, &byte, &length));
  REFUSED(list->C_UnwrapKey(17, &digest, 1, NULL, 5, NULL, 0, &handle));
  REFUSED(list->C_SeedRandom(17, NULL, 5));
  REFUSED(list->C_GenerateRandom(17, NULL, 5));
  assert_int_equal(list->C_SetAttributeValue(17, 1, &hollow, 1), CKR_ATTRIBUTE_VALUE_INVALID);
  assert_int_equal(list->C_CreateObject(17, &hollow, 1, &handle), CKR_ATTRIBUTE_VALUE_INVALID);
  nothing_came_through();
}

TEST(lengths_beyond_all_memory_are_refused) {
  CK_BYTE byte = 0;
  CK_ULONG length = 1;
  CK_OBJECT_HANDLE handle;
  CK_ATTRIBUTE huge = {CKA_LABEL, &byte, ~0UL};
  CK_ATTRIBUTE large = {CKA_LABEL, &byte, 1UL << 40};
  CK_MECHANISM mechanism = {CKM_AES_CBC, &byte, ~0UL};
  const CK_ULONG lengths[] = {~0UL, ~0UL - 1, 1UL << 62, 1UL << 32, (1UL << 31) + 1};

  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    assert_int_equal(list->C_Encrypt(17, &byte, lengths[i], &byte, &length), CKR_DATA_LEN_RANGE);
    assert_int_not_equal(list->C_Verify(17, &byte, 1, &byte, lengths[i]), CKR_OK);
    assert_int_not_equal(list->C_SeedRandom(17, &byte, lengths[i]), CKR_OK);
    assert_int_not_equal(list->C_GenerateRandom(17, &byte, lengths[i]), CKR_OK);
    assert_int_not_equal(list->C_Login(17, CKU_USER, &byte, lengths[i]), CKR_OK);
    assert_int_not_equal(list->C_FindObjectsInit(17, &huge, lengths[i]), CKR_OK);
  }
  assert_int_equal(list->C_CreateObject(17, &large, 1, &handle), CKR_ATTRIBUTE_VALUE_INVALID);
  assert_int_equal(list->C_EncryptInit(17, &mechanism, 5), CKR_MECHANISM_PARAM_INVALID);
  nothing_came_through();
  /*
   * All ones is CK_UNAVAILABLE_INFORMATION: it travels as that, without a value, and is the agent's
   * to refuse.
   */
  assert_int_not_equal(list->C_CreateObject(17, &huge, 1, &handle), CKR_OK);
  assert_int_equal(byte, 0);
}

TEST(nothing_is_written_beyond_a_buffer_that_is_too_small) {
  CK_BYTE data[32];
  CK_BYTE out[40];

  memset(data, 7, sizeof data);
  for (CK_ULONG room = 0; room < sizeof data; room++) {
    CK_ULONG length = room;
    memset(out, 0xee, sizeof out);
    assert_int_equal(list->C_Encrypt(17, data, sizeof data, out, &length), CKR_BUFFER_TOO_SMALL);
    assert_int_equal(length, sizeof data);
    for (size_t i = 0; i < sizeof out; i++) assert_int_equal(out[i], 0xee);
  }
}

TEST(the_library_goes_on_afterwards) {
  CK_BYTE random[4];

  assert_int_equal(list->C_GenerateRandom(17, random, sizeof random), CKR_OK);
  assert_int_equal(random[0], 17);
}

int main(void) { return run_written_tests(start, stop); }
