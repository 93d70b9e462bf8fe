/* The sessions to resume; see sessions.h. A hash table of lists under one lock: held for lookups and copies of a hundred
 * bytes, never across a system call. */
#include "sessions.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

enum { BUCKETS = 1024, MESSAGE_MAX = 4096, FINAL_MAX = 32 };

struct message {
  unsigned char *bytes;
  size_t length; /* 0 when there is nothing to repeat */
  size_t capacity;
  size_t accepted; /* what `length` was when the agent has accepted what is in `bytes` */
  uint32_t age;    /* and how old the table was then */
  bool idle;       /* the operation has come to its end since */
  bool plain;      /* of an Init whose parts come back as long as they go */
  bool whole;      /* and so did every part so far: the agent has nothing left to say */
  bool started;      /* a part has gone through */
  unsigned char final[FINAL_MAX]; /* the Final that is held back */
  size_t final_length;
};

struct session {
  struct session *next;
  CK_SESSION_HANDLE handle;
  CK_SLOT_ID slot;
  CK_FLAGS flags;
  unsigned due;      /* operations whose Init the present agent has not seen */
  unsigned doubtful; /* operations that it may have started, or not ended, after we gave up waiting */
  unsigned held;     /* operations whose Init goes out with the next call */
  unsigned finals;   /* operations whose Final does, before any Init */
  struct message messages[OPERATIONS_MAX];
};

static struct {
  _Atomic uint32_t lock; /* of process_lock */
  struct session *buckets[BUCKETS];
  size_t count;
  bool logged_in;
  CK_USER_TYPE user;
  atomic_uint due;  /* sessions that are due */
  atomic_uint held; /* sessions that hold something back */
  atomic_uint age;
  unsigned changing; /* calls under way that may change something */
} table;

/** Changes what a session holds back. */
static void set_held(struct session *session, unsigned held, unsigned finals) {
  const bool before = (session->held | session->finals) != 0;
  const bool after = (held | finals) != 0;

  session->held = held;
  session->finals = finals;
  if (before && !after) atomic_fetch_sub(&table.held, 1);
  if (!before && after) atomic_fetch_add(&table.held, 1);
}

static struct session **find(CK_SESSION_HANDLE handle) {
  struct session **at = &table.buckets[handle % BUCKETS];
  while (*at != NULL && (*at)->handle != handle) at = &(*at)->next;
  return at;
}

static void release(struct session **at) {
  struct session *session = *at;

  *at = session->next;
  if (session->due != 0) atomic_fetch_sub(&table.due, 1);
  set_held(session, 0, 0);
  for (int i = 0; i < OPERATIONS_MAX; i++) {
    if (session->messages[i].bytes == NULL) continue;
    buffer_wipe(session->messages[i].bytes, session->messages[i].capacity);
    free(session->messages[i].bytes);
  }
  free(session);
  table.count--;
  /* The standard: with the last session the login ends. */
  if (table.count == 0) table.logged_in = false;
}

void sessions_add(CK_SESSION_HANDLE handle, CK_SLOT_ID slot, CK_FLAGS flags) {
  struct session *session;
  struct session **at;

  process_lock(&table.lock);
  at = find(handle);
  if (*at != NULL) release(at);
  session = calloc(1, sizeof *session);
  /* Without memory the session works, but does not survive a restart. */
  if (session != NULL) {
    session->handle = handle;
    session->slot = slot;
    session->flags = flags;
    session->next = table.buckets[handle % BUCKETS];
    table.buckets[handle % BUCKETS] = session;
    table.count++;
  }
  process_unlock(&table.lock);
}

void sessions_remove(CK_SESSION_HANDLE handle) {
  struct session **at;

  process_lock(&table.lock);
  at = find(handle);
  if (*at != NULL) release(at);
  process_unlock(&table.lock);
}

static void remove_where(bool any, CK_SLOT_ID slot) {
  for (size_t i = 0; i < BUCKETS; i++) {
    struct session **at = &table.buckets[i];
    while (*at != NULL) {
      if (any || (*at)->slot == slot) release(at);
      else at = &(*at)->next;
    }
  }
}

void sessions_remove_all(CK_SLOT_ID slot) {
  process_lock(&table.lock);
  remove_where(false, slot);
  process_unlock(&table.lock);
}

void sessions_clear(void) {
  process_lock(&table.lock);
  remove_where(true, 0);
  table.logged_in = false;
  process_unlock(&table.lock);
}

void sessions_leave(void) {
  if (!process_lock_until(&table.lock, 0)) return;
  remove_where(true, 0);
  process_unlock(&table.lock);
}

void sessions_forget(void) {
  table.lock = 0;
  memset(table.buckets, 0, sizeof table.buckets);
  table.count = 0;
  table.logged_in = false;
  table.due = 0;
  table.held = 0;
  table.changing = 0;
}

