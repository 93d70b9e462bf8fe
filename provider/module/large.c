/* Calls in parts; see large.h. */
#include "large.h"

#include <pthread.h>
#include <string.h>

#include "connect.h"
#include "gen/numbers.h"
#include "library.h"
#include "log.h"
#include "recovery.h"
#include "sessions.h"

/* The result of a part may begin with what earlier parts left over: with a block that is not full, and one that padded decryption
 * holds back. So it may be written this far into data that was not sent yet, where both are in the same place. */
enum { AHEAD = 32, ATTEMPTS = 3 };

struct message {
  bool is; /* of the message-based functions */
  CK_VOID_PTR parameter;
  CK_ULONG parameter_length;
  CK_BYTE_PTR associated;
  CK_ULONG associated_length;
  CK_FLAGS flags; /* of the last part */
};

struct large {
  int cancellation; /* whether the thread could be cancelled before: not in the middle of a call */
  CK_SESSION_HANDLE session;
  const unsigned char *data; /* the caller's; once it was in the way of the result, where it was moved to */
  CK_ULONG length;
  unsigned char *out; /* NULL when parts have no result */
  CK_ULONG room;
  CK_ULONG written;
  CK_ULONG told; /* the length that came in place of bytes */
  uint32_t only; /* the connection of all parts; 0 for any */
  bool lost;     /* it has ended */
  bool broken;   /* it failed here, and the agent does not know */
  /* Copies of data that is about to be overwritten: what comes next, and what had no room at the end. */
  unsigned char ahead[AHEAD];
  CK_ULONG ahead_from;
  CK_ULONG ahead_length;
  unsigned char tail[AHEAD];
  CK_ULONG tail_from;
  struct message message;
};

static void open_large(struct large *large, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out,
                       CK_ULONG_PTR out_length) {
  memset(large, 0, sizeof *large);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &large->cancellation);
  large->session = session;
  large->data = data;
  large->length = length;
  large->tail_from = length;
  large->out = out;
  large->room = out_length == NULL ? 0 : codec_load(out_length);
}

static CK_RV close_large(const struct large *large, CK_RV rv) {
  pthread_setcancelstate(large->cancellation, NULL);
  return rv;
}

static CK_ULONG least(CK_ULONG a, CK_ULONG b) { return a < b ? a : b; }

/* --- data and result, which may overlap ---------------------------------------------------------------------------------- */

static bool overlaps(const struct large *large) {
  const uintptr_t data = (uintptr_t)large->data;
  const uintptr_t out = (uintptr_t)large->out;

  return large->out != NULL && out < data + large->length && data < out + large->room;
}

/** Where the bytes from `from` on are now, and how many of them in one piece. */
static const unsigned char *look(const struct large *large, CK_ULONG from, CK_ULONG *length) {
  if (from >= large->ahead_from && from - large->ahead_from < large->ahead_length) {
    *length = least(*length, large->ahead_length - (from - large->ahead_from));
    return large->ahead + (from - large->ahead_from);
  }
  if (from >= large->tail_from) return large->tail + (from - large->tail_from);
  *length = least(*length, large->tail_from - from);
  return large->data + from;
}

static void put_data(struct call *call, const struct large *large, CK_ULONG from, CK_ULONG length) {
  buffer_put_u8(&call->request, 1);
  buffer_put_u32(&call->request, (uint32_t)length);
  call->given = length;
  while (length > 0) {
    CK_ULONG piece = length;
    const unsigned char *bytes = look(large, from, &piece);
    buffer_put_raw(&call->request, bytes, piece);
    from += piece;
    length -= piece;
  }
}

/** Keeps the data from `at` on, which is still to be sent, from being overwritten by a result. False when that cannot be done. */
static bool make_way(struct large *large, CK_ULONG at) {
  unsigned char ahead[AHEAD];
  CK_ULONG length;
  CK_ULONG got = 0;

  if (!overlaps(large) || at >= large->length) return true;
  /* A result that begins behind the data would run into it: the data goes where the result begins. All of that is the result's. */
  if (large->out > large->data) {
    const CK_ULONG moved = at < large->room ? least(large->length - at, large->room - at) : 0;
    const CK_ULONG left = large->length - at - moved;
    if (left > sizeof large->tail) return false;
    memcpy(large->tail, large->data + at + moved, left);
    memmove(large->out + at, large->data + at, moved);
    large->tail_from = at + moved;
    large->data = large->out;
    large->ahead_length = 0;
  }
  length = least(sizeof ahead, large->length - at);
  while (got < length) {
    CK_ULONG piece = length - got;
    const unsigned char *bytes = look(large, at + got, &piece);
    memcpy(ahead + got, bytes, piece);
    got += piece;
  }
  memcpy(large->ahead, ahead, length);
  large->ahead_from = at;
  large->ahead_length = length;
  return true;
}

