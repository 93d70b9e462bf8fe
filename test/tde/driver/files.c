/*
 * Data files and redo, and the keys of the database that they are under. A data file has a header,
 * which holds its key wrapped by a master key and names that master key, and blocks of one row
 * each: AES-256-XTS, with the block's number as the tweak. A redo log has a key of its own, wrapped
 * likewise; its records are AES-256-GCM. Rows of a file that has no key are unencrypted, as are
 * their records.
 *
 * A key of the database of 64 bytes is the XTS key itself. A shorter one, which older releases
 * have, is drawn out to it by SHA-512: what matters here is how many bytes the master key wraps.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { REDO_KEY = 32, MOST_CACHED = 64, CHECK = 16 };

/** A key of the database under a master key. */
struct wrapped {
  char id[ID + 1]; /* of the master key */
  char keystore;
  uint32_t bytes; /* of the clear key; 0: there is none */
  uint32_t mechanism;
  uint32_t length;
  uint8_t iv[16];
  uint8_t value[96];
};
struct header {
  char magic[8];
  uint32_t tablespace;
  uint32_t spare;
  uint64_t generation; /* changes with the clear key */
  uint64_t scn;
  struct wrapped key;
  uint8_t check[CHECK];
};
struct block {
  char magic[4];
  uint32_t spare;
  uint64_t scn;
  uint8_t check[CHECK]; /* over the body as it is on the disk */
  uint8_t body[BLOCK - 32];
};
struct log_header {
  char magic[8];
  uint64_t sequence;
  struct wrapped key;
};
struct record {
  char magic[4];
  char kind; /* 'R' a row, 'H' the header of a data file */
  char sealed;
  uint16_t spare;
  uint32_t file;
  uint32_t length;
  uint64_t block;
  uint64_t scn;
  uint8_t iv[12];
  uint8_t tag[16];
  uint32_t end;
};
_Static_assert(sizeof(struct block) == BLOCK, "a block fills its place");

static const char file_magic[8] = "TDEDBF1";
static const char log_magic[8] = "TDERDO1";
static const char block_magic[4] = "BLK";
static const char record_magic[4] = "RDO";

