/*
 * The sessions to resume; see resumption.h. A hash table of lists under one lock: held for lookups
 * and copies of a hundred bytes, never across a system call.
 */
#include "connection/resumption.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/process.h"

enum { BUCKETS = 1024, MESSAGE_MAX = 4096, FINAL_MAX = 32 };

/** Where the Init of an operation stands. */
enum state {
  UNKNOWN, /* there is none, or what has happened since is known to the agent alone */
  READY,   /* the agent has accepted it, and the operation has not begun: a new agent can be given it */
  HELD,    /* as READY, but it goes out with the next call */
  DUE,     /* as READY, but the present agent has not seen it */
  WHOLE,   /* parts have gone through, and each came back as long as it went: nothing is left to say */
  IDLE,    /* the operation has come to its end, and the same Init would be accepted again */
  STATES,
  NEVER = STATES
};

enum event {
  ACCEPTED,    /* by the agent, and kept */
  DROPPED,     /* it is over, or not kept, or can no longer be started afresh */
  PART_WENT,   /* a part, and it came back as long as it went */
  FINISHED,    /* the operation, regularly */
  HOLD,        /* an Init that the agent is bound to accept */
  HOLD_FINAL,  /* a Final that can say nothing */
  TAKEN,       /* to be sent */
  NOT_SENT,    /* after all */
  RECONNECTED, /* to an agent that knows nothing of it */
  EVENTS
};

/** Where an event leads, NEVER where it cannot come or is refused. */
static const unsigned char leads_to[EVENTS][STATES] = {
    /*                UNKNOWN, READY, HELD, DUE, WHOLE, IDLE */
    [ACCEPTED]    = {READY, READY, READY, READY, READY, READY},
    [DROPPED]     = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN},
    [PART_WENT]   = {UNKNOWN, WHOLE, UNKNOWN, UNKNOWN, WHOLE, UNKNOWN},
    [FINISHED]    = {IDLE, IDLE, IDLE, IDLE, IDLE, IDLE},
    [HOLD]        = {NEVER, NEVER, NEVER, NEVER, NEVER, HELD},
    [HOLD_FINAL]  = {NEVER, NEVER, NEVER, NEVER, IDLE, NEVER},
    [TAKEN]       = {NEVER, NEVER, READY, READY, NEVER, NEVER},
    [NOT_SENT]    = {NEVER, HELD, NEVER, NEVER, NEVER, NEVER},
    [RECONNECTED] = {UNKNOWN, DUE, DUE, DUE, UNKNOWN, IDLE},
};

struct message {
  enum state state;
  bool plain; /* parts of whole blocks come back as long as they go */
  unsigned char *bytes; /* the Init that the agent has accepted last; of the same length since */
  size_t length;
  size_t capacity;
  uint32_t age; /* how old the table was then */
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

static void count(atomic_uint *counter, bool before, bool after) {
  if (before && !after) atomic_fetch_sub(counter, 1);
  if (!before && after) atomic_fetch_add(counter, 1);
}

/** Changes which operations are due and which hold something back, and counts the session so. */
static void set_bits(struct session *session, unsigned due, unsigned held, unsigned finals) {
  count(&table.due, session->due != 0, due != 0);
  count(&table.held, (session->held | session->finals) != 0, (held | finals) != 0);
  session->due = due;
  session->held = held;
  session->finals = finals;
}

static void set_finals(struct session *session, unsigned finals) {
  set_bits(session, session->due, session->held, finals);
}

static bool may_happen(const struct session *session, int operation, enum event event) {
  return leads_to[event][session->messages[operation].state] != NEVER;
}

/**
 * Does nothing where that may not happen. A Final that is held back stays: its operation has ended.
 */
static void happen(struct session *session, int operation, enum event event) {
  struct message *message = &session->messages[operation];
  const enum state state = (enum state)leads_to[event][message->state];
  const unsigned bit = 1u << operation;

  if (state == NEVER) return;
  message->state = state;
  set_bits(session, state == DUE ? session->due | bit : session->due & ~bit,
           state == HELD ? session->held | bit : session->held & ~bit, session->finals);
}

static struct session **find(CK_SESSION_HANDLE handle) {
  struct session **at = &table.buckets[handle % BUCKETS];
  while (*at != NULL && (*at)->handle != handle) at = &(*at)->next;
  return at;
}

static void release(struct session **at) {
  struct session *session = *at;

  *at = session->next;
  set_bits(session, 0, 0, 0);
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

void sessions_keep(CK_SESSION_HANDLE handle, int operation, const unsigned char *bytes, size_t length, uint32_t age, bool plain) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) {
    struct message *message = &session->messages[operation];
    session->doubtful &= ~(1u << operation);
    if (length > message->capacity && length <= MESSAGE_MAX) {
      if (message->bytes != NULL) buffer_wipe(message->bytes, message->capacity);
      free(message->bytes);
      message->capacity = 0;
      message->bytes = malloc(length + 64);
      if (message->bytes != NULL) message->capacity = length + 64;
    }
    message->length = length <= message->capacity ? length : 0;
    if (message->length > 0) memcpy(message->bytes, bytes, length);
    message->age = age;
    message->plain = plain;
    happen(session, operation, message->length > 0 ? ACCEPTED : DROPPED);
  }
  process_unlock(&table.lock);
}

