/*
 * What the library remembers so that a restart of the agent goes unnoticed: the open sessions, who is logged in, and per
 * session the last Init message of each operation that has not been used yet. No object, key or PIN is kept.
 */
#ifndef DKE_SESSIONS_H
#define DKE_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "cryptoki.h"

enum { OPERATIONS_MAX = 8 };

void sessions_add(CK_SESSION_HANDLE handle, CK_SLOT_ID slot, CK_FLAGS flags);
void sessions_remove(CK_SESSION_HANDLE handle);
void sessions_remove_all(CK_SLOT_ID slot);
/** Forgets everything: C_Finalize. */
void sessions_clear(void);
/** In a forked child: the same, trusting neither lock nor list. */
void sessions_forget(void);

void sessions_login(CK_USER_TYPE user);
void sessions_logout(void);

/** Keeps a session's Init message (a request body) for `operation`; NULL forgets it. Those in `also`, a bit set, are forgotten. */
void sessions_keep(CK_SESSION_HANDLE handle, int operation, const unsigned char *message, size_t length);
void sessions_drop(CK_SESSION_HANDLE handle, unsigned operations);

/** An Init that was sent and whose answer never came: the agent may have started the operation all the same. */
void sessions_doubt(CK_SESSION_HANDLE handle, int operation);
/** Whether there was such an Init and none has succeeded since; there is none afterwards. */
bool sessions_take_doubt(CK_SESSION_HANDLE handle, int operation);

/** The members "login" and "sessions" of the hello. */
void sessions_put_hello(struct buffer *buffer);
/** After a reconnect: every session with an Init to repeat is due. */
void sessions_all_due(void);
/** Whether any session is due: cheap, asked before each call. */
bool sessions_any_due(void);
/** Takes one Init message of a due session, in `message` after what is there; false when the session has none left. */
bool sessions_take_due(CK_SESSION_HANDLE handle, struct buffer *message);

#endif