/** The bytes of an answer behind those that have come before. `at`: the data from there on has not been sent. */
static void take_result(struct call *call, struct large *large, CK_ULONG at) {
  const unsigned char *from;
  size_t got;

  if (buffer_get_u8(&call->reply) == 0) {
    large->told = buffer_get_u32(&call->reply);
    large->broken = call->reply.failed;
    call->rv = call->reply.failed ? CKR_DEVICE_ERROR : CKR_BUFFER_TOO_SMALL;
    return;
  }
  from = buffer_get_array(&call->reply, &got);
  if (call->reply.failed || got > large->room - large->written || (got > 0 && !make_way(large, at))) {
    large->broken = true;
    call->rv = CKR_DEVICE_ERROR;
    return;
  }
  if (got > 0) memcpy(large->out + large->written, from, got);
  large->written += got;
  call->got = got;
}

/* --- single messages ------------------------------------------------------------------------------------------------------ */

static bool begin(struct call *call, const struct large *large, const struct call_row *row) {
  if (!call_begin(call, row)) return false;
  call->only = large->only;
  call_put_session(call, large->session);
  return true;
}

static CK_RV end(struct call *call, struct large *large) {
  large->lost = call->lost;
  if (call->rv != CKR_OK && !call->answered) large->broken = true;
  return call_end(call);
}

static void put_parameter(struct call *call, const struct large *large, enum tag_use tag) {
  if (large->message.is)
    call_put_message(call, large->message.parameter, large->message.parameter_length, tag);
}

static void put_room(struct call *call, const struct large *large) {
  const CK_ULONG left = large->room - large->written;
  /* All of it counts for what the agent has only looked at; others make a buffer of that size. */
  const CK_ULONG room = least(left, call->dialect == DIALECT_OWN ? BUFFER_NULL - 1 : BUFFER_MAX);

  if (large->out == NULL) return;
  buffer_put_u32(&call->request, room > 0 ? (uint32_t)room : call->dialect == DIALECT_P11KIT_24 ? 0 : BUFFER_NULL);
}

static bool is_sealing(const struct call_row *row) { return row->reply[strlen(row->reply) - 1] == 'g'; }

/** Data from `from` on, as one message of its own; the tag of a message goes with its last part. */
static CK_RV send_part(struct large *large, const struct call_row *row, CK_ULONG from, CK_ULONG length, CK_FLAGS flags) {
  const bool sealing = row->reply[0] != '\0' && is_sealing(row);
  const enum tag_use tag = (flags & CKF_END_OF_MESSAGE) == 0 ? TAG_UNUSED : sealing ? TAG_WRITTEN : TAG_READ;
  struct call call;

  if (begin(&call, large, row)) {
    put_parameter(&call, large, tag);
    put_data(&call, large, from, length);
    put_room(&call, large);
    if (large->message.is) call_put_ulong(&call, flags);
    if (call_run(&call)) {
      if (large->out != NULL) take_result(&call, large, from + length);
      if (sealing) call_get_message(&call);
    }
  }
  return end(&call, large);
}

/** All of the data, part by part. The end of a message is sent without data too. */
static CK_RV send_parts(struct large *large, const struct call_row *row) {
  CK_ULONG at = 0;
  CK_RV rv = CKR_OK;

  if (large->length == 0 && !large->message.is) return CKR_OK;
  do {
    const CK_ULONG part = least(LARGE_PART, large->length - at);
    rv = send_part(large, row, at, part, at + part == large->length ? large->message.flags : 0);
    at += part;
  } while (rv == CKR_OK && at < large->length);
  return rv;
}

/** Before a peer that is not our agent, and takes no announcement: what can be said without one. */
static CK_RV announce_foreign(const struct large *large, const struct call_row *row, CK_BYTE_PTR data, CK_ULONG_PTR out_length) {
  const bool streams = row->last < 0 || call_rows[row->part].reply[0] != '\0';
  struct call call;

  if (data == NULL || out_length == NULL) return CKR_ARGUMENTS_BAD;
  if (large->length > CALL_DATA_MOST) return CKR_DATA_LEN_RANGE;
  if (streams) {
    /* No mechanism makes it longer than that; less room than data is taken for too little. */
    if (large->out != NULL && large->room >= large->length) return CKR_OK;
    codec_store(out_length, large->length + AHEAD);
    return large->out == NULL ? CKR_OK : CKR_BUFFER_TOO_SMALL;
  }
  if (begin(&call, large, &call_rows[row->last])) {
    CK_ULONG length = 0;
    call_put_out(&call, NULL, &length);
    if (call_run(&call)) call_get_out(&call, NULL, &length);
    if (call.rv == CKR_OK && (large->out == NULL || large->room < length)) {
      codec_store(out_length, length);
      if (large->out != NULL) call.rv = CKR_BUFFER_TOO_SMALL;
    }
  }
  return call_end(&call);
}

