/*
 * The entry points that are more than a row: starting and stopping, the function lists and
 * interfaces, calls that the library answers alone, and those that change what it remembers of its
 * sessions. All others: module/entry/gen/entries.c. PKCS#11 2.40 section 5.4 to 5.6 and 5.16, 3.0
 * section 5.4.
 */
#include <string.h>

#include "call/call.h"
#include "connection/library.h"
#include "connection/resumption.h"
#include "host/last_cause.h"
#include "message/gen/numbers.h"
#include "entry/vendor.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static void set_text(CK_UTF8CHAR *to, size_t size, const char *text) {
  const size_t length = strlen(text);
  memset(to, ' ', size);
  memcpy(to, text, length < size ? length : size);
}

/*
 * --- C_Initialize, C_Finalize --------------------------------------------------------------------
 */

static CK_RV check_arguments(const void *given) {
  CK_C_INITIALIZE_ARGS args;
  int functions;

  if (given == NULL) return CKR_OK;
  memcpy(&args, given, sizeof args);
  if (args.pReserved != NULL) return CKR_ARGUMENTS_BAD;
  functions = (args.CreateMutex != NULL) + (args.DestroyMutex != NULL) + (args.LockMutex != NULL) + (args.UnlockMutex != NULL);
  /*
   * The caller's mutexes are not needed, with or without CKF_OS_LOCKING_OK: the library starts no
   * thread, and the system's locks, which it uses, work in every thread that can call it.
   */
  return functions == 0 || functions == 4 ? CKR_OK : CKR_ARGUMENTS_BAD;
}

CK_RV C_Initialize(CK_VOID_PTR arguments) {
  const CK_RV rv = check_arguments(arguments);
  return rv == CKR_OK ? library_initialize() : rv;
}

CK_RV C_Finalize(CK_VOID_PTR reserved) {
  const CK_RV rv = library_ready();
  struct call call;

  if (rv != CKR_OK) return rv;
  if (reserved != NULL) return CKR_ARGUMENTS_BAD;
  /* The agent releases the connection's sessions in both cases; its answer changes nothing. */
  if (call_begin(&call, &call_rows[ROW_C_Finalize])) call_run(&call);
  call_end(&call);
  return library_finalize();
}

static CK_RV get_info(CK_INFO_PTR to, CK_VERSION version) {
  const CK_RV rv = library_ready();
  CK_INFO info;

  if (rv != CKR_OK) return rv;
  if (to == NULL) return CKR_ARGUMENTS_BAD;
  memset(&info, 0, sizeof info);
  info.cryptokiVersion = version;
  info.libraryVersion = (CK_VERSION){DKE_VERSION_MAJOR, DKE_VERSION_MINOR};
  set_text(info.manufacturerID, sizeof info.manufacturerID, "DKE");
  set_text(info.libraryDescription, sizeof info.libraryDescription,
           "DKE PKCS#11 " TEXT(DKE_VERSION_MAJOR) "." TEXT(DKE_VERSION_MINOR));
  memcpy(to, &info, sizeof info);
  return CKR_OK;
}

/*
 * The standard wants the version of the list that a caller uses to be the one that C_GetInfo tells
 * it, so each list has a C_GetInfo of its own.
 */
CK_RV C_GetInfo(CK_INFO_PTR to) { return get_info(to, (CK_VERSION){2, 40}); }
static CK_RV get_info_3_0(CK_INFO_PTR to) { return get_info(to, (CK_VERSION){3, 0}); }
static CK_RV get_info_3_1(CK_INFO_PTR to) { return get_info(to, (CK_VERSION){3, 1}); }
static CK_RV get_info_3_2(CK_INFO_PTR to) { return get_info(to, (CK_VERSION){3, 2}); }

/*
 * --- function lists and interfaces ---------------------------------------------------------------
 */

/*
 * pkcs11f.h names the functions in order, C_GetInfo among them: the name of the member stays, what
 * is in it differs.
 */
