/* The key file of the MariaDB plugin: a written file can be read, a damaged one cannot. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binding.h"
#include "import.h"
#include "key_file.h"
#include "../tests.h"

static const unsigned char iv[KEY_FILE_IV] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static struct keyring *sample(uint64_t sequence) {
  unsigned char key[KEYRING_MAX_KEY_BYTES];
  struct keyring *ring = keyring_new();

  assert_non_null(ring);
  memset(key, 0xA5, sizeof key);
  assert_int_equal(keyring_add(ring, &(struct data_key){7, 1, 16, 0, 1700000000, false, "0a0b0c"}, key), 0);
  assert_int_equal(keyring_add(ring, &(struct data_key){1, 734002, 32, 0, 1700000001, true, "1a1b1c"}, key), 0);
  assert_int_equal(keyring_add(ring, &(struct data_key){1, 3, 24, 0, 1700000002, false, "2a2b2c"}, key), 0);
  snprintf(ring->master, sizeof ring->master, "mariadb.0123456789abcdef");
  snprintf(ring->file_id, sizeof ring->file_id, "00112233445566778899aabbccddeeff");
  ring->sequence = sequence;
  return ring;
}

/* The text of a keyring; its "wrapped" bytes are arbitrary, because nothing here checks them. */
static char *text_of(const struct keyring *ring, size_t *length) {
  unsigned char wrapped[1024];
  size_t head_length;
  char *head = key_file_head(ring, &head_length);
  char *text;

  assert_non_null(head);
  assert_int_equal(strlen(head), head_length);
  for (size_t i = 0; i < ring->size + KEY_FILE_TAG; i++) wrapped[i] = (unsigned char)(i * 7);
  text = key_file_text(head, iv, wrapped, ring->size + KEY_FILE_TAG, length);
  assert_non_null(text);
  free(head);
  return text;
}

TEST(a_text_says_what_the_keyring_said) {
  struct keyring *ring = sample(9);
  size_t length;
  char *text = text_of(ring, &length);
  struct key_file file;
  struct failure failure;

  assert_int_equal(key_file_parse(text, length, &file, &failure), 0);
  assert_int_equal(file.ring->count, 3);
  assert_int_equal(file.ring->size, 72);
  assert_int_equal(file.ring->sequence, 9);
  assert_string_equal(file.ring->master, ring->master);
  assert_string_equal(file.ring->file_id, ring->file_id);
  assert_int_equal(file.format, 2);
  /* The highest is retired. */
  assert_int_equal(keyring_latest(file.ring, 1)->version, 3);
  for (size_t i = 0; i < 3; i++) assert_memory_equal(&file.ring->keys[i], &ring->keys[i], sizeof ring->keys[i]);
  assert_memory_equal(file.iv, iv, sizeof iv);
  assert_int_equal(file.wrapped_length, 72 + KEY_FILE_TAG);
  assert_int_equal(file.wrapped[1], 7);
  key_file_free(&file);
  free(text);
  keyring_free(ring);
}

TEST(a_text_with_any_byte_changed_is_refused) {
  struct keyring *ring = sample(9);
  size_t length;
  char *text = text_of(ring, &length);

  for (size_t i = 0; i < length; i++) {
    struct key_file file;
    struct failure failure = {""};
    text[i] ^= 1;
    assert_int_equal(key_file_parse(text, length, &file, &failure), -1);
    assert_true(strlen(failure.text) > 0);
    text[i] ^= 1;
  }
  free(text);
  keyring_free(ring);
}

TEST(a_text_that_is_cut_off_anywhere_is_refused) {
  struct keyring *ring = sample(9);
  size_t length;
  char *text = text_of(ring, &length);

  for (size_t i = 0; i < length; i++) {
    struct key_file file;
    struct failure failure;
    assert_int_equal(key_file_parse(text, i, &file, &failure), -1);
  }
  free(text);
  keyring_free(ring);
}

/* A correct checksum over wrong lines, as by an attacker who knows the format. */
TEST(lines_are_written_in_one_way_only) {
  static const char *const heads[] = {
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 01x\nmaster m\nkey 1 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 0011\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster \nkey 1 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 0 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 4294967295 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 4294967296 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 64 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 512 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 -1 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 \n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3 \n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 A1B2C3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3\nkey 1 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3\nold 1 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 2\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3\nother\n",
      "dke-mariadb-keys 1\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3\n",
      "dke-mariadb-keys 1\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nold 1 2 256 0\n",
      "dke-mariadb-keys 3\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 2 256 0 a1b2c3\n",
  };
  unsigned char wrapped[64 + KEY_FILE_TAG] = {0};

  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    size_t length;
    struct key_file file;
    struct failure failure;
    char *text = key_file_text(heads[i], iv, wrapped, 32 + KEY_FILE_TAG, &length);
    assert_int_equal(key_file_parse(text, length, &file, &failure), -1);
    free(text);
  }
}