void sessions_login(CK_USER_TYPE user) {
  process_lock(&table.lock);
  table.logged_in = true;
  table.user = user;
  process_unlock(&table.lock);
}

void sessions_logout(void) {
  process_lock(&table.lock);
  table.logged_in = false;
  process_unlock(&table.lock);
}

uint32_t sessions_age(void) { return atomic_load_explicit(&table.age, memory_order_acquire); }

static void clear_due(struct session *session, int operation) {
  if ((session->due & 1u << operation) == 0) return;
  session->due &= ~(1u << operation);
  if (session->due == 0) atomic_fetch_sub(&table.due, 1);
}

/** A Final that is held back stays: its operation has already ended. */
static void forget_message(struct session *session, int operation) {
  struct message *message = &session->messages[operation];

  message->length = 0;
  message->idle = message->whole = message->started = false;
  clear_due(session, operation);
  set_held(session, session->held & ~(1u << operation), session->finals);
}

void sessions_keep(CK_SESSION_HANDLE handle, int operation, const unsigned char *bytes, size_t length, uint32_t age, bool plain) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) {
    struct message *message = &session->messages[operation];
    forget_message(session, operation);
    session->doubtful &= ~(1u << operation);
    message->accepted = 0;
    if (length > message->capacity && length <= MESSAGE_MAX) {
      if (message->bytes != NULL) buffer_wipe(message->bytes, message->capacity);
      free(message->bytes);
      message->capacity = 0;
      message->bytes = malloc(length + 64);
      if (message->bytes != NULL) message->capacity = length + 64;
    }
    if (length <= message->capacity) {
      if (message->bytes != NULL) memcpy(message->bytes, bytes, length);
      message->length = length;
      message->accepted = length;
      message->age = age;
    }
    message->plain = message->whole = plain && message->accepted == length;
  }
  process_unlock(&table.lock);
}

void sessions_drop(CK_SESSION_HANDLE handle, unsigned operations) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && i < OPERATIONS_MAX; i++)
    if ((operations & 1u << i) != 0) forget_message(session, i);
  process_unlock(&table.lock);
}

void sessions_continue(CK_SESSION_HANDLE handle, unsigned operations, bool whole) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && i < OPERATIONS_MAX; i++) {
    const bool still = whole && session->messages[i].whole;
    if ((operations & 1u << i) == 0) continue;
    forget_message(session, i);
    session->messages[i].whole = session->messages[i].started = still;
  }
  process_unlock(&table.lock);
}

void sessions_doubt(CK_SESSION_HANDLE handle, unsigned operations) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) session->doubtful |= operations;
  process_unlock(&table.lock);
}

bool sessions_doubted(CK_SESSION_HANDLE handle, int operation) {
  struct session *session;
  bool doubtful;

  process_lock(&table.lock);
  session = *find(handle);
  doubtful = session != NULL && (session->doubtful & 1u << operation) != 0;
  process_unlock(&table.lock);
  return doubtful;
}

void sessions_finish(CK_SESSION_HANDLE handle, int operation) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) {
    forget_message(session, operation);
    session->messages[operation].idle = true;
  }
  process_unlock(&table.lock);
}

/* --- holding back ----------------------------------------------------------------------------------------------------- */

bool sessions_hold(CK_SESSION_HANDLE handle, int operation, const unsigned char *bytes, size_t length,
                   sessions_repeats repeats) {
  struct session *session;
  bool held = false;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL && table.changing == 0) {
    struct message *message = &session->messages[operation];
    held = message->idle && message->accepted == length && message->age == table.age &&
           repeats(message->bytes, bytes, length);
    if (held) {
      memcpy(message->bytes, bytes, length);
      message->length = length;
      message->idle = false;
      message->whole = message->plain;
      set_held(session, session->held | 1u << operation, session->finals);
    }
  }
  process_unlock(&table.lock);
  return held;
}

bool sessions_hold_final(CK_SESSION_HANDLE handle, int operation, const unsigned char *bytes, size_t length) {
  struct session *session;
  bool held = false;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL && table.changing == 0) {
    struct message *message = &session->messages[operation];
    /* What changes something may have ended the operation. */
    held = message->started && message->whole && message->age == table.age && length <= FINAL_MAX &&
           ((session->finals | session->doubtful) & 1u << operation) == 0;
    if (held) {
      memcpy(message->final, bytes, length);
      message->final_length = length;
      forget_message(session, operation);
      message->idle = true;
      set_held(session, session->held, session->finals | 1u << operation);
    }
  }
  process_unlock(&table.lock);
  return held;
}

void sessions_hold_again(CK_SESSION_HANDLE handle, int operation, bool final) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL && final) set_held(session, session->held, session->finals | 1u << operation);
  else if (session != NULL && session->messages[operation].length > 0)
    set_held(session, session->held | 1u << operation, session->finals);
  process_unlock(&table.lock);
}

