/* Receiving; see leader.h. */
#include "connection/leader.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "host/descriptor.h"
#include "host/process.h"

enum {
  INPUT_SMALL = 16 * 1024,
  /*
   * Milliseconds, after which a thread that sleeps at the lane checks whether the agent is there.
   */
  NAP = 50,
  /*
   * A nap is twice as long each time, and this long at most. The socket is polled, too: it may be
   * the library's.
   */
  LONGEST_NAP = 250,
  SOCKET_EVERY = 16 /* polls of the lane for one of the socket */
};

/*
 * --- receiving: the leader's input ---------------------------------------------------------------
 */

/** Room for at least `length` bytes of input from `input_from` on. */
static bool make_room(struct wire *wire, size_t length) {
  if (wire->input != NULL && wire->input_from > 0 && wire->input_from + length > wire->input_capacity) {
    memmove(wire->input, wire->input + wire->input_from, wire->input_to - wire->input_from);
    wire->input_to -= wire->input_from;
    wire->input_from = 0;
  }
  if (length > wire->input_capacity) {
    size_t capacity = length < INPUT_SMALL ? INPUT_SMALL : length;
    unsigned char *larger = malloc(capacity);
    if (larger == NULL) return false;
    if (wire->input != NULL) {
      memcpy(larger, wire->input, wire->input_to);
      buffer_wipe(wire->input, wire->input_capacity);
    }
    free(wire->input);
    wire->input = larger;
    wire->input_capacity = capacity;
  }
  return true;
}

/**
 * Where a frame ends that begins at `bytes`; 0 when more of it is needed (`*whole` tells how much),
 * -1 when it is none.
 */
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
static void hand_over(struct wire *wire, const unsigned char *frame, struct pending *leader, bool *own) {
  const uint32_t code = buffer_peek_u32(frame);
  const unsigned char *body = frame + TRANSPORT_HEADER + buffer_peek_u32(frame + 4);
  const size_t length = buffer_peek_u32(frame + 8);
  struct pending *call;

  process_lock(&wire->lock);
  for (call = wire->first; call != NULL && call->code != code; call = call->next) continue;
  if (call == NULL) {
    wire_keep_late(wire, code, body, length);
  } else {
    wire_unlink(wire, call);
    buffer_reset(call->reply);
    buffer_put_raw(call->reply, body, length);
    if (call == leader) *own = true;
    else wire_settle(call, ANSWERED);
  }
  process_unlock(&wire->lock);
}

/**
 * Hands out every whole frame of the input. False when the peer breaks the protocol. `own` tells
 * whether the leader's was among them.
 */
bool leader_hand_out(struct wire *wire, struct pending *leader, bool *own) {
  for (;;) {
    size_t whole;
    const unsigned char *from = wire->input == NULL ? NULL : wire->input + wire->input_from;
    const int is_whole = measure(from, wire->input_to - wire->input_from, &whole);

    if (is_whole < 0) return false;
    if (is_whole == 0) return make_room(wire, whole);
    hand_over(wire, from, leader, own);
    buffer_wipe(wire->input + wire->input_from, whole);
    wire->input_from += whole;
    if (wire->input_from == wire->input_to) wire->input_from = wire->input_to = 0;
  }
}

/**
 * Hands out what waits in the lane, where only whole frames pass. False also when nothing waits,
 * and then `broken` stays.
 */
bool leader_fetch(struct wire *wire, struct lane *lane, struct pending *leader, bool *own, bool *broken) {
  size_t length;
  size_t whole;
  const unsigned char *frame = lane_fetch(lane, &length, broken);

  if (frame == NULL) return false;
  for (; length > 0; frame += whole, length -= whole) {
    if (measure(frame, length, &whole) != 1) {
      *broken = true;
      return false;
    }
    hand_over(wire, frame, leader, own);
    buffer_wipe((void *)frame, whole);
  }
  return true;
}

/*
 * --- leading -------------------------------------------------------------------------------------
 */

/**
 * After the leader's own reply: the next call leads, and the agent hears when there is none.
 * `started` is 0 when what the call took says nothing about spinning.
 */
static enum outcome retire(struct wire *wire, struct lane *lane, int64_t started) {
  if (wire->spin_us > 0 && started > 0 &&
      spinning_note(&wire->spinning, spinning_counts(&wire->spinning) ? process_now() - started : 0) && lane != NULL)
    lane_spin(lane, !wire->spinning.sleeps);
  process_lock(&wire->lock);
  wire_pass_on(wire);
  if (lane != NULL && !wire->led) lane_listen(lane, LANE_DEAF);
  process_unlock(&wire->lock);
  return EXCHANGED;
}

