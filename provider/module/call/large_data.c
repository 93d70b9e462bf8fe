/* Calls in parts; see large_data.h. */
#include "call/large_data.h"

#include "call/call.h"
#include "call/large_parts.h"
#include "connection/connect.h"
#include "connection/library.h"
#include "connection/resumption.h"
#include "host/log.h"
#include "message/gen/numbers.h"

enum { ATTEMPTS = 3 };

/*
 * --- calls in one piece --------------------------------------------------------------------------
 */

static int operation_of(const struct call_row *row) {
  if (row == &call_rows[ROW_C_EncryptMessage]) return call_rows[ROW_C_MessageEncryptInit].starts;
  if (row == &call_rows[ROW_C_DecryptMessage]) return call_rows[ROW_C_MessageDecryptInit].starts;
  return row->ends;
}

/**
 * The connection ended between two parts. What they came to is gone with the agent; a call in one
 * piece begins again, as one message would be sent again: its data are still what they were.
 */
static bool may_begin_again(const struct large *large, int attempt) { return large->lost && attempt + 1 < ATTEMPTS; }

/**
 * The operation has ended for the caller. The agent has ended it as well where the error is its
 * own.
 */
static CK_RV give_up(const struct large *large, const struct call_row *row, CK_RV rv) {
  if (rv == CKR_OK || !large->broken || operation_of(row) < 0) return rv;
  sessions_drop(large->session, 1u << operation_of(row));
  if (!large->lost) {
    call_cancel_operation(large->session, operation_of(row));
    return rv;
  }
  return log_cause(CAUSE_AGENT_INTERRUPTED, call_names[row - call_rows]);
}

/** Nothing is left of a decryption that failed after it had started to give plaintext out. */
static void take_back(struct large *large, bool opens, CK_RV rv) {
  if (rv != CKR_OK && opens && large->out != NULL && large->written > 0) buffer_wipe(large->out, large->written);
}

/**
 * The parts, a second time if the agent has only measured them the first time; then what ends them.
 */
static CK_RV send_whole(struct large *large, const struct call_row *row, unsigned char *out, CK_ULONG room, bool has_result) {
  const struct call_row *part = &call_rows[row->part];
  CK_RV rv = CKR_OK;

  for (int pass = 0; pass < 2; pass++) {
    large->written = 0;
    large->told = 0;
    rv = CKR_OK;
    if (row->begin >= 0) {
      struct call call;
      if (parts_begin(&call, large, &call_rows[row->begin])) {
        parts_put_parameter(&call, large, TAG_UNUSED);
        call_put_bytes(&call, large->message.associated, large->message.associated_length);
        if (call_run(&call) && parts_is_sealing(row)) call_get_message(&call);
      }
      rv = parts_end(&call, large);
    }
    if (rv == CKR_OK) rv = parts_send_all(large, part);
    if (rv == CKR_OK && row->last >= 0) rv = parts_send_last(large, &call_rows[row->last], out, room);
    if (rv != CKR_BUFFER_TOO_SMALL || !has_result || large->told > large->room) break;
    /* There was room: the agent has seen that all is well, and gives it out now. */
    if (pass == 1) large->broken = true;
    if (pass == 1) rv = CKR_DEVICE_ERROR;
  }
  return rv;
}

static CK_RV run_whole(int index, struct large *first, CK_BYTE_PTR data, CK_BYTE_PTR out, CK_ULONG_PTR out_length, bool streams) {
  const struct call_row *row = &call_rows[index];
  const bool opens = index == ROW_C_Decrypt || index == ROW_C_DecryptMessage;
  struct large large;
  CK_RV rv;

  for (int attempt = 0;; attempt++) {
    large = *first;
    rv = parts_announce(&large, row, data, out_length);
    if (rv != CKR_OK || out == NULL) return rv;
    /* A digest or a signature is written once, at the end. */
    if (!streams) large.out = NULL;
    rv = send_whole(&large, row, out, large.room, streams);
    if (!may_begin_again(&large, attempt)) break;
  }
  if (rv == CKR_OK) {
    codec_store(out_length, large.written);
  } else if (rv == CKR_BUFFER_TOO_SMALL) {
    codec_store(out_length, large.told);
  } else {
    take_back(&large, opens, rv);
    rv = give_up(&large, row, rv);
  }
  return rv;
}

CK_RV large_whole(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  const struct call_row *row = &call_rows[index];
  struct large large;

  parts_open(&large, session, data, length, out, out_length);
  return parts_close(&large, run_whole(index, &large, data, out, out_length, call_rows[row->part].reply[0] != '\0'));
}

CK_RV large_message(int index, CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated,
                    CK_ULONG associated_length, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  struct large large;

  parts_open(&large, session, data, length, out, out_length);
  large.message = (struct message){true, parameter, parameter_length, associated, associated_length, CKF_END_OF_MESSAGE};
  return parts_close(&large, run_whole(index, &large, data, out, out_length, true));
}

static CK_RV run_verify(int index, const struct large *first, CK_BYTE_PTR data, CK_BYTE_PTR signature, CK_ULONG signature_length) {
  const struct call_row *row = &call_rows[index];
  const CK_ULONG length = first->length;
  struct large large;
  struct call call;
  CK_RV rv;

  for (int attempt = 0;; attempt++) {
    large = *first;
    if (library_ready() != CKR_OK || connect_dialect() == DIALECT_OWN) {
      if (parts_begin(&call, &large, row)) {
        call_put_length(&call, data, length);
        call_put_bytes(&call, signature, signature_length);
        call_run(&call);
        call.asked_length = true;
        large.only = call.epoch;
      }
      rv = parts_end(&call, &large);
      if (rv != CKR_OK) return rv;
    } else if (data == NULL || length > CALL_DATA_MOST) {
      return data == NULL ? CKR_ARGUMENTS_BAD : CKR_DATA_LEN_RANGE;
    }
    rv = parts_send_all(&large, &call_rows[row->part]);
    if (rv == CKR_OK) {
      if (parts_begin(&call, &large, &call_rows[row->last])) {
        call_put_bytes(&call, signature, signature_length);
        call_run(&call);
      }
      rv = parts_end(&call, &large);
    }
    if (!may_begin_again(&large, attempt)) return give_up(&large, row, rv);
  }
}

