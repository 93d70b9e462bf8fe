/*
 * The connection in use, and sending on it through the lane or the socket; see transport.h.
 * Connecting is connect.c's business.
 */
#include "connection/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "connection/leader.h"
#include "connection/wire.h"
#include "host/descriptor.h"
#include "host/process.h"

enum sent { SENT, NOT_SENT, BROKEN };

/**
 * The connection in use: a process has one, and the calls of PKCS#11 name none. All below are given
 * it.
 */
static struct wire connection = {.fd = -1};

/*
 * --- sending -------------------------------------------------------------------------------------
 */

enum { LOOK_AGAIN = 2 /* milliseconds, after which a sender whose socket is full checks whether another thread still reads */ };

/**
 * Reads once for all calls while this one, the leader, is being sent. False when the connection can
 * no longer be used.
 */
static bool read_while_sending(struct wire *wire, int fd, struct pending *call) {
  bool own = false;
  ssize_t got;

  if (!leader_hand_out(wire, call, &own)) return false;
  got = descriptor_receive(fd, wire->input + wire->input_to, wire->input_capacity - wire->input_to);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  wire->input_to += (size_t)got;
  /* An answer to a request that is not complete breaks the protocol. */
  return leader_hand_out(wire, call, &own) && !own;
}

/**
 * Waits until the socket may take more of `call`. It and `wire` are NULL on a connection that no
 * other thread uses. An agent whose answers are not read stops reading as well, so when no other
 * thread reads, the sender does. False when the connection can no longer be used.
 */
static bool wait_to_send(struct wire *wire, int fd, struct pending *call, int left) {
  struct lane *lane;
  bool broken = false;
  bool own = false;
  short what;

  if (call == NULL) return descriptor_poll(fd, POLLOUT, left) != POLLNVAL;
  process_lock(&wire->lock);
  wire_lead_if_needed(wire, call);
  process_unlock(&wire->lock);
  if (call->state != LEADING) return descriptor_poll(fd, POLLOUT, left < LOOK_AGAIN ? left : LOOK_AGAIN) != POLLNVAL;
  lane = wire->lane;
  if (lane != NULL) {
    lane_listen(lane, LANE_DEAF);
    leader_fetch(wire, lane, call, &own, &broken);
    if (broken || own) return false;
  }
  what = descriptor_poll(fd, POLLIN | POLLOUT, left);
  return (what & ~POLLOUT) == 0 || read_while_sending(wire, fd, call);
}

/**
 * Sends both, or nothing when there was no room until the deadline. `wire` and `call`: NULL on a
 * connection that no other thread uses.
 */
static enum sent send_all(struct wire *wire, int fd, struct pending *call, const struct buffer *ahead, const struct buffer *request,
                          int64_t deadline) {
  const size_t first = ahead == NULL ? 0 : ahead->length;
  size_t at = 0;

  while (at < first + request->length) {
    ssize_t sent;
    if (at < first) {
      struct iovec parts[2] = {{ahead->data + at, first - at}, {request->data, request->length}};
      struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
      sent = descriptor_send_message(fd, &message);
    } else {
      sent = descriptor_send(fd, request->data + (at - first), request->length - (at - first));
    }
    if (sent > 0) {
      at += (size_t)sent;
    } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      int left = process_until(deadline);
      if (left == 0) return at == 0 ? NOT_SENT : BROKEN;
      if (!wait_to_send(wire, fd, call, left)) return BROKEN;
    } else if (sent == 0 || errno != EINTR) {
      return BROKEN;
    }
  }
  return SENT;
}

static void write_header(struct buffer *request, uint32_t code) {
  buffer_poke_u32(request->data, code);
  buffer_poke_u32(request->data + 4, 0);
  buffer_poke_u32(request->data + 8, (uint32_t)(request->length - TRANSPORT_HEADER));
}

/** The next code of a call. Under `lock`. */
static uint32_t next_code(struct wire *wire) {
  wire->last_code++;
  if (wire->last_code == 0) wire->last_code++;
  return wire->last_code;
}

static void write_codes(struct wire *wire, struct buffer *frames) {
  if (frames->length == 0) return;
  process_lock(&wire->lock);
  for (size_t at = 0; at < frames->length; at += TRANSPORT_HEADER + buffer_peek_u32(frames->data + at + 8))
    buffer_poke_u32(frames->data + at, next_code(wire));
  process_unlock(&wire->lock);
}

/**
 * An empty frame. When the socket takes none, there is something in it that wakes the agent as
 * well.
 */
