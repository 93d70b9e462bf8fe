/*
 * The key file: the list of data keys, and their bytes wrapped by the master key, as one text
 * (FORMAT.md). This is the text and its storage on disk, complete or not at all, in two equal
 * files, one of which survives. Wrapping is done by the caller (plugin.c with token.c).
 */
#ifndef DKE_MARIADB_KEY_FILE_H
#define DKE_MARIADB_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "failure.h"
#include "keyring.h"

enum {
  KEY_FILE_IV = 12,
  KEY_FILE_TAG = 16,
  KEY_FILE_WRAPPED_MAX = KEYRING_MAX_KEYS * KEYRING_MAX_KEY_BYTES + KEY_FILE_TAG,
  KEY_FILE_TEXT_MAX = 256 * 1024,
};

/** The content of a key file. The keyring contains the keys, whose bytes are still wrapped. */
struct key_file {
  struct keyring *ring;
  char *text;         /* the whole text */
  size_t length;      /* of the text */
  size_t head_length; /* the text up to the wrapped keys: authenticated with them */
  int format;         /* 1 or 2; written files have format 2 */
  unsigned char iv[KEY_FILE_IV];
  unsigned char *wrapped; /* ciphertext and tag */
  size_t wrapped_length;
};

/**
 * Writes the head of the keyring's file, null-terminated, into a buffer to be freed; null without
 * memory.
 */
char *key_file_head(const struct keyring *ring, size_t *length);
/** Head, wrapped keys and checksum as one text to be freed; null without memory. */
char *key_file_text(const char *head, const unsigned char iv[KEY_FILE_IV], const unsigned char *wrapped, size_t wrapped_length,
                    size_t *length);
/** Reads a text. It is copied. */
int key_file_parse(const char *text, size_t length, struct key_file *file, struct failure *failure);
void key_file_free(struct key_file *file);

enum key_file_found { KEY_FILE_FOUND, KEY_FILE_ABSENT, KEY_FILE_UNUSABLE };
/**
 * Reads the file and its copy and uses the complete and newer one. `remark` names the fault of the
 * other, or is empty: writing both again repairs it. With KEY_FILE_UNUSABLE the failure names why
 * neither can be used.
 */
enum key_file_found key_file_load(const char *path, struct key_file *file, struct failure *remark, struct failure *failure);
/**
 * Writes the copy, then the file; each is synced to disk under another name before it is renamed.
 */
int key_file_store(const char *path, const char *text, size_t length, struct failure *failure);

/** Replaces one file, complete and on the disk. */
int key_file_replace(const char *path, const char *text, size_t length, struct failure *failure);
/** CRC-32 as in zlib and PNG. */
uint32_t key_file_checksum(const char *text, size_t length);

/**
 * Locks the file for this process until the descriptor is closed; -1 when another process has it.
 */
int key_file_lock(const char *path, struct failure *failure);

#endif
