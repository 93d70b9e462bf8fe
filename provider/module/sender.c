/* Sending; see sender.h. */
#include "sender.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "leader.h"
#include "process.h"

enum { LOOK_AGAIN = 2 /* milliseconds, after which a sender whose socket is full checks whether another thread still reads */ };

/** Reads once for all calls while this one, the leader, is being sent. False when the connection can no longer be used. */
static bool read_while_sending(int fd, struct pending *call) {
  bool own = false;
  ssize_t got;

  if (!leader_hand_out(call, &own)) return false;
  got = recv(fd, wire.input + wire.input_to, wire.input_capacity - wire.input_to, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  wire.input_to += (size_t)got;
  /* An answer to a request that is not complete breaks the protocol. */
  return leader_hand_out(call, &own) && !own;
}

/**
 * Waits until the socket may take more of `call`, NULL on a connection that no other thread uses. An agent whose answers are not read stops
 * reading as well, so when no other thread reads, the sender does. False when the connection can no longer be used.
 */
static bool wait_to_send(int fd, struct pending *call, int left) {
  struct pollfd poller = {.fd = fd, .events = POLLOUT};
  struct lane *const lane = wire.lane;
  bool broken = false;
  bool own = false;

  if (call == NULL) {
    poll(&poller, 1, left);
    return true;
  }
  process_lock(&wire.lock);
  wire_lead_if_needed(call);
  process_unlock(&wire.lock);
  if (call->state != LEADING) {
    poll(&poller, 1, left < LOOK_AGAIN ? left : LOOK_AGAIN);
    return true;
  }
  if (lane != NULL) {
    lane_listen(lane, LANE_DEAF);
    leader_fetch(lane, call, &own, &broken);
    if (broken || own) return false;
  }
  poller.events |= POLLIN;
  if (poll(&poller, 1, left) <= 0 || (poller.revents & ~POLLOUT) == 0) return true;
  return read_while_sending(fd, call);
}

/** Sends both, or nothing when there was no room until the deadline. `call`: as in wait_to_send. */
enum sent sender_send_all(int fd, struct pending *call, const struct buffer *ahead, const struct buffer *request, int64_t deadline) {
  const size_t first = ahead == NULL ? 0 : ahead->length;
  size_t at = 0;

  while (at < first + request->length) {
    ssize_t sent;
    if (at < first) {
      struct iovec parts[2] = {{ahead->data + at, first - at}, {request->data, request->length}};
      struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
      sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      sent = send(fd, request->data + (at - first), request->length - (at - first), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (sent > 0) {
      at += (size_t)sent;
    } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      int left = process_until(deadline);
      if (left == 0) return at == 0 ? NOT_SENT : BROKEN;
      if (!wait_to_send(fd, call, left)) return BROKEN;
    } else if (sent == 0 || errno != EINTR) {
      return BROKEN;
    }
  }
  return SENT;
}

void sender_write_header(struct buffer *request, uint32_t code) {
  buffer_poke_u32(request->data, code);
  buffer_poke_u32(request->data + 4, 0);
  buffer_poke_u32(request->data + 8, (uint32_t)(request->length - TRANSPORT_HEADER));
}

uint32_t sender_next_code(void) {
  wire.last_code++;
  if (wire.last_code == 0) wire.last_code++;
  return wire.last_code;
}

static void write_codes(struct buffer *frames) {
  if (frames->length == 0) return;
  process_lock(&wire.lock);
  for (size_t at = 0; at < frames->length; at += TRANSPORT_HEADER + buffer_peek_u32(frames->data + at + 8))
    buffer_poke_u32(frames->data + at, sender_next_code());
  process_unlock(&wire.lock);
}

/** An empty frame. When the socket takes none, there is something in it that wakes the agent as well. */
static void ring(void) {
  static const unsigned char empty[TRANSPORT_HEADER];
  const ssize_t sent = send(wire.fd, empty, sizeof empty, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}

/** Ends the sending of a call: from here on its thread can read for all. Under `lock`. */
void sender_finish(struct pending *call) {
  call->sending = false;
  wire_lead_if_needed(call);
}

/** Whether a call, whose message has this length, takes the lane: nothing else is under way that it could overtake. If so, it counts
 * as sent, because putting it there takes no time. */
static bool takes_lane(struct pending *call, size_t length) {
  bool alone;

  if (wire.lane == NULL || call->ahead_sent || !lane_free(wire.lane, length)) return false;
  process_lock(&wire.lock);
  alone = wire.first == wire.last && !wire.unanswered;
  if (alone) sender_finish(call);
  process_unlock(&wire.lock);
  return alone;
}

/** Sends what goes ahead of a request, in pieces, but for the last one: that stays in `ahead->frames` and leaves with the request. */
static enum sent send_ahead(struct pending *call, struct transport_ahead *ahead, int64_t deadline) {
  for (;;) {
    const bool more = ahead->take(ahead->context, &ahead->frames);
    enum sent sent;

    /* Then the last frame may be half written. */
    if (ahead->frames.failed) return NOT_SENT;
    write_codes(&ahead->frames);
    if (!more) return SENT;
    sent = sender_send_all(wire.fd, call, NULL, &ahead->frames, deadline);
    if (sent == SENT) call->ahead_sent = true;
    if (sent != SENT) return sent;
    buffer_reset(&ahead->frames);
  }
}

enum sent sender_send(struct pending *call, struct buffer *request, struct transport_ahead *ahead, uint32_t epoch,
                              int64_t deadline) {
  enum sent sent = BROKEN;

  if (!process_lock_until(&wire.write_lock, deadline)) return NOT_SENT;
  if (wire.fd >= 0 && wire.epoch == epoch) {
    const struct buffer *frames = NULL;
    sent = ahead == NULL ? SENT : send_ahead(call, ahead, deadline);
    if (ahead != NULL && ahead->frames.length > 0) frames = &ahead->frames;
    if (sent != SENT) {
      /* nothing of the request is under way */
    } else if (takes_lane(call, request->length + (frames == NULL ? 0 : frames->length))) {
      lane_listen(wire.lane, LANE_LISTENING); /* this thread will read, and the answer may arrive at once */
      call->in_lane = true;
      call->bell = lane_bell(wire.lane);
      if (!lane_ask(wire.lane, frames, request)) ring();
    } else {
      sent = sender_send_all(wire.fd, call, frames, request, deadline);
    }
  }
  process_unlock(&wire.write_lock);
  return sent;
}
