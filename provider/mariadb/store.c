#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"
#include "import.h"
#include "key_file.h"
#include "secret.h"

static struct keyring *no_memory(struct failure *failure) {
  failure_set(failure, "not enough memory");
  return NULL;
}

static int random_hex(char *to, size_t digits) {
  unsigned char bytes[32];

  if (digits > 2 * sizeof bytes || secret_random(bytes, digits / 2) != 0) return -1;
  for (size_t i = 0; i < digits / 2; i++) snprintf(to + 2 * i, 3, "%02x", bytes[i]);
  return 0;
}

/*
 * Labels are unique in a group, and instances of one group may share the prefix: the rest is
 * random.
 */
static int new_master(struct store *store, struct keyring *ring, struct failure *failure) {
  char tail[33];

  if (random_hex(tail, 32) != 0) return failure_set(failure, "the system does not return random numbers");
  if (snprintf(ring->master, sizeof ring->master, "%s.%s", store->label, tail) >= (int)sizeof ring->master)
    return failure_set(failure, "dke_key_management_master_key_label is too long");
  return token_generate(&store->token, ring->master, failure);
}

/*
 * Versions are 1, 3, 5, … Small, because InnoDB's threads look for old versions without a pause
 * once a version is above innodb_encryption_rotate_key_age. Two apart, because InnoDB re-encrypts
 * pages whose version is *more* than that setting behind the latest, and it re-encrypts nothing
 * while the setting is 0.
 */
enum { FIRST_VERSION = 1, VERSION_STEP = 2 };

/* Gives each new key the mark that distinguishes it from other keys of the same id and version. */
static int mark_keys(struct keyring *ring, struct failure *failure) {
  for (size_t i = 0; i < ring->count; i++)
    if (ring->keys[i].mark[0] == 0 && random_hex(ring->keys[i].mark, KEYRING_MARK_LENGTH) != 0)
      return failure_set(failure, "the system does not return random numbers");
  return 0;
}

static int add_key(struct keyring *ring, uint32_t id, uint64_t version, struct failure *failure) {
  unsigned char *bytes = secret_new(KEYRING_MAX_KEY_BYTES);
  int result;

  if (bytes == NULL) return failure_set(failure, "not enough memory");
  if (version >= UINT32_MAX) {
    result = failure_set(failure, "key %" PRIu32 " has no versions left", id);
  } else if ((result = secret_random(bytes, KEYRING_MAX_KEY_BYTES)) != 0) {
    failure_set(failure, "the system does not return random numbers");
  } else {
    const struct data_key key = {.id = id, .version = (uint32_t)version, .length = KEYRING_MAX_KEY_BYTES, .created = (int64_t)time(NULL)};
    result = keyring_add(ring, &key, bytes);
    if (result != 0) failure_set(failure, "the key file is full: it can contain %d versions of keys", KEYRING_MAX_KEYS);
  }
  secret_free(bytes, KEYRING_MAX_KEY_BYTES);
  return result;
}

/*
 * Above every other version of the id, also those that no longer encrypt: InnoDB re-encrypts only
 * what has a lower version than the latest.
 */
static int new_version(struct keyring *ring, uint32_t id, struct failure *failure) {
  const struct data_key *highest = keyring_highest(ring, id);

  return add_key(ring, id, highest == NULL ? FIRST_VERSION : (uint64_t)highest->version + VERSION_STEP, failure);
}

/* Wraps the keyring, proves that it can be unwrapped, writes it. */
static int write_down(struct store *store, struct keyring *ring, struct failure *failure) {
  unsigned char iv[KEY_FILE_IV];
  unsigned char *wrapped = malloc(ring->size + KEY_FILE_TAG);
  unsigned char *proof = secret_new(ring->size);
  const bool marked = mark_keys(ring, failure) == 0;
  char *head;
  char *text = NULL;
  size_t head_length;
  size_t length;
  int result = -1;

  ring->sequence = ++store->sequence;
  head = marked ? key_file_head(ring, &head_length) : NULL;
  if (!marked) result = -1;
  else if (wrapped == NULL || proof == NULL || head == NULL) failure_set(failure, "not enough memory");
  else if (secret_random(iv, sizeof iv) != 0) failure_set(failure, "the system does not return random numbers");
  else if (token_wrap(&store->token, ring->master, iv, head, head_length, ring->bytes, ring->size, wrapped, failure) == 0 &&
           token_unwrap(&store->token, ring->master, iv, head, head_length, wrapped, proof, ring->size, failure) == 0) {
    if (memcmp(proof, ring->bytes, ring->size) != 0) failure_set(failure, "the unwrapped data keys differ from those that were wrapped");
    else if ((text = key_file_text(head, iv, wrapped, ring->size + KEY_FILE_TAG, &length)) == NULL) failure_set(failure, "not enough memory");
    else result = key_file_store(store->path, text, length, failure);
  }
  /* After the key file, so that it always contains the keys that the data directory names. */
  if (result == 0) result = binding_write(BINDING_PATH, ring, failure);
  secret_free(proof, ring->size);
  free(wrapped);
  free(head);
  free(text);
  return result;
}

