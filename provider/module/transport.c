/* The connection in use; see transport.h. Connecting is connect.c's business. */
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process.h"
#include "spinning.h"

enum {
  INPUT_SMALL = 16 * 1024,
  INPUT_MAX = TRANSPORT_HEADER + BUFFER_MAX,
  NAP = 50, /* milliseconds, after which who sleeps at the lane looks whether the agent is still there */
  LOOK_AGAIN = 2, /* milliseconds, after which a sender whose socket is full checks whether another thread still reads */
  LONG_WAIT = 1000, /* milliseconds, after which a blocking read of the socket returns without anything */
  SOCKET_EVERY = 8 /* looks at the lane for one at the socket */
};

/** What a waiting thread looks at. */
enum { WAITING, LEADING, ANSWERED, GONE };

struct pending {
  struct pending *next;
  struct pending *previous;
  uint32_t code;
  _Atomic uint32_t state;
  struct buffer *reply;
  bool sending; /* its thread is not done with sending, so it is given no other work; changes under `lock` */
  bool keep_late;
  bool ahead_sent; /* something that goes ahead of it is in the socket */
  bool in_lane; /* went through the lane, and alone */
  uint32_t bell; /* of the lane, before */
};

/** A call that has given up, and whose reply is wanted all the same. */
struct late {
  struct late *next;
  uint32_t code;
  bool answered;
  struct buffer reply;
};

static struct {
  _Atomic uint32_t write_lock; /* both: of process_lock */
  _Atomic uint32_t lock;
  _Atomic uint32_t epoch;
  _Atomic int fd; /* changes under both locks; -1 when there is no connection */
  struct lane *lane; /* changes under both locks; NULL when there is none */
  bool unanswered; /* something was sent on this connection whose answer shows nothing any more: the agent may not have seen it yet */
  atomic_int spin_us;
  uint32_t last_code;
  struct pending *first;
  struct pending *last;
  atomic_bool led;
  struct late *late;
  atomic_uint late_replies; /* of those on the list, how many have come */
  /* Only the leader uses these: bytes received and not yet handed out. The next leader goes on with them. */
  unsigned char *input;
  size_t input_capacity;
  size_t input_from;
  size_t input_to;
  struct spinning spinning;
} wire = {.fd = -1};

uint32_t transport_epoch(void) { return wire.epoch; }

bool transport_is_open(void) { return wire.fd >= 0; }

/* --- the list of waiting calls, under `lock` -------------------------------------------------------------------------- */

static void link_call(struct pending *call) {
  call->next = NULL;
  call->previous = wire.last;
  if (wire.last != NULL) wire.last->next = call;
  else wire.first = call;
  wire.last = call;
}

static void unlink_call(struct pending *call) {
  if (call->previous != NULL) call->previous->next = call->next;
  else wire.first = call->next;
  if (call->next != NULL) call->next->previous = call->previous;
  else wire.last = call->previous;
}

static void settle(struct pending *call, uint32_t state) {
  _Atomic uint32_t *word = &call->state;
  /* From this store on the call may vanish with its thread's stack; waking a stale address does no harm. */
  atomic_store_explicit(word, state, memory_order_release);
  process_wake(word);
}

/** Makes the call that has waited longest the leader. One that is still being sent cannot lead: its thread may be unable to send
 * until somebody reads. */
static void pass_on(void) {
  struct pending *next = wire.first;

  while (next != NULL && next->sending) next = next->next;
  wire.led = next != NULL;
  if (next != NULL) settle(next, LEADING);
}

/** Makes a call the leader if there is none. Its own thread does this. */
static void lead_if_needed(struct pending *call) {
  if (wire.led || call->state != WAITING) return;
  wire.led = true;
  call->state = LEADING;
}

/** Without memory the reply is dropped when it comes, like any other. */
static void expect_late(uint32_t code) {
  struct late *late = calloc(1, sizeof *late);

  if (late == NULL) return;
  buffer_open(&late->reply);
  late->code = code;
  late->next = wire.late;
  wire.late = late;
}