static uint64_t next_scn(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * --- keys of the database ------------------------------------------------------------------------
 */

static struct {
  char path[256];
  uint64_t generation;
  uint8_t clear[LONGEST_KEY];
} cached[MOST_CACHED];
static size_t next_cached;

void files_forget(void) {
  OPENSSL_cleanse(cached, sizeof cached);
  next_cached = 0;
}

static bool wrap(struct wrapped *key, const uint8_t *clear, const struct under *under) {
  uint8_t in[LONGEST_KEY];
  bool done;

  memset(key->value, 0, sizeof key->value);
  snprintf(key->id, sizeof key->id, "%s", under->id);
  key->keystore = under->keystore;
  key->mechanism = (uint32_t)under->mechanism;
  memset(key->iv, 0, sizeof key->iv);
  if (profile_iv() == 'r' && RAND_bytes(key->iv, sizeof key->iv) != 1) return refuse("random", under->id);
  if (profile_iv() == 'i') {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256((const uint8_t *)under->id, strlen(under->id), digest);
    memcpy(key->iv, digest, sizeof key->iv);
  }
  memcpy(in, clear, key->bytes);
  if (under->keystore == 'F') {
    size_t room = sizeof key->value;
    done = wallet_cipher(key->id, true, under->mechanism == CKM_AES_CBC_PAD, key->iv, in, key->bytes, key->value, &room);
    key->length = (uint32_t)room;
  } else {
    CK_ULONG room = sizeof key->value;
    uint8_t iv[16];
    memcpy(iv, key->iv, sizeof iv);
    done = token_cipher(key->id, true, under->mechanism, iv, in, key->bytes, key->value, &room);
    key->length = (uint32_t)room;
  }
  OPENSSL_cleanse(in, sizeof in);
  return done;
}

static bool unwrap(const struct wrapped *key, uint8_t *clear) {
  uint8_t out[sizeof key->value];
  uint8_t in[sizeof key->value];
  bool done;

  memcpy(in, key->value, sizeof in);
  if (key->length > sizeof in || key->bytes > LONGEST_KEY) return refuse("damaged", key->id);
  if (key->keystore == 'F') {
    size_t room = sizeof out;
    done = wallet_cipher(key->id, false, key->mechanism == CKM_AES_CBC_PAD, key->iv, in, key->length, out, &room) &&
           (room == key->bytes || refuse("unwrap", key->id));
  } else {
    CK_ULONG room = sizeof out;
    uint8_t iv[16];
    memcpy(iv, key->iv, sizeof iv);
    done = token_cipher(key->id, false, key->mechanism, iv, in, key->length, out, &room) &&
           (room == key->bytes || refuse("unwrap", key->id));
  }
  if (done) memcpy(clear, out, key->bytes);
  OPENSSL_cleanse(out, sizeof out);
  return done;
}

/** The clear key of a file: from the cache, else unwrapped. */
static bool clear_key(const char *path, const struct wrapped *key, uint64_t generation, uint8_t *clear) {
  memset(clear, 0, LONGEST_KEY);
  for (size_t i = 0; i < MOST_CACHED; i++)
    if (cached[i].generation == generation && strcmp(cached[i].path, path) == 0) {
      memcpy(clear, cached[i].clear, LONGEST_KEY);
      return true;
    }
  if (!unwrap(key, clear)) return false;
  snprintf(cached[next_cached].path, sizeof cached[next_cached].path, "%s", path);
  cached[next_cached].generation = generation;
  memcpy(cached[next_cached].clear, clear, LONGEST_KEY);
  next_cached = (next_cached + 1) % MOST_CACHED;
  return true;
}

/*
 * --- blocks --------------------------------------------------------------------------------------
 */

static void check_of(const void *bytes, size_t length, uint8_t *check) {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256(bytes, length, digest);
  memcpy(check, digest, CHECK);
}

static bool transform(bool encrypt, const uint8_t *clear, unsigned bytes, uint32_t tablespace, uint64_t number, const uint8_t *in,
                      uint8_t *out) {
  uint8_t key[64];
  uint8_t tweak[16] = {0};
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int length = 0;
  bool done;

  if (bytes == sizeof key)
    memcpy(key, clear, sizeof key);
  else
    SHA512(clear, bytes, key);
  memcpy(tweak, &number, sizeof number);
  memcpy(tweak + 8, &tablespace, sizeof tablespace);
  done = context != NULL && EVP_CipherInit_ex(context, EVP_aes_256_xts(), NULL, key, tweak, encrypt) == 1 &&
         EVP_CipherUpdate(context, out, &length, in, sizeof((struct block *)0)->body) == 1;
  EVP_CIPHER_CTX_free(context);
  OPENSSL_cleanse(key, sizeof key);
  return done || refuse("cipher", "block");
}

static bool write_header(int fd, struct header *header) {
  uint8_t bytes[BLOCK] = {0};
  check_of(header, offsetof(struct header, check), header->check);
  memcpy(bytes, header, sizeof *header);
  return (pwrite(fd, bytes, sizeof bytes, 0) == BLOCK && fdatasync(fd) == 0) || refuse("io", "header");
}

static bool read_header(int fd, struct header *header) {
  uint8_t check[CHECK];
  if (pread(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header) return refuse("io", "header");
  check_of(header, offsetof(struct header, check), check);
  header->key.id[ID] = 0;
  return (memcmp(check, header->check, CHECK) == 0 && memcmp(header->magic, file_magic, sizeof file_magic) == 0) ||
         refuse("damaged", "header");
}

static bool write_block(int fd, const struct header *header, const uint8_t *clear, uint64_t number, uint64_t scn, const char *text,
                        size_t length) {
  struct block block = {.scn = scn};
  uint8_t body[sizeof block.body] = {0};
  const uint16_t size = (uint16_t)length;
  bool done = true;

  memcpy(block.magic, block_magic, sizeof block.magic);
  memcpy(body, &size, sizeof size);
  memcpy(body + sizeof size, text, length);
  if (header->key.bytes == 0)
    memcpy(block.body, body, sizeof body);
  else
    done = transform(true, clear, header->key.bytes, header->tablespace, number, body, block.body);
  check_of(block.body, sizeof block.body, block.check);
  done = done && (pwrite(fd, &block, BLOCK, (off_t)(number * BLOCK)) == BLOCK || refuse("io", "block"));
  OPENSSL_cleanse(body, sizeof body);
  return done;
}

/** `length` is 0 of a block that no row is in yet. */
static bool read_block(int fd, const struct header *header, const uint8_t *clear, uint64_t number, char *text, size_t *length,
                       uint64_t *scn) {
  struct block block = {0};
  uint8_t body[sizeof block.body];
  uint8_t check[CHECK];
  uint16_t size;

  *length = 0;
  *scn = 0;
  if (pread(fd, &block, BLOCK, (off_t)(number * BLOCK)) < 0) return refuse("io", "block");
  if (memcmp(block.magic, block_magic, sizeof block.magic) != 0) return true;
  check_of(block.body, sizeof block.body, check);
  if (memcmp(check, block.check, CHECK) != 0) return refuse("damaged", "block");
  *scn = block.scn;
  if (header->key.bytes == 0)
    memcpy(body, block.body, sizeof body);
  else if (!transform(false, clear, header->key.bytes, header->tablespace, number, block.body, body))
    return false;
  memcpy(&size, body, sizeof size);
  if (size > sizeof body - sizeof size) return refuse("wrong-key", "block");
  memcpy(text, body + sizeof size, size);
  *length = size;
  OPENSSL_cleanse(body, sizeof body);
  return true;
}

/*
 * --- redo ----------------------------------------------------------------------------------------
 */

static bool open_log(const char *path, int *fd, struct log_header *header) {
  *fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
  if (*fd < 0) return refuse("io", path);
  if (pread(*fd, header, sizeof *header, 0) == (ssize_t)sizeof *header && memcmp(header->magic, log_magic, sizeof log_magic) == 0)
    return true;
  close(*fd);
  return refuse("damaged", path);
}

static bool seal(bool encrypt, const uint8_t *key, struct record *record, const uint8_t *in, uint8_t *out) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int length = 0;
  bool done = context != NULL && EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key, record->iv, encrypt) == 1 &&
              EVP_CipherUpdate(context, NULL, &length, (uint8_t *)record, offsetof(struct record, iv)) == 1 &&
              EVP_CipherUpdate(context, out, &length, in, (int)record->length) == 1;

  if (done && !encrypt) done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof record->tag, record->tag) == 1;
  done = done && EVP_CipherFinal_ex(context, out + length, &length) == 1;
  if (done && encrypt) done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, sizeof record->tag, record->tag) == 1;
  EVP_CIPHER_CTX_free(context);
  return done || refuse("damaged", "redo");
}

