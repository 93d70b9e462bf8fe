#include "token.h"

#include <dlfcn.h>
#include <pkcs11.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entry/vendor.h"

/*
 * The usual causes for an administrator, for errors without a cause from the library;
 * docs/return-codes.md has all.
 */
static const struct {
  CK_RV rv;
  const char *name;
  const char *advice;
} codes[] = {
    {CKR_DEVICE_REMOVED, "CKR_DEVICE_REMOVED", "the agent is not running and could not be started"},
    {CKR_DEVICE_ERROR, "CKR_DEVICE_ERROR", "the service cannot be reached or does not answer, or pkcs11.toml cannot be used"},
    {CKR_ACTION_PROHIBITED, "CKR_ACTION_PROHIBITED", "the service refused the access_token, or the key belongs to another application"},
    {CKR_KEY_FUNCTION_NOT_PERMITTED, "CKR_KEY_FUNCTION_NOT_PERMITTED", "the master key is disabled in the service"},
    {CKR_KEY_HANDLE_INVALID, "CKR_KEY_HANDLE_INVALID", "the master key was destroyed"},
    {CKR_OBJECT_HANDLE_INVALID, "CKR_OBJECT_HANDLE_INVALID", "the master key was destroyed"},
    {CKR_ENCRYPTED_DATA_INVALID, "CKR_ENCRYPTED_DATA_INVALID", "the key file was changed, or another key has this label"},
    {CKR_TEMPLATE_INCONSISTENT, "CKR_TEMPLATE_INCONSISTENT", "another key of this group already has the label"},
    {CKR_TOKEN_NOT_PRESENT, "CKR_TOKEN_NOT_PRESENT", "the library has no token"},
    {CKR_DEVICE_MEMORY, "CKR_DEVICE_MEMORY", "the agent cannot lock enough memory"},
    {CKR_HOST_MEMORY, "CKR_HOST_MEMORY", "not enough memory"},
    {CKR_GENERAL_ERROR, "CKR_GENERAL_ERROR", "report this with the line of the agent's log"},
};

enum { CAUSE = 600 };

/* CK_INTERFACE of version 3.0 of the standard, whose other parts are not needed here. */
struct interface {
  CK_UTF8CHAR_PTR name;
  const DKE_FUNCTIONS *functions;
  CK_FLAGS flags;
};
typedef CK_RV (*get_interface_function)(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, const struct interface **to, CK_FLAGS flags);

/*
 * Why the last call of this thread failed, in the library's own words. Empty when it has none, or
 * is the library of another product.
 */
static void last_cause(const struct token *token, char text[CAUSE + 1]) {
  CK_UTF8CHAR name[] = DKE_INTERFACE_NAME;
  const struct interface *found = NULL;
  get_interface_function get_interface;
  CK_VERSION version = {1, 0};
  CK_ULONG length = CAUSE;

  *text = 0;
  *(void **)&get_interface = dlsym(token->library, "C_GetInterface");
  if (get_interface == NULL || get_interface(name, &version, &found, 0) != CKR_OK) return;
  if (found->functions->last_cause((CK_UTF8CHAR_PTR)text, &length) == CKR_OK) text[length] = 0;
  else *text = 0;
}

/* Directly after the failed call, because the next call has another cause. */
static int refused(const struct token *token, struct failure *failure, const char *what, CK_RV rv) {
  static const char where[] = "the agent's log (log_dir of pkcs11.toml) and `dke doctor --conf pkcs11.toml` have the details";
  const char *advice = NULL;
  char name[32];
  char cause[CAUSE + 1];

  snprintf(name, sizeof name, "return value 0x%lx", rv);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (codes[i].rv != rv) continue;
    snprintf(name, sizeof name, "%s", codes[i].name);
    advice = codes[i].advice;
  }
  last_cause(token, cause);
  if (*cause != 0) return failure_set(failure, "%s: %s: %s", what, name, cause);
  if (advice != NULL) return failure_set(failure, "%s: %s: %s; %s", what, name, advice, where);
  return failure_set(failure, "%s: %s; %s", what, name, where);
}

static CK_FUNCTION_LIST_PTR functions_of(const struct token *token) { return token->functions; }

/* Padded with spaces and not terminated, as in Cryptoki. */
static void take_padded(char out[TOKEN_DESCRIPTION], const CK_UTF8CHAR *text, size_t length) {
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == 0)) length--;
  snprintf(out, TOKEN_DESCRIPTION, "%.*s", (int)length, (const char *)text);
}