static void forget_late(void) {
  while (wire.late != NULL) {
    struct late *late = wire.late;
    wire.late = late->next;
    buffer_close(&late->reply);
    free(late);
  }
  wire.late_replies = 0;
}

/** Takes a call off the list that has not been answered. False when it has been meanwhile. */
static bool withdraw(struct pending *call, bool sent) {
  uint32_t state;

  process_lock(&wire.lock);
  state = atomic_load_explicit(&call->state, memory_order_acquire);
  if (state == WAITING || state == LEADING) {
    unlink_call(call);
    if (state == LEADING) pass_on();
    if (sent || call->ahead_sent) wire.unanswered = true;
    if (sent && call->keep_late) expect_late(call->code);
  }
  process_unlock(&wire.lock);
  return state == WAITING || state == LEADING;
}

/* --- the end of a connection ------------------------------------------------------------------------------------------ */

/** Makes every reader and writer of the connection see its end, without closing the number under their hands. */
static void cut(uint32_t epoch) {
  process_lock(&wire.lock);
  if (wire.epoch == epoch && wire.fd >= 0) {
    shutdown(wire.fd, SHUT_RDWR);
    if (wire.lane != NULL) lane_rouse(wire.lane);
  }
  process_unlock(&wire.lock);
}

/** Gives up the connection's descriptor, lane and input. Under both locks, and no other thread leads. */
static void release(void) {
  const int fd = wire.fd;

  wire.fd = -1;
  process_close(fd);
  lane_leave(wire.lane);
  wire.lane = NULL;
  if (wire.input != NULL) buffer_wipe(wire.input, wire.input_capacity);
  free(wire.input);
  wire.input = NULL;
  wire.input_capacity = wire.input_from = wire.input_to = 0;
}

/** Closes the connection and tells all who wait. Only the leader may do so while there is one: it uses what is released here. False when
 * another thread leads. */
static bool lose(uint32_t epoch, bool leads) {
  bool done;

  cut(epoch); /* ends a send that holds the write lock */
  process_lock(&wire.write_lock);
  process_lock(&wire.lock);
  done = wire.epoch != epoch || wire.fd < 0;
  if (!done && (leads || !wire.led)) {
    release();
    while (wire.first != NULL) {
      struct pending *call = wire.first;
      unlink_call(call);
      settle(call, GONE);
    }
    wire.led = false;
    forget_late();
    done = true;
  }
  process_unlock(&wire.lock);
  process_unlock(&wire.write_lock);
  return done;
}

/** Waits a second at most for a connection to be closed. Its leader sees the end at its next step; only one that gets no CPU is late. */
static bool close_soon(uint32_t epoch) {
  const int64_t deadline = process_now() + 1000000;
  bool done;

  while (!(done = lose(epoch, false)) && process_until(deadline) > 0) process_sleep(500);
  return done;
}

bool transport_adopt(int fd, struct lane *lane, int spin_us) {
  const struct timeval wait = {.tv_sec = LONG_WAIT / 1000};
  const int flags = fcntl(fd, F_GETFL);

  /* Two leaders would share the input. */
  if (!close_soon(wire.epoch)) return false;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 && flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  process_lock(&wire.write_lock);
  process_lock(&wire.lock);
  wire.spin_us = spin_us;
  wire.lane = lane;
  wire.unanswered = false;
  spinning_begin(&wire.spinning);
  wire.epoch++;
  if (wire.epoch == 0) wire.epoch = 1;
  wire.fd = fd;
  process_unlock(&wire.lock);
  process_unlock(&wire.write_lock);
  return true;
}

void transport_close(void) { close_soon(wire.epoch); }

void transport_drop(void) {
  if (wire.fd < 0) return;
  shutdown(wire.fd, SHUT_RDWR);
  /* At exit threads may be in calls and have the locks; after dlclose there are none, and nothing of ours may stay. */
  if (!process_lock_until(&wire.write_lock, 0)) return;
  if (process_lock_until(&wire.lock, 0)) {
    if (wire.fd >= 0 && !wire.led && wire.first == NULL) {
      release();
      forget_late();
    }
    process_unlock(&wire.lock);
  }
  process_unlock(&wire.write_lock);
}

