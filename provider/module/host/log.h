/*
 * Where the library says what its caller cannot be told in a CK_RV: no agent, a refused socket, a
 * lost connection.
 */
#ifndef DKE_LOG_H
#define DKE_LOG_H

#include "message/cryptoki.h"
#include "message/gen/causes.h"

/**
 * One line, cut at 600 characters, appended to library.log in log_dir of pkcs11.toml, in
 * /var/log/dke-pkcs11 or next to the socket, whichever is the first that takes it. The file turns
 * over to library.log.1 at 1 MiB. Failing to log is not a failure. Never a PIN, a key, data or a
 * template: callers pass names, numbers and errno texts only.
 */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/**
 * The line of a cause, with its facts (`const char *`, as many and in the order as
 * module/message/gen/causes.h says), and its return value. The first of a cause is told at once,
 * the next within a minute are counted, and the count is told with the one that follows. It is the
 * last cause of the thread in any case (last_cause.h).
 */
CK_RV log_cause(enum cause cause, ...);
/** Tells what was counted: at C_Finalize. */
void log_counted(void);
/** log_dir, or the empty text. */
void log_set_wanted(const char *folder);
/** The folder of the socket, for the fallback. */
void log_set_folder(const char *folder);

#endif
