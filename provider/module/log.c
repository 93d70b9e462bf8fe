/* A log for rare events; see log.h. The file is opened for each line, so that no descriptor is held and rotation by others
 * works; O_APPEND keeps lines of many processes apart. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

enum { LINE_MAX_LENGTH = 400, FILE_MAX_LENGTH = 1 << 20 };

static char fallback[PATH_MAX];

void log_set_folder(const char *folder) { snprintf(fallback, sizeof fallback, "%s", folder); }

static int open_in(const char *folder) {
  char path[PATH_MAX + 32];
  char old[PATH_MAX + 32];
  struct stat status;
  int fd;

  if (*folder == 0) return -1;
  snprintf(path, sizeof path, "%s/library.log", folder);
  if (process_stat(path, &status, false) == 0) {
    if (!S_ISREG(status.st_mode)) return -1;
    if (status.st_size > FILE_MAX_LENGTH) {
      snprintf(old, sizeof old, "%s/library.log.1", folder);
      if (rename(path, old) != 0) return -1;
    }
  }
  fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
  return process_raise_fd(fd);
}

void log_line(const char *format, ...) {
  char line[LINE_MAX_LENGTH];
  struct timespec now;
  struct tm parts;
  size_t length;
  va_list arguments;
  int saved = errno;
  int fd;

  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  length = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &parts);
  length += (size_t)snprintf(line + length, sizeof line - length, ".%03ldZ %ld ", now.tv_nsec / 1000000, (long)getpid());
  va_start(arguments, format);
  vsnprintf(line + length, sizeof line - 1 - length, format, arguments);
  va_end(arguments);
  length = strlen(line);
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)line[i] < ' ') line[i] = '?';
  line[length++] = '\n';

  fd = open_in("/var/log/dke-pkcs11");
  if (fd < 0) fd = open_in(fallback);
  if (fd >= 0) {
    if (write(fd, line, length) < 0) length = 0;
    close(fd);
  }
  errno = saved;
}
