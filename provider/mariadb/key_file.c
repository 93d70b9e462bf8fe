#include "key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "dke-mariadb-keys 2\n";
static const char first_magic[] = "dke-mariadb-keys 1\n"; /* as long */

/* The checksum detects damage. Only the master key proves that the keys are unchanged. */
uint32_t key_file_checksum(const char *text, size_t length) {
  uint32_t crc = UINT32_MAX;

  for (size_t i = 0; i < length; i++) {
    crc ^= (unsigned char)text[i];
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

static size_t put_hex(char *to, const unsigned char *bytes, size_t length) {
  static const char digits[] = "0123456789abcdef";

  for (size_t i = 0; i < length; i++) {
    to[2 * i] = digits[bytes[i] >> 4];
    to[2 * i + 1] = digits[bytes[i] & 15];
  }
  return 2 * length;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* -1 when the text is not this many bytes in lower-case hexadecimal. */
static int take_hex(const char *text, size_t digits, unsigned char *to) {
  if (digits % 2 != 0) return -1;
  for (size_t i = 0; i < digits; i += 2) {
    int high = digit_of(text[i]);
    int low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) return -1;
    to[i / 2] = (unsigned char)(high << 4 | low);
  }
  return 0;
}

char *key_file_head(const struct keyring *ring, size_t *length) {
  enum { LINE = 96 };
  size_t room = sizeof magic + 3 * LINE + KEYRING_LABEL_MAX + ring->count * LINE;
  char *text = malloc(room);
  size_t at;

  if (text == NULL) return NULL;
  at = (size_t)snprintf(text, room, "%sfile %s\nsequence %" PRIu64 "\nmaster %s\n", magic, ring->file_id, ring->sequence, ring->master);
  for (size_t i = 0; i < ring->count; i++) {
    const struct data_key *key = &ring->keys[i];
    at += (size_t)snprintf(text + at, room - at, "%s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRId64 " %s\n",
                           key->retired ? "old" : "key", key->id, key->version, key->length * 8, key->created, key->mark);
  }
  *length = at;
  return text;
}

char *key_file_text(const char *head, const unsigned char iv[KEY_FILE_IV], const unsigned char *wrapped, size_t wrapped_length,
                    size_t *length) {
  size_t head_length = strlen(head);
  size_t room = head_length + 2 * (KEY_FILE_IV + wrapped_length) + 64;
  char *text = malloc(room);
  size_t at = head_length;

  if (text == NULL) return NULL;
  memcpy(text, head, head_length);
  memcpy(text + at, "wrapped ", 8);
  at += 8;
  at += put_hex(text + at, iv, KEY_FILE_IV);
  text[at++] = ' ';
  at += put_hex(text + at, wrapped, wrapped_length);
  text[at++] = '\n';
  *length = at + (size_t)snprintf(text + at, room - at, "crc32 %08" PRIx32 "\n", key_file_checksum(text, at));
  return text;
}

/*
 * ---- Reading: line by line, each only in its written form ---------------------------------------
 */

struct reader {
  const char *at;
  const char *end;
};

/* The rest of the next line if it begins with the word, else null; the line's end is skipped. */
static const char *take_line(struct reader *reader, const char *word, size_t *length) {
  size_t skip = strlen(word);
  const char *from = reader->at;
  const char *stop = memchr(from, '\n', (size_t)(reader->end - from));

  if (stop == NULL || (size_t)(stop - from) < skip || memcmp(from, word, skip) != 0) return NULL;
  reader->at = stop + 1;
  *length = (size_t)(stop - from) - skip;
  return from + skip;
}

/* A decimal number of at most `most`, followed by `after`; the text is skipped. -1 otherwise. */
static int take_number(const char **text, const char *end, char after, uint64_t most, uint64_t *number) {
  const char *at = *text;
  uint64_t value = 0;

  if (at == end || *at < '0' || *at > '9') return -1;
  for (; at < end && *at >= '0' && *at <= '9'; at++) {
    uint64_t digit = (uint64_t)(*at - '0');
    if (value > (most - digit) / 10) return -1;
    value = value * 10 + digit;
  }
  if (at == end || *at != after) return -1;
  *text = at + 1;
  *number = value;
  return 0;
}

/* Ten digits: enough until the year 2286. */
#define LAST_SECOND UINT64_C(9999999999)

static int parse_key(const char *line, const char *end, int format, bool retired, struct keyring *ring) {
  struct data_key key = {.retired = retired};
  uint64_t id;
  uint64_t version;
  uint64_t bits;
  uint64_t created;

  if (take_number(&line, end, ' ', UINT32_MAX, &id) != 0 || take_number(&line, end, ' ', UINT32_MAX - 1, &version) != 0 ||
      take_number(&line, end, ' ', 256, &bits) != 0 || take_number(&line, end, format == 1 ? '\n' : ' ', LAST_SECOND, &created) != 0 ||
      version == 0 || bits % 64 != 0)
    return -1;
  if (format > 1) {
    unsigned char bytes[KEYRING_MARK_LENGTH / 2];
    if (end - line != KEYRING_MARK_LENGTH + 1 || take_hex(line, KEYRING_MARK_LENGTH, bytes) != 0) return -1;
    memcpy(key.mark, line, KEYRING_MARK_LENGTH);
  } else if (line != end) {
    return -1;
  }
  key.id = (uint32_t)id;
  key.version = (uint32_t)version;
  key.length = (uint32_t)(bits / 8);
  key.created = (int64_t)created;
  return keyring_add(ring, &key, NULL);
}

static int parse_keys(struct reader *reader, int format, struct keyring *ring) {
  for (;;) {
    size_t length;
    bool retired = false;
    const char *line = take_line(reader, "key ", &length);
    if (line == NULL && format > 1) {
      line = take_line(reader, "old ", &length);
      retired = true;
    }
    if (line == NULL) return ring->count == 0 ? -1 : 0;
    if (parse_key(line, line + length + 1, format, retired, ring) != 0) return -1;
  }
}

static int parse_lines(struct key_file *file) {
  struct reader reader = {file->text, file->text + file->length};
  struct keyring *ring = file->ring;
  size_t length;
  const char *line;
  const char *end;

  reader.at += strlen(magic);
  if ((line = take_line(&reader, "file ", &length)) == NULL || length != KEYRING_FILE_ID_LENGTH) return -1;
  memcpy(ring->file_id, line, length);
  if ((line = take_line(&reader, "sequence ", &length)) == NULL) return -1;
  end = line + length + 1;
  if (take_number(&line, end, '\n', UINT64_MAX / 2, &ring->sequence) != 0 || line != end) return -1;
  if ((line = take_line(&reader, "master ", &length)) == NULL || length == 0 || length > KEYRING_LABEL_MAX) return -1;
  memcpy(ring->master, line, length);
  if (parse_keys(&reader, file->format, ring) != 0) return -1;
  file->head_length = (size_t)(reader.at - file->text);
  if ((line = take_line(&reader, "wrapped ", &length)) == NULL) return -1;
  if (length != 2 * (KEY_FILE_IV + ring->size + KEY_FILE_TAG) + 1 || line[2 * KEY_FILE_IV] != ' ') return -1;
  file->wrapped_length = ring->size + KEY_FILE_TAG;
  file->wrapped = malloc(file->wrapped_length);
  if (file->wrapped == NULL) return -1;
  if (take_hex(line, 2 * KEY_FILE_IV, file->iv) != 0) return -1;
  if (take_hex(line + 2 * KEY_FILE_IV + 1, 2 * file->wrapped_length, file->wrapped) != 0) return -1;
  return take_line(&reader, "crc32 ", &length) != NULL && reader.at == reader.end ? 0 : -1;
}

int key_file_parse(const char *text, size_t length, struct key_file *file, struct failure *failure) {
  enum { CHECKSUM = sizeof "crc32 01234567\n" - 1 };
  char checksum[CHECKSUM + 1];

  memset(file, 0, sizeof *file);
  if (length < strlen(magic) + CHECKSUM) return failure_set(failure, "it is truncated or empty");
  if (memcmp(text, magic, strlen(magic)) == 0) {
    file->format = 2;
  } else if (memcmp(text, first_magic, strlen(first_magic)) == 0) {
    file->format = 1;
  } else {
    if (memcmp(text, magic, strlen(magic) - 2) == 0)
      return failure_set(failure, "it has a format that this plugin does not know: a newer plugin wrote it");
    return failure_set(failure, "it is not a key file");
  }
  snprintf(checksum, sizeof checksum, "crc32 %08" PRIx32 "\n", key_file_checksum(text, length - CHECKSUM));
  if (memcmp(text + length - CHECKSUM, checksum, CHECKSUM) != 0)
    return failure_set(failure, "its checksum is wrong: it is damaged or truncated");
  file->ring = keyring_new();
  file->text = malloc(length);
  file->length = length;
  if (file->ring == NULL || file->text == NULL) {
    key_file_free(file);
    return failure_set(failure, "not enough memory");
  }
  memcpy(file->text, text, length);
  if (parse_lines(file) == 0) return 0;
  key_file_free(file);
  return failure_set(failure, "its checksum is correct, but its lines are not: it was edited");
}

void key_file_free(struct key_file *file) {
  keyring_free(file->ring);
  free(file->text);
  free(file->wrapped);
  memset(file, 0, sizeof *file);
}

/*
 * ---- The disk -----------------------------------------------------------------------------------
 */

static int with_suffix(char out[PATH_MAX], const char *path, const char *suffix, struct failure *failure) {
  if (snprintf(out, PATH_MAX, "%s%s", path, suffix) < PATH_MAX) return 0;
  return failure_set(failure, "the path of the key file is too long");
}

static enum key_file_found read_one(const char *path, struct key_file *file, struct failure *failure) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  char *text;
  size_t length = 0;
  int result;

  memset(file, 0, sizeof *file);
  if (fd < 0) {
    if (errno == ENOENT) return KEY_FILE_ABSENT;
    failure_set(failure, "it cannot be opened: %s", strerror(errno));
    return KEY_FILE_UNUSABLE;
  }
  result = fstat(fd, &status);
  if (result != 0) failure_set(failure, "its status cannot be read: %s", strerror(errno));
  else if (!S_ISREG(status.st_mode)) result = failure_set(failure, "it is not a regular file");
  else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) result = failure_set(failure, "other users can write to it: chmod 600");
  else if (status.st_uid != geteuid() && status.st_uid != 0 && geteuid() != 0)
    result = failure_set(failure, "it belongs to another user: change its owner to MariaDB's user");
  else if (status.st_size > KEY_FILE_TEXT_MAX) result = failure_set(failure, "it is too large for a key file");
  text = result == 0 ? malloc(KEY_FILE_TEXT_MAX) : NULL;
  if (text == NULL) {
    if (result == 0) failure_set(failure, "not enough memory");
    close(fd);
    return KEY_FILE_UNUSABLE;
  }
  for (;;) {
    ssize_t got = read(fd, text + length, KEY_FILE_TEXT_MAX - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) result = failure_set(failure, "it cannot be read: %s", strerror(errno));
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(fd);
  if (result == 0) result = key_file_parse(text, length, file, failure);
  free(text);
  return result == 0 ? KEY_FILE_FOUND : KEY_FILE_UNUSABLE;
}

enum key_file_found key_file_load(const char *path, struct key_file *file, struct failure *remark, struct failure *failure) {
  char copy_path[PATH_MAX];
  struct key_file copy;
  struct failure why;
  struct failure copy_why;
  enum key_file_found found;
  enum key_file_found copy_found;

  remark->text[0] = 0;
  if (with_suffix(copy_path, path, ".copy", failure) != 0) return KEY_FILE_UNUSABLE;
  found = read_one(path, file, &why);
  copy_found = read_one(copy_path, &copy, &copy_why);

  if (found == KEY_FILE_FOUND && copy_found == KEY_FILE_FOUND) {
    if (memcmp(file->ring->file_id, copy.ring->file_id, KEYRING_FILE_ID_LENGTH) != 0) {
      failure_set(failure, "%s and its .copy belong to different databases: if the file is the correct one, move the .copy elsewhere", path);
      key_file_free(file);
      key_file_free(&copy);
      return KEY_FILE_UNUSABLE;
    }
    if (copy.ring->sequence > file->ring->sequence) {
      struct key_file older = *file;
      failure_set(remark, "%s was older than its .copy (%" PRIu64 ", %" PRIu64 "), which is used", path, older.ring->sequence,
                  copy.ring->sequence);
      *file = copy;
      copy = older;
    } else if (copy.ring->sequence < file->ring->sequence) {
      failure_set(remark, "the .copy of %s was older than the file", path);
    }
    key_file_free(&copy);
    return KEY_FILE_FOUND;
  }
  if (found == KEY_FILE_FOUND) {
    failure_set(remark, "the .copy of %s could not be used: %s", path, copy_found == KEY_FILE_ABSENT ? "it did not exist" : copy_why.text);
    return KEY_FILE_FOUND;
  }
  if (copy_found == KEY_FILE_FOUND) {
    failure_set(remark, "%s could not be used: %s; its .copy is used", path, found == KEY_FILE_ABSENT ? "it did not exist" : why.text);
    *file = copy;
    return KEY_FILE_FOUND;
  }
  if (found == KEY_FILE_ABSENT && copy_found == KEY_FILE_ABSENT) return KEY_FILE_ABSENT;
  failure_set(failure, "the key file %s cannot be used: %s; its .copy cannot be used either: %s. Restore the key file from a backup", path,
              found == KEY_FILE_ABSENT ? "it does not exist" : why.text, copy_found == KEY_FILE_ABSENT ? "it does not exist" : copy_why.text);
  return KEY_FILE_UNUSABLE;
}

static int write_all(int fd, const char *text, size_t length) {
  while (length > 0) {
    ssize_t put = write(fd, text, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return -1;
    text += put;
    length -= (size_t)put;
  }
  return fsync(fd);
}

static int sync_folder(const char *path) {
  char folder[PATH_MAX];
  char *slash;
  int fd;
  int result;

  snprintf(folder, sizeof folder, "%s", path);
  slash = strrchr(folder, '/');
  if (slash == NULL) snprintf(folder, sizeof folder, ".");
  else slash[slash == folder] = 0;
  fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  result = fsync(fd);
  close(fd);
  return result;
}

int key_file_replace(const char *path, const char *text, size_t length, struct failure *failure) {
  char fresh[PATH_MAX];
  int fd;
  int result;

  if (with_suffix(fresh, path, ".new", failure) != 0) return -1;
  fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failure_set(failure, "%s cannot be written: %s", fresh, strerror(errno));
  result = write_all(fd, text, length);
  if (close(fd) != 0) result = -1;
  if (result == 0) result = rename(fresh, path);
  if (result == 0) result = sync_folder(path);
  return result == 0 ? 0 : failure_set(failure, "%s cannot be written: %s", path, strerror(errno));
}

int key_file_store(const char *path, const char *text, size_t length, struct failure *failure) {
  char copy_path[PATH_MAX];

  if (with_suffix(copy_path, path, ".copy", failure) != 0) return -1;
  if (key_file_replace(copy_path, text, length, failure) != 0) return -1;
  return key_file_replace(path, text, length, failure);
}

int key_file_lock(const char *path, struct failure *failure) {
  char lock_path[PATH_MAX];
  int fd;

  if (with_suffix(lock_path, path, ".lock", failure) != 0) return -1;
  fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failure_set(failure, "%s cannot be created: %s. MariaDB's user must be able to write to that folder", lock_path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return failure_set(failure, "another server uses the key file %s: each server needs its own", path);
}