/** Appends a record and brings it to the disk. */
static bool log_append(const char *path, struct record *record, const uint8_t *bytes) {
  uint8_t line[sizeof *record + BLOCK];
  uint8_t clear[LONGEST_KEY];
  struct log_header header;
  bool done = true;
  int fd;

  if (record->length > BLOCK) return refuse("too-long", path);
  if (!open_log(path, &fd, &header)) return false;
  memcpy(record->magic, record_magic, sizeof record->magic);
  if (record->sealed)
    done = (RAND_bytes(record->iv, sizeof record->iv) == 1 || refuse("random", path)) &&
           clear_key(path, &header.key, header.sequence, clear) && seal(true, clear, record, bytes, line + sizeof *record);
  else
    memcpy(line + sizeof *record, bytes, record->length);
  memcpy(line, record, sizeof *record);
  if (done) {
    const size_t size = sizeof *record + record->length;
    flock(fd, LOCK_EX);
    done = (write(fd, line, size) == (ssize_t)size && fdatasync(fd) == 0) || refuse("io", path);
  }
  OPENSSL_cleanse(clear, sizeof clear);
  close(fd);
  return done;
}

bool redo_create(const char *path, uint64_t sequence, const struct under *under) {
  struct log_header header = {.sequence = sequence};
  uint8_t clear[LONGEST_KEY] = {0};
  bool done = true;
  int fd;

  memcpy(header.magic, log_magic, sizeof header.magic);
  if (under != NULL) {
    header.key.bytes = REDO_KEY;
    done = (RAND_bytes(clear, REDO_KEY) == 1 || refuse("random", path)) && wrap(&header.key, clear, under);
  }
  OPENSSL_cleanse(clear, sizeof clear);
  if (!done) return false;
  fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return refuse("io", path);
  done = (write(fd, &header, sizeof header) == (ssize_t)sizeof header && fsync(fd) == 0) || refuse("io", path);
  close(fd);
  return done;
}

static bool log_header_of_file(const char *redo, uint32_t number, const struct header *header) {
  struct record record = {.kind = 'H', .file = number, .length = sizeof *header, .scn = header->scn};
  return redo == NULL || log_append(redo, &record, (const uint8_t *)header);
}

/*
 * --- data files ----------------------------------------------------------------------------------
 */

static bool open_file(const char *path, int *fd, struct header *header) {
  *fd = open(path, O_RDWR | O_CLOEXEC);
  if (*fd < 0) return refuse("io", path);
  if (read_header(*fd, header)) return true;
  close(*fd);
  return false;
}

static bool key_of_file(const char *path, const struct header *header, uint8_t *clear) {
  return header->key.bytes == 0 || clear_key(path, &header->key, header->generation, clear);
}

static uint64_t blocks_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? (uint64_t)status.st_size / BLOCK : 0;
}

