/*
 * The life of the library in a host: how it is initialised, how it is not, and every way to be rid
 * of it. Ends with 0 when all follows the rule. PKCS#11 2.40 sections 3.7 (CK_C_INITIALIZE_ARGS)
 * and 5.4.
 *
 * Usage: host-life <library> <answers> <rule>
 */
#include "host.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 16, TIMES = 20 };

static const char *path;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;
static atomic_bool stopping;

static void expect(CK_RV rv, CK_RV wanted, const char *what) {
  if (rv != wanted) host_fail(what, rv);
}

/*
 * --- arguments -----------------------------------------------------------------------------------
 */

static CK_RV create_mutex(CK_VOID_PTR_PTR mutex) {
  *mutex = malloc(1);
  return CKR_OK;
}
static CK_RV destroy_mutex(CK_VOID_PTR mutex) {
  free(mutex);
  return CKR_OK;
}
static CK_RV use_mutex(CK_VOID_PTR mutex) {
  (void)mutex;
  return CKR_OK;
}

/** `functions`: a bit for each of the four. */
static CK_C_INITIALIZE_ARGS shape(unsigned functions, CK_FLAGS flags) {
  return (CK_C_INITIALIZE_ARGS){
      .CreateMutex = (functions & 1) != 0 ? create_mutex : NULL,
      .DestroyMutex = (functions & 2) != 0 ? destroy_mutex : NULL,
      .LockMutex = (functions & 4) != 0 ? use_mutex : NULL,
      .UnlockMutex = (functions & 8) != 0 ? use_mutex : NULL,
      .flags = flags,
  };
}

static void work_once(void) {
  session = host_open();
  host_login(session);
  host_must(host_create_key(session, answers[0].key, CKK_AES, NULL, &key), "C_CreateObject");
  host_prove(session, &answers[0], key);
}

static void accept_arguments(CK_C_INITIALIZE_ARGS *args) {
  host_must(p11->C_Initialize(args), "C_Initialize");
  expect(p11->C_Initialize(args), CKR_CRYPTOKI_ALREADY_INITIALIZED, "C_Initialize twice");
  work_once();
  host_must(p11->C_Finalize(NULL), "C_Finalize");
}

static void refuse_arguments(CK_C_INITIALIZE_ARGS args, CK_RV wanted) {
  expect(p11->C_Initialize(&args), wanted, "C_Initialize");
  expect(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED, "C_Finalize after a refused C_Initialize");
}

static void arguments(void) {
  static const CK_FLAGS flags[] = {
      0, CKF_OS_LOCKING_OK, CKF_LIBRARY_CANT_CREATE_OS_THREADS, CKF_OS_LOCKING_OK | CKF_LIBRARY_CANT_CREATE_OS_THREADS};

  accept_arguments(NULL);
  for (size_t i = 0; i < COUNT(flags); i++) {
    for (unsigned functions = 0; functions < 16; functions++) {
      CK_C_INITIALIZE_ARGS args = shape(functions, flags[i]);
      /* With none or all functions, the library uses the system's locks in either case. */
      if (functions == 0 || functions == 15) accept_arguments(&args);
      else refuse_arguments(args, CKR_ARGUMENTS_BAD);
      args.pReserved = &args;
      refuse_arguments(args, CKR_ARGUMENTS_BAD);
    }
  }
}

static void finalize(void) {
  int something;

  expect(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED, "C_Finalize before C_Initialize");
  expect(p11->C_Finalize(&something), CKR_CRYPTOKI_NOT_INITIALIZED, "C_Finalize with an argument, before C_Initialize");
  session = host_begin(&answers[0], &key);
  expect(p11->C_Finalize(&something), CKR_ARGUMENTS_BAD, "C_Finalize with an argument");
  host_prove(session, &answers[0], key);
  host_must(p11->C_Finalize(NULL), "C_Finalize");
  expect(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED, "C_Finalize twice");
  expect(p11->C_CloseSession(session), CKR_CRYPTOKI_NOT_INITIALIZED, "C_CloseSession after C_Finalize");
  /* Nothing of the life before: neither sessions, nor the login, nor keys. */
  host_must(p11->C_Initialize(NULL), "C_Initialize again");
  expect(p11->C_CloseSession(session), CKR_SESSION_HANDLE_INVALID, "a session of the life before");
  session = host_open();
  expect(p11->C_Logout(session), CKR_USER_NOT_LOGGED_IN, "C_Logout in the new life");
  expect(host_cipher_init(session, &answers[0], key, true), CKR_KEY_HANDLE_INVALID, "a key of the life before");
}

/*
 * --- threads -------------------------------------------------------------------------------------
 */

static pthread_barrier_t barrier;
static atomic_int initialized;

