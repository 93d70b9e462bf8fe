/* Which configuration may be chosen under AT_SECURE; see secure_config.h. */
#include "host/secure_config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/descriptor.h"

enum { LIST_MAX = 16 * 1024 };

static const char folder[] = "/etc/dke";
static const char list_of_folders[] = "/etc/dke/config-folders";

/** Whether only root and the effective user can change the folder. */
static bool is_safe(const char *path) {
  struct stat status;

  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && (status.st_uid == 0 || status.st_uid == geteuid()) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/**
 * Whether the path is below the folder, and all folders from there down to it are safe: into
 * another one its file could be moved.
 */
static bool is_below(const char *real, const char *named) {
  char *const place = realpath(named, NULL);
  const size_t length = place == NULL ? 0 : strlen(place);
  char folder_of_file[PATH_MAX];
  bool below = length > 1 && strncmp(real, place, length) == 0 && real[length] == '/' && strlen(real) < sizeof folder_of_file;

  free(place);
  if (!below) return false;
  snprintf(folder_of_file, sizeof folder_of_file, "%s", real);
  for (char *slash = strrchr(folder_of_file, '/'); below && slash >= folder_of_file + length; slash = strrchr(folder_of_file, '/')) {
    *slash = 0;
    below = is_safe(folder_of_file);
  }
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
    /* The beginning of a line that does not fit may name a folder that contains much more. */
    if (got == LIST_MAX) *(strrchr(text, '\n') == NULL ? text : strrchr(text, '\n')) = 0;
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
    return "it is neither below /etc/dke nor below a directory that /etc/dke/config-folders names, or others can write to one on the way";
  return NULL;
}
