/* One call to the agent and its answer back; see delivery.h. */
#include "call/delivery.h"

#include <stdio.h>
#include <string.h>

#include "connection/connect.h"
#include "connection/library.h"
#include "connection/resumption.h"
#include "connection/transport.h"
#include "host/last_cause.h"
#include "host/log.h"
#include "host/process.h"
#include "message/gen/numbers.h"

enum { CALL_FINALIZE = 2, CALL_OPEN_SESSION = 10 };

static int64_t call_timeout_ms(const struct call_row *row) {
  enum { TIMES_SLOW = 10 };
  return library_call_timeout_ms() * (row->slow ? (int64_t)TIMES_SLOW : 1);
}

int64_t delivery_deadline(const struct call_row *row) { return process_now() + call_timeout_ms(row) * 1000; }

/**
 * Repeats on a new agent the Init messages of a session. One that is refused is simply no longer
 * active. Not inlined, so that its buffers take no stack while the library connects.
 */
__attribute__((noinline)) static enum outcome resume(CK_SESSION_HANDLE session, uint32_t epoch, int64_t deadline) {
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

/**
 * One attempt, on the connection there is. `ahead`: Init messages that were held back until now.
 */
static enum outcome attempt(struct call *call, struct transport_ahead *ahead, uint32_t epoch) {
  const int64_t deadline = delivery_deadline(call->row);
  enum outcome outcome = EXCHANGED;

  if (!transport_is_open() || (call->only != 0 && call->only != transport_epoch())) return UNSENT;
  if (call->row->once && !transport_is_ours()) return UNSENT;
  if (sessions_any_due() && call->row->in_session) outcome = resume(call->session, epoch, deadline);
  if (outcome == LOST) outcome = UNSENT; /* an Init can be repeated */
  if (outcome == EXCHANGED)
    outcome = transport_exchange(&call->request, ahead, &call->reply, epoch, deadline, call->row->code == CALL_OPEN_SESSION);
  if (outcome == UNSENDABLE) hold_again(&ahead->frames);
  return outcome;
}

/**
 * What an operation comes to whose call got no answer. The standard has it end there (5.8 to 5.13:
 * any error but CKR_BUFFER_TOO_SMALL), so it restarts nowhere; whether an agent that lives knows,
 * the next Init shows.
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
    const uint32_t epoch = call->only != 0 ? call->only : transport_epoch();
    char limit[24];
    CK_RV rv;

    *outcome = attempt(call, ahead, epoch);
    /* Should it come to another connection, they are repeated like any other Init. */
    buffer_reset(&ahead->frames);
    switch (*outcome) {
      case EXCHANGED:
        call->epoch = epoch;
        return CKR_OK;
      case UNANSWERED:
      case UNSENDABLE:
        snprintf(limit, sizeof limit, "%lld", (long long)call_timeout_ms(call->row));
        return log_cause(CAUSE_AGENT_SLOW, call_names[call->row - call_rows], limit);
      case LOST:
      case UNSENT:
        break;
    }
    if (library_ready() != CKR_OK) return CKR_CRYPTOKI_NOT_INITIALIZED;
    call->lost = call->only != 0;
    if (call->lost) return CKR_DEVICE_REMOVED; /* no other connection knows what it belongs to */
    if (call->row->code == CALL_FINALIZE) return CKR_DEVICE_REMOVED; /* C_Finalize needs no new agent */
    if (library_peer_is_lost(call->dialect != DIALECT_OWN)) return CKR_DEVICE_REMOVED;
    rv = library_reconnect(epoch);
    if (rv != CKR_OK) return rv;
    if (connect_dialect() != call->dialect) return CKR_DEVICE_REMOVED;
    if (*outcome == LOST && call->row->once)
      return log_cause(CAUSE_AGENT_INTERRUPTED, call_names[call->row - call_rows]);
  }
  return log_cause(CAUSE_AGENT_LOST, "its socket", "it was lost during three attempts");
}

static bool take_all_held(void *context, struct buffer *frames) {
  (void)context;
  return sessions_take_all_held(frames, TRANSPORT_AHEAD);
}

static bool take_own_held(void *context, struct buffer *frames) {
  const struct call *call = context;
  return sessions_take_held(call->session, frames, TRANSPORT_AHEAD);
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
  if (rv != CKR_OK && !call->lost) give_up(call, outcome);
  if (changes) sessions_end_change();
  buffer_close(&ahead.frames);
  return rv;
}

bool delivery_exchange(struct call *call) {
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
    else if (!last_cause_take(&call->reply, signature, length)) last_cause_forget(); /* of an agent before */
  } else if (code != call->row->code || length != strlen(call->row->reply) ||
             (length > 0 && memcmp(signature, call->row->reply, length) != 0)) {
    call->rv = CKR_DEVICE_ERROR;
  } else {
    call->answered = true;
  }
  return call->rv == CKR_OK;
}

/** An Init that the agent is bound to accept waits for its operation, to travel with it. */
static bool hold_init(struct call *call) {
  return call->rv == CKR_OK && !call->request.failed && call->row->starts >= 0 && call->dialect == DIALECT_OWN &&
         transport_is_open() &&
         sessions_hold(call->session, call->row->starts, call->request.data + TRANSPORT_HEADER,
                       call->request.length - TRANSPORT_HEADER, codec_init_repeats);
}

/**
 * A Final that can say nothing but that all went well waits, too, for whatever comes next in its
 * session.
 */
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

bool delivery_hold_back(struct call *call) { return hold_init(call) || hold_final(call); }
