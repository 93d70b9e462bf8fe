/*
 * A host process in C, for tests that JavaScript cannot be the host of: threads, forks, loading and
 * unloading. Loads a PKCS#11 library by its path, and reads answers that the test computed
 * elsewhere, so that no cryptography is needed here.
 *
 * Known answers: a file of `ANSWERS` rows of bytes, in the order of `struct answer`. No row shares
 * a byte string with another, so a reply that belongs to another caller is a wrong one.
 */
#ifndef DKE_TEST_HOST_H
#define DKE_TEST_HOST_H

#include <dirent.h>
#include <dlfcn.h>
#include <pkcs11.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWERS = 64, SHARED_KEYS = 8, PLAIN = 48 };

struct answer {
  CK_BYTE key[32];
  CK_BYTE iv[16];
  CK_BYTE plain[PLAIN];
  CK_BYTE cipher[PLAIN];              /* AES-256-CBC of `plain` under `key` and `iv` */
  CK_BYTE mac[32];                    /* HMAC-SHA-256 of `plain` under `key` */
  CK_BYTE digest[32];                 /* SHA-256 of `plain` */
  CK_BYTE shared[SHARED_KEYS][PLAIN]; /* as `cipher`, under the key of the row of that number */
  CK_BYTE token[PLAIN];               /* as `cipher`, under the key that the token has been given */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct answer answers[ANSWERS];
static CK_FUNCTION_LIST_PTR p11;
static void *library;

static inline void host_fail(const char *what, unsigned long code) {
  fprintf(stderr, "%d: %s: 0x%lx\n", (int)getpid(), what, code);
  _exit(1);
}

static inline void host_must(CK_RV rv, const char *what) {
  if (rv != CKR_OK) host_fail(what, rv);
}

/** Loads the library, which is not initialised by that. */
static inline void host_load(const char *path) {
  CK_C_GetFunctionList list;
  void *symbol;

  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  symbol = library == NULL ? NULL : dlsym(library, "C_GetFunctionList");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(1);
  }
  memcpy(&list, &symbol, sizeof list);
  host_must(list(&p11), "C_GetFunctionList");
}

static inline void host_read_answers(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(answers, sizeof *answers, ANSWERS, file) != ANSWERS) host_fail("the answers", 0);
  fclose(file);
}

static inline CK_SLOT_ID host_slot(void) {
  CK_SLOT_ID slot;
  CK_ULONG count = 1;
  host_must(p11->C_GetSlotList(CK_TRUE, &slot, &count), "C_GetSlotList");
  return slot;
}

static inline CK_SESSION_HANDLE host_open(void) {
  CK_SESSION_HANDLE session;
  host_must(p11->C_OpenSession(host_slot(), CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session), "C_OpenSession");
  return session;
}

static inline void host_login(CK_SESSION_HANDLE session) {
  CK_RV rv = p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "", 0);
  if (rv != CKR_USER_ALREADY_LOGGED_IN) host_must(rv, "C_Login");
}

/** A session key with this value, that encrypts and decrypts, or signs and verifies. */
static inline CK_RV host_create_key(CK_SESSION_HANDLE session, const CK_BYTE *value, CK_KEY_TYPE type, CK_BYTE *id,
                                    CK_OBJECT_HANDLE *key) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_BBOOL yes = CK_TRUE;
  const bool cipher = type == CKK_AES;
  CK_BYTE copy[32];
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class},
      {CKA_KEY_TYPE, &type, sizeof type},
      {CKA_VALUE, copy, sizeof copy},
      {cipher ? CKA_ENCRYPT : CKA_SIGN, &yes, sizeof yes},
      {cipher ? CKA_DECRYPT : CKA_VERIFY, &yes, sizeof yes},
      {CKA_ID, id, 5},
  };
  memcpy(copy, value, sizeof copy);
  return p11->C_CreateObject(session, template, COUNT(template) - (id == NULL ? 1 : 0), key);
}

