/* Receiving: the leader, one of the waiting threads, reads for all. */
#ifndef DKE_LEADER_H
#define DKE_LEADER_H

#include "connection/transport.h"
#include "connection/wire.h"

/**
 * Hands out every whole frame of the input. False when the peer breaks the protocol. `own` tells
 * whether the leader's was among them.
 */
bool leader_hand_out(struct wire *wire, struct pending *leader, bool *own);
/** Hands out what waits in the lane. False also when nothing waits, and then `broken` stays. */
bool leader_fetch(struct wire *wire, struct lane *lane, struct pending *leader, bool *own, bool *broken);
/** Waits for the reply of a call that was sent, and reads for all while it leads. */
enum outcome leader_await(struct wire *wire, struct pending *call, uint32_t epoch, int64_t deadline);

#endif
