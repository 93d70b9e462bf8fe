/*
 * The library against an agent of the test's own: arguments, answers, threads, deadlines, restarts,
 * fork.
 */
#include <sched.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../tests.h"
#include "call/large_data.h"
#include "connection/transport.h"
#include "host/process.h"
#include "peer.h"

static struct peer peer;

static int start(void **state) {
  (void)state;
  peer_start(&peer);
  peer_configure(&peer, PATIENT "spin_us = 20\n");
  return 0;
}

static int start_hasty(void **state) {
  start(state);
  peer_configure(&peer, HASTY "spin_us = 20\n");
  return C_Initialize(NULL) == CKR_OK ? 0 : -1;
}

static int start_initialized(void **state) {
  start(state);
  return C_Initialize(NULL) == CKR_OK ? 0 : -1;
}

static int stop(void **state) {
  (void)state;
  C_Finalize(NULL);
  peer_stop(&peer);
  return 0;
}

static CK_SESSION_HANDLE open_session(void) {
  CK_SESSION_HANDLE session = 0;
  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), CKR_OK);
  return session;
}

static CK_MECHANISM cbc(void) {
  static CK_BYTE iv[16];
  return (CK_MECHANISM){CKM_AES_CBC, iv, sizeof iv};
}

static CK_RV create_mutex(CK_VOID_PTR_PTR mutex) { (void)mutex; return CKR_OK; }
static CK_RV use_mutex(CK_VOID_PTR mutex) { (void)mutex; return CKR_OK; }

#define WITHOUT(test) TEST_WITH(test, start, stop)
#define WITH(test) TEST_WITH(test, start_initialized, stop)
#define UNANSWERED(test) TEST_WITH(test, start_hasty, stop)

