/* One call from arguments to return value; see call.h. */
#include "call.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "gen/numbers.h"
#include "log.h"
#include "process.h"
#include "sessions.h"
#include "settings.h"
#include "transport.h"

enum { CALL_FINALIZE = 2, CALL_OPEN_SESSION = 10, CALL_CLOSE_SESSION = 11 };

/** C_Initialize to C_Finalize, in the process that `owner` names. A forked child has another pid, so it has none of it. */
static struct {
  _Atomic pid_t owner;
  atomic_bool ready;
  atomic_bool foreign_lost; /* a peer that is not ours cannot resume: its sessions are gone for good */
  pthread_mutex_t lock;     /* C_Initialize, C_Finalize, reconnecting */
  atomic_uint attempts;     /* at reconnecting, for those who waited for one that failed */
  CK_RV last_attempt;
  struct settings settings;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};

CK_RV call_ready(void) {
  if (!atomic_load_explicit(&library.ready, memory_order_acquire) || library.owner != process_id())
    return CKR_CRYPTOKI_NOT_INITIALIZED;
  return CKR_OK;
}

/** Makes the state this process's own. In a forked child, what threads of the parent held is put aside. */
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
        pthread_mutex_init(&library.lock, NULL);
        transport_forget();
        sessions_forget();
      }
      library.owner = self;
      return;
    }
  }
}

/* A child that never calls us must not keep the parent's connection: while it lives the agent would hold on to the sessions and
 * keys of a parent that is gone. Takes no lock, waits for nothing. A child made by vfork or posix_spawn does not come here. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, transport_forget); }

/* dlclose without C_Finalize; and exit, perhaps in the middle of a call, so no lock is taken. The few bytes that the library
 * remembers stay where they are. */
__attribute__((destructor)) static void be_gone(void) {
  if (call_ready() != CKR_OK) return;
  library.ready = false;
  transport_drop();
}

CK_RV call_initialize(void) {
  CK_RV rv = CKR_CRYPTOKI_ALREADY_INITIALIZED;

  take_over();
  pthread_mutex_lock(&library.lock);
  if (!library.ready) {
    settings_read(&library.settings);
    library.foreign_lost = false;
    rv = connect_agent(&library.settings);
    if (rv == CKR_OK) library.ready = true;
  }
  pthread_mutex_unlock(&library.lock);
  return rv;
}

CK_RV call_finalize(void) {
  struct call call;

  if (call_ready() != CKR_OK) return CKR_CRYPTOKI_NOT_INITIALIZED;
  if (transport_is_open() && call_begin(&call, &call_rows[ROW_C_Finalize])) {
    /* The agent lets go of the connection's sessions either way; its answer changes nothing. */
    call_run(&call);
    call_end(&call);
  }
  pthread_mutex_lock(&library.lock);
  library.ready = false;
  transport_close();
  sessions_clear();
  log_counted();
  pthread_mutex_unlock(&library.lock);
  return CKR_OK;
}

/* --- arguments -------------------------------------------------------------------------------------------------------- */

bool call_begin(struct call *call, const struct call_row *row) {
  static const unsigned char header[TRANSPORT_HEADER];

  call->row = row;
  call->answered = false;
  call->asked_length = false;
  call->session = 0;
  call->room = 0;
  call->given = 0;
  call->got = 0;
  buffer_open(&call->request);
  buffer_open(&call->reply);
  call->rv = call_ready();
  if (call->rv != CKR_OK) return false;
  call->dialect = connect_dialect();
  if (call->dialect != DIALECT_OWN && !row->foreign) {
    call->rv = CKR_FUNCTION_NOT_SUPPORTED;
    return false;
  }
  buffer_put_raw(&call->request, header, sizeof header);
  buffer_put_u32(&call->request, row->code);
  buffer_put_array(&call->request, row->request, strlen(row->request));
  return true;
}

/** The first failure stays. */
static void note(struct call *call, CK_RV rv) {
  if (call->rv == CKR_OK) call->rv = rv;
}

void call_put_ulong(struct call *call, CK_ULONG value) { buffer_put_u64(&call->request, value); }

void call_put_session(struct call *call, CK_SESSION_HANDLE session) {
  call->session = session;
  buffer_put_u64(&call->request, session);
}

void call_put_flag(struct call *call, CK_BBOOL value) { buffer_put_u8(&call->request, value != CK_FALSE); }

void call_put_bytes(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length) {
  call->given = length;
  note(call, codec_put_bytes(&call->request, bytes, length));
}

