/*
 * What the library does so that a late answer or a refused call leaves no trace that the caller could not expect: it ends operations that
 * are over for the caller, and closes sessions whose handles no caller knows.
 */
#ifndef DKE_RECOVERY_H
#define DKE_RECOVERY_H

#include "arguments.h"

/**
 * Closes sessions that were opened after their caller was told that there was no answer: their handles are unknown. Whatever
 * the agent answers after such an answer shows that it has come, so this follows each call.
 */
void recovery_close_strays(void);
/** C_SessionCancel of one operation, and its return value. */
CK_RV recovery_cancel(CK_SESSION_HANDLE session, int operation);
/**
 * Of a call that is refused here, before the agent has seen it: what the standard lets end with any error ends there too.
 */
void recovery_end_refused(const struct call *refused);

#endif