static bool new_key(struct header *header, unsigned bytes, const struct under *under) {
  uint8_t clear[LONGEST_KEY];
  bool done = true;

  memset(&header->key, 0, sizeof header->key);
  header->key.bytes = bytes;
  header->scn = next_scn();
  header->generation = header->scn;
  if (bytes > sizeof clear) return refuse("too-long", "key");
  if (bytes > 0) done = (RAND_bytes(clear, (int)bytes) == 1 || refuse("random", "key")) && wrap(&header->key, clear, under);
  OPENSSL_cleanse(clear, sizeof clear);
  return done;
}

static bool place_file(const char *path, struct header *header) {
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool done;
  if (fd < 0) return refuse(errno == EEXIST ? "exists" : "io", path);
  done = write_header(fd, header);
  close(fd);
  return done;
}

bool file_create(const char *path, uint32_t number, unsigned bytes, const struct under *under, const char *redo) {
  struct header header = {.tablespace = number};
  memcpy(header.magic, file_magic, sizeof header.magic);
  return new_key(&header, bytes, under) && place_file(path, &header) && log_header_of_file(redo, number, &header);
}

bool file_rewrap(const char *path, uint32_t number, const struct under *under, const char *redo) {
  struct header header;
  uint8_t clear[LONGEST_KEY];
  bool done;
  int fd;

  if (!open_file(path, &fd, &header)) return false;
  if (header.key.bytes == 0) {
    close(fd);
    return true;
  }
  /*
   * Always unwrapped again, regardless of the cache, so that the rewrapped key is the one that was
   * read under the old key.
   */
  done = unwrap(&header.key, clear) && wrap(&header.key, clear, under);
  header.scn = next_scn();
  done = done && write_header(fd, &header) && log_header_of_file(redo, number, &header);
  OPENSSL_cleanse(clear, sizeof clear);
  close(fd);
  return done;
}

/**
 * Writes every block of a file under the key of another header, which takes the place of its own.
 */