#define FUNCTION(name) .name = name,
#define CK_PKCS11_FUNCTION_INFO(name) .name = name,
static const CK_FUNCTION_LIST functions_2_40 = {
    .version = {2, 40},
#include <pkcs11f.h>
};
#undef CK_PKCS11_FUNCTION_INFO
#define CK_PKCS11_FUNCTION_INFO(name) .name = name,
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const CK_FUNCTION_LIST_3_0 functions_3_0 = {
    .version = {3, 0},
#include <pkcs11f.h>
    DKE_FUNCTIONS_3_0(FUNCTION)
    .C_GetInfo = get_info_3_0,
};
/* 3.1 added no functions. */
static const CK_FUNCTION_LIST_3_0 functions_3_1 = {
    .version = {3, 1},
#include <pkcs11f.h>
    DKE_FUNCTIONS_3_0(FUNCTION)
    .C_GetInfo = get_info_3_1,
};
static const CK_FUNCTION_LIST_3_2 functions_3_2 = {
    .version = {3, 2},
#include <pkcs11f.h>
    DKE_FUNCTIONS_3_0(FUNCTION)
    DKE_FUNCTIONS_3_2(FUNCTION)
    .C_GetInfo = get_info_3_2,
};
#pragma GCC diagnostic pop
#undef CK_PKCS11_FUNCTION_INFO

/* Looks in no session and asks no agent, so that it can tell why C_Initialize failed. */
static CK_RV last_cause(CK_UTF8CHAR_PTR text, CK_ULONG_PTR length) {
  size_t known;
  const char *const from = last_cause_get(&known);
  CK_ULONG room;

  if (length == NULL) return CKR_ARGUMENTS_BAD;
  room = codec_load(length);
  codec_store(length, known);
  if (text == NULL) return CKR_OK;
  if (room < known) return CKR_BUFFER_TOO_SMALL;
  memcpy(text, from, known);
  return CKR_OK;
}
static const DKE_FUNCTIONS functions_dke = {.version = {1, 0}, .last_cause = last_cause};

/*
 * The first one is the default, for a caller that names no version: 3.0, which every caller of
 * C_GetInterface knows. What 3.2 adds answers CKR_FUNCTION_NOT_SUPPORTED, so that a caller who does
 * not ask for it misses nothing. CKF_INTERFACE_FORK_SAFE is not claimed: a child has to initialise
 * itself. The standard's types have no const, and callers go by that: OpenSC's pkcs11-spy puts its
 * own list into the structure that C_GetInterface answers. So these may be written; the lists are
 * not.
 */
static CK_INTERFACE interfaces[] = {
    {(CK_UTF8CHAR *)"PKCS 11", (void *)&functions_3_0, 0},
    {(CK_UTF8CHAR *)"PKCS 11", (void *)&functions_3_1, 0},
    {(CK_UTF8CHAR *)"PKCS 11", (void *)&functions_3_2, 0},
    {(CK_UTF8CHAR *)"PKCS 11", (void *)&functions_2_40, 0},
    {(CK_UTF8CHAR *)DKE_INTERFACE_NAME, (void *)&functions_dke, 0},
};
/* Only who names the last one gets it. */
enum { INTERFACES = sizeof interfaces / sizeof *interfaces, OWN_INTERFACE = INTERFACES - 1 };

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR to) {
  const CK_FUNCTION_LIST *list = &functions_2_40;

  if (to == NULL) return CKR_ARGUMENTS_BAD;
  memcpy(to, &list, sizeof list);
  return CKR_OK;
}

CK_RV C_GetInterfaceList(CK_INTERFACE_PTR to, CK_ULONG_PTR count) {
  CK_ULONG room;

  if (count == NULL) return CKR_ARGUMENTS_BAD;
  room = codec_load(count);
  codec_store(count, INTERFACES);
  if (to == NULL) return CKR_OK;
  if (room < INTERFACES) return CKR_BUFFER_TOO_SMALL;
  memcpy(to, interfaces, sizeof interfaces);
  return CKR_OK;
}

CK_RV C_GetInterface(CK_UTF8CHAR_PTR name, CK_VERSION_PTR version, CK_INTERFACE_PTR_PTR to, CK_FLAGS flags) {
  if (to == NULL) return CKR_ARGUMENTS_BAD;
  for (size_t i = 0; i < INTERFACES; i++) {
    CK_INTERFACE *interface = &interfaces[i];
    CK_VERSION offered;

    memcpy(&offered, interface->pFunctionList, sizeof offered);
    if (name == NULL && i == OWN_INTERFACE) continue;
    if (name != NULL && strcmp((const char *)name, (const char *)interface->pInterfaceName) != 0) continue;
    if (version != NULL && memcmp(version, &offered, sizeof offered) != 0) continue;
    if ((flags & interface->flags) != flags) continue;
    memcpy(to, &interface, sizeof interface);
    return CKR_OK;
  }
  return CKR_ARGUMENTS_BAD; /* the standard names no value; this is what other libraries return */
}