static void ring(struct wire *wire) {
  static const unsigned char empty[TRANSPORT_HEADER];
  const ssize_t sent = descriptor_send(wire->fd, empty, sizeof empty);
  (void)sent;
}

/** Ends the sending of a call: from here on its thread can read for all. Under `lock`. */
static void finish_sending(struct wire *wire, struct pending *call) {
  call->sending = false;
  wire_lead_if_needed(wire, call);
}

/**
 * Whether a call, whose message has this length, takes the lane: nothing else is under way that it
 * could overtake. If so, it counts as sent, because putting it there takes no time.
 */
static bool takes_lane(struct wire *wire, struct pending *call, size_t length) {
  bool alone;

  if (wire->lane == NULL || call->ahead_sent || !lane_free(wire->lane, length)) return false;
  process_lock(&wire->lock);
  alone = wire->first == wire->last && !wire->unanswered;
  if (alone) finish_sending(wire, call);
  process_unlock(&wire->lock);
  return alone;
}

/**
 * Sends what goes ahead of a request, in pieces, but for the last one: that stays in
 * `ahead->frames` and leaves with the request.
 */
static enum sent send_ahead(struct wire *wire, struct pending *call, struct transport_ahead *ahead, int64_t deadline) {
  for (;;) {
    const bool more = ahead->take(ahead->context, &ahead->frames);
    enum sent sent;

    /* After a failure, the last frame may be half written. */
    if (ahead->frames.failed) return NOT_SENT;
    write_codes(wire, &ahead->frames);
    if (!more) return SENT;
    sent = send_all(wire, wire->fd, call, NULL, &ahead->frames, deadline);
    if (sent == SENT) call->ahead_sent = true;
    if (sent != SENT) return sent;
    buffer_reset(&ahead->frames);
  }
}

static enum sent send_request(struct wire *wire, struct pending *call, struct buffer *request, struct transport_ahead *ahead,
                              uint32_t epoch, int64_t deadline) {
  enum sent sent = BROKEN;

  if (!process_lock_until(&wire->write_lock, deadline)) return NOT_SENT;
  if (wire->fd >= 0 && wire->epoch == epoch) {
    const struct buffer *frames = NULL;
    sent = ahead == NULL ? SENT : send_ahead(wire, call, ahead, deadline);
    if (ahead != NULL && ahead->frames.length > 0) frames = &ahead->frames;
    if (wire->lane != NULL) call->bell = lane_bell(wire->lane);
    if (sent != SENT) {
      /* nothing of the request is under way */
    } else if (takes_lane(wire, call, request->length + (frames == NULL ? 0 : frames->length))) {
      lane_listen(wire->lane, LANE_LISTENING); /* this thread will read, and the answer may arrive at once */
      call->in_lane = true;
      if (!lane_ask(wire->lane, frames, request)) ring(wire);
    } else {
      sent = send_all(wire, wire->fd, call, frames, request, deadline);
    }
  }
  process_unlock(&wire->write_lock);
  return sent;
}

/*
 * --- the connection ------------------------------------------------------------------------------
 */

struct wire *transport_wire(void) { return &connection; }

uint32_t transport_epoch(void) { return connection.epoch; }

bool transport_is_open(void) { return connection.fd >= 0; }

bool transport_is_ours(void) { return descriptor_number(connection.fd) >= 0; }

/**
 * Waits a second at most for a connection to be closed. Its leader sees the end at its next step;
 * only one that gets no CPU is late.
 */
static bool close_soon(struct wire *wire, uint32_t epoch) {
  const int64_t deadline = process_now() + 1000000;
  bool done;

  while (!(done = wire_lose(wire, epoch, false)) && process_until(deadline) > 0) process_sleep(500);
  return done;
}

bool transport_adopt(int fd, struct lane *lane, int spin_us) {
  struct wire *const wire = &connection;

  /* Two leaders would share the input. */
  if (!close_soon(wire, wire->epoch)) return false;
  process_lock(&wire->write_lock);
  process_lock(&wire->lock);
  wire->spin_us = spin_us;
  wire->lane = lane;
  wire->unanswered = false;
  spinning_begin(&wire->spinning);
  wire->epoch++;
  if (wire->epoch == 0) wire->epoch = 1;
  wire->fd = fd;
  process_unlock(&wire->lock);
  process_unlock(&wire->write_lock);
  return true;
}

void transport_close(void) { close_soon(&connection, connection.epoch); }

