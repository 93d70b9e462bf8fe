/* Cryptoki's arguments as bytes; see argument_codec.h. */
#include "message/argument_codec.h"

#include <stdlib.h>
#include <string.h>

enum {
  DEPTH_MAX = 8,           /* templates in templates, as in p11-kit */
  /* In one template, with those of the templates in it: one may contain itself */
  ATTRIBUTES_MAX = 4096,
  LIST_MAX = 1 << 16       /* handles, slots or mechanisms in one answer: half a frame */
};

static const CK_ULONG unavailable = CK_UNAVAILABLE_INFORMATION;

CK_ULONG codec_load(const void *from) {
  CK_ULONG value;
  memcpy(&value, from, sizeof value);
  return value;
}

void codec_store(void *to, CK_ULONG value) { memcpy(to, &value, sizeof value); }

/*
 * --- input ---------------------------------------------------------------------------------------
 */

CK_RV codec_put_bytes(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG length) {
  static const unsigned char nothing[1];

  if (bytes == NULL && length != 0) return CKR_ARGUMENTS_BAD;
  if (length > BUFFER_MAX) return CKR_DATA_LEN_RANGE;
  buffer_put_u8(buffer, 1);
  buffer_put_array(buffer, bytes == NULL ? nothing : bytes, length);
  return CKR_OK;
}

static CK_RV put_attributes(struct buffer *buffer, const unsigned char *attributes, CK_ULONG count, CK_ULONG *left, int depth);

static CK_RV put_attribute(struct buffer *buffer, const CK_ATTRIBUTE *attribute, CK_ULONG *left, int depth) {
  const CK_ULONG length = attribute->ulValueLen;
  const unsigned char *value = attribute->pValue;
  CK_ULONG number;

  if (attribute->type > UINT32_MAX) return CKR_ATTRIBUTE_TYPE_INVALID;
  buffer_put_u32(buffer, (uint32_t)attribute->type);
  if (length == unavailable) {
    buffer_put_u8(buffer, 0);
    return CKR_OK;
  }
  if (length > BUFFER_MAX || (value == NULL && length != 0)) return CKR_ATTRIBUTE_VALUE_INVALID;
  buffer_put_u8(buffer, 1);
  buffer_put_u32(buffer, (uint32_t)length);
  switch (codec_attribute_kind(attribute->type)) {
    case KIND_BOOLEAN:
      if (length != 1) return CKR_ATTRIBUTE_VALUE_INVALID;
      buffer_put_u8(buffer, *value != 0);
      return CKR_OK;
    case KIND_ULONG:
      if (length != sizeof number) return CKR_ATTRIBUTE_VALUE_INVALID;
      memcpy(&number, value, sizeof number);
      buffer_put_u64(buffer, number);
      return CKR_OK;
    case KIND_DATE:
      if (length != 0 && length != sizeof(CK_DATE)) return CKR_ATTRIBUTE_VALUE_INVALID;
      buffer_put_array(buffer, value, length);
      return CKR_OK;
    case KIND_MECHANISMS:
      if (length % sizeof number != 0) return CKR_ATTRIBUTE_VALUE_INVALID;
      buffer_put_u32(buffer, (uint32_t)(length / sizeof number));
      for (CK_ULONG at = 0; at < length; at += sizeof number) {
        memcpy(&number, value + at, sizeof number);
        buffer_put_u64(buffer, number);
      }
      return CKR_OK;
    case KIND_TEMPLATE:
      if (length % sizeof *attribute != 0 || depth >= DEPTH_MAX) return CKR_ATTRIBUTE_VALUE_INVALID;
      return put_attributes(buffer, value, length / sizeof *attribute, left, depth + 1);
    case KIND_BYTES:
      break;
  }
  buffer_put_array(buffer, value, length);
  return CKR_OK;
}

/** `*left`: how many there may still be. */
static CK_RV put_attributes(struct buffer *buffer, const unsigned char *attributes, CK_ULONG count, CK_ULONG *left, int depth) {
  CK_ATTRIBUTE attribute;
  CK_RV rv;

  if (count > *left) return CKR_ARGUMENTS_BAD;
  *left -= count;
  buffer_put_u32(buffer, (uint32_t)count);
  for (CK_ULONG i = 0; i < count; i++) {
    memcpy(&attribute, attributes + i * sizeof attribute, sizeof attribute);
    rv = put_attribute(buffer, &attribute, left, depth);
    if (rv != CKR_OK) return rv;
  }
  return CKR_OK;
}

