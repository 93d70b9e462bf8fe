/*
 * The library in this process, from C_Initialize to C_Finalize: whose it is after a fork, what it
 * was configured with, and the way back to an agent after a connection was lost.
 */
#ifndef DKE_LIBRARY_H
#define DKE_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "message/cryptoki.h"

CK_RV library_initialize(void);
/** What remains to do after the agent was notified. */
CK_RV library_finalize(void);
/**
 * CKR_OK, or CKR_CRYPTOKI_NOT_INITIALIZED: in a process, or a forked child of one, that has not
 * called C_Initialize.
 */
CK_RV library_ready(void);
/**
 * Connects again after the connection `lost` (an epoch) has ended, unless another thread already
 * has.
 */
CK_RV library_reconnect(uint32_t lost);
/**
 * Whether the sessions are permanently lost, because a peer that is not our agent cannot resume
 * them. `foreign`: this peer is now lost.
 */
bool library_peer_is_lost(bool foreign);
/** How long to wait for an answer to an ordinary call. */
int library_call_timeout_ms(void);

#endif
