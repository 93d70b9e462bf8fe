/* Clock, names, descriptors and waiting; see process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Newer than the headers that we promise to build with. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* The memory goes with the library: at exit other threads may still be reading it, and after dlclose nothing must be left. So it is part
 * of the library's own, in pages that nothing else is in. The largest page of an architecture: with a smaller one these are several. */
#ifdef __x86_64__
enum { PAGE = 4096 };
#else
enum { PAGE = 65536 };
#endif
static struct {
  alignas(PAGE) _Atomic pid_t id; /* what process_id answers; 0 in a child that has just been forked */
  unsigned char rest[PAGE - sizeof(pid_t)];
} forgotten;
/** Whether a fork empties it. */
static bool is_forgotten;

__attribute__((constructor)) static void find_memory_that_forks_empty(void) {
  /* An emulator that accepts nonsense has not understood the other advice either. */
  is_forgotten = madvise(&forgotten, sizeof forgotten, -1) != 0 && madvise(&forgotten, sizeof forgotten, MADV_WIPEONFORK) == 0;
}

/** How many ancestors of this process, as far as we know, had the library. */
static _Atomic pid_t generation;

pid_t process_id(void) {
  enum { PID_BITS = 22 };
  pid_t id;

  /* Before Linux 4.14 only a fork that tells us can be told from its parent by more than the pid. */
  if (!is_forgotten) return getpid() | (pid_t)((unsigned)generation % (1u << (31 - PID_BITS)) << PID_BITS);
  id = atomic_load_explicit(&forgotten.id, memory_order_relaxed);
  if (id != 0) return id;
  /* The first thread that asks counts; the number 0 is left out. */
  if (atomic_compare_exchange_strong(&forgotten.id, &id, (generation++ & 0x3fffffff) + 1)) id = forgotten.id;
  return id;
}

int64_t process_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int process_until(int64_t deadline) {
  int64_t left = deadline - process_now();
  if (left <= 0) return 0;
  left = (left + 999) / 1000;
  return left > 60000 ? 60000 : (int)left;
}

void process_sleep(int64_t microseconds) {
  struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
  nanosleep(&time, NULL);
}

static size_t read_file(const char *path, char *text, size_t size) {
  const int fd = process_open(path, O_RDONLY, 0);
  ssize_t got;

  if (fd < 0) return 0;
  got = read(fd, text, size);
  process_close(fd);
  return got < 0 ? 0 : (size_t)got;
}

void process_name(char *name, size_t size) {
  char line[256];
  size_t length = read_file("/proc/self/cmdline", line, sizeof line - 1);
  const char *from;

  line[length] = 0;
  from = strrchr(line, '/');
  from = from == NULL ? line : from + 1;
  if (*from == 0) {
    length = read_file("/proc/self/comm", line, sizeof line - 1);
    if (length > 0 && line[length - 1] == '\n') length--;
    line[length] = 0;
    from = line;
  }
  snprintf(name, size, "%s", from);
}