CK_RV codec_put_template(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  CK_ULONG left = ATTRIBUTES_MAX;

  if (attributes == NULL && count != 0) return CKR_ARGUMENTS_BAD;
  return put_attributes(buffer, (const unsigned char *)attributes, count, &left, 0);
}

/*
 * --- output --------------------------------------------------------------------------------------
 */

CK_RV codec_put_room(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG_PTR length, enum dialect dialect) {
  CK_ULONG room;

  if (length == NULL) return CKR_ARGUMENTS_BAD;
  room = codec_load(length);
  if (bytes == NULL) {
    buffer_put_u32(buffer, 0);
  } else if (room == 0) {
    /*
     * Room for nothing is not the same as asking for the length; p11-kit 0.24 cannot say so, but
     * answers alike.
     */
    buffer_put_u32(buffer, dialect == DIALECT_P11KIT_24 ? 0 : BUFFER_NULL);
  } else {
    buffer_put_u32(buffer, room > BUFFER_MAX ? BUFFER_MAX : (uint32_t)room);
  }
  return CKR_OK;
}

CK_RV codec_put_list_room(struct buffer *buffer, const void *list, CK_ULONG count) {
  buffer_put_u32(buffer, list == NULL ? 0 : count > LIST_MAX ? LIST_MAX : (uint32_t)count);
  return CKR_OK;
}

static CK_RV put_queries(struct buffer *buffer, const unsigned char *attributes, CK_ULONG count, enum dialect dialect,
                         CK_ULONG *left, int depth) {
  CK_ATTRIBUTE attribute;
  CK_RV rv;

  if (count > *left || depth > DEPTH_MAX) return CKR_ARGUMENTS_BAD;
  *left -= count;
  buffer_put_u32(buffer, (uint32_t)count);
  for (CK_ULONG i = 0; i < count; i++) {
    memcpy(&attribute, attributes + i * sizeof attribute, sizeof attribute);
    if (attribute.type > UINT32_MAX) return CKR_ATTRIBUTE_TYPE_INVALID;
    buffer_put_u32(buffer, (uint32_t)attribute.type);
    if (attribute.pValue == NULL) {
      buffer_put_u32(buffer, 0);
      continue;
    }
    if (attribute.ulValueLen == 0) buffer_put_u32(buffer, dialect == DIALECT_OWN ? BUFFER_NULL : 0);
    else buffer_put_u32(buffer, attribute.ulValueLen > BUFFER_MAX ? BUFFER_MAX : (uint32_t)attribute.ulValueLen);
    if (dialect == DIALECT_P11KIT_24 || codec_attribute_kind(attribute.type) != KIND_TEMPLATE) continue;
    if (attribute.ulValueLen == 0 && dialect != DIALECT_OWN) continue;
    rv = put_queries(buffer, attribute.pValue, attribute.ulValueLen / sizeof attribute, dialect, left, depth + 1);
    if (rv != CKR_OK) return rv;
  }
  return CKR_OK;
}

CK_RV codec_put_query(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count, enum dialect dialect) {
  CK_ULONG left = ATTRIBUTES_MAX;

  if (attributes == NULL && count != 0) return CKR_ARGUMENTS_BAD;
  return put_queries(buffer, (const unsigned char *)attributes, count, dialect, &left, 0);
}

CK_RV codec_get_bytes(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG_PTR length) {
  const CK_ULONG room = codec_load(length);
  const unsigned char *from;
  size_t got;

  if (buffer_get_u8(buffer) == 0) {
    got = buffer_get_u32(buffer);
    if (buffer->failed) return CKR_DEVICE_ERROR;
    codec_store(length, got);
    return bytes == NULL ? CKR_OK : CKR_BUFFER_TOO_SMALL;
  }
  from = buffer_get_array(buffer, &got);
  if (buffer->failed) return CKR_DEVICE_ERROR;
  codec_store(length, got);
  if (bytes == NULL) return CKR_OK;
  if (got > room) return CKR_BUFFER_TOO_SMALL;
  if (got > 0) memcpy(bytes, from, got);
  return CKR_OK;
}

