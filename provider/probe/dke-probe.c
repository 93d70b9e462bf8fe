/*
 * dke-probe <library> [--call]: loads a PKCS#11 library as a database does and says what it finds,
 * one "name value" a line.
 *
 * Without --call it stops at the function list, which starts nothing and writes nothing. With
 * --call it makes a database's first calls, up to a session on the first token, and undoes them.
 * Exit code 0: all of it worked; 1: a call failed; 2: the library cannot be loaded. Why stands on
 * standard error, in one line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <pkcs11.h>

static void say_padded(const char *name, const CK_UTF8CHAR *text, size_t size) {
  while (size > 0 && text[size - 1] == ' ') size--;
  printf("%s %.*s\n", name, (int)size, (const char *)text);
}

static int went_wrong(const char *call, CK_RV code) {
  fprintf(stderr, "%s returned 0x%08lx\n", call, (unsigned long)code);
  return 1;
}

/** From C_Initialize to a session. What was started is ended by C_Finalize. */
static int call(CK_FUNCTION_LIST_PTR p11) {
  CK_INFO info;
  CK_TOKEN_INFO token;
  CK_SLOT_ID slots[8];
  CK_ULONG count = sizeof slots / sizeof *slots;
  CK_SESSION_HANDLE session;
  CK_RV code;

  memset(&info, 0, sizeof info);
  if ((code = p11->C_GetInfo(&info)) != CKR_OK) return went_wrong("C_GetInfo", code);
  say_padded("manufacturer", info.manufacturerID, sizeof info.manufacturerID);
  say_padded("description", info.libraryDescription, sizeof info.libraryDescription);
  if ((code = p11->C_GetSlotList(CK_TRUE, slots, &count)) != CKR_OK) return went_wrong("C_GetSlotList", code);
  if (count == 0) {
    fprintf(stderr, "the library has no token\n");
    return 1;
  }
  if ((code = p11->C_GetTokenInfo(slots[0], &token)) != CKR_OK) return went_wrong("C_GetTokenInfo", code);
  say_padded("token", token.label, sizeof token.label);
  code = p11->C_OpenSession(slots[0], CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session);
  if (code != CKR_OK) return went_wrong("C_OpenSession", code);
  if ((code = p11->C_CloseSession(session)) != CKR_OK) return went_wrong("C_CloseSession", code);
  return 0;
}

int main(int argc, char **argv) {
  CK_C_GetFunctionList get_function_list;
  CK_FUNCTION_LIST_PTR p11 = NULL;
  CK_RV code;
  void *library;
  int result;

  if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--call") != 0)) {
    fprintf(stderr, "usage: dke-probe <library> [--call]\n");
    return 2;
  }
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  *(void **)&get_function_list = dlsym(library, "C_GetFunctionList");
  if (get_function_list == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  code = get_function_list(&p11);
  if (code != CKR_OK || p11 == NULL) return went_wrong("C_GetFunctionList", code);
  printf("cryptoki %d.%02d\n", p11->version.major, p11->version.minor);
  if (argc == 2) return 0;

  if ((code = p11->C_Initialize(NULL)) != CKR_OK) return went_wrong("C_Initialize", code);
  result = call(p11);
  code = p11->C_Finalize(NULL);
  return result == 0 && code != CKR_OK ? went_wrong("C_Finalize", code) : result;
}
