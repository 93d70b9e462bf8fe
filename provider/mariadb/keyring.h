/*
 * The data keys in memory, by key id and version, and what belongs to them: the label of the master
 * key that wraps them and the sequence number of the file they are in. A keyring is filled by one
 * thread, then published and only read; to change it, a copy is made. Independent of files, tokens
 * and MariaDB.
 */
#ifndef DKE_MARIADB_KEYRING_H
#define DKE_MARIADB_KEYRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  /* The head for a thousand keys fits into the associated data of one request. */
  KEYRING_MAX_KEYS = 1000,
  KEYRING_MAX_KEY_BYTES = 32,
  KEYRING_LABEL_MAX = 128,
  KEYRING_FILE_ID_LENGTH = 32,
  KEYRING_MARK_LENGTH = 6, /* short: see KEYRING_MAX_KEYS */
};

struct data_key {
  uint32_t id;
  uint32_t version;
  uint32_t length; /* bytes: 16, 24 or 32 */
  uint32_t offset; /* in the keyring's bytes */
  int64_t created; /* seconds since 1970 */
  bool retired;    /* decrypts what it has encrypted, and is never the latest of its id */
  char mark[KEYRING_MARK_LENGTH + 1]; /* random text that distinguishes this key from any other of the same id and version; public; empty: none yet */
};

struct keyring {
  size_t count;
  size_t size;              /* bytes in use */
  struct data_key *keys;    /* by id, then version; their bytes are in the same order */
  unsigned char *bytes;     /* secret */
  uint64_t sequence;        /* of the key file; each change is one more */
  char file_id[KEYRING_FILE_ID_LENGTH + 1];
  char master[KEYRING_LABEL_MAX + 1];
};

/** An empty keyring, or null. */
struct keyring *keyring_new(void);
/** Wipes it. */
void keyring_free(struct keyring *ring);
/** A copy, or null. */
struct keyring *keyring_copy(const struct keyring *from);

/**
 * Adds a copy of `key`, whose offset does not matter. Null bytes reserve room, to be filled through
 * `bytes`. Returns -1 when there are too many keys, the version exists, or the length is not a
 * length of AES keys.
 */
int keyring_add(struct keyring *ring, const struct data_key *key, const unsigned char *bytes);

/** Null if it does not exist. */
const struct data_key *keyring_find(const struct keyring *ring, uint32_t id, uint32_t version);
/** The highest version of an id that is not retired; null when there is none. */
const struct data_key *keyring_latest(const struct keyring *ring, uint32_t id);
/** The highest version of an id; null when there is none. */
const struct data_key *keyring_highest(const struct keyring *ring, uint32_t id);
/** Retires the key: it only decrypts. */
void keyring_retire(struct keyring *ring, uint32_t id, uint32_t version);
/** The number of different ids. */
size_t keyring_ids(const struct keyring *ring);

#endif
