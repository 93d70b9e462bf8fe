#include "import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "secret.h"

enum { FILE_MAX = 1024 * 1024 };

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *skip_blanks(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
  return at;
}

/* One line; an empty line is not an error. `key` is secret memory of KEYRING_MAX_KEY_BYTES. */
static int import_line(const char *at, const char *end, unsigned char *key, struct keyring *ring) {
  uint64_t id = 0;
  size_t digits = 0;
  const char *from;

  at = skip_blanks(at, end);
  if (at == end || *at == '#') return 0;
  for (from = at; at < end && *at >= '0' && *at <= '9' && id <= UINT32_MAX; at++) id = id * 10 + (uint64_t)(*at - '0');
  if (at == from || id == 0 || id > UINT32_MAX) return -1;
  at = skip_blanks(at, end);
  if (at == end || *at++ != ';') return -1;
  at = skip_blanks(at, end);
  for (; at < end; at++, digits++) {
    const int digit = digit_of(*at);
    if (digit < 0) break;
    if (digits == 2 * KEYRING_MAX_KEY_BYTES) return -1;
    if (digits % 2 == 0) key[digits / 2] = (unsigned char)(digit << 4);
    else key[digits / 2] |= (unsigned char)digit;
  }
  at = skip_blanks(at, end);
  if ((at < end && *at != '#') || digits % 2 != 0) return -1;
  return keyring_add(ring, &(struct data_key){.id = (uint32_t)id, .version = 1, .length = (uint32_t)(digits / 2), .created = (int64_t)time(NULL)}, key);
}

static int import_text(const char *text, size_t length, unsigned char *key, struct keyring *ring, struct failure *failure) {
  const char *end = text + length;
  unsigned line = 1;

  if (length >= 8 && memcmp(text, "Salted__", 8) == 0)
    return failure_set(failure, "the file of file_key_management is encrypted: decrypt it into a pipe with openssl, and import the pipe");
  for (const char *at = text; at < end; line++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    if (import_line(at, stop, key, ring) != 0)
      return failure_set(failure, "line %u of the file of file_key_management is invalid, or names a key twice", line);
    at = stop + (stop < end);
  }
  if (keyring_latest(ring, 1) == NULL) return failure_set(failure, "the file of file_key_management has no key 1");
  return 0;
}

int import_keys(const char *path, struct keyring *ring, struct failure *failure) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *text = secret_new(FILE_MAX);
  unsigned char *key = secret_new(KEYRING_MAX_KEY_BYTES);
  size_t length = 0;
  int result = 0;

  if (fd < 0) result = failure_set(failure, "%s cannot be opened: %s", path, strerror(errno));
  else if (text == NULL || key == NULL) result = failure_set(failure, "not enough memory");
  while (result == 0 && text != NULL) {
    ssize_t got = read(fd, text + length, FILE_MAX - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) result = failure_set(failure, "%s cannot be read: %s", path, strerror(errno));
    if (got <= 0) break;
    length += (size_t)got;
  }
  if (result == 0 && length == FILE_MAX) result = failure_set(failure, "%s is too large", path);
  if (result == 0) result = import_text(text, length, key, ring, failure);
  secret_free(text, FILE_MAX);
  secret_free(key, KEYRING_MAX_KEY_BYTES);
  if (fd >= 0) close(fd);
  return result;
}
