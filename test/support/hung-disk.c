/*
 * A disk that hangs, for tests: loaded before libc, it lets fsync and fdatasync wait as long as the
 * file named by DKE_TEST_HUNG is there, and tells of each that waits by a line in the file of that
 * name with ".waiting". Everything else is the disk's own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(const char *call) {
  const char *path = getenv("DKE_TEST_HUNG");
  const int before = errno;
  if (path != NULL && access(path, F_OK) == 0) {
    char name[4096];
    snprintf(name, sizeof name, "%s.waiting", path);
    const int told = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (told >= 0) {
      if (write(told, call, strlen(call)) < 0) abort();
      close(told);
    }
    const struct timespec pause = {0, 10 * 1000 * 1000};
    while (access(path, F_OK) == 0) nanosleep(&pause, NULL);
  }
  errno = before;
}

int fsync(int file) {
  wait_for_disk("fsync\n");
  int (*own)(int);
  *(void **)&own = dlsym(RTLD_NEXT, "fsync");
  return own(file);
}

int fdatasync(int file) {
  wait_for_disk("fdatasync\n");
  int (*own)(int);
  *(void **)&own = dlsym(RTLD_NEXT, "fdatasync");
  return own(file);
}