WITHOUT(initialize_checks_its_arguments) {
  CK_C_INITIALIZE_ARGS args = {0};
  int something;

  args.pReserved = &something;
  assert_int_equal(C_Initialize(&args), CKR_ARGUMENTS_BAD);
  args.pReserved = NULL;
  args.CreateMutex = create_mutex;
  assert_int_equal(C_Initialize(&args), CKR_ARGUMENTS_BAD);
  args.DestroyMutex = args.LockMutex = args.UnlockMutex = use_mutex;
  assert_int_equal(C_Initialize(&args), CKR_OK);
  assert_int_equal(C_Finalize(NULL), CKR_OK);
  args.flags = CKF_OS_LOCKING_OK;
  assert_int_equal(C_Initialize(&args), CKR_OK);
  assert_int_equal(C_Initialize(&args), CKR_CRYPTOKI_ALREADY_INITIALIZED);
  assert_int_equal(C_Finalize(&something), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_Finalize(NULL), CKR_OK);
  assert_int_equal(C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
}

WITHOUT(nothing_works_before_initialize) {
  CK_INFO info;
  CK_ULONG count;
  CK_FUNCTION_LIST_PTR list;

  assert_int_equal(C_GetInfo(&info), CKR_CRYPTOKI_NOT_INITIALIZED);
  assert_int_equal(C_GetSlotList(CK_TRUE, NULL, &count), CKR_CRYPTOKI_NOT_INITIALIZED);
  assert_int_equal(C_MessageEncryptFinal(1), CKR_CRYPTOKI_NOT_INITIALIZED);
  assert_int_equal(C_GetFunctionList(&list), CKR_OK);
  assert_int_equal(list->version.major, 2);
  assert_int_equal(list->version.minor, 40);
}

WITH(the_hello_names_configuration_and_process) {
  char config[320];

  snprintf(config, sizeof config, "{\"config\":\"%s/pkcs11.toml\",\"library\":\"%d.%d\",\"connection\":%lu,\"pid\":%ld,\"process\":\"module-call-test\",",
           peer.folder, DKE_VERSION_MAJOR, DKE_VERSION_MINOR, (unsigned long)transport_epoch() - 1, (long)getpid());
  assert_memory_equal(peer.hello, config, strlen(config));
  assert_non_null(strstr(peer.hello, "\"login\":null,\"sessions\":[]}"));
}

WITHOUT(a_foreign_peer_gets_no_hello) {
  peer.version = -1;
  assert_int_equal(C_Initialize(NULL), CKR_OK);
  assert_int_equal(peer.reserved, 0);
  assert_int_equal(C_SessionCancel(1, 0), CKR_FUNCTION_NOT_SUPPORTED);
}

WITH(output_lengths_follow_the_standard) {
  CK_SESSION_HANDLE session = open_session();
  CK_BYTE data[4] = {1, 2, 3, 4};
  CK_BYTE out[6] = {0, 0, 0, 0, 0xee, 0xee};
  CK_ULONG length = 0;
  CK_MECHANISM mechanism = cbc();

  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  assert_int_equal(C_Encrypt(session, data, 4, NULL, &length), CKR_OK);
  assert_int_equal(length, 4);
  length = 3;
  assert_int_equal(C_Encrypt(session, data, 4, out, &length), CKR_BUFFER_TOO_SMALL);
  assert_int_equal(length, 4);
  length = 0;
  assert_int_equal(C_Encrypt(session, data, 4, out, &length), CKR_BUFFER_TOO_SMALL);
  length = 4;
  assert_int_equal(C_Encrypt(session, data, 4, out, &length), CKR_OK);
  assert_int_equal(length, 4);
  assert_memory_equal(out, ((CK_BYTE[]){2, 3, 4, 5, 0xee, 0xee}), 6);
}

WITH(null_pointers_and_absurd_counts_are_errors) {
  CK_SESSION_HANDLE session = open_session();
  CK_BYTE byte = 0;
  CK_ULONG length = 1;
  CK_ATTRIBUTE attribute = {CKA_LABEL, NULL, 5};
  CK_MECHANISM mechanism = {CKM_AES_CBC, NULL, 16};
  CK_ATTRIBUTE wrong = {CKA_TOKEN, &length, 4};

  assert_int_equal(C_Encrypt(session, NULL, 1, &byte, &length), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_Encrypt(session, &byte, 1, &byte, NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_Encrypt(session, &byte, ~0UL, &byte, &length), CKR_DATA_LEN_RANGE);
  assert_int_equal(C_GenerateRandom(session, NULL, 1), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GenerateRandom(session, &byte, ~0UL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_FindObjectsInit(session, NULL, 1), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_FindObjectsInit(session, &attribute, ~0UL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_FindObjectsInit(session, &attribute, 1), CKR_ATTRIBUTE_VALUE_INVALID);
  assert_int_equal(C_FindObjectsInit(session, &wrong, 1), CKR_ATTRIBUTE_VALUE_INVALID);
  assert_int_equal(C_GetAttributeValue(session, 1, NULL, 1), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_FindObjects(session, NULL, 1, &length), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetSlotList(CK_TRUE, NULL, NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetTokenInfo(0, NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GenerateKey(session, &mechanism, NULL, 0, NULL), CKR_MECHANISM_PARAM_INVALID);
  assert_int_equal(C_GetInfo(NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_GetFunctionList(NULL), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_Login(session, CKU_USER, NULL, 4), CKR_ARGUMENTS_BAD);
  assert_int_equal(C_InitToken(0, NULL, 0, NULL), CKR_ARGUMENTS_BAD);
}

WITH(misaligned_pointers_are_written_bytewise) {
  union { CK_ULONG number; CK_BYTE bytes[64]; } memory;
  CK_SESSION_HANDLE session = 0;

  memset(&memory, 0xee, sizeof memory);
  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, (void *)(memory.bytes + 3)), CKR_OK);
  memcpy(&session, memory.bytes + 3, sizeof session);
  assert_int_equal(session, 17);
  assert_int_equal(memory.bytes[2], 0xee);
  assert_int_equal(memory.bytes[3 + sizeof session], 0xee);
}

UNANSWERED(an_unanswered_call_ends_with_the_deadline_and_the_next_one_works) {
  CK_SESSION_HANDLE session = open_session();
  CK_BYTE random[8];

  peer.silent = 64;
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_DEVICE_ERROR);
  peer.silent = 0;
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  assert_int_equal(peer.connections, 1);
}

UNANSWERED(an_init_that_was_carried_out_too_late_is_ended_by_the_next_one) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = cbc();

  peer.silent = 29;
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_DEVICE_ERROR);
  peer.silent = 0;
  peer.active = 1;
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  assert_non_null(strstr(peer.events, "29 29 67 29 "));
  /* Only the caller ends an operation that it has started. */
  peer.active = 1;
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OPERATION_ACTIVE);
}

UNANSWERED(an_init_never_finds_an_operation_active_that_its_caller_does_not_know) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = cbc();

  peer.silent = 29;
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_DEVICE_ERROR);
  peer.active = 1;
  peer.silent = 67; /* the operation cannot be ended in time either */
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_DEVICE_ERROR);
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_DEVICE_ERROR);
  peer.silent = 0;
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
}