void transport_forget(void) {
  /* Threads of the parent may have held the locks and the input buffer: none of it can be trusted, so it is left behind. */
  wire.write_lock = 0;
  wire.lock = 0;
  wire.fd = -1;
  wire.lane = NULL; /* not ours to unmap: it was never the child's */
  wire.first = wire.last = NULL;
  wire.led = false;
  wire.late = NULL;
  wire.late_replies = 0;
  wire.input = NULL;
  wire.input_capacity = wire.input_from = wire.input_to = 0;
}

/* --- receiving: the leader's input ------------------------------------------------------------------------------------- */

/** Room for at least `length` bytes of input from `input_from` on. */
static bool make_room(size_t length) {
  if (wire.input_from > 0 && wire.input_from + length > wire.input_capacity) {
    memmove(wire.input, wire.input + wire.input_from, wire.input_to - wire.input_from);
    wire.input_to -= wire.input_from;
    wire.input_from = 0;
  }
  if (length > wire.input_capacity) {
    size_t capacity = length < INPUT_SMALL ? INPUT_SMALL : length;
    unsigned char *larger = malloc(capacity);
    if (larger == NULL) return false;
    if (wire.input_to > 0) memcpy(larger, wire.input, wire.input_to);
    if (wire.input != NULL) buffer_wipe(wire.input, wire.input_capacity);
    free(wire.input);
    wire.input = larger;
    wire.input_capacity = capacity;
  }
  return true;
}

/** A reply that nobody waits for any more. */
static void keep_late(uint32_t code, const unsigned char *body, size_t length) {
  struct late *late = wire.late;

  while (late != NULL && (late->code != code || late->answered)) late = late->next;
  if (late == NULL) return;
  buffer_put_raw(&late->reply, body, length);
  late->answered = true;
  wire.late_replies++;
}

bool transport_take_late(struct buffer *reply, uint32_t epoch) {
  struct late **at;
  struct late *late;

  if (atomic_load_explicit(&wire.late_replies, memory_order_acquire) == 0) return false;
  process_lock(&wire.lock);
  at = &wire.late;
  while (*at != NULL && !(*at)->answered) at = &(*at)->next;
  late = wire.epoch == epoch ? *at : NULL;
  if (late != NULL) {
    *at = late->next;
    wire.late_replies--;
  }
  process_unlock(&wire.lock);
  if (late == NULL) return false;
  buffer_reset(reply);
  buffer_put_raw(reply, late->reply.data, late->reply.length);
  buffer_close(&late->reply);
  free(late);
  return true;
}

/** Where a frame ends that begins at `bytes`; 0 when more of it is needed (`*whole` tells how much), -1 when it is none. */
static int measure(const unsigned char *bytes, size_t have, size_t *whole) {
  uint32_t options;
  uint32_t body;

  *whole = TRANSPORT_HEADER;
  if (have < TRANSPORT_HEADER) return 0;
  options = buffer_peek_u32(bytes + 4);
  body = buffer_peek_u32(bytes + 8);
  if (body > BUFFER_MAX || options > BUFFER_MAX - body) return -1;
  *whole = (size_t)TRANSPORT_HEADER + options + body;
  return have >= *whole;
}

/** Gives a whole frame to who waits for it. */
static void hand_over(const unsigned char *frame, struct pending *leader, bool *own) {
  const uint32_t code = buffer_peek_u32(frame);
  const unsigned char *body = frame + TRANSPORT_HEADER + buffer_peek_u32(frame + 4);
  const size_t length = buffer_peek_u32(frame + 8);
  struct pending *call;

  process_lock(&wire.lock);
  for (call = wire.first; call != NULL && call->code != code; call = call->next) continue;
  if (call == NULL) {
    keep_late(code, body, length);
  } else {
    unlink_call(call);
    buffer_reset(call->reply);
    buffer_put_raw(call->reply, body, length);
    if (call == leader) *own = true;
    else settle(call, ANSWERED);
  }
  process_unlock(&wire.lock);
}

