/*
 * The lane: memory shared with the agent, through which messages pass instead of through the socket
 * while calls flow and both sides are looking at it. Layout and rules in provider/PROTOCOL.md,
 * "Lane". Who may use it when is transport.c's business.
 *
 * Asking (lane_free, lane_ask) is done under the lock of sending; listening and fetching by the one
 * thread that reads for all.
 */
#ifndef DKE_LANE_H
#define DKE_LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "message/buffer.h"

enum {
  LANE_LARGEST_REQUEST = 4096,
  LANE_LARGEST_ANSWER = 8192
};

/** What the agent is told. */
enum lane_listening { LANE_DEAF, LANE_LISTENING, LANE_ASLEEP };

struct lane;

/**
 * Maps what the agent has offered, and closes the descriptor. NULL when it is not what was agreed:
 * there is the socket.
 */
struct lane *lane_join(int fd);
/** Releases the memory. It must not be in use. NULL does nothing. */
void lane_leave(struct lane *lane);

/** Whether the agent polls it now, and a request of this length has room. */
bool lane_free(const struct lane *lane, size_t length);
/**
 * Puts `ahead` (NULL for none) and `request` there. False when the agent has stopped looking in the
 * meantime: it must be rung.
 */
bool lane_ask(struct lane *lane, const struct buffer *ahead, const struct buffer *request);
/**
 * Whether so many call at once that spinning for an answer only takes the CPU from those who are to
 * be served before.
 */
bool lane_crowded(const struct lane *lane);
/**
 * Shows the agent whether a thread polls for answers, or sleeps here. After a change, fetch again
 * before sleeping.
 */
void lane_listen(struct lane *lane, enum lane_listening listening);
/** Changes whenever the agent has sent something, here or through the socket. */
uint32_t lane_bell(const struct lane *lane);
/** Sleeps while the bell is the one given, for so long at most. May return early. */
void lane_sleep(struct lane *lane, uint32_t bell, int64_t microseconds);
/** Wakes the thread of this process that sleeps there. */
void lane_rouse(struct lane *lane);
/**
 * Tells the agent whether this side spins for its answers. An agent that spins for who sleeps only
 * takes the CPU from others.
 */
void lane_spin(struct lane *lane, bool spinning);
/** Whether an answer waits. */
bool lane_answered(const struct lane *lane);
/**
 * The answer that waits, copied and wiped: valid until the next call. NULL for none; *broken when
 * it breaks the rules.
 */
const unsigned char *lane_fetch(struct lane *lane, size_t *length, bool *broken);

#endif