/**
 * Waits for the agent at the lane. False when the socket has to be read: the lane holds one answer
 * at most, so that what rang more often than once came another way.
 */
static bool sleep_at_lane(struct lane *lane, struct pending *leader, int64_t deadline, int *nap) {
  const int64_t left = deadline - process_now();
  const uint32_t bell = leader->bell;

  if (left > 0 && lane_bell(lane) == bell) {
    lane_sleep(lane, bell, left < *nap * 1000LL ? left : *nap * 1000LL);
    *nap = *nap * 2 < LONGEST_NAP ? *nap * 2 : LONGEST_NAP;
  }
  leader->bell = lane_bell(lane);
  return leader->bell - bell == 1 && lane_answered(lane);
}

/** Reads for all until the leader's own reply has come. */
static enum outcome lead(struct wire *wire, struct pending *leader, uint32_t epoch, int64_t deadline) {
  const int64_t started = process_now();
  const int64_t spin = started + wire->spin_us;
  struct lane *const lane = wire->lane;
  const int fd = wire->fd;
  /* Among many callers spinning only takes the CPU from those who are served before. */
  const bool crowded = lane != NULL && lane_crowded(lane);
  bool spinning = wire->spin_us > 0 && !wire->spinning.sleeps && !crowded;
  /*
   * The bell tells of the answer, also to a request that was sent through the socket: the socket
   * need not be asked.
   */
  enum lane_listening listening = lane != NULL ? LANE_LISTENING : LANE_DEAF;
  int nap = NAP;
  /* The last read took all that the socket had. Until then there is no ring for the rest. */
  bool drained = true;
  bool broken = false;
  bool own = false;

  if (lane != NULL) lane_listen(lane, listening);
  /* No answer comes in less time than this takes; and an agent on this CPU gets to run. */
  if (spinning) sched_yield();
  for (unsigned looks = 0;; looks++) {
    bool waits;
    int left;
    size_t room;
    ssize_t got;

    if (!leader_hand_out(wire, leader, &own)) break;
    if (!own && lane != NULL) leader_fetch(wire, lane, leader, &own, &broken);
    if (broken) break;
    if (own) return retire(wire, lane, crowded ? 0 : started);
    if (spinning && process_now() >= spin) spinning = false;
    /*
     * While the lane is in use the socket says little, and asking it costs more than all the rest.
     */
    if (spinning && leader->in_lane && looks % SOCKET_EVERY != SOCKET_EVERY - 1) {
      sched_yield();
      continue;
    }
    if (!spinning && listening == LANE_LISTENING) {
      /* One more look after this. */
      listening = LANE_ASLEEP;
      lane_listen(lane, listening);
      continue;
    }
    /*
     * Answers for others may come through the lane without end, and the leader's own through the
     * socket.
     */
    if (listening == LANE_ASLEEP && drained && sleep_at_lane(lane, leader, deadline, &nap) && looks % SOCKET_EVERY != SOCKET_EVERY - 1) continue;
    waits = !spinning && listening == LANE_DEAF;
    left = process_until(deadline);
    if (waits) descriptor_poll(fd, POLLIN, left < LONGEST_NAP ? left : LONGEST_NAP);
    room = wire->input_capacity - wire->input_to;
    got = descriptor_receive(fd, wire->input + wire->input_to, room);
    drained = got < 0 || (size_t)got < room;
    if (got > 0) {
      wire->input_to += (size_t)got;
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) break;
    if (spinning) sched_yield();
    else if (left == 0) return wire_withdraw(wire, leader, true) ? UNANSWERED : EXCHANGED;
  }
  wire_lose(wire, epoch, true);
  return LOST;
}

enum outcome leader_await(struct wire *wire, struct pending *call, uint32_t epoch, int64_t deadline) {
  int64_t spin = 0;

  for (;;) {
    switch (atomic_load_explicit(&call->state, memory_order_acquire)) {
      case ANSWERED: return EXCHANGED;
      case GONE: return LOST;
      case LEADING: return lead(wire, call, epoch, deadline);
      default: break;
    }
    if (spin == 0) spin = process_now() + wire->spin_us;
    if (process_now() < spin) {
      sched_yield();
    } else {
      process_wait(&call->state, WAITING, deadline);
      if (process_until(deadline) == 0 && wire_withdraw(wire, call, true)) return UNANSWERED;
    }
  }
}
