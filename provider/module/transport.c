/* The connection in use; see transport.h. Connecting is connect.c's business. */
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "leader.h"
#include "process.h"
#include "sender.h"
#include "wire.h"

uint32_t transport_epoch(void) { return wire.epoch; }

bool transport_is_open(void) { return wire.fd >= 0; }

/** Waits a second at most for a connection to be closed. Its leader sees the end at its next step; only one that gets no CPU is late. */
static bool close_soon(uint32_t epoch) {
  const int64_t deadline = process_now() + 1000000;
  bool done;

  while (!(done = wire_lose(epoch, false)) && process_until(deadline) > 0) process_sleep(500);
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
      wire_release();
      wire_forget_late();
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
  call.code = sender_next_code();
  wire_link(&call);
  process_unlock(&wire.lock);

  sender_write_header(request, call.code);
  sent = sender_send(&call, request, ahead, epoch, deadline);
  if (sent == NOT_SENT && wire_withdraw(&call, false)) return UNSENDABLE;
  if (sent == BROKEN) wire_cut(epoch);
  if (!call.in_lane) {
    process_lock(&wire.lock);
    sender_finish(&call);
    process_unlock(&wire.lock);
  }
  outcome = leader_await(&call, epoch, deadline);
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

  sender_write_header(request, 1);
  if (sender_send_all(fd, NULL, NULL, request, deadline) != SENT) return UNSENT;
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
