/*
 * Any text as pkcs11.toml, and as facts of a line in the log: what the library itself reads of the
 * one, and makes of the other.
 */
#include <stdlib.h>
#include <string.h>

#include "host/last_cause.h"
#include "host/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct settings settings;
  char *const text = malloc(size + 1);
  size_t length;

  if (text == NULL) abort();
  memcpy(text, data, size);
  text[size] = 0;
  memset(&settings, 0, sizeof settings);
  settings_scan(&settings, text);
  if (settings.connect_timeout_ms < 0 || settings.connect_timeout_ms > 60000 || settings.spin_us > 1000) abort();
  if (memchr(settings.log_folder, 0, sizeof settings.log_folder) == NULL) abort();
  last_cause_set(text, size);
  last_cause_get(&length);
  if (length > LAST_CAUSE_SIZE) abort();
  free(text);
  return 0;
}