static struct keyring *written(struct store *store, struct keyring *ring, int result, struct failure *failure) {
  if (result == 0 && write_down(store, ring, failure) == 0) return ring;
  keyring_free(ring);
  return NULL;
}

struct keyring *store_rotate_master(struct store *store, struct failure *failure) {
  struct keyring *ring = keyring_copy(store->ring);

  if (ring == NULL) return no_memory(failure);
  return written(store, ring, new_master(store, ring, failure), failure);
}

struct keyring *store_rotate_data(struct store *store, const uint32_t *ids, size_t count, struct failure *failure) {
  struct keyring *ring = keyring_copy(store->ring);
  int result = 0;

  if (ring == NULL) return no_memory(failure);
  for (size_t i = 0; i < count && result == 0; i++) {
    if (keyring_latest(store->ring, ids[i]) == NULL) result = failure_set(failure, "key %" PRIu32 " does not exist", ids[i]);
    else result = new_version(ring, ids[i], failure);
  }
  for (size_t i = 0; count == 0 && i < store->ring->count && result == 0; i++) {
    uint32_t id = store->ring->keys[i].id;
    if (i == 0 || store->ring->keys[i - 1].id != id) result = new_version(ring, id, failure);
  }
  return written(store, ring, result, failure);
}

struct keyring *store_create_data(struct store *store, uint32_t id, struct failure *failure) {
  struct keyring *ring = keyring_copy(store->ring);
  int result;

  if (ring == NULL) return no_memory(failure);
  if (keyring_latest(ring, id) != NULL) result = failure_set(failure, "key %" PRIu32 " already exists", id);
  else result = new_version(ring, id, failure);
  return written(store, ring, result, failure);
}

/* Unwraps the keys of a file into its keyring, and returns that keyring. */
static struct keyring *unwrapped(struct store *store, struct key_file *file, struct failure *failure) {
  struct keyring *ring = file->ring;
  int result = token_unwrap(&store->token, ring->master, file->iv, file->text, file->head_length, file->wrapped, ring->bytes, ring->size, failure);

  if (result == 0) file->ring = NULL;
  key_file_free(file);
  return result == 0 ? ring : NULL;
}

struct keyring *store_reread(struct store *store, struct failure *failure) {
  struct key_file file;
  struct failure remark;

  if (key_file_load(store->path, &file, &remark, failure) != KEY_FILE_FOUND) return NULL;
  if (file.ring->sequence > store->ring->sequence) return unwrapped(store, &file, failure);
  key_file_free(&file);
  failure_set(failure, "the key file is unchanged");
  return NULL;
}

/* MariaDB's own data are under key 1, temporary files under key 2. */
static struct keyring *initial(struct store *store, const char *import, struct failure *failure) {
  struct keyring *ring = keyring_new();
  int result;

  if (ring == NULL) return no_memory(failure);
  if (*import != 0) result = import_keys(import, ring, failure);
  else {
    result = new_version(ring, 1, failure);
    if (result == 0) result = new_version(ring, 2, failure);
  }
  if (result == 0 && random_hex(ring->file_id, KEYRING_FILE_ID_LENGTH) != 0)
    result = failure_set(failure, "the system does not return random numbers");
  if (result == 0) result = new_master(store, ring, failure);
  return written(store, ring, result, failure);
}

/*
 * Versions in a key file of format 1 started at a random number, or at 1 if the key was imported
 * from file_key_management. A version that started at a random number continues to decrypt, and the
 * id gets a small version for new data. An imported key that was rotated had its copy in a file: it
 * does not encrypt again, so the small version is not 1 but 3.
 */
static struct keyring *with_small_versions(struct store *store, struct failure *failure) {
  struct keyring *ring = keyring_copy(store->ring);
  int result = 0;