/** Hands out every whole frame of the input. False when the peer breaks the protocol. `own` tells whether the leader's was among them. */
static bool hand_out(struct pending *leader, bool *own) {
  for (;;) {
    size_t whole;
    const unsigned char *from = wire.input == NULL ? NULL : wire.input + wire.input_from;
    const int is_whole = measure(from, wire.input_to - wire.input_from, &whole);

    if (is_whole < 0) return false;
    if (is_whole == 0) return make_room(whole);
    hand_over(from, leader, own);
    buffer_wipe(wire.input + wire.input_from, whole);
    wire.input_from += whole;
    if (wire.input_from == wire.input_to) wire.input_from = wire.input_to = 0;
  }
}

/** The same for what waits in the lane, where only whole frames pass. False also when nothing waits, and then `broken` stays. */
static bool fetch(struct lane *lane, struct pending *leader, bool *own, bool *broken) {
  size_t length;
  size_t whole;
  const unsigned char *frame = lane_fetch(lane, &length, broken);

  if (frame == NULL) return false;
  for (; length > 0; frame += whole, length -= whole) {
    if (measure(frame, length, &whole) != 1) {
      *broken = true;
      return false;
    }
    hand_over(frame, leader, own);
    buffer_wipe((void *)frame, whole);
  }
  return true;
}

/* --- sending ---------------------------------------------------------------------------------------------------------- */

enum sent { SENT, NOT_SENT, BROKEN };

/** Reads once for all calls while this one, the leader, is being sent. False when the connection cannot be used any more. */
static bool read_while_sending(int fd, struct pending *call) {
  bool own = false;
  ssize_t got;

  if (!hand_out(call, &own)) return false;
  got = recv(fd, wire.input + wire.input_to, wire.input_capacity - wire.input_to, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  wire.input_to += (size_t)got;
  /* An answer to a request that is not complete breaks the protocol. */
  return hand_out(call, &own) && !own;
}

/**
 * Waits until the socket may take more of `call`, NULL on a connection that nobody else uses. An agent whose answers nobody reads stops
 * reading as well, so when no other thread reads, the sender does. False when the connection cannot be used any more.
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
  lead_if_needed(call);
  process_unlock(&wire.lock);
  if (call->state != LEADING) {
    poll(&poller, 1, left < LOOK_AGAIN ? left : LOOK_AGAIN);
    return true;
  }
  if (lane != NULL) {
    lane_listen(lane, LANE_DEAF);
    fetch(lane, call, &own, &broken);
    if (broken || own) return false;
  }
  poller.events |= POLLIN;
  if (poll(&poller, 1, left) <= 0 || (poller.revents & ~POLLOUT) == 0) return true;
  return read_while_sending(fd, call);
}

/** Sends both, or nothing when there was no room until the deadline. `call`: as in wait_to_send. */
static enum sent send_all(int fd, struct pending *call, const struct buffer *ahead, const struct buffer *request, int64_t deadline) {
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

static void write_header(struct buffer *request, uint32_t code) {
  buffer_poke_u32(request->data, code);
  buffer_poke_u32(request->data + 4, 0);
  buffer_poke_u32(request->data + 8, (uint32_t)(request->length - TRANSPORT_HEADER));
}

static uint32_t next_code(void) {
  wire.last_code++;
  if (wire.last_code == 0) wire.last_code++;
  return wire.last_code;
}

static void write_codes(struct buffer *frames) {
  if (frames->length == 0) return;
  process_lock(&wire.lock);
  for (size_t at = 0; at < frames->length; at += TRANSPORT_HEADER + buffer_peek_u32(frames->data + at + 8))
    buffer_poke_u32(frames->data + at, next_code());
  process_unlock(&wire.lock);
}

/** An empty frame. When the socket takes none, there is something in it that wakes the agent as well. */
static void ring(void) {
  static const unsigned char empty[TRANSPORT_HEADER];
  const ssize_t sent = send(wire.fd, empty, sizeof empty, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}

/** Ends the sending of a call: from here on its thread can read for all. Under `lock`. */
static void finish_sending(struct pending *call) {
  call->sending = false;
  lead_if_needed(call);
}

/** Whether a call, whose message has this length, takes the lane: nothing else is under way that it could overtake. If so, it counts
 * as sent, because putting it there takes no time. */
static bool takes_lane(struct pending *call, size_t length) {
  bool alone;

  if (wire.lane == NULL || call->ahead_sent || !lane_free(wire.lane, length)) return false;
  process_lock(&wire.lock);
  alone = wire.first == wire.last && !wire.unanswered;
  if (alone) finish_sending(call);
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
    sent = send_all(wire.fd, call, NULL, &ahead->frames, deadline);
    if (sent == SENT) call->ahead_sent = true;
    if (sent != SENT) return sent;
    buffer_reset(&ahead->frames);
  }
}

static enum sent send_request(struct pending *call, struct buffer *request, struct transport_ahead *ahead, uint32_t epoch,
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
      lane_listen(wire.lane, LANE_LISTENING); /* we shall be the one who reads, and the answer may come at once */
      call->in_lane = true;
      call->bell = lane_bell(wire.lane);
      if (!lane_ask(wire.lane, frames, request)) ring();
    } else {
      sent = send_all(wire.fd, call, frames, request, deadline);
    }
  }
  process_unlock(&wire.write_lock);
  return sent;
}

