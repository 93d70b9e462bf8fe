/* The connection in use; see transport.h. Connecting is connect.c's business. */
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
  bool keep_late;
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
  pthread_mutex_t write_lock;
  pthread_mutex_t lock;
  _Atomic uint32_t epoch;
  _Atomic int fd; /* changes under both locks; -1 when there is no connection */
  struct lane *lane; /* changes under both locks; NULL when there is none */
  bool unanswered; /* a call of this connection was given up: the agent may not have seen it yet */
  dev_t device;   /* which socket it is, for a forked child that finds another file under the number */
  ino_t inode;
  atomic_int spin_us;
  uint32_t last_code;
  struct pending *first;
  struct pending *last;
  atomic_bool led;
  struct late *late;
  atomic_uint late_replies; /* of those on the list, how many have come */
  /* The leader's alone: bytes received and not yet handed out. Passed on with the office. */
  unsigned char *input;
  size_t input_capacity;
  size_t input_from;
  size_t input_to;
  struct spinning spinning; /* the leader's alone, too */
} wire = {.write_lock = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

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

/** Gives the office to the call that has waited longest, if any. */
static void pass_on(void) {
  wire.led = wire.first != NULL;
  if (wire.led) settle(wire.first, LEADING);
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

  pthread_mutex_lock(&wire.lock);
  state = atomic_load_explicit(&call->state, memory_order_acquire);
  if (state == WAITING || state == LEADING) {
    unlink_call(call);
    if (state == LEADING) pass_on();
    if (sent) wire.unanswered = true;
    if (sent && call->keep_late) expect_late(call->code);
  }
  pthread_mutex_unlock(&wire.lock);
  return state == WAITING || state == LEADING;
}

/* --- the end of a connection ------------------------------------------------------------------------------------------ */

/** Makes every reader and writer of the connection see its end, without closing the number under their hands. */
static void cut(uint32_t epoch) {
  pthread_mutex_lock(&wire.lock);
  if (wire.epoch == epoch && wire.fd >= 0) {
    shutdown(wire.fd, SHUT_RDWR);
    if (wire.lane != NULL) lane_rouse(wire.lane);
  }
  pthread_mutex_unlock(&wire.lock);
}

/** Closes the connection and tells all who wait. `reading`: another thread may still be looking at the lane. */
static void lose(uint32_t epoch, bool reading) {
  cut(epoch); /* ends a send that holds the write lock */
  pthread_mutex_lock(&wire.write_lock);
  pthread_mutex_lock(&wire.lock);
  if (wire.epoch == epoch && wire.fd >= 0) {
    close(wire.fd);
    wire.fd = -1;
    if (!reading) lane_leave(wire.lane);
    wire.lane = NULL;
    wire.input_from = wire.input_to = 0;
    while (wire.first != NULL) {
      struct pending *call = wire.first;
      unlink_call(call);
      settle(call, GONE);
    }
    wire.led = false;
    forget_late();
  }
  pthread_mutex_unlock(&wire.lock);
  pthread_mutex_unlock(&wire.write_lock);
}

void transport_adopt(int fd, struct lane *lane, int spin_us) {
  struct stat status;
  const struct timeval wait = {.tv_sec = LONG_WAIT / 1000};
  const int flags = fcntl(fd, F_GETFL);

  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 && flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  pthread_mutex_lock(&wire.write_lock);
  pthread_mutex_lock(&wire.lock);
  if (process_fstat(fd, &status) == 0) {
    wire.device = status.st_dev;
    wire.inode = status.st_ino;
  }
  wire.spin_us = spin_us;
  wire.fd = fd;
  wire.lane = lane;
  wire.unanswered = false;
  spinning_begin(&wire.spinning);
  wire.epoch++;
  if (wire.epoch == 0) wire.epoch = 1;
  pthread_mutex_unlock(&wire.lock);
  pthread_mutex_unlock(&wire.write_lock);
}

void transport_close(void) {
  uint32_t epoch = wire.epoch;
  bool waiting = true;

  /* The leader, if there is one, sees the end and settles all; it must not find its descriptor closed by us. */
  cut(epoch);
  for (int i = 0; waiting && i < 2000; i++) {
    pthread_mutex_lock(&wire.lock);
    waiting = wire.led;
    pthread_mutex_unlock(&wire.lock);
    if (waiting) process_sleep(500);
  }
  lose(epoch, waiting);
  pthread_mutex_lock(&wire.lock);
  free(wire.input);
  wire.input = NULL;
  wire.input_capacity = 0;
  pthread_mutex_unlock(&wire.lock);
}

void transport_drop(void) {
  const int fd = wire.fd;

  if (fd < 0) return;
  shutdown(fd, SHUT_RDWR);
  if (wire.led) return; /* the thread that reads sees the end */
  wire.fd = -1;
  close(fd);
}

void transport_forget(void) {
  struct stat status;
  const int fd = wire.fd;

  if (fd >= 0 && process_fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_dev == wire.device &&
      status.st_ino == wire.inode)
    close(fd);
  /* Threads of the parent may have held the locks and the input buffer: none of it can be trusted, so it is left behind. */
  pthread_mutex_init(&wire.write_lock, NULL);
  pthread_mutex_init(&wire.lock, NULL);
  wire.fd = -1;
  wire.lane = NULL; /* not ours to unmap: it was never the child's */
  wire.first = wire.last = NULL;
  wire.led = false;
  wire.late = NULL;
  wire.late_replies = 0;
  wire.input = NULL;
  wire.input_capacity = wire.input_from = wire.input_to = 0;
}

/* --- sending ---------------------------------------------------------------------------------------------------------- */

enum sent { SENT, NOT_SENT, BROKEN };

/** Sends both, or nothing when there was no room until the deadline. */
static enum sent send_all(int fd, const struct buffer *ahead, const struct buffer *request, int64_t deadline) {
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
      struct pollfd poller = {.fd = fd, .events = POLLOUT};
      int left = process_until(deadline);
      if (left == 0) return at == 0 ? NOT_SENT : BROKEN;
      poll(&poller, 1, left);
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
  pthread_mutex_lock(&wire.lock);
  for (size_t at = 0; at < frames->length; at += TRANSPORT_HEADER + buffer_peek_u32(frames->data + at + 8))
    buffer_poke_u32(frames->data + at, next_code());
  pthread_mutex_unlock(&wire.lock);
}

/** An empty frame. When the socket takes none, there is something in it that wakes the agent as well. */
static void ring(void) {
  static const unsigned char empty[TRANSPORT_HEADER];
  const ssize_t sent = send(wire.fd, empty, sizeof empty, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}

/** Whether a message of this length may go through the lane: nothing but its call is under way that it could overtake. */
static bool may_take_lane(size_t length) {
  bool alone;

  if (wire.lane == NULL || !lane_free(wire.lane, length)) return false;
  pthread_mutex_lock(&wire.lock);
  alone = wire.first == wire.last && !wire.unanswered;
  pthread_mutex_unlock(&wire.lock);
  return alone;
}

static enum sent send_request(struct pending *call, struct buffer *request, struct transport_ahead *ahead, uint32_t epoch,
                              int64_t deadline) {
  enum sent sent = BROKEN;

  pthread_mutex_lock(&wire.write_lock);
  if (wire.fd >= 0 && wire.epoch == epoch) {
    struct buffer *frames = NULL;
    if (ahead != NULL) {
      ahead->take(ahead->context, &ahead->frames);
      if (ahead->frames.length > 0) frames = &ahead->frames;
    }
    if (frames != NULL) write_codes(frames);
    if (frames != NULL && frames->failed) {
      sent = NOT_SENT;
    } else if (may_take_lane(request->length + (frames == NULL ? 0 : frames->length))) {
      lane_listen(wire.lane, LANE_LISTENING); /* we shall be the one who reads, and the answer may come at once */
      call->in_lane = true;
      call->bell = lane_bell(wire.lane);
      if (!lane_ask(wire.lane, frames, request)) ring();
      sent = SENT;
    } else {
      sent = send_all(wire.fd, frames, request, deadline);
    }
  }
  pthread_mutex_unlock(&wire.write_lock);
  return sent;
}

/* --- receiving: the leader -------------------------------------------------------------------------------------------- */

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
  pthread_mutex_lock(&wire.lock);
  at = &wire.late;
  while (*at != NULL && !(*at)->answered) at = &(*at)->next;
  late = wire.epoch == epoch ? *at : NULL;
  if (late != NULL) {
    *at = late->next;
    wire.late_replies--;
  }
  pthread_mutex_unlock(&wire.lock);
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

  pthread_mutex_lock(&wire.lock);
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
  pthread_mutex_unlock(&wire.lock);
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

/** After the leader's own reply: the office goes to the next, and the agent hears when there is none. `started` is 0 when what the call
 * took says nothing about spinning. */
static enum outcome retire(struct lane *lane, int64_t started) {
  if (wire.spin_us > 0 && started > 0 &&
      spinning_note(&wire.spinning, spinning_counts(&wire.spinning) ? process_now() - started : 0) && lane != NULL)
    lane_spin(lane, !wire.spinning.sleeps);
  pthread_mutex_lock(&wire.lock);
  pass_on();
  if (lane != NULL && !wire.led) lane_listen(lane, LANE_DEAF);
  pthread_mutex_unlock(&wire.lock);
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
  bool broken = false;
  bool own = false;

  if (lane != NULL) lane_listen(lane, listening);
  /* No answer comes in less time than this takes; and an agent on this CPU gets to run. */
  if (spinning) sched_yield();
  for (unsigned looks = 0;; looks++) {
    bool blocking;
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
    if (listening == LANE_ASLEEP && sleep_at_lane(lane, leader, deadline) && looks % SOCKET_EVERY != SOCKET_EVERY - 1) continue;
    blocking = !spinning && listening == LANE_DEAF && process_until(deadline) > LONG_WAIT;
    got = recv(fd, wire.input + wire.input_to, wire.input_capacity - wire.input_to, blocking ? 0 : MSG_DONTWAIT);
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
  lose(epoch, false);
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
  struct pending call = {.reply = reply, .state = WAITING, .keep_late = keep_late};
  enum outcome outcome;
  enum sent sent;

  pthread_mutex_lock(&wire.lock);
  if (wire.fd < 0 || wire.epoch != epoch) {
    pthread_mutex_unlock(&wire.lock);
    return UNSENT;
  }
  call.code = next_code();
  link_call(&call);
  if (!wire.led) {
    wire.led = true;
    call.state = LEADING;
  }
  pthread_mutex_unlock(&wire.lock);

  write_header(request, call.code);
  sent = send_request(&call, request, ahead, epoch, deadline);
  if (sent == NOT_SENT && withdraw(&call, false)) return UNSENDABLE;
  if (sent == BROKEN) cut(epoch);
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
  if (send_all(fd, NULL, request, deadline) != SENT) return UNSENT;
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
