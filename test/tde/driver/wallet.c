/*
 * The software keystore, in a format of our own that represents PKCS#12: "TDEWLT1", salt, iteration
 * count, initial value, length, AES-256-GCM of the entries under PBKDF2-HMAC-SHA-256 of the
 * password. An entry is a kind, a name and a value. cwallet.sso is the same with its password in
 * front, which is what an automatic login amounts to: anyone who has the file has the keys.
 */
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

enum { MOST_ENTRIES = 256, PASSWORD = 64, ITERATIONS = 20000, MOST_BYTES = 65536 };

struct entry {
  char kind; /* 'K' a master key, 'S' a secret */
  char name[64];
  uint8_t value[256];
  uint16_t length;
};
struct wallet {
  struct entry entries[MOST_ENTRIES];
  size_t count;
};
struct head {
  char magic[8];
  char password[PASSWORD]; /* of cwallet.sso only */
  uint8_t salt[16];
  uint32_t iterations;
  uint8_t iv[12];
  uint32_t length;
  uint8_t tag[16];
};
static const char magic[8] = "TDEWLT1";
static struct wallet current;
static bool opened;

static bool derive(const struct head *head, const char *password, uint8_t *key) {
  return PKCS5_PBKDF2_HMAC(password, (int)strlen(password), head->salt, sizeof head->salt, (int)head->iterations, EVP_sha256(), 32,
                           key) == 1;
}

static bool cipher(bool encrypt, struct head *head, const char *password, const uint8_t *in, uint8_t *out) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  uint8_t key[32];
  int length = 0;
  bool done = context != NULL && derive(head, password, key) &&
              EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key, head->iv, encrypt) == 1 &&
              EVP_CipherUpdate(context, out, &length, in, (int)head->length) == 1;

  if (done && !encrypt) done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, sizeof head->tag, head->tag) == 1;
  done = done && EVP_CipherFinal_ex(context, out + length, &length) == 1;
  if (done && encrypt) done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, sizeof head->tag, head->tag) == 1;
  EVP_CIPHER_CTX_free(context);
  OPENSSL_cleanse(key, sizeof key);
  return done;
}

static bool read_wallet(const char *path, const char *password, struct wallet *wallet) {
  static uint8_t sealed[MOST_BYTES];
  static uint8_t bytes[MOST_BYTES];
  struct head head;
  FILE *file = fopen(path, "rb");
  bool done;
  size_t at = 0;

  if (file == NULL) return refuse("wallet-missing", path);
  done = fread(&head, sizeof head, 1, file) == 1 && memcmp(head.magic, magic, sizeof magic) == 0 && head.length <= sizeof sealed &&
         fread(sealed, 1, head.length, file) == head.length;
  fclose(file);
  if (!done) return refuse("wallet-damaged", path);
  head.password[PASSWORD - 1] = 0;
  if (!cipher(false, &head, password == NULL ? head.password : password, sealed, bytes)) return refuse("wallet-password", path);
  for (wallet->count = 0; at < head.length && wallet->count < MOST_ENTRIES; at += sizeof(struct entry))
    memcpy(&wallet->entries[wallet->count++], bytes + at, sizeof(struct entry));
  OPENSSL_cleanse(bytes, sizeof bytes);
  return true;
}

/** Whole or not at all: written next to, brought to the disk, and renamed. */
static bool write_wallet(const char *path, const char *password, bool automatic, const struct wallet *wallet) {
  static uint8_t sealed[MOST_BYTES];
  struct head head = {.iterations = ITERATIONS, .length = (uint32_t)(wallet->count * sizeof(struct entry))};
  char beside[512];
  FILE *file;
  bool done;
  int fd;

  if (head.length > sizeof sealed) return refuse("wallet-full", path);
  memcpy(head.magic, magic, sizeof magic);
  if (automatic) snprintf(head.password, sizeof head.password, "%s", password);
  if (RAND_bytes(head.salt, sizeof head.salt) != 1 || RAND_bytes(head.iv, sizeof head.iv) != 1 ||
      !cipher(true, &head, password, (const uint8_t *)wallet->entries, sealed))
    return refuse("wallet-write", path);
  snprintf(beside, sizeof beside, "%s.new", path);
  fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (file == NULL) return refuse("wallet-write", path);
  done = fwrite(&head, sizeof head, 1, file) == 1 && fwrite(sealed, 1, head.length, file) == head.length && fflush(file) == 0 &&
         fsync(fd) == 0;
  return (fclose(file) == 0 && done && rename(beside, path) == 0) || refuse("wallet-write", path);
}

