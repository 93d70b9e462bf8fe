/* One call from its beginning to its return value; see call.h. */
#include "call/call.h"

#include "call/delivery.h"
#include "connection/resumption.h"
#include "connection/transport.h"
#include "host/last_cause.h"
#include "host/log.h"
#include "message/gen/numbers.h"

/*
 * --- after a call without an answer, or one that was not sent ------------------------------------
 */

/*
 * A late answer or a refused call leaves no trace that the caller could not expect: operations that
 * are over for the caller are ended, and sessions whose handles no caller knows are closed.
 */

enum { CALL_FINALIZE = 2, CALL_OPEN_SESSION = 10, CALL_CLOSE_SESSION = 11 };

/**
 * Closes sessions that were opened after their caller was told that there was no answer: their
 * handles are unknown. Whatever the agent answers after such an answer shows that it has come, so
 * this follows each call.
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
    /* Only on that connection: on the next one the handle is another session's. */
    transport_exchange(&request, NULL, &reply, epoch, delivery_deadline(&call_rows[ROW_C_CloseSession]), false);
    log_line("a session that was opened too late has been closed");
  }
  buffer_close(&request);
  buffer_close(&reply);
}

CK_RV call_cancel_operation(CK_SESSION_HANDLE session, int operation) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SessionCancel])) {
    call_put_session(&call, session);
    call_put_ulong(&call, call_operation_flag(operation));
    delivery_exchange(&call);
  }
  return call_close(&call);
}

/**
 * After a call that is refused here, before the agent has seen it: operations that the standard
 * ends with any error end here, too.
 */
static void end_refused(const struct call *refused) {
  const struct call_row *row = refused->row;

  if (refused->dialect != DIALECT_OWN) return;
  for (int i = 0; i < OPERATIONS_MAX; i++) {
    if (i != row->ends && (row->continues & 1u << i) == 0) continue;
    if (call_operation_flag(i) == CKF_FIND_OBJECTS) continue; /* only C_FindObjectsFinal ends a search */
    call_cancel_operation(refused->session, i);
    sessions_drop(refused->session, 1u << i);
  }
}

/*
 * --- sending, and the end ------------------------------------------------------------------------
 */

bool call_run(struct call *call) {
  const int starts = call->row->starts;
  bool done;

  if (call->rv == CKR_OK && call->request.failed) call->rv = CKR_DATA_LEN_RANGE;
  if (call->rv != CKR_OK) {
    end_refused(call);
    return false;
  }
  if (delivery_hold_back(call)) return true;
  call->age = sessions_age();
  done = delivery_exchange(call);
  if (call->row->code != CALL_FINALIZE) close_strays();
  if (call->rv != CKR_OPERATION_ACTIVE || starts < 0 || !call->answered || !sessions_doubted(call->session, starts))
    return done;
  /*
   * What is active is an operation that has ended for its caller, who was told that there was no
   * answer.
   */
  call->rv = call_cancel_operation(call->session, starts);
  call->answered = false;
  return call->rv == CKR_OK && delivery_exchange(call);
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
  } else if (row->continues != 0 && !goes_on && !(call->only != 0 && call->rv == CKR_OK)) {
    /* A part of a call in one piece is not one: that call begins again as a whole. */
    /*
     * After a part was processed, only that agent has the operation: a new start would lose the
     * part.
     */
    const bool is_part = row == &call_rows[ROW_C_EncryptUpdate] || row == &call_rows[ROW_C_DecryptUpdate];
    sessions_continue(call->session, row->continues, is_part && call->rv == CKR_OK && call->got == call->given);
  }
}

CK_RV call_end(struct call *call) {
  if (call->answered && call->dialect == DIALECT_OWN) remember(call);
  if (call->rv == CKR_OK) last_cause_forget(); /* of an agent that was lost and found */
  return call_close(call);
}
