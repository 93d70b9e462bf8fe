/*
 * A log for rare events; see log.h. The file is opened for each line, so that no descriptor is held
 * and rotation by others works; O_APPEND keeps lines of many processes apart.
 */
#include "host/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/acting_user.h"
#include "host/descriptor.h"
#include "host/last_cause.h"
#include "host/process.h"

enum { LINE_MAX_LENGTH = 600, FILE_MAX_LENGTH = 1 << 20, QUIET = 60000000 /* microseconds */ };

static char wanted[PATH_MAX];
static char fallback[PATH_MAX];

void log_set_wanted(const char *folder) { snprintf(wanted, sizeof wanted, "%s", folder); }
void log_set_folder(const char *folder) { snprintf(fallback, sizeof fallback, "%s", folder); }

/** Without paths on the stack: a thread of the host may have little. */
static int open_in(const char *folder) {
  static const char name[] = "library.log";
  struct stat status;
  int directory;
  int number;
  int fd = -1;

  if (*folder == 0) return -1;
  directory = descriptor_open(folder, O_PATH | O_DIRECTORY, 0);
  if (directory < 0) return -1;
  number = descriptor_number(directory);
  if (number >= 0 && (fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
                      (S_ISREG(status.st_mode) &&
                       (status.st_size <= FILE_MAX_LENGTH || renameat(number, name, number, "library.log.1") == 0)))) {
    descriptor_bar_forks();
    fd = descriptor_keep(openat(number, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640));
    descriptor_allow_forks();
  }
  descriptor_close(directory);
  return fd;
}

static void write_line(const char *text) {
  char line[LINE_MAX_LENGTH];
  struct timespec now;
  struct tm parts;
  size_t length;
  int saved = errno;
  int fd;

  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  length = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(line + length, sizeof line - 1 - length, ".%03ldZ %ld %s", now.tv_nsec / 1000000, (long)getpid(), text);
  length = strlen(line);
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)line[i] < ' ') line[i] = '?';
  line[length++] = '\n';

  acting_begin();
  fd = open_in(wanted);
  if (fd < 0) fd = open_in("/var/log/dke-pkcs11");
  if (fd < 0) fd = open_in(fallback);
  if (fd >= 0) {
    /*
     * NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): a line that cannot be written is lost.
     */
    if (descriptor_write(fd, line, length) < 0) length = 0;
    descriptor_close(fd);
  }
  acting_end();
  errno = saved;
}

void log_line(const char *format, ...) {
  char text[LINE_MAX_LENGTH];
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  write_line(text);
}

/** When each cause was logged last (0: never), and how often it was not logged since. */
static struct {
  _Atomic int64_t told_at;
  atomic_uint counted;
} repeats[CAUSES];

/** Whether it is to be told; counted otherwise. */
static bool is_due(enum cause cause) {
  const int64_t now = process_now();
  int64_t told_at = repeats[cause].told_at;

  /* One of several threads writes the line. */
  if ((told_at == 0 || now - told_at >= QUIET) && atomic_compare_exchange_strong(&repeats[cause].told_at, &told_at, now))
    return true;
  repeats[cause].counted++;
  return false;
}

CK_RV log_cause(enum cause cause, ...) {
  const struct cause_row *row = &cause_rows[cause];
  const char *from = row->text;
  const int saved = errno;
  char text[LINE_MAX_LENGTH];
  char name[64];
  size_t begins;
  size_t length;
  unsigned counted;
  va_list facts;

  process_name(name, sizeof name);
  begins = length = (size_t)snprintf(text, sizeof text, "%s %s %s: ", name, row->name, row->rv_name);
  va_start(facts, cause);
  while (*from != 0 && length < sizeof text - 1) {
    if (from[0] == '{' && from[1] == '}') {
      const int put = snprintf(text + length, sizeof text - length, "%s", va_arg(facts, const char *));
      length += put < 0 ? 0 : (size_t)put;
      from += 2;
    } else {
      text[length++] = *from++;
      text[length] = 0;
    }
  }
  va_end(facts);
  if (length > sizeof text - 1) length = sizeof text - 1;
  last_cause_set(text + begins, length - begins);
  if (!is_due(cause)) {
    errno = saved;
    return row->rv;
  }
  counted = atomic_exchange(&repeats[cause].counted, 0);
  if (counted > 0 && length < sizeof text - 1)
    snprintf(text + length, sizeof text - length, " (%u more since the last line about it)", counted);
  write_line(text);
  errno = saved;
  return row->rv;
}

void log_counted(void) {
  for (int cause = 0; cause < CAUSES; cause++) {
    const unsigned counted = atomic_exchange(&repeats[cause].counted, 0);
    if (counted > 0) log_line("%s %s: %u more since the last line about it", cause_rows[cause].name, cause_rows[cause].rv_name, counted);
  }
}
