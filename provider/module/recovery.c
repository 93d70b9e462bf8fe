/* After a call without an answer, or one that was not sent; see recovery.h. */
#include "recovery.h"

#include "delivery.h"
#include "gen/numbers.h"
#include "log.h"
#include "sessions.h"
#include "transport.h"

enum { CALL_OPEN_SESSION = 10, CALL_CLOSE_SESSION = 11 };

void recovery_close_strays(void) {
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

CK_RV recovery_cancel(CK_SESSION_HANDLE session, int operation) {
  struct call call;

  if (call_begin(&call, &call_rows[ROW_C_SessionCancel])) {
    call_put_session(&call, session);
    call_put_ulong(&call, call_operation_flag(operation));
    delivery_exchange(&call);
  }
  return call_close(&call);
}

void recovery_end_refused(const struct call *refused) {
  const struct call_row *row = refused->row;

  if (refused->dialect != DIALECT_OWN) return;
  for (int i = 0; i < OPERATIONS_MAX; i++) {
    if (i != row->ends && (row->continues & 1u << i) == 0) continue;
    if (call_operation_flag(i) == CKF_FIND_OBJECTS) continue; /* only C_FindObjectsFinal ends a search */
    recovery_cancel(refused->session, i);
    sessions_drop(refused->session, 1u << i);
  }
}