  if (ring == NULL) return no_memory(failure);
  for (size_t i = 0; i < store->ring->count && result == 0; i++) {
    const struct data_key *key = &store->ring->keys[i];
    uint32_t small = FIRST_VERSION;
    const bool last = i + 1 == store->ring->count || store->ring->keys[i + 1].id != key->id;
    if (key->version == FIRST_VERSION) continue;
    keyring_retire(ring, key->id, key->version);
    if (!last) continue;
    while (keyring_find(ring, key->id, small) != NULL) small += VERSION_STEP;
    result = add_key(ring, key->id, small, failure);
  }
  return written(store, ring, result, failure);
}

/* A file that cannot be rewritten now can still be used, and is rewritten at the next start. */
static void migrate(struct store *store, struct failure *remark) {
  struct failure why;
  struct keyring *ring = with_small_versions(store, &why);

  if (ring == NULL) {
    failure_set(remark, "the key file has the old format and could not be rewritten, which the next start tries again: %.300s", why.text);
    return;
  }
  keyring_free(store->ring);
  store->ring = ring;
  failure_set(remark, "the key file was rewritten in the current format, with small version numbers for new data: back it up");
}

/*
 * The server may have changed its keys after this program had read the key file and before it read
 * which keys the data directory uses.
 */
static enum binding_found check_again(struct store *store, struct failure *failure) {
  struct failure why;
  struct keyring *ring = store_reread(store, &why);

  if (ring == NULL) return BINDING_REFUSED;
  keyring_free(store->ring);
  store->ring = ring;
  return binding_check(BINDING_PATH, store->path, ring, failure);
}

static int load(struct store *store, const struct store_settings *settings, struct failure *remark, struct failure *failure) {
  struct key_file file;
  enum binding_found found;
  bool old_format;

  switch (key_file_load(store->path, &file, remark, failure)) {
    case KEY_FILE_UNUSABLE:
      return -1;
    case KEY_FILE_ABSENT:
      if (settings->initialize && !store->reads_only) {
        if (binding_check(BINDING_PATH, store->path, NULL, failure) == BINDING_REFUSED) return -1;
        store->ring = initial(store, settings->import, failure);
        return store->ring == NULL ? -1 : 0;
      }
      return failure_set(failure,
                         "there is no key file %s. If this database has encrypted data, restore the file from a backup. Only a database that "
                         "you encrypt for the first time starts with --dke-key-management-initialize",
                         store->path);
    case KEY_FILE_FOUND:
      break;
  }
  store->sequence = file.ring->sequence;
  if (*remark->text != 0 && !store->reads_only && key_file_store(store->path, file.text, file.length, failure) != 0) {
    key_file_free(&file);
    return -1;
  }
  old_format = file.format == 1;
  store->ring = unwrapped(store, &file, failure);
  if (store->ring == NULL) return -1;
  /*
   * A backup program also works in a data directory: that of the server, or of the backup that it
   * prepares.
   */
  found = binding_check(BINDING_PATH, store->path, store->ring, failure);
  if (found == BINDING_REFUSED && store->reads_only) found = check_again(store, failure);
  if (found == BINDING_REFUSED) return -1;
  if (store->reads_only) return 0;
  if (old_format) migrate(store, remark);
  return found == BINDING_FITS ? 0 : binding_write(BINDING_PATH, store->ring, failure);
}

int store_open(struct store *store, const struct store_settings *settings, struct failure *remark, struct failure *failure) {
  memset(store, 0, sizeof *store);
  store->lock = -1;
  store->path = settings->path;
  store->label = settings->label;
  store->reads_only = settings->reads_only;
  remark->text[0] = 0;
  if (*store->path != '/') return failure_set(failure, "dke_key_management_key_file must be set, to an absolute path outside the data directory");
  if (*store->label == 0) return failure_set(failure, "dke_key_management_master_key_label must not be empty");
  if (!store->reads_only && (store->lock = key_file_lock(store->path, failure)) < 0) return -1;
  if (token_open(&store->token, settings->library, settings->config, failure) == 0 && load(store, settings, remark, failure) == 0) return 0;
  store_close(store);
  return -1;
}

void store_close(struct store *store) {
  keyring_free(store->ring);
  store->ring = NULL;
  token_close(&store->token);
  if (store->lock >= 0) close(store->lock);
  store->lock = -1;
}