void call_put_label(struct call *call, CK_UTF8CHAR_PTR label) {
  if (label == NULL) note(call, CKR_ARGUMENTS_BAD);
  else buffer_put_array(&call->request, label, 32);
}

void call_put_template(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  note(call, codec_put_template(&call->request, attributes, count));
}

void call_put_mechanism(struct call *call, CK_MECHANISM_PTR mechanism) {
  note(call, codec_put_mechanism(&call->request, mechanism, call->dialect));
}

void call_put_message_mechanism(struct call *call, CK_MECHANISM_PTR mechanism) {
  note(call, codec_put_message_mechanism(&call->request, mechanism));
}

void call_put_message(struct call *call, const void *parameter, CK_ULONG length, enum tag_use tag) {
  note(call, codec_put_message(&call->request, parameter, length, tag, &call->message));
}

void call_put_out(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length) {
  call->asked_length = bytes == NULL;
  note(call, codec_put_room(&call->request, bytes, length, call->dialect));
}

void call_put_fill(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length) {
  if ((bytes == NULL && length != 0) || length > BUFFER_MAX) note(call, CKR_ARGUMENTS_BAD);
  else buffer_put_u32(&call->request, (uint32_t)length);
}

void call_put_list(struct call *call, CK_ULONG_PTR list, CK_ULONG_PTR count) {
  if (count == NULL) {
    note(call, CKR_ARGUMENTS_BAD);
    return;
  }
  call->room = codec_load(count);
  note(call, codec_put_list_room(&call->request, list, call->room));
}

void call_put_batch(struct call *call, CK_ULONG_PTR list, CK_ULONG most, CK_ULONG_PTR count) {
  if (count == NULL || (list == NULL && most != 0)) note(call, CKR_ARGUMENTS_BAD);
  call->room = most;
  note(call, codec_put_list_room(&call->request, list, most));
}

void call_put_query(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  note(call, codec_put_query(&call->request, attributes, count, call->dialect));
}

void call_need(struct call *call, const void *pointer) {
  if (pointer == NULL) note(call, CKR_ARGUMENTS_BAD);
}

/* --- the way ---------------------------------------------------------------------------------------------------------- */

/** A connection again, by this thread or by one that was quicker. */
static CK_RV reconnect(uint32_t lost) {
  const unsigned attempts = library.attempts;
  CK_RV rv;

  pthread_mutex_lock(&library.lock);
  if (!library.ready) {
    rv = CKR_CRYPTOKI_NOT_INITIALIZED;
  } else if (transport_is_open() && transport_epoch() != lost) {
    rv = CKR_OK;
  } else if (library.attempts != attempts) {
    /* Somebody tried while we waited for the lock. Trying again for each waiting thread would add up the timeouts. */
    rv = library.last_attempt;
  } else {
    rv = connect_agent(&library.settings);
    if (rv == CKR_OK) sessions_all_due();
    library.last_attempt = rv;
    library.attempts++;
  }
  pthread_mutex_unlock(&library.lock);
  return rv;
}

static int64_t call_timeout_ms(const struct call_row *row) {
  enum { TIMES_SLOW = 10 };
  return library.settings.call_timeout_ms * (row->slow ? (int64_t)TIMES_SLOW : 1);
}

static int64_t call_deadline(const struct call_row *row) { return process_now() + call_timeout_ms(row) * 1000; }

/** Repeats on a new agent the Init messages of a session. One that is refused is simply no longer active. */
static enum outcome resume(CK_SESSION_HANDLE session, uint32_t epoch, int64_t deadline) {
  static const unsigned char header[TRANSPORT_HEADER];
  enum outcome outcome = EXCHANGED;
  struct buffer request;
  struct buffer reply;

  buffer_open(&request);
  buffer_open(&reply);
  buffer_put_raw(&request, header, sizeof header);
  while (outcome == EXCHANGED && sessions_take_due(session, &request)) {
    outcome = transport_exchange(&request, NULL, &reply, epoch, deadline, false);
    buffer_reset(&request);
    buffer_put_raw(&request, header, sizeof header);
  }
  buffer_close(&request);
  buffer_close(&reply);
  return outcome;
}

