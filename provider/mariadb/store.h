/*
 * A keyring and its key file under the master key: opening, creating, and every change. A change is
 * durable before it is used: wrapped, unwrapped again for proof, on the disk twice, and only then
 * in use. What is not done here: locks between threads (plugin.c) and MariaDB's interface.
 */
#ifndef DKE_MARIADB_STORE_H
#define DKE_MARIADB_STORE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "failure.h"
#include "keyring.h"
#include "token.h"

struct store {
  struct token token;
  struct keyring *ring; /* in use; never changed, only replaced */
  const char *path;     /* of the key file */
  const char *label;    /* the prefix of the labels of new master keys */
  bool reads_only;      /* a backup program: it shares the file with the server and writes nothing */
  int lock;             /* descriptor, or -1 */
  uint64_t sequence;    /* the highest that may be on the disk */
};

struct store_settings {
  const char *library;
  const char *config;
  const char *path;
  const char *label;
  const char *import; /* of file_key_management, or empty */
  bool initialize;
  bool reads_only;
};

/**
 * Loads the library, then reads the key file or, on request, creates one. `remark` is a warning for
 * the log, or empty.
 */
int store_open(struct store *store, const struct store_settings *settings, struct failure *remark, struct failure *failure);
void store_close(struct store *store);

/*
 * Each creates the next keyring, already durable; the caller replaces store->ring with it and frees
 * the old one.
 */

/** A keyring with the same data keys under a fresh master key. */
struct keyring *store_rotate_master(struct store *store, struct failure *failure);
/** One more version of every id of the list, or of all ids when the list is empty. */
struct keyring *store_rotate_data(struct store *store, const uint32_t *ids, size_t count, struct failure *failure);
/** The first version of an id. */
struct keyring *store_create_data(struct store *store, uint32_t id, struct failure *failure);
/**
 * For a reader: the keyring of the file as it is now, when it is newer than the one in use. Null
 * also when it is not.
 */
struct keyring *store_reread(struct store *store, struct failure *failure);

#endif
