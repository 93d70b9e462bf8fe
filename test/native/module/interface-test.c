/*
 * Function lists and interfaces: the order of the standard's lists (pkcs11f.h of 2.40, 3.0 and
 * 3.2), repeated here and by hand, because callers go by position.
 */
#include "../tests.h"
#include "host/last_cause.h"
#include "peer.h"
#include "entry/vendor.h"

typedef void (*function)(void);
#define F(name) (function) name

static const function standard[] = {
    /* 2.40; C_GetInfo differs from list to list */
    F(C_Initialize), F(C_Finalize), NULL, F(C_GetFunctionList), F(C_GetSlotList), F(C_GetSlotInfo), F(C_GetTokenInfo),
    F(C_GetMechanismList), F(C_GetMechanismInfo), F(C_InitToken), F(C_InitPIN), F(C_SetPIN), F(C_OpenSession),
    F(C_CloseSession), F(C_CloseAllSessions), F(C_GetSessionInfo), F(C_GetOperationState), F(C_SetOperationState),
    F(C_Login), F(C_Logout), F(C_CreateObject), F(C_CopyObject), F(C_DestroyObject), F(C_GetObjectSize),
    F(C_GetAttributeValue), F(C_SetAttributeValue), F(C_FindObjectsInit), F(C_FindObjects), F(C_FindObjectsFinal),
    F(C_EncryptInit), F(C_Encrypt), F(C_EncryptUpdate), F(C_EncryptFinal), F(C_DecryptInit), F(C_Decrypt),
    F(C_DecryptUpdate), F(C_DecryptFinal), F(C_DigestInit), F(C_Digest), F(C_DigestUpdate), F(C_DigestKey),
    F(C_DigestFinal), F(C_SignInit), F(C_Sign), F(C_SignUpdate), F(C_SignFinal), F(C_SignRecoverInit), F(C_SignRecover),
    F(C_VerifyInit), F(C_Verify), F(C_VerifyUpdate), F(C_VerifyFinal), F(C_VerifyRecoverInit), F(C_VerifyRecover),
    F(C_DigestEncryptUpdate), F(C_DecryptDigestUpdate), F(C_SignEncryptUpdate), F(C_DecryptVerifyUpdate),
    F(C_GenerateKey), F(C_GenerateKeyPair), F(C_WrapKey), F(C_UnwrapKey), F(C_DeriveKey), F(C_SeedRandom),
    F(C_GenerateRandom), F(C_GetFunctionStatus), F(C_CancelFunction), F(C_WaitForSlotEvent),
    /* 3.0 */
    F(C_GetInterfaceList), F(C_GetInterface), F(C_LoginUser), F(C_SessionCancel), F(C_MessageEncryptInit),
    F(C_EncryptMessage), F(C_EncryptMessageBegin), F(C_EncryptMessageNext), F(C_MessageEncryptFinal),
    F(C_MessageDecryptInit), F(C_DecryptMessage), F(C_DecryptMessageBegin), F(C_DecryptMessageNext),
    F(C_MessageDecryptFinal), F(C_MessageSignInit), F(C_SignMessage), F(C_SignMessageBegin), F(C_SignMessageNext),
    F(C_MessageSignFinal), F(C_MessageVerifyInit), F(C_VerifyMessage), F(C_VerifyMessageBegin), F(C_VerifyMessageNext),
    F(C_MessageVerifyFinal),
    /* 3.2 */
    F(C_EncapsulateKey), F(C_DecapsulateKey), F(C_VerifySignatureInit), F(C_VerifySignature),
    F(C_VerifySignatureUpdate), F(C_VerifySignatureFinal), F(C_GetSessionValidationFlags), F(C_AsyncComplete),
    F(C_AsyncGetID), F(C_AsyncJoin), F(C_WrapKeyAuthenticated), F(C_UnwrapKeyAuthenticated),
};
enum { IN_2_40 = 68, IN_3_0 = 92, IN_3_2 = 104, ALL = sizeof standard / sizeof *standard };

static struct peer peer;

static int start(void **state) {
  (void)state;
  peer_start(&peer);
  peer_configure(&peer, PATIENT);
  return C_Initialize(NULL) == CKR_OK ? 0 : -1;
}