/*
 * --- answered here -------------------------------------------------------------------------------
 */

CK_RV C_GetFunctionStatus(CK_SESSION_HANDLE session) {
  const CK_RV rv = library_ready();
  (void)session;
  return rv == CKR_OK ? CKR_FUNCTION_NOT_PARALLEL : rv;
}

CK_RV C_CancelFunction(CK_SESSION_HANDLE session) { return C_GetFunctionStatus(session); }

/*
 * Slots never come or go. Waiting for what cannot happen would hang a thread of the host, so that
 * is refused.
 */
CK_RV C_WaitForSlotEvent(CK_FLAGS flags, CK_SLOT_ID_PTR slot, CK_VOID_PTR reserved) {
  const CK_RV rv = library_ready();
  if (rv != CKR_OK) return rv;
  if (slot == NULL || reserved != NULL) return CKR_ARGUMENTS_BAD;
  return (flags & CKF_DONT_BLOCK) != 0 ? CKR_NO_EVENT : CKR_FUNCTION_NOT_SUPPORTED;
}

/*
 * --- sessions ------------------------------------------------------------------------------------
 */

CK_RV C_OpenSession(CK_SLOT_ID slot, CK_FLAGS flags, CK_VOID_PTR application, CK_NOTIFY notify, CK_SESSION_HANDLE_PTR to) {
  struct call call;
  CK_SESSION_HANDLE session = 0;

  (void)application;
  (void)notify; /* there are no surrender events */
  if (call_begin(&call, &call_rows[ROW_C_OpenSession])) {
    call_put_ulong(&call, slot);
    call_put_ulong(&call, flags);
    call_need(&call, to);
    if (call_run(&call)) {
      call_get_result(&call, &session);
      if (call.rv == CKR_OK) {
        if (call.dialect == DIALECT_OWN) sessions_add(session, slot, flags);
        codec_store(to, session);
      }
    }
  }
  return call_end(&call);
}

CK_RV C_CloseSession(CK_SESSION_HANDLE session) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_CloseSession])) {
    call_put_session(&call, session);
    call_run(&call);
    if (call.rv == CKR_OK || call.rv == CKR_SESSION_HANDLE_INVALID) sessions_remove(session);
  }
  return call_end(&call);
}

CK_RV C_CloseAllSessions(CK_SLOT_ID slot) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_CloseAllSessions])) {
    call_put_ulong(&call, slot);
    if (call_run(&call)) sessions_remove_all(slot);
  }
  return call_end(&call);
}

/** Who is logged in already may be so by a C_Login that was carried out after its deadline. */
static void note_login(CK_RV rv, CK_USER_TYPE user) {
  if (user != CKU_CONTEXT_SPECIFIC && (rv == CKR_OK || rv == CKR_USER_ALREADY_LOGGED_IN)) sessions_login(user);
}

CK_RV C_Login(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR_PTR pin, CK_ULONG pin_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_Login])) {
    call_put_session(&call, session);
    call_put_ulong(&call, user);
    call_put_bytes(&call, pin, pin_length);
    call_run(&call);
    note_login(call.rv, user);
  }
  return call_end(&call);
}

CK_RV C_LoginUser(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR_PTR pin, CK_ULONG pin_length,
                  CK_UTF8CHAR_PTR name, CK_ULONG name_length) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_LoginUser])) {
    call_put_session(&call, session);
    call_put_ulong(&call, user);
    call_put_bytes(&call, pin, pin_length);
    call_put_bytes(&call, name, name_length);
    call_run(&call);
    note_login(call.rv, user);
  }
  return call_end(&call);
}

CK_RV C_Logout(CK_SESSION_HANDLE session) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_Logout])) {
    call_put_session(&call, session);
    call_run(&call);
    if (call.rv == CKR_OK || call.rv == CKR_USER_NOT_LOGGED_IN) sessions_logout();
  }
  return call_end(&call);
}

/*
 * 3.0 section 5.6: the flags name operations to end; those, and no others, must not come back after
 * a restart of the agent.
 */
CK_RV C_SessionCancel(CK_SESSION_HANDLE session, CK_FLAGS flags) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SessionCancel])) {
    call_put_session(&call, session);
    call_put_ulong(&call, flags);
    if (call_run(&call)) sessions_drop(session, call_operations(flags));
  }
  return call_end(&call);
}
