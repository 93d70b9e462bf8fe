/*
 * Any bytes as the three files that MariaDB's plugin reads: the key file, the file that binds a
 * data directory to its keys, and the one of file_key_management. A key file that was read is
 * written as it was. Checksums, which any writer can compute, are put right first.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"
#include "import.h"
#include "key_file.h"

enum { CHECKSUM = sizeof "crc32 01234567\n" - 1 };

static void key_file(char *text, size_t length) {
  struct key_file file;
  struct failure failure;
  size_t head_length;
  size_t again_length;

  if (key_file_parse(text, length, &file, &failure) != 0) return;
  if (file.wrapped_length != file.ring->size + KEY_FILE_TAG || file.head_length > file.length || file.ring->count > KEYRING_MAX_KEYS) abort();
  char *const head = key_file_head(file.ring, &head_length);
  char *const again = head == NULL ? NULL : key_file_text(head, file.iv, file.wrapped, file.wrapped_length, &again_length);
  if (again == NULL) abort();
  /*
   * A label with a zero byte ends there; format 1 has no marks; numbers may begin with zeros, and
   * keys have another order.
   */
  if (strlen(head) != head_length || again_length > KEY_FILE_TEXT_MAX) abort();
  free(again);
  free(head);
  key_file_free(&file);
}

static void other_file(const char *text, size_t length, bool import) {
  static const unsigned char key[KEYRING_MAX_KEY_BYTES] = {1};
  static char path[] = "/tmp/dke-fuzz-XXXXXX";
  static int fd = -1;
  struct keyring *const ring = keyring_new();
  struct failure failure;

  if (fd < 0) {
    fd = mkstemp(path);
    if (fd < 0) abort();
  }
  if (ring == NULL || ftruncate(fd, 0) != 0 || pwrite(fd, text, length, 0) != (ssize_t)length) abort();
  if (import) {
    import_keys(path, ring, &failure);
    if (ring->count > KEYRING_MAX_KEYS || ring->size > KEYRING_MAX_KEYS * KEYRING_MAX_KEY_BYTES) abort();
  } else {
    keyring_add(ring, &(struct data_key){7, 1, 16, 0, 0, false, "0a0b0c"}, key);
    binding_check(path, "keys", ring, &failure);
    binding_check(path, "keys", NULL, &failure);
  }
  keyring_free(ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text;

  if (size == 0) return 0;
  text = malloc(size + 1);
  if (text == NULL) abort();
  memcpy(text, data + 1, size - 1);
  text[size - 1] = 0;
  if (size > CHECKSUM && data[0] % 4 < 2) {
    char line[CHECKSUM + 1];
    snprintf(line, sizeof line, "crc32 %08" PRIx32 "\n", key_file_checksum(text, size - 1 - CHECKSUM));
    memcpy(text + size - 1 - CHECKSUM, line, CHECKSUM);
  }
  switch (data[0] % 4) {
    case 0:
      key_file(text, size - 1);
      break;
    case 1:
      other_file(text, size - 1, false);
      break;
    default:
      other_file(text, size - 1, true);
  }
  free(text);
  return 0;
}