static int start(struct token *token, const char *library, struct failure *failure) {
  CK_C_GetFunctionList get_functions;
  CK_C_INITIALIZE_ARGS arguments;
  CK_FUNCTION_LIST_PTR functions;
  CK_SLOT_ID slots[16];
  CK_ULONG count = sizeof slots / sizeof *slots;
  CK_INFO info;
  CK_RV rv;

  /* POSIX has dlsym answer functions; ISO C has no word for it but a copy of the pointer. */
  *(void **)&get_functions = dlsym(token->library, "C_GetFunctionList");
  if (get_functions == NULL) return failure_set(failure, "%s is not a PKCS#11 library", library);
  if ((rv = get_functions(&functions)) != CKR_OK) return refused(token, failure, "C_GetFunctionList", rv);
  memset(&arguments, 0, sizeof arguments);
  arguments.flags = CKF_OS_LOCKING_OK;
  rv = functions->C_Initialize(&arguments);
  if (rv != CKR_OK && rv != CKR_CRYPTOKI_ALREADY_INITIALIZED) return refused(token, failure, "the PKCS#11 library does not start", rv);
  token->functions = functions;
  memset(&info, 0, sizeof info);
  if (functions->C_GetInfo(&info) == CKR_OK) take_padded(token->description, info.libraryDescription, sizeof info.libraryDescription);
  if ((rv = functions->C_GetSlotList(CK_TRUE, slots, &count)) != CKR_OK) return refused(token, failure, "the token cannot be found", rv);
  if (count == 0) return refused(token, failure, "the token cannot be found", CKR_TOKEN_NOT_PRESENT);
  token->slot = slots[0];
  return 0;
}

int token_open(struct token *token, const char *library, const char *config, struct failure *failure) {
  memset(token, 0, sizeof *token);
  if (config != NULL && *config != 0 && setenv("DKE_PKCS11_CONF", config, 1) != 0) return failure_set(failure, "not enough memory");
  token->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (token->library == NULL) return failure_set(failure, "the PKCS#11 library cannot be loaded: %s", dlerror());
  if (start(token, library, failure) == 0) return 0;
  token_close(token);
  return -1;
}

void token_close(struct token *token) {
  if (token->functions != NULL) functions_of(token)->C_Finalize(NULL);
  if (token->library != NULL) dlclose(token->library);
  memset(token, 0, sizeof *token);
}

static int begin(const struct token *token, CK_FLAGS flags, CK_SESSION_HANDLE *session, struct failure *failure) {
  CK_UTF8CHAR pin[] = "mariadb"; /* Any PIN works: the credential is in pkcs11.toml. */
  CK_FUNCTION_LIST_PTR functions = functions_of(token);
  CK_RV rv = functions->C_OpenSession(token->slot, CKF_SERIAL_SESSION | flags, NULL, NULL, session);

  if (rv != CKR_OK) return refused(token, failure, "no session can be opened", rv);
  rv = functions->C_Login(*session, CKU_USER, pin, sizeof pin - 1);
  if (rv == CKR_OK || rv == CKR_USER_ALREADY_LOGGED_IN) return 0;
  refused(token, failure, "the service refused the login of this database", rv);
  functions->C_CloseSession(*session);
  return -1;
}

static int find(const struct token *token, CK_SESSION_HANDLE session, const char *label, CK_OBJECT_HANDLE *key, struct failure *failure) {
  CK_FUNCTION_LIST_PTR functions = functions_of(token);
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_LABEL, (void *)(size_t)label, strlen(label)}};
  CK_ULONG count = 0;
  CK_RV rv = functions->C_FindObjectsInit(session, template, 2);

  if (rv == CKR_OK) {
    rv = functions->C_FindObjects(session, key, 1, &count);
    if (rv == CKR_OK) functions->C_FindObjectsFinal(session);
  }
  if (rv != CKR_OK) return refused(token, failure, "the search for the master key failed", rv);
  if (count == 1) return 0;
  return failure_set(failure,
                     "the service has no master key '%s' for this application: it was destroyed, or belongs to an application of another "
                     "group; `dke tde key list` shows it",
                     label);
}