TEST(a_file_of_format_1_is_read_and_has_no_marks) {
  static const char head[] =
      "dke-mariadb-keys 1\nfile 00112233445566778899aabbccddeeff\nsequence 1\nmaster m\nkey 1 734001 256 5\nkey 1 734003 256 6\n";
  unsigned char wrapped[64 + KEY_FILE_TAG] = {0};
  struct key_file file;
  struct failure failure;
  size_t length;
  char *text = key_file_text(head, iv, wrapped, sizeof wrapped, &length);

  assert_int_equal(key_file_parse(text, length, &file, &failure), 0);
  assert_int_equal(file.format, 1);
  assert_int_equal(keyring_latest(file.ring, 1)->version, 734003);
  assert_string_equal(file.ring->keys[0].mark, "");
  key_file_free(&file);
  free(text);
}

TEST(the_fullest_keyring_fits) {
  unsigned char key[32] = {0};
  unsigned char *wrapped = calloc(1, KEY_FILE_WRAPPED_MAX);
  struct keyring *ring = sample(UINT64_MAX / 2);
  size_t head_length;
  size_t length;
  char *head;
  char *text;
  struct key_file file;
  struct failure failure;

  for (uint32_t i = 3; i < KEYRING_MAX_KEYS; i++)
    assert_int_equal(keyring_add(ring, &(struct data_key){UINT32_MAX, UINT32_MAX - 2 - i, 32, 0, 9999999999, false, "ffffff"}, key), 0);
  assert_int_equal(keyring_add(ring, &(struct data_key){3, 3, 32, 0, 0, false, "ffffff"}, key), -1);
  memset(ring->master, 'm', KEYRING_LABEL_MAX);
  head = key_file_head(ring, &head_length);
  text = key_file_text(head, iv, wrapped, ring->size + KEY_FILE_TAG, &length);
  assert_true(length < KEY_FILE_TEXT_MAX);
  /* What the service takes as associated data. */
  assert_true(head_length <= 48 * 1024);
  assert_int_equal(key_file_parse(text, length, &file, &failure), 0);
  assert_int_equal(file.ring->count, KEYRING_MAX_KEYS);
  assert_int_equal(keyring_latest(file.ring, UINT32_MAX)->version, UINT32_MAX - 5);
  assert_int_equal(keyring_ids(file.ring), 3);
  key_file_free(&file);
  free(head);
  free(text);
  free(wrapped);
  keyring_free(ring);
}

/*
 * ---- Two files on the disk ----------------------------------------------------------------------
 */

static char folder[] = "/tmp/dke-key-file-XXXXXX";
static char path[PATH_MAX];
static char copy_path[PATH_MAX];

static int make_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/keys", folder);
  snprintf(copy_path, sizeof copy_path, "%s/keys.copy", folder);
  return 0;
}
static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  unlink(copy_path);
  return rmdir(folder);
}

static void store(uint64_t sequence) {
  struct keyring *ring = sample(sequence);
  struct failure failure;
  size_t length;
  char *text = text_of(ring, &length);

  assert_int_equal(key_file_store(path, text, length, &failure), 0);
  free(text);
  keyring_free(ring);
}

static void overwrite(const char *which, off_t at) {
  int fd = open(which, O_WRONLY);

  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, "!", 1, at), 1);
  close(fd);
}

static enum key_file_found load(struct key_file *file, char *remark, char *failure) {
  struct failure said;
  struct failure why = {""};
  enum key_file_found found = key_file_load(path, file, &said, &why);

  snprintf(remark, sizeof said.text, "%s", said.text);
  snprintf(failure, sizeof why.text, "%s", why.text);
  return found;
}

TEST(of_two_files_the_one_that_is_whole_and_newer_is_read) {
  struct key_file file;
  char remark[512];
  char why[512];
  char aside[PATH_MAX + 8];

  snprintf(aside, sizeof aside, "%s.old", path);
  assert_int_equal(load(&file, remark, why), KEY_FILE_ABSENT);
  store(1);
  assert_int_equal(load(&file, remark, why), KEY_FILE_FOUND);
  assert_string_equal(remark, "");
  key_file_free(&file);

  overwrite(path, 40);
  assert_int_equal(load(&file, remark, why), KEY_FILE_FOUND);
  assert_non_null(strstr(remark, "checksum is wrong"));
  key_file_free(&file);

  overwrite(copy_path, 41);
  assert_int_equal(load(&file, remark, why), KEY_FILE_UNUSABLE);
  assert_non_null(strstr(why, "Restore the key file from a backup"));

  /* The copy is of a change that the file has missed. */
  store(2);
  assert_int_equal(rename(path, aside), 0);
  store(3);
  assert_int_equal(rename(aside, path), 0);
  assert_int_equal(load(&file, remark, why), KEY_FILE_FOUND);
  assert_int_equal(file.ring->sequence, 3);
  assert_non_null(strstr(remark, "older than its .copy"));
  key_file_free(&file);

  assert_int_equal(unlink(path), 0);
  assert_int_equal(load(&file, remark, why), KEY_FILE_FOUND);
  assert_non_null(strstr(remark, "it did not exist"));
  key_file_free(&file);

  store(4);
  assert_int_equal(chmod(path, 0666), 0);
  assert_int_equal(chmod(copy_path, 0666), 0);
  assert_int_equal(load(&file, remark, why), KEY_FILE_UNUSABLE);
  assert_non_null(strstr(why, "chmod 600"));
}