UNANSWERED(an_operation_without_an_answer_has_ended_for_its_caller) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = cbc();
  CK_BYTE data[16] = {0};
  CK_ULONG length = sizeof data;

  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  peer.events[0] = 0;
  peer.silent = 31;
  assert_int_equal(C_EncryptUpdate(session, data, sizeof data, data, &length), CKR_DEVICE_ERROR);
  peer.silent = 0;
  peer.active = 1;
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  assert_string_equal(peer.events, "31 29 67 29 ");
  peer.silent = 30;
  assert_int_equal(C_Encrypt(session, data, sizeof data, data, &length), CKR_DEVICE_ERROR);
  peer.silent = 0;
  /* Nor does it start again with another agent. */
  peer.events[0] = 0;
  peer.drop = 64;
  assert_int_equal(C_GenerateRandom(session, data, 4), CKR_OK);
  assert_string_equal(peer.events, "64 1 64 ");
}

UNANSWERED(a_session_that_was_opened_too_late_is_closed) {
  CK_SESSION_HANDLE session = 0;
  CK_BYTE random[4];

  peer.late = 10;
  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_DEVICE_ERROR);
  assert_int_equal(session, 0);
  assert_int_equal(C_GenerateRandom(1, random, sizeof random), CKR_OK);
  assert_string_equal(peer.events, "1 10 64 11 ");
  assert_int_equal(peer.closed, 17);
  /* Once: and those that are opened in time stay. */
  session = open_session();
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  assert_string_equal(peer.events, "1 10 64 11 10 64 ");
}

UNANSWERED(a_session_that_was_opened_too_late_goes_with_its_agent) {
  CK_SESSION_HANDLE session = 0;
  CK_BYTE random[4];

  peer.late = 10;
  assert_int_equal(C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_DEVICE_ERROR);
  peer.drop = 64;
  assert_int_equal(C_GenerateRandom(1, random, sizeof random), CKR_OK);
  assert_string_equal(peer.events, "1 10 64 1 64 ");
}

UNANSWERED(a_login_that_was_carried_out_too_late_is_known_by_the_next_one) {
  CK_SESSION_HANDLE session = open_session();
  CK_BYTE random[4];

  peer.silent = 18;
  assert_int_equal(C_Login(session, CKU_USER, NULL, 0), CKR_DEVICE_ERROR);
  peer.silent = 0;
  peer.logged_in = 1;
  assert_int_equal(C_Login(session, CKU_USER, NULL, 0), CKR_USER_ALREADY_LOGGED_IN);
  peer.drop = 64;
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  assert_non_null(strstr(peer.hello, "\"login\":1"));
}

