/* Why the last call of a thread failed, for the thread itself; vendor.h hands it out. */
#ifndef DKE_LAST_CAUSE_H
#define DKE_LAST_CAUSE_H

#include "message/buffer.h"

enum { LAST_CAUSE_SIZE = 600 };

/** At the beginning of each call. */
void last_cause_forget(void);
/**
 * Takes over at most LAST_CAUSE_SIZE bytes. What would break a line or move a terminal's cursor
 * becomes a question mark.
 */
void last_cause_set(const void *text, size_t length);
/**
 * The line of an error reply, behind its return value; `signature` is that of the reply. False when
 * it has none.
 */
bool last_cause_take(struct buffer *reply, const unsigned char *signature, size_t length);
/** The text, without an end. Valid until the next call of the thread. */
const char *last_cause_get(size_t *length);

#endif
