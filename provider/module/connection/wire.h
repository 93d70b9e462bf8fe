/*
 * The state of a connection, the calls that wait for their replies, and the end of a connection.
 * Only transport.c and leader.c include this.
 *
 * Who may write, read and close, and what is counted: provider/PROTOCOL.md, "Rules of the
 * connection: the library's side".
 */
#ifndef DKE_WIRE_H
#define DKE_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "connection/lane.h"
#include "connection/spinning.h"
#include "message/buffer.h"

/** What a waiting thread reads. */
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
  bool in_lane; /* sent through the lane, while no other call was under way */
  uint32_t bell; /* of the lane, before */
};

/** A call that has given up, but whose reply is still required. */
struct late {
  struct late *next;
  uint32_t code;
  bool answered;
  struct buffer reply;
};

struct wire {
  _Atomic uint32_t write_lock; /* both: of process_lock */
  _Atomic uint32_t lock;
  _Atomic uint32_t epoch;
  _Atomic int fd; /* of descriptor.h; changes under both locks; -1 when there is no connection */
  struct lane *lane; /* changes under both locks; NULL when there is none */
  bool unanswered; /* something was sent on this connection whose answer no longer shows anything: the agent may not have seen it yet */
  atomic_int spin_us;
  uint32_t last_code;
  struct pending *first;
  struct pending *last;
  atomic_bool led;
  struct late *late;
  atomic_uint late_replies; /* of those on the list, how many have come */
  /*
   * Only the leader uses these: bytes received and not yet handed out. The next leader continues
   * with them.
   */
  unsigned char *input;
  size_t input_capacity;
  size_t input_from;
  size_t input_to;
  struct spinning spinning;
};
/** The one of this process (transport.c), for tests of its locks. */
struct wire *transport_wire(void);

/* The list of waiting calls: under `lock`. */
void wire_link(struct wire *wire, struct pending *call);
void wire_unlink(struct wire *wire, struct pending *call);
/** Tells a waiting call its state and wakes its thread. */
void wire_settle(struct pending *call, uint32_t state);
/** Makes the call that has waited longest the leader. */
void wire_pass_on(struct wire *wire);
/** Makes a call the leader if there is none. Its own thread does this. */
void wire_lead_if_needed(struct wire *wire, struct pending *call);
/** Keeps a reply that comes after its caller's deadline, if it is required. */
void wire_keep_late(struct wire *wire, uint32_t code, const unsigned char *body, size_t length);
void wire_forget_late(struct wire *wire);
/**
 * Takes a call off the list that has not been answered. False when it has been in the meantime.
 * Takes `lock` itself.
 */
bool wire_withdraw(struct wire *wire, struct pending *call, bool sent);

/**
 * Makes every reader and writer of the connection see its end, without closing the descriptor while
 * they use it.
 */
void wire_cut(struct wire *wire, uint32_t epoch);
/**
 * Gives up the connection's descriptor, lane and input. Under both locks, and no other thread
 * leads.
 */
void wire_release(struct wire *wire);
/** Closes the connection and tells all who wait. False when another thread leads. */
bool wire_lose(struct wire *wire, uint32_t epoch, bool leads);

#endif
