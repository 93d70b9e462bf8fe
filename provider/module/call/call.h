/*
 * One Cryptoki call from its arguments to its return value, and what the library has to remember of
 * it. Generated entry points (module/entry/gen/entries.c) are made of these.
 */
#ifndef DKE_CALL_H
#define DKE_CALL_H

#include "call/arguments.h"

/** Sends and waits. True when there is an answer to read. */
bool call_run(struct call *call);
/** C_SessionCancel of one operation, and its return value. */
CK_RV call_cancel_operation(CK_SESSION_HANDLE session, int operation);
/** Remembers what a restart of the agent would need, and ends the call. */
CK_RV call_end(struct call *call);

#endif
