/* Sending requests, through the lane or the socket. */
#ifndef DKE_SENDER_H
#define DKE_SENDER_H

#include "transport.h"
#include "wire.h"

enum sent { SENT, NOT_SENT, BROKEN };

/** The next code of a call. Under `lock`. */
uint32_t sender_next_code(void);
void sender_write_header(struct buffer *request, uint32_t code);
/** Ends the sending of a call: from here on its thread can read for all. Under `lock`. */
void sender_finish(struct pending *call);
/** Sends both, or nothing when there was no room until the deadline. `call`: NULL on a connection that no other thread uses. */
enum sent sender_send_all(int fd, struct pending *call, const struct buffer *ahead, const struct buffer *request, int64_t deadline);
/** Sends a request on its connection, and before it what goes ahead of it. */
enum sent sender_send(struct pending *call, struct buffer *request, struct transport_ahead *ahead, uint32_t epoch, int64_t deadline);

#endif