WITH(a_lost_agent_is_found_again_with_sessions_login_and_init) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = cbc();
  CK_BYTE data[4] = {1, 2, 3, 4};
  CK_BYTE out[4];
  CK_ULONG length = sizeof out;
  char connection[32];

  assert_int_equal(C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "pin", 3), CKR_OK);
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  peer.events[0] = 0;
  peer.drop = 30;
  assert_int_equal(C_Encrypt(session, data, 4, out, &length), CKR_OK);
  assert_memory_equal(out, ((CK_BYTE[]){2, 3, 4, 5}), 4);
  assert_int_equal(peer.connections, 2);
  assert_string_equal(peer.events, "30 1 29 30 ");
  /* One more than before: no handle of a session object is reused. */
  snprintf(connection, sizeof connection, "\"connection\":%lu,", (unsigned long)transport_epoch() - 1);
  assert_non_null(strstr(peer.hello, connection));
  assert_non_null(strstr(peer.hello, "\"login\":1,\"sessions\":[[17,0,6]]}"));
  assert_null(strstr(peer.hello, "pin\""));
}

WITH(what_is_cancelled_is_not_started_again_and_the_rest_is) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = cbc();
  CK_BYTE data[16] = {0};
  CK_BYTE out[16];
  CK_ULONG length = sizeof out;

  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  assert_int_equal(C_DecryptInit(session, &mechanism, 5), CKR_OK);
  assert_int_equal(C_SessionCancel(session, CKF_DECRYPT), CKR_OK);
  peer.drop = 30;
  assert_int_equal(C_Encrypt(session, data, sizeof data, out, &length), CKR_OK);
  assert_string_equal(peer.events, "1 10 29 33 67 30 1 29 30 ");
  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  assert_int_equal(C_SessionCancel(session, CKF_ENCRYPT | CKF_DECRYPT), CKR_OK);
  peer.drop = 30;
  assert_int_equal(C_Encrypt(session, data, sizeof data, out, &length), CKR_OK);
  assert_string_equal(peer.events, "1 10 29 33 67 30 1 29 30 29 67 30 1 30 ");
}

WITH(messages_go_on_with_the_next_agent) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
  CK_BYTE iv[12] = {7};
  CK_BYTE tag[17] = {0};
  CK_BYTE out[4];
  CK_ULONG length = sizeof out;
  CK_GCM_MESSAGE_PARAMS parameter = {iv, sizeof iv, 0, 0, tag, 128};

  assert_int_equal(C_MessageEncryptInit(session, &mechanism, 5), CKR_OK);
  for (int i = 0; i < 2; i++) {
    peer.drop = 129;
    assert_int_equal(C_EncryptMessage(session, &parameter, sizeof parameter, NULL, 0, out, 4, out, &length), CKR_OK);
    assert_memory_equal(out, "seal", 4);
    assert_memory_equal(tag, "0123456789abcdef", 17);
    assert_int_equal(iv[0], 7);
  }
  assert_string_equal(peer.events, "1 10 128 129 1 128 129 129 1 128 129 ");
}

WITH(an_operation_that_has_ended_is_not_started_again) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = cbc();
  CK_BYTE data[4] = {0};
  CK_ULONG length = sizeof data;

  assert_int_equal(C_EncryptInit(session, &mechanism, 5), CKR_OK);
  assert_int_equal(C_Encrypt(session, data, 4, data, &length), CKR_OK);
  peer.events[0] = 0;
  peer.drop = 64;
  assert_int_equal(C_GenerateRandom(session, data, 4), CKR_OK);
  assert_string_equal(peer.events, "64 1 64 ");
}

WITH(a_call_that_creates_is_not_sent_twice) {
  CK_SESSION_HANDLE session = open_session();
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
  CK_OBJECT_HANDLE key = 0;

  peer.drop_late = 58;
  assert_int_equal(C_GenerateKey(session, &mechanism, NULL, 0, &key), CKR_DEVICE_ERROR);
  assert_int_equal(peer.carried_out, 1);
  assert_int_equal(C_GenerateKey(session, &mechanism, NULL, 0, &key), CKR_OK);
  assert_int_equal(key, 99);
}

