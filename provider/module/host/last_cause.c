/* Why the last call of a thread failed; see last_cause.h. */
#include "host/last_cause.h"

#include <string.h>

static __thread struct {
  size_t length;
  char text[LAST_CAUSE_SIZE];
} last;

void last_cause_forget(void) { last.length = 0; }

void last_cause_set(const void *text, size_t length) {
  if (length > sizeof last.text) {
    length = sizeof last.text;
    /* Not within a character. */
    while (length > 0 && (((const unsigned char *)text)[length] & 0xc0) == 0x80) length--;
  }
  memcpy(last.text, text, length);
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)last.text[i] < ' ' || last.text[i] == 0x7f) last.text[i] = '?';
  last.length = length;
}

const char *last_cause_get(size_t *length) {
  *length = last.length;
  return last.text;
}

bool last_cause_take(struct buffer *reply, const unsigned char *signature, size_t length) {
  static const char explained[] = "uz";
  const unsigned char *line;
  size_t line_length;

  if (length != sizeof explained - 1 || memcmp(signature, explained, length) != 0) return false;
  line = buffer_get_array(reply, &line_length);
  if (reply->failed || line == NULL) return false;
  last_cause_set(line, line_length);
  return true;
}