bool wallet_create(const char *path, const char *password) {
  static const struct wallet empty;
  if (access(path, F_OK) == 0) return refuse("wallet-exists", path);
  return write_wallet(path, password, false, &empty);
}

bool wallet_open(const char *path, const char *password) {
  if (!read_wallet(path, password, &current)) return false;
  opened = true;
  return true;
}

bool wallet_is_open(void) { return opened; }

void wallet_close(void) {
  OPENSSL_cleanse(&current, sizeof current);
  opened = false;
}

bool wallet_change_password(const char *path, const char *old, const char *new) {
  static struct wallet wallet;
  const bool done = read_wallet(path, old, &wallet) && write_wallet(path, new, false, &wallet);
  OPENSSL_cleanse(&wallet, sizeof wallet);
  return done;
}

bool wallet_make_automatic(const char *path, const char *password, const char *target) {
  static struct wallet wallet;
  uint8_t random[24];
  char own[2 * sizeof random + 1];
  bool done = read_wallet(path, password, &wallet) && RAND_bytes(random, sizeof random) == 1;

  for (size_t i = 0; i < sizeof random; i++) snprintf(own + 2 * i, 3, "%02x", random[i]);
  done = done && write_wallet(target, own, true, &wallet);
  OPENSSL_cleanse(&wallet, sizeof wallet);
  OPENSSL_cleanse(own, sizeof own);
  return done;
}

static bool add(const char *path, const char *password, char kind, const char *name, const uint8_t *value, size_t length) {
  static struct wallet wallet;
  struct entry *entry = NULL;
  bool done;

  if (!read_wallet(path, password, &wallet)) return false;
  for (size_t i = 0; i < wallet.count; i++)
    if (wallet.entries[i].kind == kind && strcmp(wallet.entries[i].name, name) == 0) entry = &wallet.entries[i];
  if (entry == NULL && wallet.count < MOST_ENTRIES) entry = &wallet.entries[wallet.count++];
  if (entry == NULL || length > sizeof entry->value) return refuse("wallet-full", path);
  memset(entry, 0, sizeof *entry);
  entry->kind = kind;
  snprintf(entry->name, sizeof entry->name, "%s", name);
  memcpy(entry->value, value, length);
  entry->length = (uint16_t)length;
  done = write_wallet(path, password, false, &wallet);
  if (done && opened) current = wallet;
  OPENSSL_cleanse(&wallet, sizeof wallet);
  return done;
}

bool wallet_add_secret(const char *path, const char *password, const char *name, const char *value) {
  return add(path, password, 'S', name, (const uint8_t *)value, strlen(value) + 1);
}

static const struct entry *entry_of(char kind, const char *name) {
  for (size_t i = 0; opened && i < current.count; i++)
    if (current.entries[i].kind == kind && strcmp(current.entries[i].name, name) == 0) return &current.entries[i];
  return NULL;
}

const char *wallet_secret(const char *name) {
  const struct entry *entry = entry_of('S', name);
  return entry == NULL ? NULL : (const char *)entry->value;
}

bool wallet_generate(const char *path, const char *password, const char *id) {
  uint8_t value[32];
  const bool done = RAND_bytes(value, sizeof value) == 1 && add(path, password, 'K', id, value, sizeof value);
  OPENSSL_cleanse(value, sizeof value);
  return done;
}

bool wallet_has(const char *id) { return entry_of('K', id) != NULL; }

bool wallet_cipher(const char *id, bool encrypt, bool padded, const uint8_t *iv, const uint8_t *in, size_t length, uint8_t *out,
                   size_t *room) {
  const struct entry *entry = entry_of('K', id);
  EVP_CIPHER_CTX *context;
  int first = 0;
  int last = 0;
  bool done;

  if (!opened) return refuse("closed", id);
  if (entry == NULL) return refuse("no-key", id);
  context = EVP_CIPHER_CTX_new();
  done = context != NULL && EVP_CipherInit_ex(context, EVP_aes_256_cbc(), NULL, entry->value, iv, encrypt) == 1 &&
         EVP_CIPHER_CTX_set_padding(context, padded) == 1 && EVP_CipherUpdate(context, out, &first, in, (int)length) == 1 &&
         EVP_CipherFinal_ex(context, out + first, &last) == 1;
  EVP_CIPHER_CTX_free(context);
  *room = (size_t)first + (size_t)last;
  return done || refuse("unwrap", id);
}