void transport_drop(void) {
  struct wire *const wire = &connection;

  if (wire->fd < 0) return;
  descriptor_hang_up(wire->fd);
  /*
   * At exit threads may be in calls and have the locks; after dlclose there are none, and nothing
   * of ours may stay.
   */
  if (!process_lock_until(&wire->write_lock, 0)) return;
  if (process_lock_until(&wire->lock, 0)) {
    if (wire->fd >= 0 && !wire->led && wire->first == NULL) {
      wire_release(wire);
      wire_forget_late(wire);
    }
    process_unlock(&wire->lock);
  }
  process_unlock(&wire->write_lock);
}

void transport_forget(void) {
  struct wire *const wire = &connection;

  /*
   * Threads of the parent may have held the locks and the input buffer: none of it can be trusted,
   * so it is left behind.
   */
  wire->write_lock = 0;
  wire->lock = 0;
  wire->fd = -1;
  wire->lane = NULL; /* not ours to unmap: it was never the child's */
  wire->first = wire->last = NULL;
  wire->led = false;
  wire->late = NULL;
  wire->late_replies = 0;
  wire->input = NULL;
  wire->input_capacity = wire->input_from = wire->input_to = 0;
}

bool transport_take_late(struct buffer *reply, uint32_t epoch) {
  struct wire *const wire = &connection;
  struct late **at;
  struct late *late;

  if (atomic_load_explicit(&wire->late_replies, memory_order_acquire) == 0) return false;
  process_lock(&wire->lock);
  at = &wire->late;
  while (*at != NULL && !(*at)->answered) at = &(*at)->next;
  late = wire->epoch == epoch ? *at : NULL;
  if (late != NULL) {
    *at = late->next;
    wire->late_replies--;
  }
  process_unlock(&wire->lock);
  if (late == NULL) return false;
  buffer_reset(reply);
  buffer_put_raw(reply, late->reply.data, late->reply.length);
  buffer_close(&late->reply);
  free(late);
  return true;
}

enum outcome transport_exchange(struct buffer *request, struct transport_ahead *ahead, struct buffer *reply, uint32_t epoch,
                                int64_t deadline, bool keep_late) {
  struct wire *const wire = &connection;
  struct pending call = {.reply = reply, .state = WAITING, .sending = true, .keep_late = keep_late};
  enum outcome outcome;
  enum sent sent;

  process_lock(&wire->lock);
  if (wire->fd < 0 || wire->epoch != epoch) {
    process_unlock(&wire->lock);
    return UNSENT;
  }
  call.code = next_code(wire);
  wire_link(wire, &call);
  process_unlock(&wire->lock);

  write_header(request, call.code);
  sent = send_request(wire, &call, request, ahead, epoch, deadline);
  if (sent == NOT_SENT && wire_withdraw(wire, &call, false)) return UNSENDABLE;
  if (sent == BROKEN) wire_cut(wire, epoch);
  if (!call.in_lane) {
    process_lock(&wire->lock);
    finish_sending(wire, &call);
    process_unlock(&wire->lock);
  }
  outcome = leader_await(wire, &call, epoch, deadline);
  return outcome == LOST && sent != SENT ? UNSENT : outcome;
}

static enum outcome receive_alone(int fd, unsigned char *bytes, size_t length, int64_t deadline) {
  while (length > 0) {
    ssize_t got = descriptor_receive(fd, bytes, length);
    if (got > 0) {
      bytes += got;
      length -= (size_t)got;
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      int left = process_until(deadline);
      if (left == 0) return UNANSWERED;
      descriptor_poll(fd, POLLIN, left);
    } else if (got == 0 || errno != EINTR) {
      return LOST;
    }
  }
  return EXCHANGED;
}

enum outcome transport_exchange_alone(int fd, struct buffer *request, struct buffer *reply, int64_t deadline) {
  unsigned char header[TRANSPORT_HEADER];
  enum outcome outcome;
  size_t options;
  size_t body;
  unsigned char *to;

  write_header(request, 1);
  if (send_all(NULL, fd, NULL, NULL, request, deadline) != SENT) return UNSENT;
  outcome = receive_alone(fd, header, sizeof header, deadline);
  if (outcome != EXCHANGED) return outcome;
  options = buffer_peek_u32(header + 4);
  body = buffer_peek_u32(header + 8);
  if (options > BUFFER_MAX || body > BUFFER_MAX || buffer_peek_u32(header) != 1) return LOST;
  buffer_reset(reply);
  to = buffer_extend(reply, options);
  if (to == NULL) return LOST;
  outcome = receive_alone(fd, to, options, deadline);
  if (outcome != EXCHANGED) return outcome;
  buffer_reset(reply);
  to = buffer_extend(reply, body);
  if (to == NULL) return LOST;
  return receive_alone(fd, to, body, deadline);
}