WITHOUT(without_an_agent_the_device_is_removed) {
  setenv("DKE_PKCS11_SOCKET", "/nonexistent/agent.sock", 1);
  assert_int_equal(C_Initialize(NULL), CKR_DEVICE_REMOVED);
}

WITH(a_child_has_to_initialize_itself_and_leaves_the_parent_alone) {
  CK_SESSION_HANDLE session = open_session();
  CK_BYTE random[4];
  pid_t child;
  int status;

  child = fork();
  if (child == 0) {
    int failed = 0;
    failed |= C_GenerateRandom(session, random, 4) != CKR_CRYPTOKI_NOT_INITIALIZED ? 1 : 0;
    failed |= C_Finalize(NULL) != CKR_CRYPTOKI_NOT_INITIALIZED ? 2 : 0;
    failed |= C_Initialize(NULL) != CKR_OK ? 4 : 0;
    failed |= C_GenerateRandom(session, random, 4) != CKR_OK ? 8 : 0;
    failed |= C_Finalize(NULL) != CKR_OK ? 16 : 0;
    _exit(failed);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(C_GenerateRandom(session, random, 4), CKR_OK);
  assert_int_equal(peer.connections, 2);
}

WITH(a_child_does_not_close_what_the_host_opened_in_place_of_our_socket) {
  pid_t child;
  int status;

  child = fork();
  if (child == 0) {
    int fds = 0;
    for (int fd = 3; fd < 64; fd++) close(fd);
    for (int i = 0; i < 40; i++) fds += open("/dev/null", O_RDONLY) >= 0;
    if (C_Initialize(NULL) != CKR_OK) _exit(1);
    for (int fd = 3; fd < 43; fd++)
      if (fcntl(fd, F_GETFD) < 0) _exit(2);
    _exit(fds == 40 ? 0 : 3);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 0);
}

static atomic_bool connecting;

static void *connect_again_and_again(void *argument) {
  (void)argument;
  while (connecting)
    if (C_Initialize(NULL) != CKR_OK || C_Finalize(NULL) != CKR_OK) _exit(20);
  return NULL;
}

static int open_files(void) {
  int files = 0;
  for (int fd = 0; fd < 64; fd++) files += fcntl(fd, F_GETFD) >= 0;
  return files;
}

/** A host that forks at any moment of C_Initialize and C_Finalize. 0, or the fault. */
static int fork_while_connecting(void) {
  enum { FORKS = 2000 };
  const int files = open_files();
  pthread_t thread;
  int failed = 0;

  connecting = true;
  if (pthread_create(&thread, NULL, connect_again_and_again, NULL) != 0) return 21;
  for (int i = 0; i < FORKS && failed == 0; i++) {
    const pid_t child = fork();
    int status;
    if (child == 0) _exit(open_files() - files);
    if (waitpid(child, &status, 0) != child) return 22;
    failed = WEXITSTATUS(status);
  }
  connecting = false;
  pthread_join(thread, NULL);
  return failed;
}

WITHOUT(a_child_keeps_no_descriptor_of_a_connection_that_is_being_made) {
  pid_t host;
  int status;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  print_message("skipped: under the address sanitizer a fork takes 60 ms, and under the thread sanitizer a forked process has no threads\n");
  skip();
#endif
  peer.lanes = 1;
  host = fork(); /* the agent's threads open files, too, and do so in this process */
  if (host == 0) _exit(fork_while_connecting());
  assert_int_equal(waitpid(host, &status, 0), host);
  assert_int_equal(status, 0);
}

/** fork without the C library and its fork handlers, as some programs do it. */
static pid_t bare_fork(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

/**
 * In the first process of a PID namespace: C_Initialize, and a child that is the first process of
 * another one.
 */
static int use_as_first_process(pid_t (*make_child)(void)) {
  CK_SESSION_HANDLE session;
  CK_BYTE random[4];
  pid_t child;
  int status;

  if (getpid() != 1 || C_Initialize(NULL) != CKR_OK) return 1;
  if (C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK) return 2;
  if (unshare(CLONE_NEWPID) != 0) return 3;
  child = make_child();
  if (child == 0) {
    if (getpid() != 1) _exit(4);
    _exit(C_GenerateRandom(session, random, sizeof random) == CKR_CRYPTOKI_NOT_INITIALIZED ? 0 : 5);
  }
  if (waitpid(child, &status, 0) != child || status != 0) return WEXITSTATUS(status);
  return C_GenerateRandom(session, random, sizeof random) == CKR_OK ? 0 : 6;
}

WITHOUT(a_child_with_the_same_pid_is_another_process) {
  static pid_t (*const forks[])(void) = {fork, bare_fork};

  for (size_t i = 0; i < sizeof forks / sizeof *forks; i++) {
    const pid_t child = fork();
    int status;
    if (child == 0) {
      if (unshare(CLONE_NEWPID) != 0) _exit(77);
      const pid_t first = fork();
      if (first == 0) _exit(use_as_first_process(forks[i]));
      if (waitpid(first, &status, 0) != first) _exit(78);
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 79);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 77) {
      print_message("skipped: only root can make a PID namespace here\n");
      skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
  }
}

enum { THREADS = 64, ROUNDS = 200 };

static void *call_many_times(void *data) {
  const CK_SESSION_HANDLE session = (CK_SESSION_HANDLE)(uintptr_t)data;
  CK_BYTE random[300];

  for (int i = 0; i < ROUNDS; i++) {
    const CK_ULONG length = 1 + (session * 7 + (CK_ULONG)i) % sizeof random;
    if (C_GenerateRandom(session, random, length) != CKR_OK) return "call failed";
    for (CK_ULONG j = 0; j < length; j++)
      if (random[j] != (CK_BYTE)(session + j)) return "another thread's answer";
  }
  return NULL;
}

WITH(sixty_four_threads_share_one_socket_and_get_their_own_answers) {
  pthread_t threads[THREADS];
  void *result;

  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, call_many_times, (void *)(i * 3 + 1)), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &result);
    if (result != NULL) fail_msg("%s", (const char *)result);
  }
  assert_int_equal(peer.connections, 1);
}