static int stop(void **state) {
  (void)state;
  C_Finalize(NULL);
  peer_stop(&peer);
  return 0;
}

/**
 * The version first, then one pointer after the other; C_GetInfo returns the list's own version.
 */
static void check_list(const void *list, CK_BYTE major, CK_BYTE minor, size_t count) {
  CK_VERSION version;
  CK_C_GetInfo get_info;
  CK_INFO info;

  memcpy(&version, list, sizeof version);
  assert_int_equal(version.major, major);
  assert_int_equal(version.minor, minor);
  for (size_t i = 0; i < count; i++) {
    function is;
    memcpy(&is, (const char *)list + sizeof(void *) * (i + 1), sizeof is);
    if (standard[i] != NULL) assert_true(is == standard[i]);
  }
  memcpy(&get_info, (const char *)list + sizeof(void *) * 3, sizeof get_info);
  assert_int_equal(get_info(&info), CKR_OK);
  assert_memory_equal(&info.cryptokiVersion, &version, sizeof version);
}

#define WITH(test) TEST_WITH(test, start, stop)

WITH(each_list_has_the_order_of_its_standard) {
  CK_FUNCTION_LIST_PTR first;
  CK_INTERFACE list[5];
  CK_ULONG count = 5;

  assert_int_equal(ALL, IN_3_2);
  assert_int_equal(sizeof(CK_FUNCTION_LIST), sizeof(void *) * (IN_2_40 + 1));
  assert_int_equal(sizeof(CK_FUNCTION_LIST_3_0), sizeof(void *) * (IN_3_0 + 1));
  assert_int_equal(sizeof(CK_FUNCTION_LIST_3_2), sizeof(void *) * (IN_3_2 + 1));
  assert_int_equal(C_GetFunctionList(&first), CKR_OK);
  check_list(first, 2, 40, IN_2_40);
  assert_int_equal(C_GetInterfaceList(list, &count), CKR_OK);
  assert_int_equal(count, 5);
  check_list(list[0].pFunctionList, 3, 0, IN_3_0);
  check_list(list[1].pFunctionList, 3, 1, IN_3_0);
  check_list(list[2].pFunctionList, 3, 2, IN_3_2);
  check_list(list[3].pFunctionList, 2, 40, IN_2_40);
}

