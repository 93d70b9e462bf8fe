/*
 * What compilers and headers of newer systems ask for and glibc 2.28 does not have: the same, made
 * of what it has. Linked into what is shipped, where a name is used, and visible nowhere else.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/*
 * --- stat(2) -------------------------------------------------------------------------------------
 * Before 2.33 the functions of <sys/stat.h> were inline calls of these, which say what
 * `struct stat` looks like.
 */

#ifdef __x86_64__
enum { VERSION_OF_STAT = 1 };
#else
enum { VERSION_OF_STAT = 0 }; /* On machines whose system calls came later than the first `struct stat`. */
#endif
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags);

int stat(const char *path, struct stat *status) { return __xstat(VERSION_OF_STAT, path, status); }
int lstat(const char *path, struct stat *status) { return __lxstat(VERSION_OF_STAT, path, status); }
int fstat(int fd, struct stat *status) { return __fxstat(VERSION_OF_STAT, fd, status); }
int fstatat(int directory, const char *path, struct stat *status, int flags) {
  return __fxstatat(VERSION_OF_STAT, directory, path, status, flags);
}
/* On machines with 64 bits, `struct stat64` is `struct stat` under another name. */
int stat64(const char *path, struct stat64 *status) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat64 *status) __attribute__((alias("lstat")));
int fstat64(int fd, struct stat64 *status) __attribute__((alias("fstat")));

/* --- the C++ library, linked in --------------------------------------------------------------- */

/**
 * Whether the process has one thread, 2.32: without it, nothing is known, and reference counts stay
 * atomic.
 */
char __libc_single_threaded = 0;

/** 2.36. The C++ library calls it when a program requests random numbers from it; ours does not. */
uint32_t arc4random(void) {
  uint32_t number;

  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
  return number;
}

/* Where the unwinder of GCC 12 and later finds the tables of a function, 2.35. */
static int find_object(struct dl_phdr_info *object, size_t size, void *argument) {
  struct dl_find_object *result = argument;
  const ElfW(Addr) address = (ElfW(Addr))result->dlfo_map_start;
  const ElfW(Phdr) *end = object->dlpi_phdr + object->dlpi_phnum;
  const ElfW(Phdr) *tables = NULL;
  bool has_address = false;

  (void)size;
  for (const ElfW(Phdr) *segment = object->dlpi_phdr; segment < end; segment++) {
    const ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;

    if (segment->p_type == PT_GNU_EH_FRAME) tables = segment;
    if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz) {
      has_address = true;
      result->dlfo_map_end = (void *)(start + segment->p_memsz);
    }
  }
  if (!has_address) return 0;
  result->dlfo_eh_frame = tables == NULL ? NULL : (void *)(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

int _dl_find_object(void *address, struct dl_find_object *result) {
  memset(result, 0, sizeof *result);
  result->dlfo_map_start = address;
  return dl_iterate_phdr(find_object, result) == 1 && result->dlfo_eh_frame != NULL ? 0 : -1;
}
