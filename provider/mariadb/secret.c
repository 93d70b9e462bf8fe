#include "secret.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static atomic_bool refused;

static size_t whole_pages(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return size == 0 ? page : (size + page - 1) / page * page;
}

void *secret_new(size_t size) {
  size_t length = whole_pages(size);
  void *secret = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (secret == MAP_FAILED) return NULL;
  /*
   * A database without its keys is useless: if locking is refused, it continues with a message in
   * the log.
   */
  if (mlock(secret, length) != 0) atomic_store(&refused, true);
  madvise(secret, length, MADV_DONTDUMP);
  madvise(secret, length, MADV_DONTFORK);
  return secret;
}

void secret_free(void *secret, size_t size) {
  if (secret == NULL) return;
  explicit_bzero(secret, whole_pages(size));
  munmap(secret, whole_pages(size));
}

bool secret_is_locked(void) { return !atomic_load(&refused); }

int secret_random(void *buffer, size_t size) {
  unsigned char *to = buffer;

  while (size > 0) {
    ssize_t got = getrandom(to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    to += got;
    size -= (size_t)got;
  }
  return 0;
}
