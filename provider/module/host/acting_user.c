/* Root on behalf of the owner of pkcs11.toml; see acting_user.h. */
#include "host/acting_user.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  NO_GROUP = 65534,        /* nogroup: of a user who is not in the list of users */
  ENTRY_LENGTH = 16 * 1024 /* of a line in that list */
};

/** Written while the configuration is read, under the lock of C_Initialize. */
static struct {
  bool for_owner;
  uid_t user;
  gid_t group;
} acting;

static __thread unsigned depth;

/**
 * The user's own group. Not that of the file: root may have made it, and its group be root's still.
 */
static gid_t group_of(uid_t user) {
  char *const line = malloc(ENTRY_LENGTH);
  struct passwd entry;
  struct passwd *found = NULL;
  gid_t group = NO_GROUP;

  if (line != NULL && getpwuid_r(user, &entry, line, ENTRY_LENGTH, &found) == 0 && found != NULL) group = entry.pw_gid;
  free(line);
  return group;
}

void acting_choose(const char *config) {
  struct stat status;

  acting.for_owner = false;
  if (geteuid() != 0 || stat(config, &status) != 0 || status.st_uid == 0) return;
  acting.user = status.st_uid;
  acting.group = group_of(acting.user);
  acting.for_owner = true;
}

bool acting_for_owner(void) { return acting.for_owner; }
uid_t acting_user(void) { return acting.for_owner ? acting.user : geteuid(); }
gid_t acting_group(void) { return acting.for_owner ? acting.group : getegid(); }

/*
 * The kernel's own names: these change only the calling thread. With the file system's user the
 * kernel takes root's capabilities over
 *    files away, and gives them back with root.
 */
static void set(uid_t user, gid_t group) {
  const int saved = errno;

  syscall(SYS_setfsgid, group);
  syscall(SYS_setfsuid, user);
  errno = saved;
}

void acting_begin(void) {
  if (acting.for_owner && depth++ == 0) set(acting.user, acting.group);
}

void acting_end(void) {
  if (depth > 0 && --depth == 0) set(geteuid(), getegid());
}
