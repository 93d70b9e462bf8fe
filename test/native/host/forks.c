/*
 * A host that forks, in every order that there is. A child's answers are compared with known ones
 * of its own, so that one that belongs to its parent, or to a sister, is a wrong one. Exits with 0
 * if every answer follows the rule.
 *
 * Usage: host-forks <library> <answers> <rule>
 */
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>

enum { THREADS = 8, CHILDREN = 60, ROUNDS = 100, GENERATIONS = 5 };

extern char **environ;
static char **words;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;

static void prove_often(const struct answer *row) {
  for (int i = 0; i < ROUNDS; i++) host_prove(session, row, key);
}

/** What a child does that wants the library for itself; it never returns. */
static void live(const struct answer *row, int rounds) {
  session = host_begin(row, &key);
  for (int i = 0; i < rounds; i++) host_prove(session, row, key);
  host_must(p11->C_Finalize(NULL), "C_Finalize of a child");
  _exit(0);
}

static void expect(CK_RV rv, CK_RV wanted, const char *what) {
  if (rv != wanted) host_fail(what, rv);
}

static void open_pipe(int ends[2]) {
  if (pipe(ends) != 0) host_fail("pipe", 0);
}

/*
 * --- one fork ------------------------------------------------------------------------------------
 */

static void before_initialize(void) {
  const pid_t child = fork();
  if (child == 0) live(&answers[1], ROUNDS);
  session = host_begin(&answers[0], &key);
  prove_often(&answers[0]);
  host_reap(child, "the child");
  host_prove(session, &answers[0], key);
}

static void child_uses(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  child = fork();
  if (child == 0) {
    const CK_RV none = CKR_CRYPTOKI_NOT_INITIALIZED;
    CK_INFO info;
    CK_ULONG count = 0;
    CK_SESSION_HANDLE other;
    CK_BYTE byte[16] = {0};

    expect(p11->C_GetInfo(&info), none, "C_GetInfo");
    expect(p11->C_GetSlotList(CK_TRUE, NULL, &count), none, "C_GetSlotList");
    expect(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &other), none, "C_OpenSession");
    expect(host_cipher_init(session, &answers[0], key, true), none, "C_EncryptInit");
    expect(p11->C_GenerateRandom(session, byte, sizeof byte), none, "C_GenerateRandom");
    expect(p11->C_Logout(session), none, "C_Logout");
    expect(p11->C_CloseSession(session), none, "C_CloseSession");
    expect(p11->C_CloseAllSessions(0), none, "C_CloseAllSessions");
    expect(p11->C_Finalize(NULL), none, "C_Finalize");
    _exit(0);
  }
  host_reap(child, "the child");
  prove_often(&answers[0]);
  host_await_connections(1);
}

static void child_initializes(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  child = fork();
  if (child == 0) {
    const CK_OBJECT_HANDLE parents = key;
    CK_SESSION_HANDLE own;
    CK_OBJECT_HANDLE mine;

    host_must(p11->C_Initialize(NULL), "C_Initialize of the child");
    expect(p11->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED, "C_Initialize twice");
    own = host_open();
    host_login(own);
    /* Objects of the parent's sessions are none of the child's. */
    expect(host_cipher_init(own, &answers[0], parents, true), CKR_KEY_HANDLE_INVALID, "the parent's key");
    host_must(host_create_key(own, answers[1].key, CKK_AES, NULL, &mine), "C_CreateObject of the child");
    for (int i = 0; i < ROUNDS; i++) host_prove(own, &answers[1], mine);
    host_must(p11->C_Finalize(NULL), "C_Finalize of the child");
    expect(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED, "C_Finalize twice");
    _exit(0);
  }
  prove_often(&answers[0]);
  host_reap(child, "the child");
  prove_often(&answers[0]);
}

/** The second C_EncryptInit is one that the library holds back: it belongs to the parent. */
static void with_an_operation_under_way(void) {
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN];
  CK_ULONG length = sizeof out;
  pid_t child;

  session = host_begin(&answers[0], &key);
  host_must(host_cipher_init(session, &answers[0], key, true), "C_EncryptInit");
  child = fork();
  if (child == 0) live(&answers[1], ROUNDS);
  host_reap(child, "the child");
  memcpy(in, answers[0].plain, PLAIN);
  host_must(p11->C_Encrypt(session, in, PLAIN, out, &length), "C_Encrypt");
  if (memcmp(out, answers[0].cipher, PLAIN) != 0) host_fail("a wrong ciphertext", 0);
}

