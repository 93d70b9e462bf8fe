/*
 * Memory for key bytes: pages of their own that are locked (never swapped), left out of core dumps and out of children of fork,
 * and wiped before they go back. Random bytes come from the kernel straight into it.
 */
#ifndef DKE_MARIADB_SECRET_H
#define DKE_MARIADB_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/** Zeroed memory of at least this many bytes, or null. */
void *secret_new(size_t size);
/** Wipes and frees what secret_new returned for this size. Null is nothing. */
void secret_free(void *secret, size_t size);
/** False once the system has refused to lock a page: the limit RLIMIT_MEMLOCK is too low. */
bool secret_is_locked(void);
/** Fills the buffer with getrandom(2); -1 when the kernel gives none. */
int secret_random(void *buffer, size_t size);

#endif
