/*
 * Memory for key bytes: separate pages that are locked (never swapped), excluded from core dumps
 * and from forked children, and wiped before they are freed. The kernel writes random bytes
 * directly into it.
 */
#ifndef DKE_MARIADB_SECRET_H
#define DKE_MARIADB_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/** Zeroed memory of at least this many bytes, or null. */
void *secret_new(size_t size);
/** Wipes and frees memory of secret_new with this size. Null is allowed. */
void secret_free(void *secret, size_t size);
/** False once the system has refused to lock a page: the limit RLIMIT_MEMLOCK is too low. */
bool secret_is_locked(void);
/** Fills the buffer with getrandom(2); -1 when the kernel returns none. */
int secret_random(void *buffer, size_t size);

#endif
