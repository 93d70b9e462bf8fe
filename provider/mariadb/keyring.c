#include "keyring.h"

#include <stdlib.h>
#include <string.h>

#include "secret.h"

/* The full size at once: 32 KiB of locked memory for any number of keys, without growing. */
enum { BYTES_MAX = KEYRING_MAX_KEYS * KEYRING_MAX_KEY_BYTES };

struct keyring *keyring_new(void) {
  struct keyring *ring = calloc(1, sizeof *ring);

  if (ring == NULL) return NULL;
  ring->keys = calloc(KEYRING_MAX_KEYS, sizeof *ring->keys);
  ring->bytes = secret_new(BYTES_MAX);
  if (ring->keys != NULL && ring->bytes != NULL) return ring;
  keyring_free(ring);
  return NULL;
}

void keyring_free(struct keyring *ring) {
  if (ring == NULL) return;
  secret_free(ring->bytes, BYTES_MAX);
  free(ring->keys);
  free(ring);
}

struct keyring *keyring_copy(const struct keyring *from) {
  struct keyring *ring = keyring_new();

  if (ring == NULL) return NULL;
  memcpy(ring->keys, from->keys, from->count * sizeof *from->keys);
  memcpy(ring->bytes, from->bytes, from->size);
  memcpy(ring->file_id, from->file_id, sizeof ring->file_id);
  memcpy(ring->master, from->master, sizeof ring->master);
  ring->count = from->count;
  ring->size = from->size;
  ring->sequence = from->sequence;
  return ring;
}

/* The index of the first key that is not before this one. */
static size_t place_of(const struct keyring *ring, uint32_t id, uint32_t version) {
  size_t low = 0;
  size_t high = ring->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct data_key *key = &ring->keys[middle];
    if (key->id < id || (key->id == id && key->version < version)) low = middle + 1;
    else high = middle;
  }
  return low;
}

int keyring_add(struct keyring *ring, const struct data_key *key, const unsigned char *bytes) {
  size_t length = key->length;
  size_t at = place_of(ring, key->id, key->version);
  size_t offset = at < ring->count ? ring->keys[at].offset : ring->size;

  if (ring->count == KEYRING_MAX_KEYS || (length != 16 && length != 24 && length != 32)) return -1;
  if (at < ring->count && ring->keys[at].id == key->id && ring->keys[at].version == key->version) return -1;
  memmove(ring->bytes + offset + length, ring->bytes + offset, ring->size - offset);
  memmove(&ring->keys[at + 1], &ring->keys[at], (ring->count - at) * sizeof *ring->keys);
  ring->keys[at] = *key;
  ring->keys[at].offset = (uint32_t)offset;
  ring->count++;
  ring->size += length;
  for (size_t i = at + 1; i < ring->count; i++) ring->keys[i].offset += (uint32_t)length;
  if (bytes != NULL) memcpy(ring->bytes + offset, bytes, length);
  return 0;
}

const struct data_key *keyring_find(const struct keyring *ring, uint32_t id, uint32_t version) {
  size_t at = place_of(ring, id, version);

  if (at == ring->count || ring->keys[at].id != id || ring->keys[at].version != version) return NULL;
  return &ring->keys[at];
}

const struct data_key *keyring_latest(const struct keyring *ring, uint32_t id) {
  /* No key has the highest version: to MariaDB, it means that there is none. */
  for (size_t at = place_of(ring, id, UINT32_MAX); at > 0 && ring->keys[at - 1].id == id; at--)
    if (!ring->keys[at - 1].retired) return &ring->keys[at - 1];
  return NULL;
}

const struct data_key *keyring_highest(const struct keyring *ring, uint32_t id) {
  size_t at = place_of(ring, id, UINT32_MAX);

  return at > 0 && ring->keys[at - 1].id == id ? &ring->keys[at - 1] : NULL;
}

void keyring_retire(struct keyring *ring, uint32_t id, uint32_t version) {
  size_t at = place_of(ring, id, version);

  if (at < ring->count && ring->keys[at].id == id && ring->keys[at].version == version) ring->keys[at].retired = true;
}

size_t keyring_ids(const struct keyring *ring) {
  size_t ids = 0;

  for (size_t i = 0; i < ring->count; i++) ids += i == 0 || ring->keys[i].id != ring->keys[i - 1].id;
  return ids;
}
