/* Where the library says what its caller cannot be told in a CK_RV: no agent, a refused socket, a lost connection. */
#ifndef DKE_LOG_H
#define DKE_LOG_H

/**
 * One line, cut at 400 characters, appended to /var/log/dke-pkcs11/library.log, or to library.log beside the socket when
 * that folder is not there for us. The file turns over to library.log.1 at 1 MiB. Failing to log is not a failure.
 * Never a PIN, a key, data or a template: callers pass names, numbers and errno texts only.
 */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** The folder of the socket, for the fallback. */
void log_set_folder(const char *folder);

#endif