/** The call itself, with its data's length in place of the data: whether it will do, and whether its result fits. */
static CK_RV announce(struct large *large, const struct call_row *row, CK_BYTE_PTR data, CK_ULONG_PTR out_length) {
  const bool whole = row->begin >= 0;
  const bool sealing = is_sealing(row);
  struct call call;

  if (library_ready() == CKR_OK && connect_dialect() != DIALECT_OWN && row->foreign)
    return announce_foreign(large, row, data, out_length);
  if (begin(&call, large, row)) {
    put_parameter(&call, large, !whole ? TAG_UNUSED : sealing ? TAG_WRITTEN : TAG_READ);
    if (whole) call_put_bytes(&call, large->message.associated, large->message.associated_length);
    call_put_length(&call, data, large->length);
    call_put_room(&call, large->out, out_length);
    if (large->message.is && !whole) call_put_ulong(&call, large->message.flags);
    if (call_run(&call)) {
      take_result(&call, large, 0);
      if (sealing) call_get_message(&call);
      if (call.rv == CKR_BUFFER_TOO_SMALL) {
        codec_store(out_length, large->told);
        if (large->out == NULL) call.rv = CKR_OK;
      }
    }
    call.asked_length = true; /* nothing has been taken in: the operation goes on */
    large->only = call.epoch;
  }
  return end(&call, large);
}

/** What the standard's own way of calling in parts ends with. */
static CK_RV send_last(struct large *large, const struct call_row *row, unsigned char *out, CK_ULONG room) {
  struct call call;
  CK_RV rv;

  if (begin(&call, large, row)) {
    struct large place = *large;
    if (large->out == NULL) {
      place.out = out;
      place.room = room;
      place.written = 0;
    }
    put_room(&call, &place);
    if (call_run(&call)) take_result(&call, &place, large->length);
    large->written = place.written;
    large->told = place.told;
    buffer_wipe(&place, sizeof place);
  }
  rv = end(&call, large);
  return rv;
}

/* --- calls in one piece --------------------------------------------------------------------------------------------------- */

static int operation_of(const struct call_row *row) {
  if (row == &call_rows[ROW_C_EncryptMessage]) return call_rows[ROW_C_MessageEncryptInit].starts;
  if (row == &call_rows[ROW_C_DecryptMessage]) return call_rows[ROW_C_MessageDecryptInit].starts;
  return row->ends;
}

/**
 * The connection ended between two parts. What they came to is gone with the agent; a call in one piece begins again, as one message would
 * be sent again, if its data are still what they were.
 */
static bool may_begin_again(const struct large *large, int attempt) {
  return large->lost && attempt + 1 < ATTEMPTS && (large->written == 0 || !overlaps(large));
}

/** The operation is over for the caller. The agent has ended it as well where the error is its own. */
static CK_RV give_up(const struct large *large, const struct call_row *row, CK_RV rv) {
  if (rv == CKR_OK || !large->broken || operation_of(row) < 0) return rv;
  sessions_drop(large->session, 1u << operation_of(row));
  if (!large->lost) {
    recovery_cancel(large->session, operation_of(row));
    return rv;
  }
  return log_cause(CAUSE_AGENT_INTERRUPTED, call_names[row - call_rows]);
}

/** Nothing is left of a decryption that failed after it had begun to give plaintext out. */
static void take_back(struct large *large, bool opens, CK_RV rv) {
  if (rv != CKR_OK && opens && large->out != NULL && large->written > 0) buffer_wipe(large->out, large->written);
}

