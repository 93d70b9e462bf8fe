/*
 * Any bytes as a reply: every reader of the library, over caller's memory that is exactly as large
 * as stated.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "message/argument_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const CK_ATTRIBUTE_TYPE types[] = {CKA_LABEL, CKA_TOKEN, CKA_VALUE_LEN, CKA_START_DATE, CKA_ALLOWED_MECHANISMS};
  CK_ATTRIBUTE attributes[7];
  CK_ATTRIBUTE *nested;
  struct buffer buffer;
  CK_ULONG length;
  size_t room;

  if (size < 2 || size > BUFFER_MAX) return 0;
  room = data[1];
  buffer_open(&buffer);
  buffer_put_raw(&buffer, data + 2, size - 2);
  switch (data[0] % 7) {
    case 0: {
      unsigned char *bytes = malloc(room + 1);
      length = room;
      codec_get_bytes(&buffer, data[0] & 0x80 ? bytes : NULL, &length);
      free(bytes);
      break;
    }
    case 1: {
      unsigned char *bytes = malloc(room + 1);
      codec_get_exactly(&buffer, bytes, room);
      free(bytes);
      break;
    }
    case 2: {
      CK_ULONG *list = malloc((room + 1) * sizeof *list);
      length = room;
      codec_get_list(&buffer, data[0] & 0x80 ? list : NULL, room, &length);
      free(list);
      break;
    }
    case 3: {
      CK_UTF8CHAR text[32];
      CK_VERSION version;
      codec_get_text(&buffer, text, sizeof text);
      codec_get_version(&buffer, &version);
      break;
    }
    case 4: {
      unsigned char *iv = malloc(room + 1);
      unsigned char *tag = malloc(room / 2 + 1);
      const struct message_place place = {iv, room, data[0] & 0x80 ? tag : NULL, room / 2};
      codec_get_message(&buffer, &place, true);
      free(iv);
      free(tag);
      break;
    }
    default: {
      size_t count = sizeof types / sizeof *types;
      nested = calloc(2, sizeof *nested);
      for (size_t i = 0; i < count; i++) attributes[i] = (CK_ATTRIBUTE){types[i], malloc(room + 1), room};
      nested[0] = (CK_ATTRIBUTE){CKA_LABEL, malloc(room + 1), room};
      nested[1] = (CK_ATTRIBUTE){CKA_TOKEN, NULL, 0};
      attributes[count] = (CK_ATTRIBUTE){CKA_WRAP_TEMPLATE, nested, 2 * sizeof *nested};
      attributes[count + 1] = (CK_ATTRIBUTE){CKA_ID, NULL, 0};
      codec_get_answers(&buffer, attributes, count + 2);
      for (size_t i = 0; i < count; i++) free(attributes[i].pValue);
      free(nested[0].pValue);
      free(nested);
      break;
    }
  }
  buffer_close(&buffer);
  return 0;
}
