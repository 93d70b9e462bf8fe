/*
 * The way of a call to the agent: behind the messages that were held back for it, on as many
 * connections as it takes, until there is an answer or a reason why there is none.
 */
#ifndef DKE_DELIVERY_H
#define DKE_DELIVERY_H

#include "call/arguments.h"

/** Until when an answer to a call that starts now is waited for. */
int64_t delivery_deadline(const struct call_row *row);
/**
 * Sends a call and waits for its answer. True when there is one to read; else `call->rv` says why
 * not.
 */
bool delivery_exchange(struct call *call);
/**
 * Answers an Init or a Final that the agent is bound to accept, and keeps it for what follows in
 * its session. False: it has to be sent.
 */
bool delivery_hold_back(struct call *call);

#endif