static void parent_finalizes(void) {
  int ends[2];
  char byte = 0;
  pid_t child;

  open_pipe(ends);
  session = host_begin(&answers[0], &key);
  child = fork();
  if (child == 0) {
    session = host_begin(&answers[1], &key);
    if (write(ends[1], &byte, 1) != 1) _exit(1);
    for (int i = 0; i < 10; i++) prove_often(&answers[1]);
    _exit(0);
  }
  if (read(ends[0], &byte, 1) != 1) host_fail("the child says nothing", 0);
  host_must(p11->C_Finalize(NULL), "C_Finalize");
  host_reap(child, "the child");
  session = host_begin(&answers[2], &key);
}

/**
 * A child that does not use the library does not keep its parent's connection open after the
 * parent's end.
 */
static void parent_dies(void) {
  int ends[2];
  char byte;
  pid_t parent;

  open_pipe(ends);
  parent = fork();
  if (parent == 0) {
    session = host_begin(&answers[0], &key);
    if (fork() != 0) _exit(0);
    if (host_sockets() != 0) host_fail("sockets of the child's", (unsigned long)host_sockets());
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* when the test has ended */
  }
  host_reap(parent, "the parent");
  host_await_connections(0);
}

/** A child that uses the library continues after the end of its parent. */
static void parent_dies_child_goes_on(void) {
  int ends[2];
  char byte = 1;
  pid_t parent;

  open_pipe(ends);
  parent = fork();
  if (parent == 0) {
    session = host_begin(&answers[0], &key);
    if (fork() != 0) _exit(0);
    host_await_connections(0);
    session = host_begin(&answers[1], &key);
    prove_often(&answers[1]);
    _exit(write(ends[1], &byte, 1) == 1 ? 0 : 1);
  }
  close(ends[1]);
  host_reap(parent, "the parent");
  if (read(ends[0], &byte, 1) != 1) host_fail("the orphan did not continue", 0);
  host_await_connections(0);
}

static void descend(int generation) {
  pid_t child;

  session = host_begin(&answers[generation], &key);
  prove_often(&answers[generation]);
  if (generation == GENERATIONS) return;
  child = fork();
  if (child == 0) {
    descend(generation + 1);
    host_must(p11->C_Finalize(NULL), "C_Finalize of a descendant");
    _exit(0);
  }
  prove_often(&answers[generation]);
  host_reap(child, "a descendant");
  host_prove(session, &answers[generation], key);
}
static void descendants(void) { descend(0); }

/** The daemon's way: the child leaves, the grandchild works. */
static void double_fork(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      expect(p11->C_CloseSession(session), CKR_CRYPTOKI_NOT_INITIALIZED, "C_CloseSession");
      live(&answers[1], ROUNDS);
    }
    host_reap(grandchild, "the grandchild");
    _exit(0);
  }
  host_reap(child, "the child");
  host_prove(session, &answers[0], key);
}

/*
 * --- many forks ----------------------------------------------------------------------------------
 */

static atomic_bool stopping;

static pthread_t start_thread(void *(*work)(void *), uintptr_t argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, (void *)argument) != 0) host_fail("pthread_create", 0);
  return thread;
}

static void fork_one_by_one(void) {
  for (int i = 0; i < CHILDREN; i++) {
    const pid_t child = fork();
    if (child == 0) live(&answers[i], 1);
    host_reap(child, "a child");
  }
}

static void *work(void *argument) {
  const struct answer *row = &answers[(uintptr_t)argument];
  const CK_SESSION_HANDLE own = host_open();
  CK_OBJECT_HANDLE mine;

  host_must(host_create_key(own, row->key, CKK_AES, NULL, &mine), "C_CreateObject of a thread");
  while (!stopping) host_prove(own, row, mine);
  return NULL;
}

/**
 * Locks, buffers and replies under way are in the hands of threads that the child does not have.
 */
static void during_calls_of_other_threads(void) {
  pthread_t threads[THREADS];

  session = host_begin(&answers[0], &key);
  for (uintptr_t i = 0; i < THREADS; i++) threads[i] = start_thread(work, i + 1);
  fork_one_by_one();
  stopping = true;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  host_prove(session, &answers[0], key);
}

static void *come_and_go(void *argument) {
  (void)argument;
  while (!stopping) {
    host_must(p11->C_Initialize(NULL), "C_Initialize of the thread");
    host_must(p11->C_Finalize(NULL), "C_Finalize of the thread");
  }
  return NULL;
}

