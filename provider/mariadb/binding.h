/*
 * Which keys a data directory was encrypted with: a small file in it that names each version by its
 * mark (keyring.h). It goes where the data goes, also through mariabackup, so a key file of another
 * database is refused before MariaDB decrypts a page with a wrong key.
 */
#ifndef DKE_MARIADB_BINDING_H
#define DKE_MARIADB_BINDING_H

#include <stdbool.h>

#include "failure.h"
#include "keyring.h"

/*
 * In the folder of the schema `mysql`, and with an ending that mariabackup copies. Relative to the
 * data directory.
 */
#define BINDING_PATH "mysql/dke_key_management.opt"

enum binding_found {
  BINDING_ABSENT, /* not there, or it names only some of the keys: to be written */
  BINDING_FITS,
  BINDING_REFUSED /* the failure says why and what to do */
};

/**
 * Compares the keyring of the key file at `key_file` with the file at `path`. A null keyring
 * matches no bound data directory.
 */
enum binding_found binding_check(const char *path, const char *key_file, const struct keyring *ring, struct failure *failure);
/** Writes the file, complete and on the disk. Does nothing when its folder is missing. */
int binding_write(const char *path, const struct keyring *ring, struct failure *failure);

#endif
