/*
 * The messages that carry one call with more data than fits in a message: the caller's data and
 * result, which may overlap, the announcement of a call, and its parts. Only large_data.c uses
 * this.
 */
#ifndef DKE_PARTS_H
#define DKE_PARTS_H

#include "call/large_data.h"

struct message {
  bool is; /* of the message-based functions */
  CK_VOID_PTR parameter;
  CK_ULONG parameter_length;
  CK_BYTE_PTR associated;
  CK_ULONG associated_length;
  CK_FLAGS flags; /* of the last part */
};

struct large {
  int cancellation; /* whether the thread could be cancelled before: not in the middle of a call */
  CK_SESSION_HANDLE session;
  const unsigned char *data; /* the caller's, or `copy` */
  CK_ULONG length;
  unsigned char *out; /* NULL when parts have no result */
  CK_ULONG room;
  CK_ULONG written;
  CK_ULONG told; /* the length that came in place of bytes */
  uint32_t only; /* the connection of all parts; 0 for any */
  bool lost;     /* it has ended */
  bool broken;   /* it failed here, and the agent does not know */
  unsigned char *copy; /* of data that the result is written over */
  bool without_copy;   /* there was no memory for it */
  struct message message;
};

/**
 * The thread cannot be cancelled until parts_close. Data that the result may be written over is
 * copied.
 */
void parts_open(struct large *large, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out,
                CK_ULONG_PTR out_length);
CK_RV parts_close(const struct large *large, CK_RV rv);
CK_ULONG parts_least(CK_ULONG a, CK_ULONG b);

/* One message. */
bool parts_begin(struct call *call, const struct large *large, const struct call_row *row);
CK_RV parts_end(struct call *call, struct large *large);
void parts_put_parameter(struct call *call, const struct large *large, enum tag_use tag);
/** Whether the call answers the IV and tag of a message. */
bool parts_is_sealing(const struct call_row *row);

/** Data from `from` on, as one message of its own; the tag of a message goes with its last part. */
CK_RV parts_send_one(struct large *large, const struct call_row *row, CK_ULONG from, CK_ULONG length, CK_FLAGS flags);
/** All of the data, part by part. The end of a message is sent without data too. */
CK_RV parts_send_all(struct large *large, const struct call_row *row);
/**
 * The call itself, with its data's length in place of the data: whether it will do, and whether its
 * result fits.
 */
CK_RV parts_announce(struct large *large, const struct call_row *row, CK_BYTE_PTR data, CK_ULONG_PTR out_length);
/** What the standard's own way of calling in parts ends with. */
CK_RV parts_send_last(struct large *large, const struct call_row *row, unsigned char *out, CK_ULONG room);

#endif
