/* Environment and pkcs11.toml, as far as the library needs them; see settings.h. */
#include "host/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "host/acting_user.h"
#include "host/descriptor.h"
#include "host/secure_config.h"

enum { FILE_MAX = 64 * 1024 };

static const struct {
  const char *name;
  size_t offset;
  long least;
  long most;
} numbers[] = {
    {"connect_timeout_ms", offsetof(struct settings, connect_timeout_ms), 10, 60000},
    {"call_timeout_ms", offsetof(struct settings, call_timeout_ms), 10, 600000},
    {"spin_us", offsetof(struct settings, spin_us), 0, 1000},
    {"wait_seconds", offsetof(struct settings, wait_seconds), 0, 600},
};

/**
 * `log_dir = "/a/path"` or in single quotes, without escapes. Whatever else stands there is the
 * agent's to refuse.
 */
static void scan_folder(struct settings *settings, const char *line) {
  static const char name[] = "log_dir";
  const char *from = line + sizeof name - 1;
  char quote;
  size_t length;

  if (strncmp(line, name, sizeof name - 1) != 0) return;
  from += strspn(from, " \t");
  if (*from++ != '=') return;
  from += strspn(from, " \t");
  quote = *from++;
  if ((quote != '"' && quote != '\'') || *from != '/') return;
  length = strcspn(from, quote == '"' ? "\"\\" : "'");
  if (from[length] != quote || length >= sizeof settings->log_folder) return;
  memcpy(settings->log_folder, from, length);
  settings->log_folder[length] = 0;
}

static void scan_line(struct settings *settings, const char *line) {
  while (isspace((unsigned char)*line)) line++;
  scan_folder(settings, line);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    size_t length = strlen(numbers[i].name);
    const char *from = line + length;
    char *end;
    long value;

    if (strncmp(line, numbers[i].name, length) != 0) continue;
    while (*from == ' ' || *from == '\t') from++;
    if (*from++ != '=') continue;
    while (*from == ' ' || *from == '\t') from++;
    if (!isdigit((unsigned char)*from)) continue;
    errno = 0;
    value = strtol(from, &end, 10);
    while (isspace((unsigned char)*end)) end++;
    if ((*end != 0 && *end != '#') || errno != 0) continue;
    if (value < numbers[i].least || value > numbers[i].most) continue;
    memcpy((char *)settings + numbers[i].offset, &(int){(int)value}, sizeof(int));
  }
}

void settings_scan(struct settings *settings, const char *text) {
  char line[256];

  while (*text != 0) {
    size_t length = strcspn(text, "\n");
    if (length < sizeof line) {
      memcpy(line, text, length);
      line[length] = 0;
      if (line[strspn(line, " \t")] == '[') return;
      scan_line(settings, line);
    }
    text += length;
    if (*text == '\n') text++;
  }
}

static void scan_file(struct settings *settings) {
  /* Not blocking: the path could be a pipe. */
  const int fd = descriptor_open(settings->config, O_RDONLY | O_NONBLOCK, 0);
  char *text;
  ssize_t got;

  if (fd < 0) return;
  text = malloc(FILE_MAX + 1);
  if (text != NULL) {
    got = descriptor_read(fd, text, FILE_MAX);
    text[got > 0 ? got : 0] = 0;
    settings_scan(settings, text);
    /* The file contains the access token. */
    memset(text, 0, FILE_MAX + 1);
    __asm__ volatile("" : : "r"(text) : "memory");
    free(text);
  }
  descriptor_close(fd);
}

/**
 * The real path of the configuration, in memory of its own; NULL when that has none. `*config`: the
 * path as it is given.
 */
static char *choose_config(struct settings *settings, const char **config) {
  static const char usual[] = "/etc/dke/pkcs11.toml";
  const char *const given = getenv("DKE_PKCS11_CONF");
  char *real;

  *config = given == NULL || *given == 0 ? usual : given;
  real = realpath(*config, NULL);
  if (getauxval(AT_SECURE) == 0 || *config == usual) return real;
  settings->is_secure = true;
  settings->refusal = secure_config_refusal(real == NULL ? *config : real);
  if (settings->refusal == NULL) return real;
  free(real);
  *config = usual;
  return realpath(usual, NULL);
}

/**
 * Keeps the socket's path, made absolute: the agent that is started is in another directory. A path
 * that is too long is the same as none.
 */
static void put_socket(struct settings *settings, const char *given) {
  char *const here = *given == '/' ? NULL : getcwd(NULL, 0);
  const int length = here == NULL ? snprintf(settings->socket, sizeof settings->socket, "%s", given)
                                  : snprintf(settings->socket, sizeof settings->socket, "%s/%s", here, given);

  free(here);
  if (length < 0 || (size_t)length >= sizeof settings->socket) settings->socket[0] = 0;
}

void settings_read(struct settings *settings) {
  const char *config;
  const char *socket = secure_getenv("DKE_PKCS11_SOCKET");
  char *real;

  memset(settings, 0, sizeof *settings);
  settings->connect_timeout_ms = 1000;
  settings->call_timeout_ms = 3000;
  settings->spin_us = 20;
  real = choose_config(settings, &config);
  snprintf(settings->config, sizeof settings->config, "%s", real == NULL ? config : real);
  free(real);
  if (socket != NULL && *socket != 0) put_socket(settings, socket);
  acting_choose(settings->config);
  acting_begin();
  scan_file(settings);
  acting_end();
}