CK_RV codec_get_exactly(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG length) {
  const unsigned char *from = NULL;
  size_t got = 0;

  if (buffer_get_u8(buffer) != 0) from = buffer_get_array(buffer, &got);
  else got = buffer_get_u32(buffer);
  if (buffer->failed || got != length || (got > 0 && from == NULL)) return CKR_DEVICE_ERROR;
  if (got > 0) memcpy(bytes, from, got);
  return CKR_OK;
}

CK_RV codec_get_list(struct buffer *buffer, CK_ULONG_PTR list, CK_ULONG room, CK_ULONG_PTR count) {
  const bool present = buffer_get_u8(buffer) != 0;
  const uint32_t got = buffer_get_u32(buffer);

  if (buffer->failed) return CKR_DEVICE_ERROR;
  if (present && got > (buffer->length - buffer->at) / 8) return CKR_DEVICE_ERROR;
  codec_store(count, got);
  if (list == NULL) return CKR_OK;
  if (!present || got > room) return got == 0 ? CKR_OK : CKR_BUFFER_TOO_SMALL;
  for (uint32_t i = 0; i < got; i++) codec_store(list + i, buffer_get_u64(buffer));
  return CKR_OK;
}

CK_RV codec_get_result(struct buffer *buffer, CK_ULONG_PTR result) {
  const CK_ULONG value = buffer_get_u64(buffer);

  if (buffer->failed) return CKR_DEVICE_ERROR;
  codec_store(result, value);
  return CKR_OK;
}

CK_RV codec_get_message(struct buffer *buffer, const struct message_place *place, bool write) {
  size_t iv_length;
  size_t tag_length;
  const unsigned char *iv = buffer_get_array(buffer, &iv_length);
  const unsigned char *tag = buffer_get_array(buffer, &tag_length);

  if (buffer->failed || (iv != NULL && iv_length != place->iv_length) ||
      (tag != NULL && (place->tag == NULL || tag_length != place->tag_length)))
    return CKR_DEVICE_ERROR;
  if (write && iv != NULL && iv_length > 0) memcpy(place->iv, iv, iv_length);
  if (write && tag != NULL && tag_length > 0) memcpy(place->tag, tag, tag_length);
  return CKR_OK;
}

/**
 * Reads one value and copies it to `to` if that is not null and `room` suffices; its length in
 * memory goes to `length`.
 */
static CK_RV get_value(struct buffer *buffer, CK_ATTRIBUTE_TYPE type, unsigned char *to, CK_ULONG room, CK_ULONG told,
                       CK_ULONG *length, int depth);

/**
 * Reads one attribute into the caller's row. CKR_BUFFER_TOO_SMALL goes into `rv`, anything else is
 * returned.
 */
static CK_RV get_answer(struct buffer *buffer, unsigned char *row, CK_RV *rv, int depth) {
  CK_ATTRIBUTE attribute;
  CK_ULONG length;
  CK_ULONG told;
  CK_RV read;

  if (row != NULL) memcpy(&attribute, row, sizeof attribute);
  else attribute = (CK_ATTRIBUTE){0, NULL, 0};
  told = buffer_get_u32(buffer);
  /*
   * In a template it is the token that names the types. But only who has asked for a template has
   * rows there, with pointers to write to.
   */
  if (buffer->failed ||
      (row != NULL && told != attribute.type && (depth == 0 || codec_attribute_kind(told) == KIND_TEMPLATE)))
    return CKR_DEVICE_ERROR;
  attribute.type = told;
  if (buffer_get_u8(buffer) == 0) {
    attribute.ulValueLen = unavailable;
  } else {
    told = buffer_get_u32(buffer);
    read = get_value(buffer, attribute.type, attribute.pValue, attribute.ulValueLen, told, &length, depth);
    if (read == CKR_BUFFER_TOO_SMALL) {
      *rv = read;
      attribute.ulValueLen = unavailable;
    } else if (read != CKR_OK) {
      return read;
    } else {
      attribute.ulValueLen = length;
    }
  }
  if (buffer->failed) return CKR_DEVICE_ERROR;
  if (row != NULL) memcpy(row, &attribute, sizeof attribute);
  return CKR_OK;
}