/*
 * ---- The data directory's own file --------------------------------------------------------------
 */

static enum binding_found check(const char *binding, const struct keyring *ring, char *why) {
  struct failure failure = {""};
  enum binding_found found = binding_check(binding, "THE-KEY-FILE", ring, &failure);

  snprintf(why, sizeof failure.text, "%s", failure.text);
  return found;
}

TEST(a_data_directory_knows_its_keys) {
  struct keyring *ring = sample(1);
  struct failure failure;
  char binding[PATH_MAX + 16];
  char absent[PATH_MAX + 16];
  char why[512];

  snprintf(binding, sizeof binding, "%s/binding", folder);
  snprintf(absent, sizeof absent, "%s/none/binding", folder);
  assert_int_equal(check(absent, ring, why), BINDING_ABSENT);
  assert_int_equal(binding_write(absent, ring, &failure), 0);
  assert_int_equal(check(binding, ring, why), BINDING_ABSENT);
  assert_int_equal(binding_write(binding, ring, &failure), 0);
  assert_int_equal(check(binding, ring, why), BINDING_FITS);

  /* A version more is a rotation that has not been written down. */
  assert_int_equal(keyring_add(ring, &(struct data_key){1, 5, 32, 0, 0, false, "3a3b3c"}, NULL), 0);
  assert_int_equal(check(binding, ring, why), BINDING_ABSENT);
  assert_int_equal(binding_write(binding, ring, &failure), 0);
  assert_int_equal(check(binding, ring, why), BINDING_FITS);

  assert_int_equal(check(binding, NULL, why), BINDING_REFUSED);
  assert_non_null(strstr(why, "THE-KEY-FILE is missing"));
  keyring_free(ring);
  ring = sample(1);
  assert_int_equal(check(binding, ring, why), BINDING_REFUSED);
  assert_non_null(strstr(why, "does not contain version 5 of key 1"));
  assert_int_equal(keyring_add(ring, &(struct data_key){1, 5, 32, 0, 0, false, "3a3b3d"}, NULL), 0);
  assert_int_equal(check(binding, ring, why), BINDING_REFUSED);
  assert_non_null(strstr(why, "version 5 of key 1 in the key file THE-KEY-FILE is not the key"));

  overwrite(binding, 30);
  assert_int_equal(check(binding, ring, why), BINDING_REFUSED);
  assert_non_null(strstr(why, "is damaged"));
  unlink(binding);
  keyring_free(ring);
}

/*
 * ---- file_key_management's file -----------------------------------------------------------------
 */

static int import_of(const char *text, struct keyring **ring) {
  char source[PATH_MAX];
  struct failure failure;
  int fd;
  int result;

  snprintf(source, sizeof source, "%s/import", folder);
  fd = open(source, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  *ring = keyring_new();
  result = import_keys(source, *ring, &failure);
  unlink(source);
  return result;
}

TEST(keys_of_file_key_management_become_version_1) {
  struct keyring *ring;
  const struct data_key *key;

  assert_int_equal(import_of("# keys\n\n 1 ; 000102030405060708090a0b0c0d0e0f\r\n100;A7EB1C0E1F2A3B4C5D6E7F8091A2B3C4D5E6F708192A3B4C5D6E7F8091A2B3C4 # x", &ring), 0);
  assert_int_equal(ring->count, 2);
  key = keyring_find(ring, 1, 1);
  assert_int_equal(key->length, 16);
  assert_int_equal(ring->bytes[key->offset + 15], 0x0F);
  key = keyring_latest(ring, 100);
  assert_int_equal(key->version, 1);
  assert_int_equal(ring->bytes[key->offset], 0xA7);
  keyring_free(ring);
}

TEST(what_is_no_such_file_is_refused_as_a_whole) {
  static const char *const texts[] = {
      "",
      "2;000102030405060708090a0b0c0d0e0f\n",
      "1;000102030405060708090a0b0c0d0e0\n",
      "1;000102030405060708090a0b0c0d0e\n",
      "1;000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f00\n",
      "1;000102030405060708090a0b0c0d0e0g\n",
      "1 000102030405060708090a0b0c0d0e0f\n",
      "0;000102030405060708090a0b0c0d0e0f\n",
      "1;000102030405060708090a0b0c0d0e0f\n4294967296;000102030405060708090a0b0c0d0e0f\n",
      "1;000102030405060708090a0b0c0d0e0f\n1;000102030405060708090a0b0c0d0e0f\n",
      "Salted__1;000102030405060708090a0b0c0d0e0f\n",
  };

  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct keyring *ring;
    assert_int_equal(import_of(texts[i], &ring), -1);
    keyring_free(ring);
  }
}

int main(void) {

  return run_written_tests(make_folder, remove_folder);
}
