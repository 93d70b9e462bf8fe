/*
 * A failure, in one line with what the administrator can do. Functions that can fail have such a
 * parameter, fill it in and return -1; plugin.c prints it. It never contains key bytes.
 */
#ifndef DKE_MARIADB_FAILURE_H
#define DKE_MARIADB_FAILURE_H

/* MariaDB truncates a message at 512 bytes; this one gets a prefix. */
struct failure {
  char text[440];
};

/** Fills in the text; returns -1, so that `return failure_set(…)` ends a function. */
__attribute__((format(printf, 2, 3))) int failure_set(struct failure *failure, const char *format, ...);

#endif
