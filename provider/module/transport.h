/*
 * One socket, many threads. Every call gets a fresh code; replies come in any order and find their caller by that code.
 *
 * Leader and followers: of the threads that wait, one reads the socket and hands each reply to its owner; when its own has
 * come it passes the office on. So no thread of ours is needed, and a lone caller reads its own reply without a switch.
 *
 * While calls flow, a lone call goes through the lane (lane.h) instead of the socket. What goes through one could overtake what is in
 * the other, so a call takes the lane only when nothing else is under way that the agent may not have seen.
 *
 * Locks: `write_lock` around sending, `lock` around the list of waiting calls; both only ever held for bounded time, taken
 * in this order. The descriptor is closed under both, so that no thread can send into a number that the host has reused.
 */
#ifndef DKE_TRANSPORT_H
#define DKE_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "lane.h"

enum { TRANSPORT_HEADER = 12 }; /* call code, length of options, length of body */

enum outcome {
  EXCHANGED,   /* the reply is there */
  UNSENT,      /* the connection was lost, or there was none, before the whole request was sent */
  LOST,        /* the connection was lost after the request was sent: it may or may not have been carried out */
  UNANSWERED,  /* the deadline passed; the connection lives */
  UNSENDABLE   /* the deadline passed before anything could be sent; the connection lives */
};

/**
 * Puts a fresh, negotiated connection to use. `lane`: what the agent has offered beside it, or NULL; it is the transport's from here
 * on. `spin_us`: how long to yield for a reply before sleeping.
 */
void transport_adopt(int fd, struct lane *lane, int spin_us);
/** Counts connections: differs from what it was as soon as there is another one. 0 when there never was one. */
uint32_t transport_epoch(void);
bool transport_is_open(void);
/**
 * What leaves in one piece with a request, before it: whole frames but for their call codes, to whose replies nobody listens.
 * `take` adds them to `frames` when the request's turn has come: until that is sent no other thread sends anything, so none can
 * overtake what was taken.
 */
struct transport_ahead {
  void (*take)(void *context, struct buffer *frames);
  void *context;
  struct buffer frames;
};
/**
 * Sends a request, whose first TRANSPORT_HEADER bytes are filled in here, and waits for the reply's body. `ahead`: NULL for
 * nothing. `epoch`: the connection it is meant for. `keep_late`: a reply that comes after the deadline is for
 * transport_take_late.
 */
enum outcome transport_exchange(struct buffer *request, struct transport_ahead *ahead, struct buffer *reply, uint32_t epoch,
                                int64_t deadline, bool keep_late);
/** Takes one late reply of this connection, in place of what is in `reply`. False when none has come: cheap. */
bool transport_take_late(struct buffer *reply, uint32_t epoch);
/** The same on a connection that nobody else uses yet. */
enum outcome transport_exchange_alone(int fd, struct buffer *request, struct buffer *reply, int64_t deadline);
/** Ends the connection and lets every waiting call return. */
void transport_close(void);
/** Hangs up, for a process that ends or drops the library: takes no lock and frees nothing, as a thread may be in a call. */
void transport_drop(void);
/** In a forked child: forgets everything of the parent's, closing the inherited descriptor but never writing to it. */
void transport_forget(void);

#endif
