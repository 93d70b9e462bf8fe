/* The sessions to resume; see sessions.h. A hash table of lists under one lock: held for lookups and copies of a hundred
 * bytes, never across a system call. */
#include "sessions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, MESSAGE_MAX = 4096 };

struct message {
  unsigned char *bytes;
  size_t length;
  size_t capacity;
};

struct session {
  struct session *next;
  CK_SESSION_HANDLE handle;
  CK_SLOT_ID slot;
  CK_FLAGS flags;
  unsigned due; /* operations whose Init the present agent has not seen */
  unsigned doubtful; /* operations whose Init it may have carried out after we gave up waiting */
  struct message messages[OPERATIONS_MAX];
};

static struct {
  pthread_mutex_t lock;
  struct session *buckets[BUCKETS];
  size_t count;
  bool logged_in;
  CK_USER_TYPE user;
  atomic_uint due; /* sessions that are due */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct session **find(CK_SESSION_HANDLE handle) {
  struct session **at = &table.buckets[handle % BUCKETS];
  while (*at != NULL && (*at)->handle != handle) at = &(*at)->next;
  return at;
}

static void release(struct session **at) {
  struct session *session = *at;

  *at = session->next;
  if (session->due != 0) atomic_fetch_sub(&table.due, 1);
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

  pthread_mutex_lock(&table.lock);
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
  pthread_mutex_unlock(&table.lock);
}

void sessions_remove(CK_SESSION_HANDLE handle) {
  struct session **at;

  pthread_mutex_lock(&table.lock);
  at = find(handle);
  if (*at != NULL) release(at);
  pthread_mutex_unlock(&table.lock);
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
  pthread_mutex_lock(&table.lock);
  remove_where(false, slot);
  pthread_mutex_unlock(&table.lock);
}

void sessions_clear(void) {
  pthread_mutex_lock(&table.lock);
  remove_where(true, 0);
  table.logged_in = false;
  pthread_mutex_unlock(&table.lock);
}

void sessions_forget(void) {
  pthread_mutex_init(&table.lock, NULL);
  memset(table.buckets, 0, sizeof table.buckets);
  table.count = 0;
  table.logged_in = false;
  table.due = 0;
}

void sessions_login(CK_USER_TYPE user) {
  pthread_mutex_lock(&table.lock);
  table.logged_in = true;
  table.user = user;
  pthread_mutex_unlock(&table.lock);
}

void sessions_logout(void) {
  pthread_mutex_lock(&table.lock);
  table.logged_in = false;
  pthread_mutex_unlock(&table.lock);
}

static void forget_message(struct session *session, int operation) {
  session->messages[operation].length = 0;
  if ((session->due & 1u << operation) == 0) return;
  session->due &= ~(1u << operation);
  if (session->due == 0) atomic_fetch_sub(&table.due, 1);
}

void sessions_keep(CK_SESSION_HANDLE handle, int operation, const unsigned char *bytes, size_t length) {
  struct session *session;

  pthread_mutex_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) {
    struct message *message = &session->messages[operation];
    forget_message(session, operation);
    session->doubtful &= ~(1u << operation);
    if (length > message->capacity && length <= MESSAGE_MAX) {
      free(message->bytes);
      message->capacity = 0;
      message->bytes = malloc(length + 64);
      if (message->bytes != NULL) message->capacity = length + 64;
    }
    if (length <= message->capacity) {
      memcpy(message->bytes, bytes, length);
      message->length = length;
    }
  }
  pthread_mutex_unlock(&table.lock);
}

void sessions_drop(CK_SESSION_HANDLE handle, unsigned operations) {
  struct session *session;

  pthread_mutex_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && i < OPERATIONS_MAX; i++)
    if ((operations & 1u << i) != 0) forget_message(session, i);
  pthread_mutex_unlock(&table.lock);
}

void sessions_doubt(CK_SESSION_HANDLE handle, int operation) {
  struct session *session;

  pthread_mutex_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) session->doubtful |= 1u << operation;
  pthread_mutex_unlock(&table.lock);
}

bool sessions_take_doubt(CK_SESSION_HANDLE handle, int operation) {
  struct session *session;
  bool doubtful = false;

  pthread_mutex_lock(&table.lock);
  session = *find(handle);
  if (session != NULL) {
    doubtful = (session->doubtful & 1u << operation) != 0;
    session->doubtful &= ~(1u << operation);
  }
  pthread_mutex_unlock(&table.lock);
  return doubtful;
}

void sessions_put_hello(struct buffer *buffer) {
  char text[128];
  const char *comma = "";

  pthread_mutex_lock(&table.lock);
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
  pthread_mutex_unlock(&table.lock);
}

void sessions_all_due(void) {
  unsigned due = 0;

  pthread_mutex_lock(&table.lock);
  for (size_t i = 0; i < BUCKETS; i++) {
    for (struct session *session = table.buckets[i]; session != NULL; session = session->next) {
      session->due = 0;
      session->doubtful = 0;
      for (int j = 0; j < OPERATIONS_MAX; j++)
        if (session->messages[j].length > 0) session->due |= 1u << j;
      if (session->due != 0) due++;
    }
  }
  table.due = due;
  pthread_mutex_unlock(&table.lock);
}

bool sessions_any_due(void) { return atomic_load_explicit(&table.due, memory_order_acquire) != 0; }

bool sessions_take_due(CK_SESSION_HANDLE handle, struct buffer *message) {
  struct session *session;
  bool taken = false;

  pthread_mutex_lock(&table.lock);
  session = *find(handle);
  for (int i = 0; session != NULL && !taken && i < OPERATIONS_MAX; i++) {
    if ((session->due & 1u << i) == 0) continue;
    buffer_put_raw(message, session->messages[i].bytes, session->messages[i].length);
    session->due &= ~(1u << i);
    if (session->due == 0) atomic_fetch_sub(&table.due, 1);
    taken = true;
  }
  pthread_mutex_unlock(&table.lock);
  return taken;
}