/** The parts, a second time if the agent has only looked at them the first time; then what ends them. */
static CK_RV send_whole(struct large *large, const struct call_row *row, unsigned char *out, CK_ULONG room, bool has_result) {
  const struct call_row *part = &call_rows[row->part];
  CK_RV rv = CKR_OK;

  for (int pass = 0; pass < 2; pass++) {
    large->written = 0;
    large->told = 0;
    rv = CKR_OK;
    if (row->begin >= 0) {
      struct call call;
      if (begin(&call, large, &call_rows[row->begin])) {
        put_parameter(&call, large, TAG_UNUSED);
        call_put_bytes(&call, large->message.associated, large->message.associated_length);
        if (call_run(&call) && is_sealing(row)) call_get_message(&call);
      }
      rv = end(&call, large);
    }
    if (rv == CKR_OK) rv = send_parts(large, part);
    if (rv == CKR_OK && row->last >= 0) rv = send_last(large, &call_rows[row->last], out, room);
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
    rv = announce(&large, row, data, out_length);
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

  open_large(&large, session, data, length, out, out_length);
  return close_large(&large, run_whole(index, &large, data, out, out_length, call_rows[row->part].reply[0] != '\0'));
}

CK_RV large_message(int index, CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated,
                    CK_ULONG associated_length, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  struct large large;

  open_large(&large, session, data, length, out, out_length);
  large.message = (struct message){true, parameter, parameter_length, associated, associated_length, CKF_END_OF_MESSAGE};
  return close_large(&large, run_whole(index, &large, data, out, out_length, true));
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
      if (begin(&call, &large, row)) {
        call_put_length(&call, data, length);
        call_put_bytes(&call, signature, signature_length);
        call_run(&call);
        call.asked_length = true;
        large.only = call.epoch;
      }
      rv = end(&call, &large);
      if (rv != CKR_OK) return rv;
    } else if (data == NULL || length > CALL_DATA_MOST) {
      return data == NULL ? CKR_ARGUMENTS_BAD : CKR_DATA_LEN_RANGE;
    }
    rv = send_parts(&large, &call_rows[row->part]);
    if (rv == CKR_OK) {
      if (begin(&call, &large, &call_rows[row->last])) {
        call_put_bytes(&call, signature, signature_length);
        call_run(&call);
      }
      rv = end(&call, &large);
    }
    if (!may_begin_again(&large, attempt)) return give_up(&large, row, rv);
  }
}

CK_RV large_verify(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR signature,
                   CK_ULONG signature_length) {
  struct large large;

  open_large(&large, session, data, length, NULL, NULL);
  return close_large(&large, run_verify(index, &large, data, signature, signature_length));
}

/** A result that is longer than an answer: parts without data fetch all but its end. `row` is the call that ends it. */
static CK_RV fetch(const struct call_row *row, struct large *large, CK_ULONG told, CK_ULONG_PTR out_length) {
  const CK_FLAGS flags = large->message.flags;
  CK_RV rv = CKR_OK;

  large->length = 0;
  while (rv == CKR_OK && told - large->written > LARGE_DATA) {
    const CK_ULONG before = large->written;
    large->room = before + LARGE_PART;
    rv = send_part(large, &call_rows[row->part], 0, 0, 0);
    if (rv == CKR_OK && large->written == before) rv = CKR_DEVICE_ERROR;
  }
  large->room = told;
  if (rv == CKR_OK) rv = large->message.is ? send_part(large, row, 0, 0, flags) : send_last(large, row, large->out, told);
  take_back(large, true, rv);
  if (rv == CKR_OK) codec_store(out_length, large->written);
  return rv == CKR_BUFFER_TOO_SMALL ? CKR_DEVICE_ERROR : rv;
}

/* --- calls that are parts themselves -------------------------------------------------------------------------------------- */

/* Each part is the standard's own, and what an agent has taken in ends with it: no connection is insisted on. */
static CK_RV run_update(int index, struct large *large, CK_BYTE_PTR data, CK_BYTE_PTR out, CK_ULONG_PTR out_length) {
  /* Nothing cannot be announced, and need not be. */
  CK_RV rv = large->length == 0 ? CKR_OK : announce(large, &call_rows[index], data, out_length);

  if (rv != CKR_OK || out == NULL) return rv;
  large->only = 0;
  rv = send_parts(large, &call_rows[index]);
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

  open_large(&large, session, data, length, out, out_length);
  return close_large(&large, run_update(index, &large, data, out, out_length));
}

CK_RV large_message_part(int index, CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR data,
                         CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length, CK_FLAGS flags) {
  struct large large;

  open_large(&large, session, data, length, out, out_length);
  large.message = (struct message){.is = true, .parameter = parameter, .parameter_length = parameter_length, .flags = flags};
  return close_large(&large, run_update(index, &large, data, out, out_length));
}

CK_RV large_feed(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length) {
  struct large large;
  struct call call;

  open_large(&large, session, data, length, NULL, NULL);
  if (data != NULL && length <= CALL_DATA_MOST) return close_large(&large, send_parts(&large, &call_rows[index]));
  if (begin(&call, &large, &call_rows[index])) {
    call_put_length(&call, data, length); /* which says what is wrong */
    call_run(&call);
  }
  return close_large(&large, end(&call, &large));
}

CK_RV large_fill(int index, CK_SESSION_HANDLE session, CK_BYTE_PTR out, CK_ULONG length) {
  CK_RV rv = out == NULL || length > CALL_DATA_MOST ? CKR_ARGUMENTS_BAD : CKR_OK;

  for (CK_ULONG at = 0; rv == CKR_OK && at < length; at += LARGE_PART) {
    const CK_ULONG part = least(LARGE_PART, length - at);
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
  /* There is room, and it is more than a message carries. The tag has been checked: it is fetched in parts without data. */
  open_large(&large, session, NULL, 0, out, out_length);
  return close_large(&large, fetch(row, &large, codec_load(out_length), out_length));
}