enum put { PUT, FULL, FAILED };

/** Adds a message as a frame. FULL: it does not fit behind the others. FAILED: without memory, and the frames are marked so. Then it stays
 * held. */
static enum put put_frame(struct buffer *frames, const unsigned char *bytes, size_t length, size_t limit) {
  enum { HEADER = 12 };

  if (frames->length > 0 && frames->length + HEADER + length > limit) return FULL;
  buffer_put_u32(frames, 0);
  buffer_put_u32(frames, 0);
  buffer_put_array(frames, bytes, length);
  return frames->failed ? FAILED : PUT;
}

/** FULL when something had to stay behind. */
static enum put take_held(struct session *session, struct buffer *frames, size_t limit) {
  for (int i = 0; (session->held | session->finals) != 0 && i < OPERATIONS_MAX; i++) {
    const struct message *message = &session->messages[i];
    const unsigned bit = 1u << i;
    if ((session->finals & bit) != 0) {
      const enum put put = put_frame(frames, message->final, message->final_length, limit);
      if (put != PUT) return put;
      set_held(session, session->held, session->finals & ~bit);
    }
    if ((session->held & bit) != 0) {
      const enum put put = put_frame(frames, message->bytes, message->length, limit);
      if (put != PUT) return put;
      set_held(session, session->held & ~bit, session->finals);
    }
  }
  return PUT;
}

bool sessions_take_held(CK_SESSION_HANDLE handle, struct buffer *frames, size_t limit) {
  struct session *session;
  enum put put = PUT;

  if (atomic_load_explicit(&table.held, memory_order_acquire) == 0) return false;
  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) put = take_held(session, frames, limit);
  process_unlock(&table.lock);
  return put == FULL;
}

bool sessions_take_all_held(struct buffer *frames, size_t limit) {
  enum put put = PUT;

  if (atomic_load_explicit(&table.held, memory_order_acquire) == 0) return false;
  process_lock(&table.lock);
  for (size_t i = 0; put == PUT && table.held != 0 && i < BUCKETS; i++)
    for (struct session *session = table.buckets[i]; put == PUT && session != NULL; session = session->next)
      put = take_held(session, frames, limit);
  process_unlock(&table.lock);
  return put == FULL;
}

void sessions_begin_change(void) {
  process_lock(&table.lock);
  table.changing++;
  process_unlock(&table.lock);
}

void sessions_end_change(void) {
  process_lock(&table.lock);
  table.changing--;
  table.age++;
  process_unlock(&table.lock);
}

void sessions_put_hello(struct buffer *buffer) {
  char text[128];
  const char *comma = "";

  process_lock(&table.lock);
  if (table.logged_in) snprintf(text, sizeof text, "\"login\":%lu,\"sessions\":[", table.user);
  else snprintf(text, sizeof text, "\"login\":null,\"sessions\":[");
  buffer_put_text(buffer, text);
  for (size_t i = 0; i < BUCKETS; i++) {
    for (const struct session *session = table.buckets[i]; session != NULL; session = session->next) {
      snprintf(text, sizeof text, "%s[%lu,%lu,%lu]", comma, session->handle, session->slot, session->flags);
      buffer_put_text(buffer, text);
      comma = ",";
    }
  }
  buffer_put_text(buffer, "]");
  process_unlock(&table.lock);
}

void sessions_all_due(void) {
  unsigned due = 0;

  process_lock(&table.lock);
  for (size_t i = 0; i < BUCKETS; i++) {
    for (struct session *session = table.buckets[i]; session != NULL; session = session->next) {
      session->due = 0;
      session->doubtful = 0;
      session->held = 0;
      session->finals = 0;
      for (int j = 0; j < OPERATIONS_MAX; j++) {
        if (session->messages[j].length > 0) session->due |= 1u << j;
        if (session->messages[j].started) session->messages[j].whole = false;
      }
      if (session->due != 0) due++;
    }
  }
  table.due = due;
  table.held = 0;
  table.age++;
  process_unlock(&table.lock);
}

bool sessions_any_due(void) { return atomic_load_explicit(&table.due, memory_order_acquire) != 0; }

bool sessions_take_due(CK_SESSION_HANDLE handle, struct buffer *message) {
  struct session *session;
  bool taken = false;

  process_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && !taken && i < OPERATIONS_MAX; i++) {
    if ((session->due & 1u << i) == 0) continue;
    buffer_put_raw(message, session->messages[i].bytes, session->messages[i].length);
    session->due &= ~(1u << i);
    if (session->due == 0) atomic_fetch_sub(&table.due, 1);
    taken = true;
  }
  process_unlock(&table.lock);
  return taken;
}