/** What was taken along and not sent goes back to its sessions. */
static void hold_again(const struct buffer *frames) {
  size_t at = 0;

  while (frames->length - at >= TRANSPORT_HEADER + 8) {
    const unsigned char *body = frames->data + at + TRANSPORT_HEADER;
    const size_t length = buffer_peek_u32(frames->data + at + 8);
    const uint32_t code = buffer_peek_u32(body);
    const size_t session = 8 + buffer_peek_u32(body + 4);

    if (length > frames->length - at - TRANSPORT_HEADER || length < session + 8) return;
    for (int i = 0; i < ROWS; i++) {
      const struct call_row *row = &call_rows[i];
      const int operation = row->starts >= 0 ? row->starts : row->ends;
      if (row->code != code || operation < 0) continue;
      sessions_hold_again((CK_SESSION_HANDLE)buffer_peek_u32(body + session) << 32 | buffer_peek_u32(body + session + 4), operation,
                          row->starts < 0);
    }
    at += TRANSPORT_HEADER + length;
  }
}

/** One attempt, on the connection there is. `ahead`: Init messages that were held back until now. */
static enum outcome attempt(struct call *call, struct transport_ahead *ahead, uint32_t epoch) {
  const int64_t deadline = call_deadline(call->row);
  enum outcome outcome = EXCHANGED;

  if (!transport_is_open()) return UNSENT;
  if (sessions_any_due() && call->row->in_session) outcome = resume(call->session, epoch, deadline);
  if (outcome == LOST) outcome = UNSENT; /* an Init can be repeated */
  if (outcome == EXCHANGED)
    outcome = transport_exchange(&call->request, ahead, &call->reply, epoch, deadline, call->row->code == CALL_OPEN_SESSION);
  if (outcome == UNSENDABLE) hold_again(&ahead->frames);
  return outcome;
}

/**
 * What an operation comes to whose call got no answer. The standard has it end there (5.8 to 5.13: any error but
 * CKR_BUFFER_TOO_SMALL), so it begins anew nowhere; whether an agent that lives knows, the next Init shows.
 */
static void give_up(const struct call *call, enum outcome outcome) {
  const struct call_row *row = call->row;
  unsigned operations = row->continues;

  if (call->dialect != DIALECT_OWN) return;
  if (row->ends >= 0) operations |= 1u << row->ends;
  if (outcome == UNANSWERED && row->starts >= 0) operations |= 1u << row->starts;
  if (operations == 0) return;
  sessions_drop(call->session, operations); /* and the next Init is not held back either */
  sessions_doubt(call->session, operations);
}

/** CKR_OK when the reply is there. `outcome`: of the last attempt. */
static CK_RV send_and_wait(struct call *call, struct transport_ahead *ahead, enum outcome *outcome) {
  /* The first attempt may meet a dead connection, the second an agent that is just going down. */
  for (int attempts = 0; attempts < 3; attempts++) {
    const uint32_t epoch = transport_epoch();
    char limit[24];
    CK_RV rv;

    *outcome = attempt(call, ahead, epoch);
    /* Should it come to another connection, they are repeated like any other Init. */
    buffer_reset(&ahead->frames);
    switch (*outcome) {
      case EXCHANGED:
        return CKR_OK;
      case UNANSWERED:
      case UNSENDABLE:
        snprintf(limit, sizeof limit, "%lld", (long long)call_timeout_ms(call->row));
        return log_cause(CAUSE_AGENT_SLOW, call_names[call->row - call_rows], limit);
      case LOST:
      case UNSENT:
        break;
    }
    if (call_ready() != CKR_OK) return CKR_CRYPTOKI_NOT_INITIALIZED;
    if (call->row->code == CALL_FINALIZE) return CKR_DEVICE_REMOVED; /* C_Finalize needs no new agent */
    if (call->dialect != DIALECT_OWN) library.foreign_lost = true;
    if (library.foreign_lost) return CKR_DEVICE_REMOVED;
    rv = reconnect(epoch);
    if (rv != CKR_OK) return rv;
    if (connect_dialect() != call->dialect) return CKR_DEVICE_REMOVED;
    if (*outcome == LOST && call->row->once)
      return log_cause(CAUSE_AGENT_INTERRUPTED, call_names[call->row - call_rows]);
  }
  return log_cause(CAUSE_AGENT_LOST, "its socket", "it was lost during three attempts");
}

static void take_all_held(void *context, struct buffer *frames) {
  (void)context;
  sessions_take_all_held(frames);
}

static void take_own_held(void *context, struct buffer *frames) {
  const struct call *call = context;
  sessions_take_held(call->session, frames);
}

/** Sends the call behind what was held back for it. */
static CK_RV deliver(struct call *call) {
  const bool changes = !call->row->quiet;
  enum outcome outcome = UNSENT;
  struct transport_ahead ahead = {.take = changes ? take_all_held : take_own_held, .context = call};
  CK_RV rv;

  buffer_open(&ahead.frames);
  if (changes) sessions_begin_change();
  rv = send_and_wait(call, &ahead, &outcome);
  if (rv != CKR_OK) give_up(call, outcome);
  if (changes) sessions_end_change();
  buffer_close(&ahead.frames);
  return rv;
}