/* --- leading ---------------------------------------------------------------------------------------------------------- */

/** After the leader's own reply: the next call leads, and the agent hears when there is none. `started` is 0 when what the call
 * took says nothing about spinning. */
static enum outcome retire(struct lane *lane, int64_t started) {
  if (wire.spin_us > 0 && started > 0 &&
      spinning_note(&wire.spinning, spinning_counts(&wire.spinning) ? process_now() - started : 0) && lane != NULL)
    lane_spin(lane, !wire.spinning.sleeps);
  process_lock(&wire.lock);
  pass_on();
  if (lane != NULL && !wire.led) lane_listen(lane, LANE_DEAF);
  process_unlock(&wire.lock);
  return EXCHANGED;
}

/** Waits for the agent at the lane. False when the socket has to be looked at: the lane holds one answer at most, so that what rang more
 * often than once came another way. */
static bool sleep_at_lane(struct lane *lane, struct pending *leader, int64_t deadline) {
  const int64_t left = deadline - process_now();
  const uint32_t bell = leader->bell;

  if (left > 0 && lane_bell(lane) == bell) lane_sleep(lane, bell, left < NAP * 1000 ? left : NAP * 1000);
  leader->bell = lane_bell(lane);
  return leader->bell - bell == 1 && lane_answered(lane);
}

/** Reads for all until the leader's own reply has come. */
static enum outcome lead(struct pending *leader, uint32_t epoch, int64_t deadline) {
  const int64_t started = process_now();
  const int64_t spin = started + wire.spin_us;
  struct lane *const lane = wire.lane;
  const int fd = wire.fd;
  /* Among many callers spinning only takes the CPU from those who are served before. */
  const bool crowded = lane != NULL && lane_crowded(lane);
  bool spinning = wire.spin_us > 0 && !wire.spinning.sleeps && !crowded;
  /* Who sleeps at the socket has no use for an answer in the lane. */
  enum lane_listening listening = lane != NULL && (spinning || leader->in_lane) ? LANE_LISTENING : LANE_DEAF;
  /* The last read took all that the socket had. Until then nobody rings for the rest. */
  bool drained = true;
  bool broken = false;
  bool own = false;

