/* The state of the connection in use; see wire.h. */
#include "connection/wire.h"

#include <stdlib.h>

#include "host/descriptor.h"
#include "host/process.h"

/*
 * --- the list of waiting calls, under `lock` -----------------------------------------------------
 */

void wire_link(struct wire *wire, struct pending *call) {
  call->next = NULL;
  call->previous = wire->last;
  if (wire->last != NULL) wire->last->next = call;
  else wire->first = call;
  wire->last = call;
}

void wire_unlink(struct wire *wire, struct pending *call) {
  if (call->previous != NULL) call->previous->next = call->next;
  else wire->first = call->next;
  if (call->next != NULL) call->next->previous = call->previous;
  else wire->last = call->previous;
}

void wire_settle(struct pending *call, uint32_t state) {
  _Atomic uint32_t *word = &call->state;
  /*
   * From this store on the call may vanish with its thread's stack; waking a stale address does no
   * harm.
   */
  atomic_store_explicit(word, state, memory_order_release);
  process_wake(word);
}

/**
 * Makes the call that has waited longest the leader. One that is still being sent cannot lead: its
 * thread may be unable to send until a thread reads.
 */
void wire_pass_on(struct wire *wire) {
  struct pending *next = wire->first;

  while (next != NULL && next->sending) next = next->next;
  wire->led = next != NULL;
  if (next != NULL) wire_settle(next, LEADING);
}

/** Makes a call the leader if there is none. Its own thread does this. */
void wire_lead_if_needed(struct wire *wire, struct pending *call) {
  if (wire->led || call->state != WAITING) return;
  wire->led = true;
  call->state = LEADING;
}

/** Without memory the reply is dropped when it comes, like any other. */
static void expect_late(struct wire *wire, uint32_t code) {
  struct late *late = calloc(1, sizeof *late);

  if (late == NULL) return;
  buffer_open(&late->reply);
  late->code = code;
  late->next = wire->late;
  wire->late = late;
}

/** A reply that is no longer awaited. */
void wire_keep_late(struct wire *wire, uint32_t code, const unsigned char *body, size_t length) {
  struct late *late = wire->late;

  while (late != NULL && (late->code != code || late->answered)) late = late->next;
  if (late == NULL) return;
  buffer_put_raw(&late->reply, body, length);
  late->answered = true;
  wire->late_replies++;
}

void wire_forget_late(struct wire *wire) {
  while (wire->late != NULL) {
    struct late *late = wire->late;
    wire->late = late->next;
    buffer_close(&late->reply);
    free(late);
  }
  wire->late_replies = 0;
}

/** Takes a call off the list that has not been answered. False when it has been in the meantime. */
bool wire_withdraw(struct wire *wire, struct pending *call, bool sent) {
  uint32_t state;

  process_lock(&wire->lock);
  state = atomic_load_explicit(&call->state, memory_order_acquire);
  if (state == WAITING || state == LEADING) {
    wire_unlink(wire, call);
    if (state == LEADING) wire_pass_on(wire);
    if (sent || call->ahead_sent) wire->unanswered = true;
    if (sent && call->keep_late) expect_late(wire, call->code);
  }
  process_unlock(&wire->lock);
  return state == WAITING || state == LEADING;
}

/*
 * --- the end of a connection ---------------------------------------------------------------------
 */

/**
 * Makes every reader and writer of the connection see its end, without closing the number under
 * their hands.
 */
void wire_cut(struct wire *wire, uint32_t epoch) {
  process_lock(&wire->lock);
  if (wire->epoch == epoch && wire->fd >= 0) {
    descriptor_hang_up(wire->fd);
    if (wire->lane != NULL) lane_rouse(wire->lane);
  }
  process_unlock(&wire->lock);
}

/**
 * Gives up the connection's descriptor, lane and input. Under both locks, and no other thread
 * leads.
 */
void wire_release(struct wire *wire) {
  const int fd = wire->fd;

  wire->fd = -1;
  descriptor_close(fd);
  lane_leave(wire->lane);
  wire->lane = NULL;
  if (wire->input != NULL) buffer_wipe(wire->input, wire->input_capacity);
  free(wire->input);
  wire->input = NULL;
  wire->input_capacity = wire->input_from = wire->input_to = 0;
}

/**
 * Closes the connection and tells all who wait. Only the leader may do so while there is one: it
 * uses what is released here. False when another thread leads.
 */
bool wire_lose(struct wire *wire, uint32_t epoch, bool leads) {
  bool done;

  wire_cut(wire, epoch); /* ends a send that has the write lock */
  process_lock(&wire->write_lock);
  process_lock(&wire->lock);
  done = wire->epoch != epoch || wire->fd < 0;
  if (!done && (leads || !wire->led)) {
    wire_release(wire);
    while (wire->first != NULL) {
      struct pending *call = wire->first;
      wire_unlink(wire, call);
      wire_settle(call, GONE);
    }
    wire->led = false;
    wire_forget_late(wire);
    done = true;
  }
  process_unlock(&wire->lock);
  process_unlock(&wire->write_lock);
  return done;
}