void sessions_drop(CK_SESSION_HANDLE handle, unsigned operations) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && i < OPERATIONS_MAX; i++)
    if ((operations & 1u << i) != 0) happen(session, i, DROPPED);
  process_unlock(&table.lock);
}

void sessions_continue(CK_SESSION_HANDLE handle, unsigned operations, bool whole) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && i < OPERATIONS_MAX; i++) {
    if ((operations & 1u << i) == 0) continue;
    happen(session, i, whole && session->messages[i].plain ? PART_WENT : DROPPED);
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
  if (session != NULL) happen(session, operation, FINISHED);
  process_unlock(&table.lock);
}

/*
 * --- holding back --------------------------------------------------------------------------------
 */

bool sessions_hold(CK_SESSION_HANDLE handle, int operation, const unsigned char *bytes, size_t length,
                   sessions_repeats repeats) {
  struct session *session;
  bool held = false;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL && table.changing == 0) {
    struct message *message = &session->messages[operation];
    held = may_happen(session, operation, HOLD) && message->length == length && message->age == table.age &&
           repeats(message->bytes, bytes, length);
    if (held) {
      memcpy(message->bytes, bytes, length);
      happen(session, operation, HOLD);
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
    held = may_happen(session, operation, HOLD_FINAL) && message->age == table.age && length <= FINAL_MAX &&
           ((session->finals | session->doubtful) & 1u << operation) == 0;
    if (held) {
      memcpy(message->final, bytes, length);
      message->final_length = length;
      happen(session, operation, HOLD_FINAL);
      set_finals(session, session->finals | 1u << operation);
    }
  }
  process_unlock(&table.lock);
  return held;
}

void sessions_hold_again(CK_SESSION_HANDLE handle, int operation, bool final) {
  struct session *session;

  process_lock(&table.lock);
  session = *find(handle);
  if (session != NULL && final) set_finals(session, session->finals | 1u << operation);
  else if (session != NULL) happen(session, operation, NOT_SENT);
  process_unlock(&table.lock);
}

enum put { PUT, FULL, FAILED };

/**
 * Adds a message as a frame. FULL: it does not fit behind the others. FAILED: without memory, and
 * the frames are marked so. Then it stays held.
 */
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
      set_finals(session, session->finals & ~bit);
    }
    if ((session->held & bit) != 0) {
      const enum put put = put_frame(frames, message->bytes, message->length, limit);
      if (put != PUT) return put;
      happen(session, i, TAKEN);
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
  process_lock(&table.lock);
  for (size_t i = 0; i < BUCKETS; i++) {
    for (struct session *session = table.buckets[i]; session != NULL; session = session->next) {
      session->doubtful = 0;
      set_finals(session, 0);
      for (int j = 0; j < OPERATIONS_MAX; j++) happen(session, j, RECONNECTED);
    }
  }
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
    happen(session, i, TAKEN);
    taken = true;
  }
  process_unlock(&table.lock);
  return taken;
}