static void *make_a_pair(void *session) {
  CK_MECHANISM mechanism = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
  CK_OBJECT_HANDLE public_key = 0;
  CK_OBJECT_HANDLE private_key = 0;
  const CK_RV rv = C_GenerateKeyPair(*(CK_SESSION_HANDLE *)session, &mechanism, NULL, 0, NULL, 0, &public_key, &private_key);
  return (void *)(rv == CKR_OK ? public_key + private_key : rv);
}

UNANSWERED(a_pair_is_waited_for_longer_than_other_calls) {
  CK_SESSION_HANDLE session = open_session();
  CK_BYTE random[4];
  pthread_t thread;
  void *made;

  peer.late = 59;
  assert_int_equal(pthread_create(&thread, NULL, make_a_pair, &session), 0);
  while (peer.late != 0) sched_yield(); /* it has come */
  peer.silent = 64;
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_DEVICE_ERROR);
  peer.silent = 0;
  assert_int_equal(C_GenerateRandom(session, random, sizeof random), CKR_OK);
  pthread_join(thread, &made);
  assert_int_equal((CK_ULONG)made, 203);
}

UNANSWERED(finalize_lets_waiting_calls_return) {
  pthread_t thread;
  void *result;

  peer.silent = 64;
  assert_int_equal(pthread_create(&thread, NULL, call_many_times, (void *)1), 0);
  while (peer.received < 2) process_sleep(1000); /* C_Initialize and the call */
  assert_int_equal(C_Finalize(NULL), CKR_OK);
  pthread_join(thread, &result);
  assert_non_null(result);
}

