/* Clock, names, forks and waiting; see process.h. */
#include "host/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/descriptor.h"

/* Newer than the headers that we promise to build with. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/*
 * The memory goes with the library: at exit other threads may still be reading it, and after
 * dlclose nothing must be left. So it is part of the library's own, in pages that nothing else is
 * in. The largest page of an architecture: with a smaller one these are several.
 */
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

  /*
   * Before Linux 4.14 only a fork that tells us can be told from its parent by more than the pid.
   */
  if (!is_forgotten) return getpid() | (pid_t)((unsigned)generation % (1u << (31 - PID_BITS)) << PID_BITS);
  id = atomic_load_explicit(&forgotten.id, memory_order_relaxed);
  if (id != 0) return id;
  /* The first thread that asks counts; the number 0 is left out. */
  if (atomic_compare_exchange_strong(&forgotten.id, &id, (generation++ & 0x3fffffff) + 1)) id = forgotten.id;
  return id;
}

void process_forked(void) {
  generation++;
  descriptor_close_inherited();
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
  const int fd = descriptor_open(path, O_RDONLY, 0);
  ssize_t got;

  if (fd < 0) return 0;
  got = descriptor_read(fd, text, size);
  descriptor_close(fd);
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

bool process_has_ended(pid_t id) {
  char path[32];
  char line[256];
  const char *state;

  if (kill(id, 0) != 0 && errno == ESRCH) return true;
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)id);
  line[read_file(path, line, sizeof line - 1)] = 0;
  /* "1 (name) S ...": a name may contain anything. */
  state = strrchr(line, ')');
  return state != NULL && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
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

/*
 * --- where the library is ------------------------------------------------------------------------
 */

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

/*
 * Finds the library's folder when it is loaded: a relative name still means what it did for the
 * loader, before the host changes its directory.
 */
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