  if (lane != NULL) lane_listen(lane, listening);
  /* No answer comes in less time than this takes; and an agent on this CPU gets to run. */
  if (spinning) sched_yield();
  for (unsigned looks = 0;; looks++) {
    bool blocking;
    size_t room;
    ssize_t got;

    if (!hand_out(leader, &own)) break;
    if (!own && lane != NULL) fetch(lane, leader, &own, &broken);
    if (broken) break;
    if (own) return retire(lane, crowded ? 0 : started);
    if (spinning && process_now() >= spin) spinning = false;
    /* While the lane is in use the socket says little, and asking it costs more than all the rest. */
    if (spinning && leader->in_lane && looks % SOCKET_EVERY != SOCKET_EVERY - 1) {
      sched_yield();
      continue;
    }
    if (!spinning && listening == LANE_LISTENING) {
      /* One more look after this. */
      listening = leader->in_lane ? LANE_ASLEEP : LANE_DEAF;
      lane_listen(lane, listening);
      continue;
    }
    /* Answers for others may come through the lane without end, and the leader's own through the socket. */
    if (listening == LANE_ASLEEP && drained && sleep_at_lane(lane, leader, deadline) && looks % SOCKET_EVERY != SOCKET_EVERY - 1) continue;
    blocking = !spinning && listening == LANE_DEAF && process_until(deadline) > LONG_WAIT;
    room = wire.input_capacity - wire.input_to;
    got = recv(fd, wire.input + wire.input_to, room, blocking ? 0 : MSG_DONTWAIT);
    drained = got < 0 || (size_t)got < room;
    if (got > 0) {
      wire.input_to += (size_t)got;
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) break;
    if (spinning) {
      sched_yield();
    } else if (!blocking) {
      struct pollfd poller = {.fd = fd, .events = POLLIN};
      int left = process_until(deadline);
      if (left == 0) return withdraw(leader, true) ? UNANSWERED : EXCHANGED;
      if (listening == LANE_DEAF) poll(&poller, 1, left);
    }
  }
  lose(epoch, true);
  return LOST;
}

/* --- a call ----------------------------------------------------------------------------------------------------------- */

static enum outcome await(struct pending *call, uint32_t epoch, int64_t deadline) {
  int64_t spin = 0;

  for (;;) {
    switch (atomic_load_explicit(&call->state, memory_order_acquire)) {
      case ANSWERED: return EXCHANGED;
      case GONE: return LOST;
      case LEADING: return lead(call, epoch, deadline);
      default: break;
    }
    if (spin == 0) spin = process_now() + wire.spin_us;
    if (process_now() < spin) {
      sched_yield();
    } else {
      process_wait(&call->state, WAITING, deadline);
      if (process_until(deadline) == 0 && withdraw(call, true)) return UNANSWERED;
    }
  }
}

enum outcome transport_exchange(struct buffer *request, struct transport_ahead *ahead, struct buffer *reply, uint32_t epoch,
                                int64_t deadline, bool keep_late) {
  struct pending call = {.reply = reply, .state = WAITING, .sending = true, .keep_late = keep_late};
  enum outcome outcome;
  enum sent sent;

  process_lock(&wire.lock);
  if (wire.fd < 0 || wire.epoch != epoch) {
    process_unlock(&wire.lock);
    return UNSENT;
  }
  call.code = next_code();
  link_call(&call);
  process_unlock(&wire.lock);

  write_header(request, call.code);
  sent = send_request(&call, request, ahead, epoch, deadline);
  if (sent == NOT_SENT && withdraw(&call, false)) return UNSENDABLE;
  if (sent == BROKEN) cut(epoch);
  if (!call.in_lane) {
    process_lock(&wire.lock);
    finish_sending(&call);
    process_unlock(&wire.lock);
  }
  outcome = await(&call, epoch, deadline);
  return outcome == LOST && sent != SENT ? UNSENT : outcome;
}

static enum outcome receive_alone(int fd, unsigned char *bytes, size_t length, int64_t deadline) {
  while (length > 0) {
    ssize_t got = recv(fd, bytes, length, MSG_DONTWAIT);
    if (got > 0) {
      bytes += got;
      length -= (size_t)got;
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      struct pollfd poller = {.fd = fd, .events = POLLIN};
      int left = process_until(deadline);
      if (left == 0) return UNANSWERED;
      poll(&poller, 1, left);
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
  if (send_all(fd, NULL, NULL, request, deadline) != SENT) return UNSENT;
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
