/* One call from its beginning to its return value; see call.h. */
#include "call.h"

#include "delivery.h"
#include "gen/numbers.h"
#include "last_cause.h"
#include "recovery.h"
#include "sessions.h"
#include "transport.h"

enum { CALL_FINALIZE = 2 };

bool call_run(struct call *call) {
  const int starts = call->row->starts;
  bool done;

  if (call->rv == CKR_OK && call->request.failed) call->rv = CKR_DATA_LEN_RANGE;
  if (call->rv != CKR_OK) {
    recovery_end_refused(call);
    return false;
  }
  if (delivery_hold_back(call)) return true;
  call->age = sessions_age();
  done = delivery_exchange(call);
  if (call->row->code != CALL_FINALIZE) recovery_close_strays();
  if (call->rv != CKR_OPERATION_ACTIVE || starts < 0 || !call->answered || !sessions_doubted(call->session, starts))
    return done;
  /* What is active is an operation that has ended for its caller, who was told that there was no answer. */
  call->rv = recovery_cancel(call->session, starts);
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
    /* After a part was processed, only that agent has the operation: a new start would lose the part. */
    const bool is_part = row == &call_rows[ROW_C_EncryptUpdate] || row == &call_rows[ROW_C_DecryptUpdate];
    sessions_continue(call->session, row->continues, is_part && call->rv == CKR_OK && call->got == call->given);
  }
}

CK_RV call_end(struct call *call) {
  if (call->answered && call->dialect == DIALECT_OWN) remember(call);
  if (call->rv == CKR_OK) last_cause_forget(); /* of an agent that was lost and found */
  return call_close(call);
}
