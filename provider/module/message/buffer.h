/*
 * A message being written or read. Failing is sticky: put or get ten fields, then ask `failed`
 * once. Nothing grows beyond BUFFER_MAX, so no length from the wire or from the caller reaches
 * malloc unchecked. Contents are wiped on close, because PINs and plaintext pass through here.
 */
#ifndef DKE_BUFFER_H
#define DKE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  BUFFER_MAX = 1 << 20, /* the largest frame body either side accepts */
  BUFFER_SMALL = 640    /* what hot calls need, on the caller's stack */
};

/** The length of an array that means a null pointer. */
#define BUFFER_NULL 0xffffffffu

struct buffer {
  unsigned char *data;
  size_t length;
  size_t capacity;
  size_t at; /* where reading continues */
  bool failed;
  unsigned char small[BUFFER_SMALL];
};

void buffer_open(struct buffer *buffer);
void buffer_close(struct buffer *buffer);
/** Empties it for another message, and forgets a failure. */
void buffer_reset(struct buffer *buffer);
void buffer_wipe(void *memory, size_t length);

/** Room for `length` more bytes at the end, counted as written; NULL when it failed. */
unsigned char *buffer_extend(struct buffer *buffer, size_t length);
void buffer_put_u8(struct buffer *buffer, unsigned value);
void buffer_put_u32(struct buffer *buffer, uint32_t value);
void buffer_put_u64(struct buffer *buffer, uint64_t value);
void buffer_put_raw(struct buffer *buffer, const void *bytes, size_t length);
/** A length and bytes; a null pointer is written as such. */
void buffer_put_array(struct buffer *buffer, const void *bytes, size_t length);
void buffer_put_text(struct buffer *buffer, const char *text);

/** The next `length` bytes; NULL when there are not as many. */
const unsigned char *buffer_take(struct buffer *buffer, size_t length);
unsigned buffer_get_u8(struct buffer *buffer);
uint32_t buffer_get_u32(struct buffer *buffer);
uint64_t buffer_get_u64(struct buffer *buffer);
/** Points at an array inside the buffer. A null array gives NULL and length 0. */
const unsigned char *buffer_get_array(struct buffer *buffer, size_t *length);

uint32_t buffer_peek_u32(const unsigned char *bytes);
void buffer_poke_u32(unsigned char *bytes, uint32_t value);

#endif