CK_RV large_verify(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR signature,
                   CK_ULONG signature_length) {
  struct large large;

  parts_open(&large, session, data, length, NULL, NULL);
  return parts_close(&large, run_verify(index, &large, data, signature, signature_length));
}

/**
 * A result that is longer than an answer: parts without data fetch all but its end. `row` is the
 * call that ends it.
 */
static CK_RV fetch(const struct call_row *row, struct large *large, CK_ULONG told, CK_ULONG_PTR out_length) {
  const CK_FLAGS flags = large->message.flags;
  CK_RV rv = CKR_OK;

  large->length = 0;
  while (rv == CKR_OK && told - large->written > LARGE_DATA) {
    const CK_ULONG before = large->written;
    large->room = before + LARGE_PART;
    rv = parts_send_one(large, &call_rows[row->part], 0, 0, 0);
    if (rv == CKR_OK && large->written == before) rv = CKR_DEVICE_ERROR;
  }
  large->room = told;
  if (rv == CKR_OK) rv = large->message.is ? parts_send_one(large, row, 0, 0, flags) : parts_send_last(large, row, large->out, told);
  take_back(large, true, rv);
  if (rv == CKR_OK) codec_store(out_length, large->written);
  return rv == CKR_BUFFER_TOO_SMALL ? CKR_DEVICE_ERROR : rv;
}

/*
 * --- calls that are parts themselves -------------------------------------------------------------
 */

/*
 * Each part is the standard's own, and what an agent has taken in ends with it: no connection is
 * insisted on.
 */
static CK_RV run_update(int index, struct large *large, CK_BYTE_PTR data, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  /* Nothing cannot be announced, and need not be. */
  CK_RV rv = large->length == 0 ? CKR_OK : parts_announce(large, &call_rows[index], data, out_length);

  if (rv != CKR_OK || out == NULL) return rv;
  large->only = 0;
  rv = parts_send_all(large, &call_rows[index]);
  /* There is room, and the tag of the message has been checked. */
  if (rv == CKR_BUFFER_TOO_SMALL && index == ROW_C_DecryptMessageNext && large->written == 0 && large->told <= large->room)
    return fetch(&call_rows[index], large, large->told, out_length);
  if (rv == CKR_OK) codec_store(out_length, large->written);
  if (rv != CKR_BUFFER_TOO_SMALL) return rv;
  if (large->told <= large->room) return CKR_DEVICE_ERROR; /* there was room */
  codec_store(out_length, large->told);
  return rv;
}

CK_RV large_update(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  struct large large;

  parts_open(&large, session, data, length, out, out_length);
  return parts_close(&large, run_update(index, &large, data, out, out_length));
}

CK_RV large_message_part(int index, CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR data,
                         CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length, CK_FLAGS flags) {
  struct large large;

  parts_open(&large, session, data, length, out, out_length);
  large.message = (struct message){.is = true, .parameter = parameter, .parameter_length = parameter_length, .flags = flags};
  return parts_close(&large, run_update(index, &large, data, out, out_length));
}

CK_RV large_feed(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length) {
  struct large large;
  struct call call;

  parts_open(&large, session, data, length, NULL, NULL);
  if (data != NULL && length <= CALL_DATA_MOST) return parts_close(&large, parts_send_all(&large, &call_rows[index]));
  if (parts_begin(&call, &large, &call_rows[index])) {
    call_put_length(&call, data, length); /* which says what is wrong */
    call_run(&call);
  }
  return parts_close(&large, parts_end(&call, &large));
}

CK_RV large_fill(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR out, CK_ULONG length) {
  CK_RV rv = out == NULL || length > CALL_DATA_MOST ? CKR_ARGUMENTS_BAD : CKR_OK;

  for (CK_ULONG at = 0; rv == CKR_OK && at < length; at += LARGE_PART) {
    const CK_ULONG part = parts_least(LARGE_PART, length - at);
    struct call call;
    if (call_begin(&call, &call_rows[index])) {
      call_put_session(&call, session);
      call_put_fill(&call, out + at, part);
      if (call_run(&call)) call_get_fill(&call, out + at, part);
    }
    rv = call_end(&call);
  }
  return rv;
}

CK_RV large_final(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  const struct call_row *row = &call_rows[index];
  const CK_ULONG room = out_length == NULL ? 0 : codec_load(out_length);
  struct large large;
  struct call call;
  CK_RV rv;

  if (call_begin(&call, row)) {
    call_put_session(&call, session);
    /* All of the room, which may be more than what one answer carries. */
    if (call.dialect == DIALECT_OWN) call_put_room(&call, out, out_length);
    else call_put_out(&call, out, out_length);
    if (call_run(&call)) call_get_out(&call, out, out_length);
  }
  rv = call_end(&call);
  if (rv != CKR_BUFFER_TOO_SMALL || out == NULL || codec_load(out_length) > room || call.dialect != DIALECT_OWN) return rv;
  /*
   * There is room, and it is more than a message carries. The tag has been checked: it is fetched
   * in parts without data.
   */
  parts_open(&large, session, NULL, 0, out, out_length);
  return parts_close(&large, fetch(row, &large, codec_load(out_length), out_length));
}