/** The address sanitizer takes the unwinding of a cancelled thread's stack for an overflow. */
static void need_cancellation(void) {
#ifdef __SANITIZE_ADDRESS__
  print_message("skipped: under the address sanitizer no thread can be cancelled\n");
  skip();
#endif
}

static atomic_bool reached;

/**
 * Each of these waits, takes locks or opens files: with a cancellation that is already pending, the
 * first of them would end the thread.
 */
static void *call_with_a_pending_cancellation(void *argument) {
  CK_SESSION_HANDLE session = 0;
  CK_MECHANISM mechanism = cbc();
  CK_BYTE data[16] = {0};
  CK_ULONG length = sizeof data;
  bool done;

  (void)argument;
  pthread_cancel(pthread_self());
  done = C_Initialize(NULL) == CKR_OK && C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK &&
         C_GenerateRandom(session, data, sizeof data) == CKR_OK && C_EncryptInit(session, &mechanism, 5) == CKR_OK &&
         C_Encrypt(session, data, sizeof data, data, &length) == CKR_OK;
  peer.drop = 64;
  done = done && C_GenerateRandom(session, data, sizeof data) == CKR_OK && C_Login(session, CKU_USER, data, 4) == CKR_OK &&
         C_Logout(session) == CKR_OK && C_SessionCancel(session, CKF_ENCRYPT) == CKR_OK && C_CloseSession(session) == CKR_OK &&
         C_CloseAllSessions(0) == CKR_OK && C_Finalize(NULL) == CKR_OK;
  setenv("DKE_PKCS11_SOCKET", "/nonexistent/agent.sock", 1);
  if (done && C_Initialize(NULL) == CKR_DEVICE_REMOVED) reached = true;
  pthread_testcancel();
  return NULL;
}

WITHOUT(no_entry_point_is_a_cancellation_point) {
  pthread_t thread;
  void *result;

  need_cancellation();
  reached = false;
  alarm(300); /* a lock that the thread leaves behind would hang the test */
  assert_int_equal(pthread_create(&thread, NULL, call_with_a_pending_cancellation, NULL), 0);
  pthread_join(thread, &result);
  assert_ptr_equal(result, PTHREAD_CANCELED);
  assert_true(reached);
  alarm(0);
}

UNANSWERED(a_thread_that_is_cancelled_inside_a_call_leaves_the_library_usable) {
  CK_BYTE random[4];
  pthread_t thread;
  void *result;

  need_cancellation();
  alarm(300);
  peer.silent = 64;
  assert_int_equal(pthread_create(&thread, NULL, call_many_times, (void *)1), 0);
  while (peer.received < 2) process_sleep(1000); /* C_Initialize and the call, which waits for its answer */
  assert_int_equal(pthread_cancel(thread), 0);
  pthread_join(thread, &result);
  peer.silent = 0;
  assert_int_equal(C_GenerateRandom(1, random, sizeof random), CKR_OK);
  assert_int_equal(C_Finalize(NULL), CKR_OK);
  alarm(0);
}

/**
 * A query of the length passes no buffer: there is no memory that the agent's bytes could go to.
 */
WITH(bytes_that_come_in_place_of_a_length_are_refused) {
  static CK_BYTE data[LARGE_DATA + 1];
  CK_ULONG length = sizeof data;

  peer.hostile = 1;
  assert_int_equal(C_Encrypt(17, data, sizeof data, NULL, &length), CKR_DEVICE_ERROR);
  assert_int_equal(C_Encrypt(17, data, 16, NULL, &length), CKR_OK);
  assert_int_equal(length, 16);
}

int main(void) { return run_written_tests(NULL, NULL); }
