/*
 * Keys of MariaDB's file_key_management: lines `<id>;<key in hexadecimal>`, unencrypted. Each
 * becomes version 1 of its id, as that plugin calls it, so that everything it has encrypted stays
 * readable. A file that is encrypted is decrypted by openssl beforehand, into a pipe: the path may
 * be one.
 */
#ifndef DKE_MARIADB_IMPORT_H
#define DKE_MARIADB_IMPORT_H

#include "failure.h"
#include "keyring.h"

int import_keys(const char *path, struct keyring *ring, struct failure *failure);

#endif