static void during_initialize_of_another_thread(void) {
  const pthread_t thread = start_thread(come_and_go, 0);
  fork_one_by_one();
  stopping = true;
  pthread_join(thread, NULL);
}

static void many_children(void) {
  pid_t children[CHILDREN];

  session = host_begin(&answers[0], &key);
  for (int i = 0; i < CHILDREN; i++) {
    children[i] = fork();
    if (children[i] == 0) live(&answers[1 + i], 10);
  }
  prove_often(&answers[0]);
  for (int i = 0; i < CHILDREN; i++) host_reap(children[i], "a child");
  host_prove(session, &answers[0], key);
  host_await_connections(1);
}

/** A zombie has ended: the first process of a container often collects none. */
static bool is_running(pid_t process) {
  char path[64], status[512] = "";
  FILE *file;
  const char *state;

  snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
  file = fopen(path, "re");
  if (file == NULL) return false;
  if (fgets(status, sizeof status, file) == NULL) status[0] = 0;
  fclose(file);
  state = strrchr(status, ')');
  return state != NULL && strncmp(state, ") Z", 3) != 0;
}

static void lose_agent(void) {
  const pid_t agent = host_agent();

  kill(agent, SIGKILL);
  while (is_running(agent)) host_pause(1);
}

static void *initialize(void *argument) {
  (void)argument;
  host_must(p11->C_Initialize(NULL), "C_Initialize, with an agent to be started");
  stopping = true;
  return NULL;
}

/**
 * Children that are forked while the agent is being started have the starter's lock file open, and
 * must not hold the lock.
 */
static void while_the_agent_is_started(void) {
  pthread_t thread;
  int ends[2];
  char byte;

  open_pipe(ends);
  session = host_begin(&answers[0], &key);
  host_must(p11->C_Finalize(NULL), "C_Finalize");
  lose_agent();
  thread = start_thread(initialize, 0);
  while (!stopping) {
    if (fork() == 0) {
      close(ends[1]);
      _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    host_pause(5);
  }
  pthread_join(thread, NULL);
  host_must(p11->C_Finalize(NULL), "C_Finalize");
  lose_agent();
  session = host_begin(&answers[1], &key);
  close(ends[1]);
  while (wait(NULL) > 0 || errno == EINTR) continue;
}

/*
 * --- exec ----------------------------------------------------------------------------------------
 */

/** The program that is executed: has nothing of its parent's, and does everything itself. */
static void executed(void) {
  if (host_sockets() != 0) host_fail("inherited sockets", (unsigned long)host_sockets());
  session = host_begin(&answers[1], &key);
  prove_often(&answers[1]);
  host_must(p11->C_Finalize(NULL), "C_Finalize of the program");
}

static void meanwhile(pid_t program) {
  prove_often(&answers[0]);
  host_reap(program, "the program");
  host_prove(session, &answers[0], key);
}

static void child_executes(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  words[3] = (char[]){"executed"};
  child = fork();
  if (child == 0) {
    execv(words[0], words);
    _exit(1);
  }
  meanwhile(child);
}

/** The child shares the memory until it executes. */
static void vfork_and_spawn(void) {
  pid_t child;

  session = host_begin(&answers[0], &key);
  words[3] = (char[]){"executed"};
  child = vfork();
  if (child == 0) {
    execv(words[0], words);
    _exit(1);
  }
  meanwhile(child);
  if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0) host_fail("posix_spawn", 0);
  meanwhile(child);
}

static const struct {
  const char *name;
  void (*run)(void);
} rules[] = {
    {"before-initialize", before_initialize},
    {"child-uses", child_uses},
    {"child-initializes", child_initializes},
    {"with-an-operation-under-way", with_an_operation_under_way},
    {"parent-finalizes", parent_finalizes},
    {"parent-dies", parent_dies},
    {"parent-dies-child-goes-on", parent_dies_child_goes_on},
    {"descendants", descendants},
    {"double-fork", double_fork},
    {"during-calls-of-other-threads", during_calls_of_other_threads},
    {"during-initialize-of-another-thread", during_initialize_of_another_thread},
    {"many-children", many_children},
    {"while-the-agent-is-started", while_the_agent_is_started},
    {"child-executes", child_executes},
    {"vfork-and-spawn", vfork_and_spawn},
    {"executed", executed},
};

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  words = argv;
  host_read_answers(argv[2]);
  host_load(argv[1]);
  for (size_t i = 0; i < COUNT(rules); i++) {
    if (strcmp(rules[i].name, argv[3]) != 0) continue;
    rules[i].run();
    return 0;
  }
  return 2;
}