void process_wait(_Atomic uint32_t *word, uint32_t value, int64_t deadline) {
  int64_t left = deadline - process_now();
  struct timespec time;

  if (left <= 0) return;
  time.tv_sec = left / 1000000;
  time.tv_nsec = left % 1000000 * 1000;
  /* A relative timeout of FUTEX_WAIT runs on CLOCK_MONOTONIC. */
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

void process_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

/** The values of a lock's word. CONTENDED: unlocking has to wake a thread, if one still waits. */
enum { FREE, TAKEN, CONTENDED };

bool process_lock_until(_Atomic uint32_t *word, int64_t deadline) {
  uint32_t expected = FREE;

  if (atomic_compare_exchange_strong_explicit(word, &expected, TAKEN, memory_order_acquire, memory_order_relaxed)) return true;
  while (atomic_exchange_explicit(word, CONTENDED, memory_order_acquire) != FREE) {
    if (process_until(deadline) == 0) return false;
    process_wait(word, CONTENDED, deadline);
  }
  return true;
}

void process_lock(_Atomic uint32_t *word) { process_lock_until(word, INT64_MAX); }

void process_unlock(_Atomic uint32_t *word) {
  if (atomic_exchange_explicit(word, FREE, memory_order_release) == CONTENDED) process_wake(word);
}

/* --- descriptors and forks ------------------------------------------------------------------------------------------------ */

enum {
  /* Microseconds. A thread that has the lock has it for a few system calls; a fork of a large host takes long, but copies descriptors first. */
  FORK_WAIT = 100000,
  OPEN_WAIT = 10000,
  KEPT = 32
};

/** Taken by a thread that forks, and by one that opens or closes a descriptor. */
static _Atomic uint32_t fork_lock;
static _Atomic pid_t fork_lock_owner;
static unsigned fork_lock_depth; /* a signal handler may fork in the thread that has the lock */

/** A row of the list. The number is at least 3; 0: the row is free; -1: it is being written. */
struct kept {
  _Atomic int fd;
  dev_t device;
  ino_t inode;
};
static struct kept kept[KEPT];

static void take_fork_lock(int64_t most) {
  const pid_t self = (pid_t)syscall(SYS_gettid);
  const int saved = errno;

  if (fork_lock_owner == self) {
    fork_lock_depth++;
  } else if (process_lock_until(&fork_lock, process_now() + most)) {
    /* At the deadline it continues without the lock: a child that keeps a descriptor is better than a host that hangs. */
    fork_lock_owner = self;
    fork_lock_depth = 1;
  }
  errno = saved;
}

void process_bar_forks(void) { take_fork_lock(OPEN_WAIT); }
void process_before_fork(void) { take_fork_lock(FORK_WAIT); }

void process_allow_forks(void) {
  const int saved = errno;

  if (fork_lock_owner == (pid_t)syscall(SYS_gettid) && --fork_lock_depth == 0) {
    fork_lock_owner = 0;
    process_unlock(&fork_lock);
  }
  errno = saved;
}

/** Moves a descriptor above the standard ones. Closes it and returns -1 when it cannot. */
static int raise_fd(int fd) {
  int raised;

  if (fd < 0 || fd > 2) return fd;
  raised = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return raised;
}

int process_keep(int fd) {
  const int raised = raise_fd(fd);
  const int saved = errno;
  struct stat status;

  if (raised < 0 || fstat(raised, &status) != 0) return raised;
  for (size_t i = 0; i < KEPT; i++) {
    int unused = 0;
    if (!atomic_compare_exchange_strong(&kept[i].fd, &unused, -1)) continue;
    kept[i].device = status.st_dev;
    kept[i].inode = status.st_ino;
    kept[i].fd = raised;
    break;
  }
  errno = saved;
  return raised;
}

int process_open(const char *path, int flags, mode_t mode) {
  int fd;

  process_bar_forks();
  fd = process_keep(open(path, flags | O_CLOEXEC, mode));
  process_allow_forks();
  return fd;
}

/** Takes a row off the list and closes its descriptor, if the number still is that file: the host may have closed all numbers that it knows. */
static void drop(struct kept *row, int fd) {
  struct stat status;
  const bool same = fstat(fd, &status) == 0 && status.st_dev == row->device && status.st_ino == row->inode;

  row->fd = 0;
  if (same) close(fd);
}

void process_close(int fd) {
  const int saved = errno;
  size_t i = 0;

  if (fd < 0) return;
  process_bar_forks();
  while (i < KEPT && kept[i].fd != fd) i++;
  if (i < KEPT) drop(&kept[i], fd);
  else close(fd);
  process_allow_forks();
  errno = saved;
}

void process_close_inherited(void) {
  fork_lock = 0;
  fork_lock_owner = 0;
  for (size_t i = 0; i < KEPT; i++) {
    const int fd = kept[i].fd;
    if (fd > 0) drop(&kept[i], fd);
    else kept[i].fd = 0;
  }
}

void process_forked(void) {
  generation++;
  process_close_inherited();
}

/* --- where the library is ----------------------------------------------------------------------------------------------- */

/** Looks for the loaded file that an address is part of. */
struct search {
  uintptr_t address;
  const char *name;
};

static int is_ours(struct dl_phdr_info *info, size_t size, void *data) {
  struct search *search = data;

  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    if (search->address < from || search->address - from >= info->dlpi_phdr[i].p_memsz) continue;
    search->name = info->dlpi_name;
    return 1;
  }
  return 0;
}

static char library_folder[PATH_MAX];

/* As long as a relative name means what it did for the loader: the host may go to another directory. */
__attribute__((constructor)) static void find_library_folder(void) {
  struct search search = {.address = (uintptr_t)&is_ours};
  char *slash;

  dl_iterate_phdr(is_ours, &search);
  if (search.name == NULL || strchr(search.name, '/') == NULL || realpath(search.name, library_folder) == NULL) {
    library_folder[0] = 0;
    return;
  }
  slash = strrchr(library_folder, '/');
  *slash = 0;
}

const char *process_library_folder(void) { return library_folder[0] == 0 ? NULL : library_folder; }