static inline CK_RV host_cipher_init(CK_SESSION_HANDLE session, const struct answer *row, CK_OBJECT_HANDLE key, bool encrypt) {
  CK_BYTE iv[16];
  CK_MECHANISM mechanism = {CKM_AES_CBC, iv, sizeof iv};
  memcpy(iv, row->iv, sizeof iv);
  return encrypt ? p11->C_EncryptInit(session, &mechanism, key) : p11->C_DecryptInit(session, &mechanism, key);
}

/**
 * Encrypts and decrypts a row under its own key, and ends the process when anything is not as it
 * should be.
 */
static inline void host_prove(CK_SESSION_HANDLE session, const struct answer *row, CK_OBJECT_HANDLE key) {
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN];
  CK_ULONG length = sizeof out;

  memcpy(in, row->plain, sizeof in);
  host_must(host_cipher_init(session, row, key, true), "C_EncryptInit");
  host_must(p11->C_Encrypt(session, in, sizeof in, out, &length), "C_Encrypt");
  if (length != PLAIN || memcmp(out, row->cipher, PLAIN) != 0) host_fail("a wrong ciphertext", length);
  memcpy(in, out, sizeof in);
  length = sizeof out;
  host_must(host_cipher_init(session, row, key, false), "C_DecryptInit");
  host_must(p11->C_Decrypt(session, in, sizeof in, out, &length), "C_Decrypt");
  if (length != PLAIN || memcmp(out, row->plain, PLAIN) != 0) host_fail("a wrong plaintext", length);
}

/*
 * --- processes and what they have open -----------------------------------------------------------
 */

static inline void host_pause(long milliseconds) {
  nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

/** A child that must end well. */
static inline void host_reap(pid_t child, const char *what) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) host_fail(what, (unsigned long)status);
}

/** How many sockets this process has open, next to its standard files, which may be some. */
static inline int host_sockets(void) {
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;
  int sockets = 0;

  if (folder == NULL) host_fail("/proc/self/fd", 0);
  while ((entry = readdir(folder)) != NULL) {
    char target[16] = {0};
    if (atoi(entry->d_name) > 2 && readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0 &&
        strncmp(target, "socket:", 7) == 0)
      sockets++;
  }
  closedir(folder);
  return sockets;
}

/** How many connections the agent has, by the kernel's list. */
static inline int host_connections(void) {
  const char *path = getenv("DKE_PKCS11_SOCKET");
  FILE *file = fopen("/proc/net/unix", "r");
  char line[512];
  int connections = 0;

  if (file == NULL || path == NULL) host_fail("/proc/net/unix", 0);
  while (fgets(line, sizeof line, file) != NULL) {
    char name[256] = {0};
    unsigned state = 0;
    if (sscanf(line, "%*s %*s %*s %*s %*s %x %*s %255s", &state, name) == 2 && state == 3 && strcmp(name, path) == 0) connections++;
  }
  fclose(file);
  return connections;
}

/** The agent notices the end of a connection in its next round. */
static inline void host_await_connections(int wanted) {
  for (int i = 0; host_connections() != wanted; i++) {
    if (i == 1000) host_fail("the agent does not let go: connections", (unsigned long)host_connections());
    host_pause(10);
  }
}

/** The process that listens. */
static inline pid_t host_agent(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct ucred peer = {0};
  socklen_t size = sizeof peer;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv("DKE_PKCS11_SOCKET"));
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    host_fail("no server listens", 0);
  close(fd);
  return peer.pid;
}

/** From C_Initialize to a key in use: a process with its own library. */
static inline CK_SESSION_HANDLE host_begin(const struct answer *row, CK_OBJECT_HANDLE *key) {
  CK_SESSION_HANDLE session;

  host_must(p11->C_Initialize(&(CK_C_INITIALIZE_ARGS){.flags = CKF_OS_LOCKING_OK}), "C_Initialize");
  session = host_open();
  host_login(session);
  host_must(host_create_key(session, row->key, CKK_AES, NULL, key), "C_CreateObject");
  host_prove(session, row, *key);
  return session;
}

#endif