/** An Init that the agent is bound to accept waits for its operation, to travel with it. */
static bool hold_back(struct call *call) {
  return call->rv == CKR_OK && !call->request.failed && call->row->starts >= 0 && call->dialect == DIALECT_OWN &&
         transport_is_open() &&
         sessions_hold(call->session, call->row->starts, call->request.data + TRANSPORT_HEADER,
                       call->request.length - TRANSPORT_HEADER, codec_init_repeats);
}

/** A Final that can say nothing but that all went well waits, too, for whatever comes next in its session. */
static bool hold_final(struct call *call) {
  const bool is_final = call->row == &call_rows[ROW_C_EncryptFinal] || call->row == &call_rows[ROW_C_DecryptFinal];

  if (!is_final || call->asked_length || call->dialect != DIALECT_OWN || !transport_is_open() ||
      !sessions_hold_final(call->session, call->row->ends, call->request.data + TRANSPORT_HEADER,
                           call->request.length - TRANSPORT_HEADER))
    return false;
  /* The answer: no bytes. */
  buffer_put_u8(&call->reply, 1);
  buffer_put_array(&call->reply, "", 0);
  return true;
}

static bool exchange(struct call *call) {
  uint32_t code;
  const unsigned char *signature;
  size_t length;

  if (call->rv == CKR_OK && call->request.failed) call->rv = CKR_DATA_LEN_RANGE;
  if (call->rv == CKR_OK) call->rv = deliver(call);
  if (call->rv != CKR_OK) return false;

  code = buffer_get_u32(&call->reply);
  signature = buffer_get_array(&call->reply, &length);
  if (call->reply.failed) {
    call->rv = CKR_DEVICE_ERROR;
  } else if (code == 0) {
    call->rv = buffer_get_u64(&call->reply);
    call->answered = !call->reply.failed && call->rv != CKR_OK;
    if (!call->answered) call->rv = CKR_DEVICE_ERROR;
  } else if (code != call->row->code || length != strlen(call->row->reply) ||
             (length > 0 && memcmp(signature, call->row->reply, length) != 0)) {
    call->rv = CKR_DEVICE_ERROR;
  } else {
    call->answered = true;
  }
  return call->rv == CKR_OK;
}

/**
 * Closes sessions that were opened after their caller was told that there was no answer: nobody knows their handles. Whatever
 * the agent answers after such an answer shows that it has come, so this follows each call.
 */
static void close_strays(void) {
  static const unsigned char header[TRANSPORT_HEADER];
  const uint32_t epoch = transport_epoch();
  struct buffer request;
  struct buffer reply;

  buffer_open(&request);
  buffer_open(&reply);
  while (transport_take_late(&reply, epoch)) {
    const uint32_t code = buffer_get_u32(&reply);
    CK_SESSION_HANDLE stray;
    size_t length;

    buffer_get_array(&reply, &length);
    stray = buffer_get_u64(&reply);
    if (reply.failed || code != CALL_OPEN_SESSION) continue; /* it was refused */
    buffer_reset(&request);
    buffer_put_raw(&request, header, sizeof header);
    buffer_put_u32(&request, CALL_CLOSE_SESSION);
    buffer_put_array(&request, "u", 1);
    buffer_put_u64(&request, stray);
    /* On that connection alone: on the next one the handle is another session's. */
    transport_exchange(&request, NULL, &reply, epoch, call_deadline(&call_rows[ROW_C_CloseSession]), false);
    log_line("a session that was opened too late has been closed");
  }
  buffer_close(&request);
  buffer_close(&reply);
}

/** What C_SessionCancel calls the operations, in the order of the rows' numbers. */
static const CK_FLAGS operation_flags[OPERATIONS_MAX] = {
    CKF_FIND_OBJECTS, CKF_ENCRYPT, CKF_DECRYPT,        CKF_DIGEST,          CKF_SIGN,
    CKF_SIGN_RECOVER, CKF_VERIFY,  CKF_VERIFY_RECOVER, CKF_MESSAGE_ENCRYPT, CKF_MESSAGE_DECRYPT,
};

unsigned call_operations(CK_FLAGS flags) {
  unsigned operations = 0;

  for (int i = 0; i < OPERATIONS_MAX; i++)
    if ((flags & operation_flags[i]) != 0) operations |= 1u << i;
  return operations;
}

