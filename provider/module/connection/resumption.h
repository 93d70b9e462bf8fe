/*
 * What the library remembers so that a restart of the agent goes unnoticed: the open sessions, who
 * is logged in, and per session the last Init message of each operation that has not been used yet.
 * No object, key or PIN is kept.
 *
 * And what it takes to hold an Init back until the operation follows, so that both travel together
 * (PROTOCOL.md, "Held Init"): which Inits the agent has accepted, and whether anything may have
 * changed since. And a Final until something follows.
 */
#ifndef DKE_SESSIONS_H
#define DKE_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "message/buffer.h"
#include "message/cryptoki.h"

enum { OPERATIONS_MAX = 10 };

void sessions_add(CK_SESSION_HANDLE handle, CK_SLOT_ID slot, CK_FLAGS flags);
void sessions_remove(CK_SESSION_HANDLE handle);
void sessions_remove_all(CK_SLOT_ID slot);
/** Forgets everything: C_Finalize. */
void sessions_clear(void);
/** Frees all sessions at the end of the library, unless a thread uses them: waits for no lock. */
void sessions_leave(void);
/** Forgets everything in a forked child, trusting neither lock nor list. */
void sessions_forget(void);

void sessions_login(CK_USER_TYPE user);
void sessions_logout(void);

/** Counts what may change which Inits are accepted. To be read before an Init is sent. */
uint32_t sessions_age(void);
/**
 * Keeps a session's Init message (a request body) for `operation`: the agent has accepted it when
 * the age was `age`. `plain`: parts of whole blocks come back as long as they go.
 */
void sessions_keep(CK_SESSION_HANDLE handle, int operation, const unsigned char *message, size_t length, uint32_t age, bool plain);
/**
 * Forgets the Inits of these operations, a bit set: they have ended, or can no longer be started
 * afresh.
 */
void sessions_drop(CK_SESSION_HANDLE handle, unsigned operations);
/**
 * Notes that a part of these operations has gone through, so that their Inits cannot be sent again.
 * `whole`: the part came back as long as it went, so that a Final may have nothing left to say.
 */
void sessions_continue(CK_SESSION_HANDLE handle, unsigned operations, bool whole);
/** Forgets an Init whose operation has come to its regular end: none of its kind is running. */
void sessions_finish(CK_SESSION_HANDLE handle, int operation);

/** Whether an Init that follows `before`, of the same length, is accepted if that one was. */
typedef bool (*sessions_repeats)(const unsigned char *before, const unsigned char *now, size_t length);
/** Holds an Init back, when the agent is bound to accept it. False: it has to be sent. */
bool sessions_hold(CK_SESSION_HANDLE handle, int operation, const unsigned char *message, size_t length,
                   sessions_repeats repeats);
/**
 * Holds a Final back and ends its operation, when it can say nothing but CKR_OK and no bytes.
 * False: it has to be sent.
 */
bool sessions_hold_final(CK_SESSION_HANDLE handle, int operation, const unsigned char *message, size_t length);
/** What was taken could not be sent: it is held as before. */
void sessions_hold_again(CK_SESSION_HANDLE handle, int operation, bool final);
/**
 * Takes what a session holds back, as frames without a call code, after what is in `frames`, up to
 * `limit` bytes in all. True when there is more. Without memory the frames are marked as failed,
 * and what is not among them is still held.
 */
bool sessions_take_held(CK_SESSION_HANDLE handle, struct buffer *frames, size_t limit);
/** `sessions_take_held` for all sessions. */
bool sessions_take_all_held(struct buffer *frames, size_t limit);
/**
 * Around a call that may change keys, sessions or the login, and takes what all hold back: nothing
 * is held back in the meantime.
 */
void sessions_begin_change(void);
void sessions_end_change(void);

/**
 * A call of these operations, a bit set, got no answer: they may run in the agent, although they do
 * not for the caller.
 */
void sessions_doubt(CK_SESSION_HANDLE handle, unsigned operations);
/** Whether there was such a call and no Init has succeeded since. */
bool sessions_doubted(CK_SESSION_HANDLE handle, int operation);

/** The members "login" and "sessions" of the hello. */
void sessions_put_hello(struct buffer *buffer);
/** After a reconnect: every session with an Init to repeat is due. */
void sessions_all_due(void);
/** Whether any session is due: cheap, asked before each call. */
bool sessions_any_due(void);
/**
 * Takes one Init message of a due session, in `message` after what is there; false when the session
 * has none left.
 */
bool sessions_take_due(CK_SESSION_HANDLE handle, struct buffer *message);

#endif
