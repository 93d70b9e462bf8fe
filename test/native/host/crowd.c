/*
 * Many database processes on one agent, all connected at the same moment: each is a program of its
 * own that loads the library, finds the master key, uses it and a session key, and compares the
 * results with known answers.
 *
 * Usage: host-crowd <library> <answers> <processes> <rounds> Standard output: {"connected":N} when
 * all have done C_Initialize, C_Login and their search and wait, N being the agent's connections.
 * When its standard input ends they work and finalise; then {"longest":M}, milliseconds of the
 * longest call. Ends with 0 when every process did.
 */
#include "host.h"

#include <errno.h>
#include <spawn.h>

enum { MOST = 4096, READY = 3, GO = 4 };

extern char **environ;

static int64_t longest;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#define TIMED(call, what)                                  \
  do {                                                     \
    const int64_t begun = now();                           \
    host_must(call, what);                                 \
    if (now() - begun > longest) longest = now() - begun;  \
  } while (0)

static CK_OBJECT_HANDLE find_master_key(CK_SESSION_HANDLE session) {
  CK_OBJECT_HANDLE found[2];
  CK_ULONG count = 0;
  CK_ATTRIBUTE template = {CKA_LABEL, (char[]){"MASTER"}, 6};

  TIMED(p11->C_FindObjectsInit(session, &template, 1), "C_FindObjectsInit");
  TIMED(p11->C_FindObjects(session, found, COUNT(found), &count), "C_FindObjects");
  TIMED(p11->C_FindObjectsFinal(session), "C_FindObjectsFinal");
  if (count != 1) host_fail("master keys", count);
  return found[0];
}

static void use(CK_SESSION_HANDLE session, const struct answer *row, CK_OBJECT_HANDLE key, bool encrypt, const CK_BYTE *from,
                const CK_BYTE *to) {
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN];
  CK_ULONG length = sizeof out;

  memcpy(in, from, PLAIN);
  TIMED(host_cipher_init(session, row, key, encrypt), "Init");
  TIMED(encrypt ? p11->C_Encrypt(session, in, PLAIN, out, &length) : p11->C_Decrypt(session, in, PLAIN, out, &length), "C_Crypt");
  if (length != PLAIN || memcmp(out, to, PLAIN) != 0) host_fail("a wrong answer", encrypt);
}

/** One of them. */
static void live(const char *path, int number, int rounds) {
  CK_SESSION_HANDLE session;
  CK_OBJECT_HANDLE master;
  CK_OBJECT_HANDLE own;
  char byte = 0;

  host_load(path);
  TIMED(p11->C_Initialize(&(CK_C_INITIALIZE_ARGS){.flags = CKF_OS_LOCKING_OK}), "C_Initialize");
  session = host_open();
  host_login(session);
  master = find_master_key(session);
  if (write(READY, &byte, 1) != 1 || read(GO, &byte, 1) != 0) host_fail("the crowd", (unsigned long)errno);
  TIMED(host_create_key(session, answers[number % ANSWERS].key, CKK_AES, NULL, &own), "C_CreateObject");
  for (int i = 0; i < rounds; i++) {
    const struct answer *row = &answers[(number + i) % ANSWERS];
    use(session, row, master, true, row->plain, row->token);
    use(session, row, master, false, row->token, row->plain);
    host_prove(session, &answers[number % ANSWERS], own);
  }
  TIMED(p11->C_Finalize(NULL), "C_Finalize");
  if (write(READY, &longest, sizeof longest) != sizeof longest) host_fail("the crowd", (unsigned long)errno);
}

static pid_t start(char **argv, int number, const int *ready, const int *go) {
  char text[16];
  char *words[] = {argv[0], argv[1], argv[2], argv[3], argv[4], text, NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;

  snprintf(text, sizeof text, "%d", number);
  posix_spawn_file_actions_init(&actions);
  /* The pipes go by way of high numbers: neither pipe must lie where the other one is going to. */
  posix_spawn_file_actions_adddup2(&actions, ready[1], 103);
  posix_spawn_file_actions_adddup2(&actions, go[0], 104);
  for (int i = 0; i < 2; i++) {
    posix_spawn_file_actions_addclose(&actions, ready[i]);
    posix_spawn_file_actions_addclose(&actions, go[i]);
  }
  posix_spawn_file_actions_adddup2(&actions, 103, READY);
  posix_spawn_file_actions_adddup2(&actions, 104, GO);
  posix_spawn_file_actions_addclose(&actions, 103);
  posix_spawn_file_actions_addclose(&actions, 104);
  if (posix_spawn(&child, argv[0], &actions, NULL, words, environ) != 0) host_fail("posix_spawn", 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

static void await(int ready, void *bytes, size_t length) {
  if (read(ready, bytes, length) != (ssize_t)length) host_fail("a process has ended", 0);
}

int main(int argc, char **argv) {
  const int processes = argc < 5 ? 0 : atoi(argv[3]);
  static pid_t children[MOST];
  int ready[2];
  int go[2];
  char byte;

  if (processes < 1 || processes > MOST) return 2;
  host_read_answers(argv[2]);
  if (argc > 5) {
    live(argv[1], atoi(argv[5]), atoi(argv[4]));
    return 0;
  }
  if (pipe(ready) != 0 || pipe(go) != 0) host_fail("pipe", 0);
  for (int i = 0; i < processes; i++) children[i] = start(argv, i, ready, go);
  close(ready[1]);
  for (int i = 0; i < processes; i++) await(ready[0], &byte, 1);
  printf("{\"connected\":%d}\n", host_connections());
  fflush(stdout);
  while (read(0, &byte, 1) > 0) continue;
  close(go[0]);
  close(go[1]);
  for (int i = 0; i < processes; i++) {
    int64_t took;
    await(ready[0], &took, sizeof took);
    if (took > longest) longest = took;
  }
  for (int i = 0; i < processes; i++) host_reap(children[i], "a process");
  host_await_connections(0);
  printf("{\"longest\":%ld}\n", (long)longest);
  return 0;
}
