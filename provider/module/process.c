/* Clock, names, descriptors and waiting; see process.h. System calls are made directly where glibc's symbol is newer than
 * 2.17, the oldest we promise to load on. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Newer than the headers that we promise to build with. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/** This process' number, in memory that a forked child finds empty. NULL where there is no such memory. It is never given back: at exit
 * other threads may be reading it. */
static _Atomic pid_t *known_id;
enum { PAGE = 4096 }; /* or more: the kernel rounds up */

__attribute__((constructor)) static void find_memory_that_forks_empty(void) {
  void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (page == MAP_FAILED) return;
  /* An emulator that accepts nonsense has not understood the other advice either. */
  if (madvise(page, PAGE, -1) == 0 || madvise(page, PAGE, MADV_WIPEONFORK) != 0) munmap(page, PAGE);
  else known_id = page;
}

pid_t process_id(void) {
  pid_t id = known_id == NULL ? 0 : atomic_load_explicit(known_id, memory_order_relaxed);

  if (id != 0) return id;
  id = getpid();
  if (known_id != NULL) atomic_store_explicit(known_id, id, memory_order_relaxed);
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
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got;

  if (fd < 0) return 0;
  got = read(fd, text, size);
  close(fd);
  return got < 0 ? 0 : (size_t)got;
}

void process_name(char *name, size_t size) {
  char line[256];
  size_t length = read_file("/proc/self/cmdline", line, sizeof line - 1);
  const char *from;

  line[length] = 0;
  length = strlen(line);
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

int process_raise_fd(int fd) {
  int raised;

  if (fd < 0 || fd > 2) return fd;
  raised = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  close(fd);
  return raised;
}

int process_stat(const char *path, struct stat *status, bool follow) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, follow ? 0 : AT_SYMLINK_NOFOLLOW);
}

int process_fstat(int fd, struct stat *status) { return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH); }

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

struct search {
  uintptr_t address;
  char *folder;
  size_t size;
  bool found;
};

static int is_ours(struct dl_phdr_info *info, size_t size, void *data) {
  struct search *search = data;

  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const char *slash;

    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    if (search->address < from || search->address - from >= info->dlpi_phdr[i].p_memsz) continue;
    slash = strrchr(info->dlpi_name, '/');
    if (slash == NULL || (size_t)(slash - info->dlpi_name) >= search->size) return 1;
    memcpy(search->folder, info->dlpi_name, (size_t)(slash - info->dlpi_name));
    search->folder[slash - info->dlpi_name] = 0;
    search->found = true;
    return 1;
  }
  return 0;
}

bool process_library_folder(char *folder, size_t size) {
  struct search search = {.address = (uintptr_t)&is_ours, .folder = folder, .size = size};
  dl_iterate_phdr(is_ours, &search);
  return search.found;
}
