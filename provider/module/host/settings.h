/*
 * What the library itself reads: which configuration file, which socket, four numbers and the
 * folder of the log. The file's meaning is the agent's business; here a scanner looks for lines
 * `name = integer` of the four names and `log_dir = "text"`, before the first table, and ignores
 * everything else, so that a broken file is reported only by the agent.
 */
#ifndef DKE_SETTINGS_H
#define DKE_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

struct settings {
  char config[PATH_MAX]; /* the real path, or the path as given when it has none */
  /* The program has more rights than its caller, who has named a file in DKE_PKCS11_CONF. */
  bool is_secure;
  const char *refusal;   /* why that is ignored, NULL when it is not */
  char socket[108];      /* DKE_PKCS11_SOCKET, or empty */
  int connect_timeout_ms;
  int call_timeout_ms;
  int spin_us;
  int wait_seconds;
  char log_folder[PATH_MAX]; /* log_dir, or empty */
};

/** Reads the environment and the file. Always leaves usable values. */
void settings_read(struct settings *settings);
/** Only the scanner, for tests. */
void settings_scan(struct settings *settings, const char *text);

#endif