/** C_SessionCancel of one operation. What it answers does not matter: the Init that follows shows it. */
static void cancel(CK_SESSION_HANDLE session, int operation) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SessionCancel])) {
    call_put_session(&call, session);
    call_put_ulong(&call, operation_flags[operation]);
    exchange(&call);
  }
  call_end(&call);
}

/**
 * Of a call that is refused here, before the agent has seen it: what the standard lets end with any error ends there too.
 */
static void end_refused(const struct call *refused) {
  const struct call_row *row = refused->row;

  if (refused->dialect != DIALECT_OWN) return;
  for (int i = 0; i < OPERATIONS_MAX; i++) {
    if (i != row->ends && (row->continues & 1u << i) == 0) continue;
    if (operation_flags[i] == CKF_FIND_OBJECTS) continue; /* C_FindObjectsFinal alone ends a search */
    cancel(refused->session, i);
    sessions_drop(refused->session, 1u << i);
  }
}

bool call_run(struct call *call) {
  const int starts = call->row->starts;
  bool done;

  if (call->rv == CKR_OK && call->request.failed) call->rv = CKR_DATA_LEN_RANGE;
  if (call->rv != CKR_OK) {
    end_refused(call);
    return false;
  }
  if (hold_back(call) || hold_final(call)) return true;
  call->age = sessions_age();
  done = exchange(call);
  if (call->row->code != CALL_FINALIZE) close_strays();
  if (call->rv != CKR_OPERATION_ACTIVE || starts < 0 || !call->answered || !sessions_take_doubt(call->session, starts))
    return done;
  /* What is active is an operation that has ended for its caller, who was told that there was no answer. */
  cancel(call->session, starts);
  call->rv = CKR_OK;
  call->answered = false;
  return exchange(call);
}

void call_get_out(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length) {
  call->rv = codec_get_bytes(&call->reply, bytes, length);
  if (call->rv == CKR_OK && bytes != NULL) call->got = codec_load(length);
}

void call_get_fill(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length) {
  call->rv = codec_get_exactly(&call->reply, bytes, length);
}

void call_get_list(struct call *call, CK_ULONG_PTR list, CK_ULONG_PTR count) {
  call->rv = codec_get_list(&call->reply, list, call->room, count);
}

void call_get_result(struct call *call, CK_ULONG_PTR result) {
  const CK_RV rv = codec_get_result(&call->reply, result);
  if (call->rv == CKR_OK) call->rv = rv;
}

void call_get_message(struct call *call) {
  /* What came before may not have fitted: then there is nothing to be written back. */
  const CK_RV rv = codec_get_message(&call->reply, &call->message, call->rv == CKR_OK);
  if (call->rv == CKR_OK) call->rv = rv;
}

void call_get_query(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count) {
  call->rv = codec_get_answers(&call->reply, attributes, count);
}

/** Keeps or forgets what a restart of the agent would need. */
static void remember(struct call *call) {
  const struct call_row *row = call->row;
  const bool goes_on = call->rv == CKR_BUFFER_TOO_SMALL || (call->rv == CKR_OK && call->asked_length);

  if (row->starts >= 0) {
    /* The message without the header, which belongs to one sending. */
    if (call->rv == CKR_OK)
      sessions_keep(call->session, row->starts, call->request.data + TRANSPORT_HEADER,
                    call->request.length - TRANSPORT_HEADER, call->age,
                    codec_init_is_plain(call->request.data + TRANSPORT_HEADER, call->request.length - TRANSPORT_HEADER));
    else if (call->answered && call->rv != CKR_OPERATION_ACTIVE)
      sessions_drop(call->session, 1u << row->starts);
  } else if (row->ends >= 0) {
    if (!goes_on && call->rv == CKR_OK) sessions_finish(call->session, row->ends);
    else if (!goes_on) sessions_drop(call->session, 1u << row->ends);
  } else if (row->continues != 0 && !goes_on) {
    /* With a part gone through, the operation lives in that agent alone: starting afresh would lose the part. */
    const bool is_part = row == &call_rows[ROW_C_EncryptUpdate] || row == &call_rows[ROW_C_DecryptUpdate];
    sessions_continue(call->session, row->continues, is_part && call->rv == CKR_OK && call->got == call->given);
  }
}

CK_RV call_end(struct call *call) {
  if (call->answered && call->dialect == DIALECT_OWN) remember(call);
  buffer_close(&call->request);
  buffer_close(&call->reply);
  return call->rv;
}
