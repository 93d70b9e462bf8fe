/* Which configuration may be chosen under AT_SECURE; see secure_config.h. */
#include "secure_config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.h"

enum { LIST_MAX = 16 * 1024 };

static const char folder[] = "/etc/dke";
static const char list_of_folders[] = "/etc/dke/config-folders";

/** Whether the path is below the folder, which only root and the effective user can change. */
static bool is_below(const char *real, const char *named) {
  char *const place = realpath(named, NULL);
  struct stat status;
  size_t length;
  bool below = false;

  if (place == NULL) return false;
  length = strlen(place);
  if (length > 1 && strncmp(real, place, length) == 0 && real[length] == '/' && stat(place, &status) == 0)
    below = (status.st_uid == 0 || status.st_uid == geteuid()) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  free(place);
  return below;
}

/** The text of root's list; NULL when there is none that only root can change. */
static char *read_list(void) {
  const int fd = descriptor_open(list_of_folders, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  const int number = descriptor_number(fd);
  char *text = NULL;
  struct stat status;

  if (number >= 0 && fstat(number, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == 0 &&
      (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    text = malloc(LIST_MAX + 1);
  if (text != NULL) {
    const ssize_t got = descriptor_read(fd, text, LIST_MAX);
    text[got > 0 ? got : 0] = 0;
  }
  descriptor_close(fd);
  return text;
}

static bool is_below_a_listed_folder(const char *real) {
  char *const text = read_list();
  char *rest = NULL;
  bool below = false;

  if (text == NULL) return false;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL && !below; line = strtok_r(NULL, "\n", &rest))
    below = *line == '/' && is_below(real, line);
  free(text);
  return below;
}

const char *secure_config_refusal(const char *real) {
  struct stat status;

  if (lstat(real, &status) != 0) return "there is no such file that this program can reach";
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (status.st_uid != geteuid()) return "it does not belong to the user as whom this program runs";
  if ((status.st_mode & 0177) != 0) return "its mode is not 600";
  if (!is_below(real, folder) && !is_below_a_listed_folder(real))
    return "it is neither below /etc/dke nor below a directory that /etc/dke/config-folders names";
  return NULL;
}