int token_generate(const struct token *token, const char *label, struct failure *failure) {
  CK_FUNCTION_LIST_PTR functions = functions_of(token);
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_AES;
  CK_ULONG length = 32;
  CK_BBOOL yes = CK_TRUE;
  CK_BBOOL no = CK_FALSE;
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class},    {CKA_KEY_TYPE, &type, sizeof type},
      {CKA_VALUE_LEN, &length, sizeof length}, {CKA_LABEL, (void *)(size_t)label, strlen(label)},
      {CKA_TOKEN, &yes, sizeof yes},        {CKA_PRIVATE, &yes, sizeof yes},
      {CKA_SENSITIVE, &yes, sizeof yes},    {CKA_EXTRACTABLE, &no, sizeof no},
      {CKA_ENCRYPT, &yes, sizeof yes},      {CKA_DECRYPT, &yes, sizeof yes},
      {CKA_WRAP, &no, sizeof no},           {CKA_UNWRAP, &no, sizeof no},
      {CKA_SIGN, &no, sizeof no},           {CKA_VERIFY, &no, sizeof no},
      {CKA_DERIVE, &no, sizeof no},         {CKA_MODIFIABLE, &no, sizeof no},
  };
  CK_SESSION_HANDLE session;
  CK_OBJECT_HANDLE key = CK_INVALID_HANDLE;
  CK_RV rv;
  int result;

  if (begin(token, CKF_RW_SESSION, &session, failure) != 0) return -1;
  rv = functions->C_GenerateKey(session, &mechanism, template, sizeof template / sizeof *template, &key);
  result = rv == CKR_OK ? 0 : refused(token, failure, "no master key could be created", rv);
  functions->C_CloseSession(session);
  return result;
}

static CK_GCM_PARAMS gcm(const unsigned char *iv, const char *head, size_t head_length) {
  /* Cryptoki's inputs are not const. */
  return (CK_GCM_PARAMS){(CK_BYTE_PTR)(size_t)iv, TOKEN_IV, 8 * TOKEN_IV, (CK_BYTE_PTR)(size_t)head, head_length, 8 * TOKEN_TAG};
}

int token_wrap(const struct token *token, const char *label, const unsigned char iv[TOKEN_IV], const char *head, size_t head_length,
               const unsigned char *keys, size_t length, unsigned char *wrapped, struct failure *failure) {
  CK_FUNCTION_LIST_PTR functions = functions_of(token);
  CK_GCM_PARAMS parameters = gcm(iv, head, head_length);
  CK_MECHANISM mechanism = {CKM_AES_GCM, &parameters, sizeof parameters};
  CK_ULONG size = length + TOKEN_TAG;
  CK_SESSION_HANDLE session;
  CK_OBJECT_HANDLE key = CK_INVALID_HANDLE;
  int result;

  if (begin(token, 0, &session, failure) != 0) return -1;
  result = find(token, session, label, &key, failure);
  if (result == 0) {
    CK_RV rv = functions->C_EncryptInit(session, &mechanism, key);
    if (rv == CKR_OK) rv = functions->C_Encrypt(session, (CK_BYTE_PTR)(size_t)keys, length, wrapped, &size);
    if (rv != CKR_OK) result = refused(token, failure, "the master key cannot wrap", rv);
    else if (size != length + TOKEN_TAG) result = failure_set(failure, "the wrapped data keys have an unexpected length");
  }
  functions->C_CloseSession(session);
  return result;
}

int token_unwrap(const struct token *token, const char *label, const unsigned char iv[TOKEN_IV], const char *head, size_t head_length,
                 const unsigned char *wrapped, unsigned char *keys, size_t length, struct failure *failure) {
  CK_FUNCTION_LIST_PTR functions = functions_of(token);
  CK_GCM_PARAMS parameters = gcm(iv, head, head_length);
  CK_MECHANISM mechanism = {CKM_AES_GCM, &parameters, sizeof parameters};
  CK_ULONG size = length;
  CK_SESSION_HANDLE session;
  CK_OBJECT_HANDLE key = CK_INVALID_HANDLE;
  int result;

  if (begin(token, 0, &session, failure) != 0) return -1;
  result = find(token, session, label, &key, failure);
  if (result == 0) {
    CK_RV rv = functions->C_DecryptInit(session, &mechanism, key);
    if (rv == CKR_OK) rv = functions->C_Decrypt(session, (CK_BYTE_PTR)(size_t)wrapped, length + TOKEN_TAG, keys, &size);
    if (rv != CKR_OK) result = refused(token, failure, "the data keys cannot be unwrapped", rv);
    else if (size != length) result = failure_set(failure, "the unwrapped data keys have an unexpected length");
  }
  functions->C_CloseSession(session);
  return result;
}