WITH(interfaces_are_listed_like_any_list) {
  CK_INTERFACE list[5];
  CK_ULONG count = 1;

  assert_int_equal(C_GetInterfaceList(NULL, NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetInterfaceList(NULL, &count), CKR_OK);
  assert_int_equal(count, 5);
  count = 4;
  assert_int_equal(C_GetInterfaceList(list, &count), CKR_BUFFER_TOO_SMALL);
  assert_int_equal(count, 5);
}

WITH(interfaces_are_found_by_name_version_and_flags) {
  static const CK_VERSION offered[] = {{2, 40}, {3, 0}, {3, 1}, {3, 2}};
  CK_VERSION version;
  CK_INTERFACE_PTR interface = NULL;

  for (size_t i = 0; i < 4; i++) {
    version = offered[i];
    assert_int_equal(C_GetInterface((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0), CKR_OK);
    assert_memory_equal(interface->pFunctionList, &version, sizeof version);
    assert_string_equal(interface->pInterfaceName, "PKCS 11");
  }
  /* A caller may replace the list in the interface that it got, as OpenSC's pkcs11-spy does. */
  {
    void *list = interface->pFunctionList;

    *(void *volatile *)&interface->pFunctionList = list;
  }
  /* A caller that names no version gets 3.0. */
  assert_int_equal(C_GetInterface(NULL, NULL, &interface, 0), CKR_OK);
  assert_memory_equal(interface->pFunctionList, &offered[1], sizeof version);
  version = (CK_VERSION){3, 3};
  assert_int_equal(C_GetInterface((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetInterface((CK_UTF8CHAR_PTR) "other", NULL, &interface, 0), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetInterface(NULL, NULL, &interface, 1 /* fork safe */), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetInterface(NULL, NULL, NULL, 0), CKR_ARGUMENTS_BAD);
}

static const DKE_FUNCTIONS *own_functions(void) {
  CK_VERSION version = {1, 0};
  CK_INTERFACE_PTR interface = NULL;

  assert_int_equal(C_GetInterface((CK_UTF8CHAR_PTR) DKE_INTERFACE_NAME, NULL, &interface, 0), CKR_OK);
  assert_memory_equal(interface->pFunctionList, &version, sizeof version);
  /* A caller that names a version alone does not get it. */
  assert_int_equal(C_GetInterface(NULL, &version, &interface, 0), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetInterface((CK_UTF8CHAR_PTR) DKE_INTERFACE_NAME, &version, &interface, 0), CKR_OK);
  return interface->pFunctionList;
}

/** The last cause of this thread as a text. */
static const char *last_cause(void) {
  static char text[LAST_CAUSE_SIZE + 1];
  CK_ULONG length = 0;
  CK_ULONG less;

  assert_int_equal(own_functions()->last_cause(NULL, &length), CKR_OK);
  assert_true(length <= LAST_CAUSE_SIZE);
  less = length - 1;
  if (length > 0) assert_int_equal(own_functions()->last_cause((CK_UTF8CHAR_PTR)text, &less), CKR_BUFFER_TOO_SMALL);
  assert_int_equal(own_functions()->last_cause((CK_UTF8CHAR_PTR)text, &length), CKR_OK);
  text[length] = 0;
  return text;
}

static void *of_another_thread(void *data) {
  (void)data;
  assert_string_equal(last_cause(), "");
  return NULL;
}

WITH(the_cause_of_a_failed_call_is_that_of_its_thread) {
  CK_SESSION_HANDLE session = 0;
  CK_BYTE byte = 0;
  char longest[700];
  pthread_t other;

  assert_int_equal(own_functions()->last_cause(NULL, NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
  peer.explains = "the service is away;\x1b[2J come again";
  assert_int_equal(C_DestroyObject(session, 1), CKR_FUNCTION_NOT_SUPPORTED);
  assert_string_equal(last_cause(), "the service is away;?[2J come again");
  assert_int_equal(pthread_create(&other, NULL, of_another_thread, NULL), 0);
  pthread_join(other, NULL);
  /*
   * A successful call has none, nor has a call with a specific return value, nor one that was not
   * sent.
   */
  assert_int_equal(C_GenerateRandom(session, &byte, 1), CKR_OK);
  assert_string_equal(last_cause(), "");
  assert_int_equal(C_DestroyObject(session, 1), CKR_FUNCTION_NOT_SUPPORTED);
  peer.explains = NULL;
  assert_int_equal(C_DestroyObject(session, 1), CKR_FUNCTION_NOT_SUPPORTED);
  assert_string_equal(last_cause(), "");
  /* Cut between characters. */
  memset(longest, 'x', sizeof longest);
  memcpy(longest + LAST_CAUSE_SIZE - 1, "\xc3\xa9", 3);
  peer.explains = longest;
  assert_int_equal(C_DestroyObject(session, 1), CKR_FUNCTION_NOT_SUPPORTED);
  assert_int_equal(strlen(last_cause()), LAST_CAUSE_SIZE - 1);
  C_Finalize(NULL);
}

WITH(what_is_not_carried_says_so) {
  CK_SESSION_HANDLE session = 0;
  CK_ULONG number = 0;

  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
  assert_int_equal(C_MessageSignInit(session, NULL, 0), CKR_FUNCTION_NOT_SUPPORTED);
  assert_int_equal(C_MessageVerifyFinal(session), CKR_FUNCTION_NOT_SUPPORTED);
  assert_int_equal(C_EncapsulateKey(session, NULL, 0, NULL, 0, NULL, &number, &number), CKR_FUNCTION_NOT_SUPPORTED);
  assert_int_equal(C_VerifySignatureFinal(session), CKR_FUNCTION_NOT_SUPPORTED);
  assert_int_equal(C_GetSessionValidationFlags(session, 1, &number), CKR_FUNCTION_NOT_SUPPORTED);
  C_Finalize(NULL);
  assert_int_equal(C_VerifySignatureFinal(session), CKR_CRYPTOKI_NOT_INITIALIZED);
}

int main(void) {
  return run_written_tests(NULL, NULL);
}
