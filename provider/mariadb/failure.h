/*
 * What went wrong, in one line that says what the administrator can do. Functions that can fail take one, fill it in and answer
 * -1; the part that talks to people (plugin.c) prints it. It never contains key bytes.
 */
#ifndef DKE_MARIADB_FAILURE_H
#define DKE_MARIADB_FAILURE_H

/* MariaDB cuts a message off at 512 bytes; a prefix is put before this one. */
struct failure {
  char text[440];
};

/** Fills in the text; answers -1, so that `return failure_set(…)` ends a function. */
__attribute__((format(printf, 2, 3))) int failure_set(struct failure *failure, const char *format, ...);

#endif
