/*
 * Injects a fault into one of the persistent calls of a process: preloaded (LD_PRELOAD), it
 * intercepts write, sync, rename, truncate, remove and create, counts them over all threads in one
 * order, and ends the process at the Nth, or has it fail. Only calls on regular files count, not
 * those on sockets, pipes and terminals.
 *
 * DKE_STRIKES names a file of the struct below, which the tester writes and reads while the process
 * runs; without it nothing is counted. The calls themselves go straight to the kernel. Leaves out
 * memory that is mapped: SQLite's index of its log (-shm), which is rebuilt after a crash.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC = 2, RENAME = 4, TRUNCATE = 8, REMOVE = 16, CREATE = 32 };
enum mode { COUNT = 0, KILL = 1, TEAR = 2, FAIL = 3, FAIL_FROM = 4 };

/* Nine 32-bit numbers in the machine's own order; test/support/strikes.ts writes the same. */
struct control {
  _Atomic uint32_t armed;
  uint32_t mode;
  /* Sum of the kinds that count. */
  uint32_t kinds;
  /* Which call is struck, from 1 on. */
  uint32_t number;
  /* The error of a failing call. */
  uint32_t error;
  _Atomic uint32_t counted;
  /* How many calls were struck, and what kind the first one was. */
  _Atomic uint32_t struck;
  _Atomic uint32_t kind;
  uint32_t unused;
};

static struct control *control;

__attribute__((constructor)) static void open_control(void) {
  const char *path = getenv("DKE_STRIKES");
  if (path == NULL) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) abort();
  void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  syscall(SYS_close, file);
  control = mapped;
}

static void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

/*
 * What to do with a call of this kind: nothing (COUNT), or the mode's fault. A process that is to
 * be killed before the call is already dead.
 */
static enum mode meet(enum kind kind) {
  if (control == NULL || atomic_load(&control->armed) == 0 || (control->kinds & kind) == 0) return COUNT;
  const uint32_t number = atomic_fetch_add(&control->counted, 1) + 1;
  const enum mode mode = control->mode;
  if (mode == COUNT || !(number == control->number || (mode == FAIL_FROM && number > control->number))) return COUNT;
  if (atomic_fetch_add(&control->struck, 1) == 0) atomic_store(&control->kind, kind);
  if (mode == KILL) die();
  if (mode == FAIL || mode == FAIL_FROM) errno = (int)control->error;
  return mode;
}

static int is_regular(int file) {
  struct stat status;
  const int before = errno;
  const int found = control != NULL && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  errno = before;
  return found;
}

#define FAILS(mode) ((mode) == FAIL || (mode) == FAIL_FROM)
/* A call of which no half can be done: struck in its middle, the process ends behind it. */
#define WHOLE(kind, condition, call)                       \
  do {                                                     \
    const enum mode mode = (condition) ? meet(kind) : COUNT; \
    if (FAILS(mode)) return -1;                            \
    const int answer = (int)(call);                        \
    if (mode == TEAR) die();                               \
    return answer;                                         \
  } while (0)

/* Half of the bytes, and the end. */
static ssize_t write_at(int file, const void *bytes, size_t length, off_t at) {
  const enum mode mode = is_regular(file) ? meet(WRITE) : COUNT;
  if (FAILS(mode)) return -1;
  const size_t written = mode == TEAR ? length / 2 : length;
  const ssize_t answer =
      at < 0 ? syscall(SYS_write, file, bytes, written) : syscall(SYS_pwrite64, file, bytes, written, at);
  if (mode == TEAR) die();
  return answer;
}
static ssize_t write_vector(int file, const struct iovec *parts, int count, off_t at) {
  const enum mode mode = is_regular(file) ? meet(WRITE) : COUNT;
  if (FAILS(mode)) return -1;
  const int written = mode == TEAR ? (count + 1) / 2 : count;
  const ssize_t answer =
      at < 0 ? syscall(SYS_writev, file, parts, written) : syscall(SYS_pwritev, file, parts, written, at, 0L);
  if (mode == TEAR) die();
  return answer;
}

ssize_t write(int file, const void *bytes, size_t length) { return write_at(file, bytes, length, -1); }
ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return write_at(file, bytes, length, at); }
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) { return write_at(file, bytes, length, at); }
ssize_t writev(int file, const struct iovec *parts, int count) { return write_vector(file, parts, count, -1); }
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return write_vector(file, parts, count, at); }
ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) { return write_vector(file, parts, count, at); }
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned int flags) {
  const enum mode mode = is_regular(to) ? meet(WRITE) : COUNT;
  if (FAILS(mode)) return -1;
  const ssize_t answer = syscall(SYS_copy_file_range, from, from_at, to, to_at, mode == TEAR ? length / 2 : length, flags);
  if (mode == TEAR) die();
  return answer;
}

int fsync(int file) { WHOLE(SYNC, is_regular(file) || control != NULL, syscall(SYS_fsync, file)); }
int fdatasync(int file) { WHOLE(SYNC, is_regular(file) || control != NULL, syscall(SYS_fdatasync, file)); }

int rename(const char *from, const char *to) { WHOLE(RENAME, 1, syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to)); }
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  WHOLE(RENAME, 1, syscall(SYS_renameat, from_folder, from, to_folder, to));
}
int link(const char *from, const char *to) { WHOLE(RENAME, 1, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0)); }
int unlink(const char *path) { WHOLE(REMOVE, 1, syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }
int unlinkat(int folder, const char *path, int flags) { WHOLE(REMOVE, 1, syscall(SYS_unlinkat, folder, path, flags)); }
int ftruncate(int file, off_t length) { WHOLE(TRUNCATE, 1, syscall(SYS_ftruncate, file, length)); }
int ftruncate64(int file, off64_t length) { WHOLE(TRUNCATE, 1, syscall(SYS_ftruncate, file, length)); }
int fallocate(int file, int mode_of_it, off_t at, off_t length) {
  WHOLE(TRUNCATE, 1, syscall(SYS_fallocate, file, mode_of_it, at, length));
}
int mkdir(const char *path, mode_t rights) { WHOLE(CREATE, 1, syscall(SYS_mkdirat, AT_FDCWD, path, rights)); }

/* Only calls that create a file count. */
static int open_at(int folder, const char *path, int flags, mode_t rights) {
  const int before = errno;
  const int makes = control != NULL && (flags & O_CREAT) != 0 && syscall(SYS_faccessat, folder, path, F_OK) != 0;
  errno = before;
  WHOLE(CREATE, makes, syscall(SYS_openat, folder, path, flags, rights));
}
#define WITH_RIGHTS(flags, last)                                     \
  mode_t rights = 0;                                                 \
  if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) { \
    va_list rest;                                                    \
    va_start(rest, last);                                            \
    rights = va_arg(rest, mode_t);                                   \
    va_end(rest);                                                    \
  }
int open(const char *path, int flags, ...) {
  WITH_RIGHTS(flags, flags)
  return open_at(AT_FDCWD, path, flags, rights);
}
int open64(const char *path, int flags, ...) {
  WITH_RIGHTS(flags, flags)
  return open_at(AT_FDCWD, path, flags, rights);
}
int openat(int folder, const char *path, int flags, ...) {
  WITH_RIGHTS(flags, flags)
  return open_at(folder, path, flags, rights);
}
int openat64(int folder, const char *path, int flags, ...) {
  WITH_RIGHTS(flags, flags)
  return open_at(folder, path, flags, rights);
}