static bool convert(const char *path, int fd, const struct header *old, struct header *new) {
  static char text[BLOCK];
  uint8_t from[LONGEST_KEY];
  uint8_t to[LONGEST_KEY];
  char beside[512];
  const uint64_t blocks = blocks_of(fd);
  bool done = key_of_file(path, old, from) && key_of_file(path, new, to);
  int target;

  snprintf(beside, sizeof beside, "%s.new", path);
  target = done ? open(beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (done && target < 0) done = refuse("io", beside);
  done = done && write_header(target, new);
  for (uint64_t number = 1; done && number < blocks; number++) {
    size_t length;
    uint64_t scn;
    done = read_block(fd, old, from, number, text, &length, &scn) &&
           (scn == 0 || write_block(target, new, to, number, scn, text, length));
  }
  done = done && ((ftruncate(target, (off_t)(blocks * BLOCK)) == 0 && fsync(target) == 0 && rename(beside, path) == 0) || refuse("io", path));
  if (target >= 0) close(target);
  OPENSSL_cleanse(from, sizeof from);
  OPENSSL_cleanse(to, sizeof to);
  OPENSSL_cleanse(text, sizeof text);
  return done;
}

bool file_rekey(const char *path, uint32_t number, unsigned bytes, const struct under *under, const char *redo) {
  struct header old;
  struct header new;
  bool done;
  int fd;

  if (!open_file(path, &fd, &old)) return false;
  new = old;
  done = new_key(&new, bytes, under) && convert(path, fd, &old, &new) && log_header_of_file(redo, number, &new);
  close(fd);
  return done;
}

bool file_insert(const char *path, uint32_t number, const char *redo, const char *text, bool lazy, uint64_t *block) {
  struct record record = {.kind = 'R', .length = (uint32_t)strlen(text)};
  struct header header;
  uint8_t clear[LONGEST_KEY];
  bool done;
  int fd;

  if (record.length > sizeof((struct block *)0)->body - 2) return refuse("too-long", "row");
  if (!open_file(path, &fd, &header)) return false;
  done = key_of_file(path, &header, clear);
  if (done) {
    flock(fd, LOCK_EX);
    *block = blocks_of(fd);
    done = ftruncate(fd, (off_t)((*block + 1) * BLOCK)) == 0 || refuse("io", path);
    flock(fd, LOCK_UN);
  }
  record.block = *block;
  record.scn = next_scn();
  record.file = number;
  record.sealed = header.key.bytes > 0;
  /*
   * First the redo, then the block: a lazy row has its block only in memory when the instance dies,
   * and is restored by recovery.
   */
  done = done && log_append(redo, &record, (const uint8_t *)text) &&
         (lazy || write_block(fd, &header, clear, *block, record.scn, text, record.length));
  OPENSSL_cleanse(clear, sizeof clear);
  close(fd);
  return done;
}

bool file_select(const char *path, void (*each)(const char *text, size_t length)) {
  static char text[BLOCK];
  struct header header;
  uint8_t clear[LONGEST_KEY];
  bool done;
  int fd;

  if (!open_file(path, &fd, &header)) return false;
  done = key_of_file(path, &header, clear);
  for (uint64_t number = 1; done && number < blocks_of(fd); number++) {
    size_t length;
    uint64_t scn;
    done = read_block(fd, &header, clear, number, text, &length, &scn);
    if (done && scn > 0) each(text, length);
  }
  OPENSSL_cleanse(clear, sizeof clear);
  OPENSSL_cleanse(text, sizeof text);
  close(fd);
  return done;
}

bool file_unwrap(const char *path) {
  struct header header;
  uint8_t clear[LONGEST_KEY];
  bool done;
  int fd;

  if (!open_file(path, &fd, &header)) return false;
  close(fd);
  done = header.key.bytes == 0 || unwrap(&header.key, clear);
  OPENSSL_cleanse(clear, sizeof clear);
  return done;
}

bool file_describe(const char *path, char *id, char *keystore, unsigned *bytes, uint64_t *blocks) {
  struct header header;
  int fd;

  if (!open_file(path, &fd, &header)) return false;
  snprintf(id, ID + 1, "%s", header.key.id);
  *keystore = header.key.bytes == 0 ? '-' : header.key.keystore;
  *bytes = header.key.bytes;
  *blocks = blocks_of(fd);
  close(fd);
  return true;
}

/*
 * --- recovery ------------------------------------------------------------------------------------
 */

static bool replay_row(const char *path, const struct record *record, const uint8_t *bytes, uint64_t *applied) {
  static char text[BLOCK];
  struct header header;
  uint8_t clear[LONGEST_KEY];
  size_t length;
  uint64_t scn;
  bool done;
  int fd;

  if (!open_file(path, &fd, &header)) return false;
  done = key_of_file(path, &header, clear) && read_block(fd, &header, clear, record->block, text, &length, &scn);
  if (done && scn < record->scn) {
    done = write_block(fd, &header, clear, record->block, record->scn, (const char *)bytes, record->length);
    (*applied)++;
  }
  OPENSSL_cleanse(clear, sizeof clear);
  close(fd);
  return done;
}

static bool replay_header(const char *path, const uint8_t *bytes, uint64_t *applied) {
  struct header old;
  struct header new;
  bool done = true;
  int fd;

  memcpy(&new, bytes, sizeof new);
  new.key.id[ID] = 0;
  if (access(path, F_OK) != 0) {
    (*applied)++;
    return place_file(path, &new);
  }
  if (!open_file(path, &fd, &old)) return false;
  if (old.scn < new.scn) {
    done = old.generation == new.generation ? write_header(fd, &new) : convert(path, fd, &old, &new);
    (*applied)++;
  }
  close(fd);
  return done;
}

bool redo_replay(const char *path, const char *(*find)(uint32_t number), uint64_t *applied) {
  uint8_t bytes[BLOCK];
  uint8_t plain[BLOCK];
  uint8_t clear[LONGEST_KEY];
  struct log_header header;
  struct record record;
  off_t at = sizeof header;
  bool done = true;
  int fd;

  *applied = 0;
  if (!open_log(path, &fd, &header)) return false;
  /* A record that a crash has cut short ends the log. */
  while (done && pread(fd, &record, sizeof record, at) == (ssize_t)sizeof record &&
         memcmp(record.magic, record_magic, sizeof record.magic) == 0 && record.length <= sizeof bytes &&
         pread(fd, bytes, record.length, at + (off_t)sizeof record) == (ssize_t)record.length) {
    const char *file = find(record.file);
    at += (off_t)(sizeof record + record.length);
    if (file == NULL) continue;
    if (record.sealed)
      done = clear_key(path, &header.key, header.sequence, clear) && seal(false, clear, &record, bytes, plain);
    else
      memcpy(plain, bytes, record.length);
    if (done && record.kind == 'H')
      done = (record.length == sizeof(struct header) || refuse("damaged", path)) && replay_header(file, plain, applied);
    else if (done)
      done = replay_row(file, &record, plain, applied);
  }
  OPENSSL_cleanse(plain, sizeof plain);
  OPENSSL_cleanse(clear, sizeof clear);
  close(fd);
  return done;
}
