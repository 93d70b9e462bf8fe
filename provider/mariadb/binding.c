#include "binding.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "key_file.h"

enum { LINE = 64, TEXT_MAX = (KEYRING_MAX_KEYS + 3) * LINE };

static const char magic[] = "dke-mariadb-binding 1\n";
static const char checksum_line[] = "crc32 %08" PRIx32 "\n";
enum { CHECKSUM = sizeof "crc32 01234567\n" - 1 };

#define REFUSE(...) (failure_set(failure, __VA_ARGS__), BINDING_REFUSED)

static enum binding_found check_lines(const char *text, const char *end, const char *path, const char *key_file, const struct keyring *ring,
                                      struct failure *failure) {
  size_t lines = 0;

  for (; text < end; lines++) {
    uint32_t id;
    uint32_t version;
    char mark[KEYRING_MARK_LENGTH + 1];
    const struct data_key *key;
    int length = 0;

    if (sscanf(text, "key %" SCNu32 " %" SCNu32 " %6[0-9a-f]\n%n", &id, &version, mark, &length) != 3 || length == 0)
      return REFUSE("%s is damaged. Remove it if %s is the key file of this data directory: it is then written again", path, key_file);
    text += length;
    key = keyring_find(ring, id, version);
    if (key == NULL)
      return REFUSE("the key file %s does not contain version %" PRIu32 " of key %" PRIu32 ", which this data directory uses: it is older than the data, or belongs to "
                  "another database. Replace it with the key file of this database",
                    key_file, version, id);
    /* A mark is missing only in a file of format 1 that could not be rewritten. */
    if (key->mark[0] != 0 && strcmp(key->mark, mark) != 0)
      return REFUSE("version %" PRIu32 " of key %" PRIu32 " in the key file %s is not the key that this data directory was encrypted with: the key file belongs "
                  "to another database. Replace it with the key file of this database",
                    version, id, key_file);
  }
  return lines == ring->count ? BINDING_FITS : BINDING_ABSENT;
}

enum binding_found binding_check(const char *path, const char *key_file, const struct keyring *ring, struct failure *failure) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  enum binding_found found;
  char expected[CHECKSUM + 1] = "";
  char *text;
  size_t length = 0;

  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return BINDING_ABSENT;
  if (fd < 0) return REFUSE("%s, which names the keys of this data directory, cannot be opened by MariaDB's user (key file %s)", path, key_file);
  text = malloc(TEXT_MAX + 1);
  for (ssize_t got = 1; text != NULL && got > 0 && length < TEXT_MAX; length += got > 0 ? (size_t)got : 0)
    got = read(fd, text + length, TEXT_MAX - length);
  close(fd);
  if (text == NULL) return REFUSE("not enough memory to read %s and %s", path, key_file);
  text[length] = 0;
  if (length > CHECKSUM) snprintf(expected, sizeof expected, checksum_line, key_file_checksum(text, length - CHECKSUM));
  if (length < strlen(magic) + CHECKSUM || memcmp(text, magic, strlen(magic)) != 0 || memcmp(text + length - CHECKSUM, expected, CHECKSUM) != 0)
    found = REFUSE("%s is damaged. Remove it if %s is the key file of this data directory: it is then written again", path, key_file);
  else if (ring == NULL)
    found = REFUSE("the data directory uses keys (%s) and the key file %s is missing. Restore the key file from a backup; only if nothing in the data "
                   "directory is encrypted, remove the first and initialize again",
                   path, key_file);
  else
    found = check_lines(text + strlen(magic), text + length - CHECKSUM, path, key_file, ring, failure);
  free(text);
  return found;
}

int binding_write(const char *path, const struct keyring *ring, struct failure *failure) {
  char folder[PATH_MAX];
  struct stat status;
  char *slash;
  char *text;
  size_t at;
  int result;

  snprintf(folder, sizeof folder, "%s", path);
  slash = strrchr(folder, '/');
  if (slash != NULL) *slash = 0;
  if (slash != NULL && stat(folder, &status) != 0 && errno == ENOENT) return 0;
  text = malloc(TEXT_MAX);
  if (text == NULL) return failure_set(failure, "not enough memory");
  at = (size_t)snprintf(text, TEXT_MAX, "%s", magic);
  for (size_t i = 0; i < ring->count; i++)
    if (ring->keys[i].mark[0] != 0)
      at += (size_t)snprintf(text + at, TEXT_MAX - at, "key %" PRIu32 " %" PRIu32 " %s\n", ring->keys[i].id, ring->keys[i].version, ring->keys[i].mark);
  at += (size_t)snprintf(text + at, TEXT_MAX - at, checksum_line, key_file_checksum(text, at));
  result = key_file_replace(path, text, at, failure);
  free(text);
  return result;
}