static CK_RV get_value(struct buffer *buffer, CK_ATTRIBUTE_TYPE type, unsigned char *to, CK_ULONG room, CK_ULONG told,
                       CK_ULONG *length, int depth) {
  const unsigned char *from;
  unsigned char number[sizeof(CK_ULONG)];
  uint32_t count;
  size_t got;
  CK_RV rv = CKR_OK;
  CK_RV read;

  switch (codec_attribute_kind(type)) {
    case KIND_BOOLEAN:
      number[0] = (unsigned char)buffer_get_u8(buffer);
      from = number;
      got = 1;
      break;
    case KIND_ULONG:
      codec_store(number, buffer_get_u64(buffer));
      from = number;
      got = sizeof number;
      break;
    case KIND_MECHANISMS:
      count = buffer_get_u32(buffer);
      if (buffer->failed || count > (buffer->length - buffer->at) / 8) return CKR_DEVICE_ERROR;
      /* With the length alone, the list is empty. */
      *length = count == 0 ? told : count * sizeof(CK_ULONG);
      if (to == NULL) {
        buffer_take(buffer, (size_t)count * 8);
        return CKR_OK;
      }
      if (*length > room) {
        buffer_take(buffer, (size_t)count * 8);
        return CKR_BUFFER_TOO_SMALL;
      }
      for (uint32_t i = 0; i < count; i++)
        codec_store(to + i * sizeof(CK_ULONG), buffer_get_u64(buffer));
      return CKR_OK;
    case KIND_TEMPLATE:
      if (depth >= DEPTH_MAX) return CKR_DEVICE_ERROR;
      count = buffer_get_u32(buffer);
      if (buffer->failed || count > (buffer->length - buffer->at) / 5) return CKR_DEVICE_ERROR;
      *length = count == 0 ? told : count * sizeof(CK_ATTRIBUTE);
      if (to != NULL && *length > room) rv = CKR_BUFFER_TOO_SMALL;
      for (uint32_t i = 0; i < count; i++) {
        unsigned char *row = to == NULL || rv == CKR_BUFFER_TOO_SMALL ? NULL : to + i * sizeof(CK_ATTRIBUTE);
        CK_RV inner = CKR_OK;
        read = get_answer(buffer, row, &inner, depth + 1);
        if (read != CKR_OK) return read;
      }
      return rv;
    default:
      from = buffer_get_array(buffer, &got);
      if (from == NULL) got = told;
      break;
  }
  if (buffer->failed) return CKR_DEVICE_ERROR;
  *length = got;
  if (to == NULL) return CKR_OK;
  if (got > room) return CKR_BUFFER_TOO_SMALL;
  if (from == NULL && got > 0) return CKR_DEVICE_ERROR;
  if (got > 0) memcpy(to, from, got);
  return CKR_OK;
}

CK_RV codec_get_answers(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  CK_RV rv = CKR_OK;
  CK_RV told;

  if (buffer_get_u32(buffer) != count || buffer->failed) return CKR_DEVICE_ERROR;
  for (CK_ULONG i = 0; i < count; i++) {
    CK_RV read = get_answer(buffer, (unsigned char *)attributes + i * sizeof *attributes, &rv, 0);
    if (read != CKR_OK) return read;
  }
  told = buffer_get_u64(buffer);
  if (buffer->failed) return CKR_DEVICE_ERROR;
  return told == CKR_OK ? rv : told;
}

void codec_get_text(struct buffer *buffer, CK_UTF8CHAR *text, size_t length) {
  size_t got;
  const unsigned char *from = buffer_get_array(buffer, &got);

  if (from == NULL || got != length) buffer->failed = true;
  else memcpy(text, from, length);
}

void codec_get_version(struct buffer *buffer, CK_VERSION *version) {
  version->major = (CK_BYTE)buffer_get_u8(buffer);
  version->minor = (CK_BYTE)buffer_get_u8(buffer);
}