static void start_threads(pthread_t *threads, void *(*work)(void *)) {
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) host_fail("pthread_create", 0);
}

static void join_threads(const pthread_t *threads) {
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void *race(void *argument) {
  CK_RV rv;

  (void)argument;
  pthread_barrier_wait(&barrier);
  rv = p11->C_Initialize(&(CK_C_INITIALIZE_ARGS){.flags = CKF_OS_LOCKING_OK});
  if (rv == CKR_OK) initialized++;
  else expect(rv, CKR_CRYPTOKI_ALREADY_INITIALIZED, "C_Initialize of a thread");
  return NULL;
}

static void threads_initialize(void) {
  pthread_t threads[THREADS];

  pthread_barrier_init(&barrier, NULL, THREADS);
  for (int i = 0; i < TIMES; i++) {
    initialized = 0;
    start_threads(threads, race);
    join_threads(threads);
    if (initialized != 1) host_fail("threads that have initialised", (unsigned long)initialized);
    work_once();
    host_must(p11->C_Finalize(NULL), "C_Finalize");
  }
  host_await_connections(0);
}

static void *ask_until_the_end(void *argument) {
  const CK_SESSION_HANDLE own = host_open();
  CK_BYTE bytes[16];
  CK_RV rv = CKR_OK;

  (void)argument;
  pthread_barrier_wait(&barrier);
  while (!stopping && rv == CKR_OK) rv = p11->C_GenerateRandom(own, bytes, sizeof bytes);
  if (!stopping) expect(rv, CKR_CRYPTOKI_NOT_INITIALIZED, "a call under way at C_Finalize");
  return NULL;
}

static void start_asking(pthread_t *threads) {
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  start_threads(threads, ask_until_the_end);
  pthread_barrier_wait(&barrier);
}

static void finalize_under_threads(void) {
  pthread_t threads[THREADS];

  for (int i = 0; i < TIMES; i++) {
    session = host_begin(&answers[0], &key);
    start_asking(threads);
    host_must(p11->C_Finalize(NULL), "C_Finalize");
    join_threads(threads);
  }
  host_await_connections(0);
}

/*
 * --- without C_Finalize --------------------------------------------------------------------------
 */

static bool is_loaded(void) {
  FILE *file = fopen("/proc/self/maps", "r");
  char line[1024];
  bool found = false;

  if (file == NULL) host_fail("/proc/self/maps", 0);
  while (fgets(line, sizeof line, file) != NULL) found = found || strstr(line, "libdke_pkcs11") != NULL;
  fclose(file);
  return found;
}

static void unload(void) {
  if (dlclose(library) != 0) host_fail("dlclose", 0);
  if (is_loaded()) host_fail("it is still loaded", 0);
}

static void dlclose_alone(void) {
  for (int i = 0; i < TIMES; i++) {
    session = host_begin(&answers[i], &key);
    unload();
    if (host_sockets() != 0) host_fail("sockets left behind", (unsigned long)host_sockets());
    host_await_connections(0);
    host_load(path);
    expect(p11->C_CloseSession(session), CKR_CRYPTOKI_NOT_INITIALIZED, "a session of the library before");
  }
  session = host_begin(&answers[0], &key);
}

/** Code that a fork runs must not be that of a library which is no longer there. */
static void fork_after_dlclose(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  unload();
  child = fork();
  if (child == 0) _exit(0);
  host_reap(child, "the child");
}

static void dlclose_in_a_child(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  child = fork();
  if (child == 0) {
    unload();
    exit(0);
  }
  host_reap(child, "the child");
  host_prove(session, &answers[0], key);
  host_await_connections(1);
}

/** exit(3) runs the library's end while threads are in its functions. */
static void exit_under_threads(void) {
  for (int i = 0; i < TIMES; i++) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_t threads[THREADS];
      session = host_begin(&answers[0], &key);
      start_asking(threads);
      host_pause(i % 5);
      exit(0);
    }
    host_reap(child, "a process that ends under its threads");
  }
  host_await_connections(0);
}

static const struct {
  const char *name;
  void (*run)(void);
} rules[] = {
    {"arguments", arguments},
    {"finalize", finalize},
    {"threads-initialize", threads_initialize},
    {"finalize-under-threads", finalize_under_threads},
    {"dlclose", dlclose_alone},
    {"fork-after-dlclose", fork_after_dlclose},
    {"dlclose-in-a-child", dlclose_in_a_child},
    {"exit-under-threads", exit_under_threads},
};

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  path = argv[1];
  host_read_answers(argv[2]);
  host_load(path);
  for (size_t i = 0; i < COUNT(rules); i++) {
    if (strcmp(rules[i].name, argv[3]) != 0) continue;
    rules[i].run();
    return 0;
  }
  return 2;
}
