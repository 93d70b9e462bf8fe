/* A user's folder in /tmp; see temporary_folder.h. */
#include "host/temporary_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/descriptor.h"
#include "host/log.h"

enum { NAME_MAX_LENGTH = 64, LISTED = 32 * 1024 };

/** An entry of a directory, as getdents64 writes it. */
struct entry {
  uint64_t inode;
  int64_t next;
  unsigned short length;
  unsigned char type;
  char name[];
};

static enum folder_owner owner_of(const char *folder, uid_t user) {
  struct stat status;

  if (lstat(folder, &status) != 0) return FOLDER_UNSAFE;
  /*
   * Other users can put a file of this user here by a link or a move. A directory can be put here
   * only by a user who may write into it.
   */
  if (status.st_uid != user || !S_ISDIR(status.st_mode)) return FOLDER_OF_OTHERS;
  return (status.st_mode & 077) == 0 ? FOLDER_OWN : FOLDER_UNSAFE;
}

enum folder_owner temporary_folder_of(const char *folder, uid_t user) {
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return FOLDER_UNSAFE;
  return owner_of(folder, user);
}

/**
 * Sets `found` to the first name in order, among itself and this piece of a list, that begins with
 * `prefix` and is the user's own folder.
 */
static void choose(char *found, const unsigned char *list, long length, const char *prefix, uid_t user) {
  const struct entry *entry;
  char folder[NAME_MAX_LENGTH + 8];

  for (long at = 0; at < length; at += entry->length) {
    entry = (const struct entry *)(const void *)(list + at);
    if (strncmp(entry->name, prefix, strlen(prefix)) != 0 || strlen(entry->name) >= NAME_MAX_LENGTH) continue;
    if (*found != 0 && strcmp(entry->name, found) >= 0) continue;
    snprintf(folder, sizeof folder, "/tmp/%s", entry->name);
    if (owner_of(folder, user) == FOLDER_OWN) snprintf(found, NAME_MAX_LENGTH, "%s", entry->name);
  }
}

static bool find_first(char *folder, size_t size, const char *prefix, uid_t user) {
  const int directory = descriptor_open("/tmp", O_RDONLY | O_DIRECTORY, 0);
  unsigned char *const list = directory < 0 ? NULL : malloc(LISTED);
  char found[NAME_MAX_LENGTH] = "";
  long length;

  while (list != NULL && (length = syscall(SYS_getdents64, descriptor_number(directory), list, LISTED)) > 0)
    choose(found, list, length, prefix, user);
  free(list);
  descriptor_close(directory);
  if (*found == 0) return false;
  snprintf(folder, size, "/tmp/%s", found);
  return true;
}

bool temporary_folder(char *folder, size_t size, uid_t user) {
  char prefix[32];
  char made[NAME_MAX_LENGTH];
  enum folder_owner owner;

  snprintf(folder, size, "/tmp/dke-pkcs11-%u", (unsigned)user);
  owner = temporary_folder_of(folder, user);
  if (owner != FOLDER_OF_OTHERS) return owner == FOLDER_OWN;
  snprintf(prefix, sizeof prefix, "dke-pkcs11-%u-", (unsigned)user);
  if (!find_first(folder, size, prefix, user)) {
    snprintf(made, sizeof made, "/tmp/%sXXXXXX", prefix);
    if (mkdtemp(made) == NULL) return false;
    /* Another process may have made one at the same time: all take the first. */
    if (!find_first(folder, size, prefix, user)) return false;
    if (strcmp(folder, made) != 0) rmdir(made);
  }
  log_line("/tmp/dke-pkcs11-%u is not a directory of this OS user: the socket of the agent is in %s. As root, remove the former", (unsigned)user, folder);
  return true;
}
