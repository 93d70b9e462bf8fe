/* Messages in memory: big-endian numbers, length-prefixed arrays. See buffer.h. */
#include "message/buffer.h"

#include <stdlib.h>
#include <string.h>

void buffer_open(struct buffer *buffer) {
  buffer->data = buffer->small;
  buffer->length = 0;
  buffer->capacity = sizeof buffer->small;
  buffer->at = 0;
  buffer->failed = false;
}

void buffer_wipe(void *memory, size_t length) {
  if (length > 0) explicit_bzero(memory, length);
}

void buffer_reset(struct buffer *buffer) {
  buffer_wipe(buffer->data, buffer->length);
  buffer->length = 0;
  buffer->at = 0;
  buffer->failed = false;
}

void buffer_close(struct buffer *buffer) {
  buffer_wipe(buffer->data, buffer->length);
  if (buffer->data != buffer->small) free(buffer->data);
  buffer_open(buffer);
}

static bool grow(struct buffer *buffer, size_t length) {
  size_t wanted;
  unsigned char *data;

  if (buffer->failed) return false;
  if (length > BUFFER_MAX || buffer->length > BUFFER_MAX - length) {
    buffer->failed = true;
    return false;
  }
  wanted = buffer->length + length;
  if (wanted <= buffer->capacity) return true;
  if (wanted < buffer->capacity * 2) wanted = buffer->capacity * 2;
  if (wanted > BUFFER_MAX) wanted = BUFFER_MAX;
  /* Not realloc: it would leave a copy of the contents behind. */
  data = malloc(wanted);
  if (data == NULL) {
    buffer->failed = true;
    return false;
  }
  memcpy(data, buffer->data, buffer->length);
  buffer_wipe(buffer->data, buffer->length);
  if (buffer->data != buffer->small) free(buffer->data);
  buffer->data = data;
  buffer->capacity = wanted;
  return true;
}

unsigned char *buffer_extend(struct buffer *buffer, size_t length) {
  unsigned char *end;

  if (!grow(buffer, length)) return NULL;
  end = buffer->data + buffer->length;
  buffer->length += length;
  return end;
}

uint32_t buffer_peek_u32(const unsigned char *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3];
}

void buffer_poke_u32(unsigned char *bytes, uint32_t value) {
  bytes[0] = (unsigned char)(value >> 24);
  bytes[1] = (unsigned char)(value >> 16);
  bytes[2] = (unsigned char)(value >> 8);
  bytes[3] = (unsigned char)value;
}

void buffer_put_u8(struct buffer *buffer, unsigned value) {
  unsigned char *end = buffer_extend(buffer, 1);
  if (end != NULL) *end = (unsigned char)value;
}

void buffer_put_u32(struct buffer *buffer, uint32_t value) {
  unsigned char *end = buffer_extend(buffer, 4);
  if (end != NULL) buffer_poke_u32(end, value);
}

void buffer_put_u64(struct buffer *buffer, uint64_t value) {
  unsigned char *end = buffer_extend(buffer, 8);
  if (end == NULL) return;
  buffer_poke_u32(end, (uint32_t)(value >> 32));
  buffer_poke_u32(end + 4, (uint32_t)value);
}

void buffer_put_raw(struct buffer *buffer, const void *bytes, size_t length) {
  unsigned char *end = buffer_extend(buffer, length);
  if (end != NULL && length > 0) memcpy(end, bytes, length);
}

void buffer_put_array(struct buffer *buffer, const void *bytes, size_t length) {
  if (bytes == NULL) {
    buffer_put_u32(buffer, BUFFER_NULL);
    return;
  }
  if (length > BUFFER_MAX) {
    buffer->failed = true;
    return;
  }
  buffer_put_u32(buffer, (uint32_t)length);
  buffer_put_raw(buffer, bytes, length);
}

void buffer_put_text(struct buffer *buffer, const char *text) { buffer_put_raw(buffer, text, strlen(text)); }

const unsigned char *buffer_take(struct buffer *buffer, size_t length) {
  const unsigned char *from;

  if (buffer->failed || length > buffer->length - buffer->at) {
    buffer->failed = true;
    return NULL;
  }
  from = buffer->data + buffer->at;
  buffer->at += length;
  return from;
}

unsigned buffer_get_u8(struct buffer *buffer) {
  const unsigned char *from = buffer_take(buffer, 1);
  return from == NULL ? 0 : *from;
}

uint32_t buffer_get_u32(struct buffer *buffer) {
  const unsigned char *from = buffer_take(buffer, 4);
  return from == NULL ? 0 : buffer_peek_u32(from);
}

uint64_t buffer_get_u64(struct buffer *buffer) {
  const unsigned char *from = buffer_take(buffer, 8);
  return from == NULL ? 0 : (uint64_t)buffer_peek_u32(from) << 32 | buffer_peek_u32(from + 4);
}

const unsigned char *buffer_get_array(struct buffer *buffer, size_t *length) {
  uint32_t told = buffer_get_u32(buffer);
  const unsigned char *from;

  *length = 0;
  if (buffer->failed || told == BUFFER_NULL) return NULL;
  from = buffer_take(buffer, told);
  if (from != NULL) *length = told;
  return from;
}
