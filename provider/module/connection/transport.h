/*
 * One socket, many threads. Every call gets a fresh code; replies come in any order and find their
 * caller by that code. One of the threads that wait, the leader, reads for all; so the library
 * needs no thread of its own, and a lone caller reads its own reply without a switch.
 *
 * Who may write, read and close, and what is counted: provider/PROTOCOL.md, "Rules of the
 * connection: the library's side".
 */
#ifndef DKE_TRANSPORT_H
#define DKE_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "connection/lane.h"
#include "message/buffer.h"

enum { TRANSPORT_HEADER = 12 }; /* call code, length of options, length of body */

enum outcome {
  EXCHANGED,   /* the reply is there */
  UNSENT,      /* the connection was lost, or there was none, before the whole request was sent */
  LOST,        /* the connection was lost after the request was sent: it may or may not have been carried out */
  UNANSWERED,  /* the deadline passed; the connection lives */
  UNSENDABLE   /* the deadline passed before anything could be sent; the connection lives */
};

/**
 * Puts a fresh, negotiated connection to use. `lane`: what the agent has offered next to it, or
 * NULL; both are the transport's from here on. `spin_us`: how long to yield for a reply before
 * sleeping. False when a thread is still reading the connection before: then both stay the
 * caller's.
 */
bool transport_adopt(int fd, struct lane *lane, int spin_us);
/**
 * Counts connections: differs from what it was as soon as there is another one. 0 when there never
 * was one.
 */
uint32_t transport_epoch(void);
bool transport_is_open(void);
/**
 * Whether the socket is still the library's. The lane lives as long as the agent sees no end of the
 * socket, whose number the host may have given to something else before. An answer may still come
 * through the lane then, but the next thread that reads the socket ends the connection. So a call
 * that cannot be repeated asks here before it is sent.
 */
bool transport_is_ours(void);
/**
 * What leaves right before a request: whole frames but for their call codes, whose replies are
 * ignored. `take` adds as much of it as fits in TRANSPORT_AHEAD to the empty `frames` and tells
 * whether there is more. It is called when the request's turn has come: until that is sent no other
 * thread sends anything, so none can overtake what was taken.
 */
enum { TRANSPORT_AHEAD = 64 * 1024 };
struct transport_ahead {
  bool (*take)(void *context, struct buffer *frames);
  void *context;
  struct buffer frames; /* those that were taken last */
};
/**
 * Sends a request, whose first TRANSPORT_HEADER bytes are filled in here, and waits for the reply's
 * body. `ahead`: NULL for nothing. `epoch`: the connection it is meant for. `keep_late`: a reply
 * that comes after the deadline is for transport_take_late.
 */
enum outcome transport_exchange(struct buffer *request, struct transport_ahead *ahead, struct buffer *reply, uint32_t epoch,
                                int64_t deadline, bool keep_late);
/**
 * Takes one late reply of this connection, in place of what is in `reply`. False when none has
 * come: cheap.
 */
bool transport_take_late(struct buffer *reply, uint32_t epoch);
/** `transport_exchange` on a connection that no other thread uses yet. */
enum outcome transport_exchange_alone(int fd, struct buffer *request, struct buffer *reply, int64_t deadline);
/**
 * Ends the connection and lets every waiting call return. One that gets no CPU for a second closes
 * it when it does.
 */
void transport_close(void);
/**
 * Hangs up, for a process that ends or drops the library. Waits for no lock; releases what no
 * thread uses.
 */
void transport_drop(void);
/**
 * In a forked child: forgets everything of the parent's. Its descriptor is closed already
 * (process.h), and never written to.
 */
void transport_forget(void);

#endif
