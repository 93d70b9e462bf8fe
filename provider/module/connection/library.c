/* From C_Initialize to C_Finalize; see library.h. */
#include "connection/library.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "connection/connect.h"
#include "connection/resumption.h"
#include "connection/transport.h"
#include "host/descriptor.h"
#include "host/last_cause.h"
#include "host/log.h"
#include "host/process.h"
#include "host/settings.h"

/**
 * C_Initialize to C_Finalize, in the process that `owner` names. A forked child has another pid, so
 * it has none of it.
 */
static struct {
  _Atomic pid_t owner;
  atomic_bool ready;
  atomic_bool foreign_lost; /* a peer that is not ours cannot resume: its sessions are lost */
  _Atomic uint32_t lock;    /* of process_lock: C_Initialize, C_Finalize, reconnecting */
  atomic_uint attempts;     /* at reconnecting, for those who waited for one that failed */
  CK_RV last_attempt;
  struct settings settings;
} library;

CK_RV library_ready(void) {
  if (!atomic_load_explicit(&library.ready, memory_order_acquire) || library.owner != process_id())
    return CKR_CRYPTOKI_NOT_INITIALIZED;
  return CKR_OK;
}

/**
 * Makes the state this process's own. In a forked child, what threads of the parent held is put
 * aside.
 */
static void take_over(void) {
  const pid_t self = process_id();
  pid_t owner = library.owner;

  while (owner != self) {
    if (owner < 0 && owner == -self) {
      sched_yield(); /* another thread of this process is at it */
      owner = library.owner;
    } else if (atomic_compare_exchange_strong(&library.owner, &owner, -self)) {
      if (owner != 0) {
        library.ready = false;
        library.lock = 0;
        descriptor_close_inherited();
        transport_forget();
        connect_forget();
        sessions_forget();
      }
      library.owner = self;
      return;
    }
  }
}

/*
 * Whatever runs outside a call (call_begin) is between these two: a cancelled thread would leave
 * locks behind.
 */
static int forbid_cancellation(void) {
  int before;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static void restore_cancellation(int before) { pthread_setcancelstate(before, NULL); }

static void leave_parent(void) {
  const int cancellation = forbid_cancellation();

  process_forked();
  transport_forget();
  connect_forget();
  restore_cancellation(cancellation);
}

/*
 * A child that never calls us must not keep the parent's connection: while it lives the agent would
 * hold on to the sessions and keys of a parent that has exited. A child made by vfork or
 * posix_spawn does not come here.
 */
__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(descriptor_before_fork, descriptor_allow_forks, leave_parent);
}

/*
 * dlclose without C_Finalize; and exit, perhaps in the middle of a call of another thread, so no
 * lock is waited for.
 */
__attribute__((destructor)) static void be_gone(void) {
  int cancellation;

  if (library_ready() != CKR_OK) return;
  cancellation = forbid_cancellation();
  library.ready = false;
  transport_drop();
  sessions_leave();
  restore_cancellation(cancellation);
}

CK_RV library_initialize(void) {
  const int cancellation = forbid_cancellation();
  CK_RV rv = CKR_CRYPTOKI_ALREADY_INITIALIZED;

  last_cause_forget();
  take_over();
  process_lock(&library.lock);
  if (!library.ready) {
    settings_read(&library.settings);
    library.foreign_lost = false;
    rv = connect_agent(&library.settings, true);
    if (rv == CKR_OK) {
      library.ready = true;
      last_cause_forget();
    }
  }
  process_unlock(&library.lock);
  restore_cancellation(cancellation);
  return rv;
}

CK_RV library_finalize(void) {
  const int cancellation = forbid_cancellation();

  process_lock(&library.lock);
  library.ready = false;
  transport_close();
  sessions_clear();
  log_counted();
  process_unlock(&library.lock);
  restore_cancellation(cancellation);
  return CKR_OK;
}

CK_RV library_reconnect(uint32_t lost) {
  const unsigned attempts = library.attempts;
  CK_RV rv;

  process_lock(&library.lock);
  if (!library.ready) {
    rv = CKR_CRYPTOKI_NOT_INITIALIZED;
  } else if (transport_is_open() && transport_epoch() != lost) {
    rv = CKR_OK;
  } else if (library.attempts != attempts) {
    /*
     * Another thread tried while we waited for the lock. Trying again for each waiting thread would
     * add up the timeouts.
     */
    rv = library.last_attempt;
  } else {
    rv = connect_agent(&library.settings, false);
    if (rv == CKR_OK) sessions_all_due();
    library.last_attempt = rv;
    library.attempts++;
  }
  process_unlock(&library.lock);
  return rv;
}

bool library_peer_is_lost(bool foreign) {
  if (foreign) library.foreign_lost = true;
  return library.foreign_lost;
}

int library_call_timeout_ms(void) { return library.settings.call_timeout_ms; }
