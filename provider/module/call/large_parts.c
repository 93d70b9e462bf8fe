/* The parts of a call; see large_parts.h. */
#include "call/large_parts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "connection/connect.h"
#include "connection/library.h"

CK_ULONG parts_least(CK_ULONG a, CK_ULONG b) { return a < b ? a : b; }

/** Whether the result may be written where the data is. */
static bool overlaps(const struct large *large) {
  const uintptr_t data = (uintptr_t)large->data;
  const uintptr_t out = (uintptr_t)large->out;

  if (large->data == NULL || large->out == NULL || large->length > CALL_DATA_MOST) return false;
  return out < data ? data - out < large->room : out - data < large->length;
}

void parts_open(struct large *large, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out,
                CK_ULONG_PTR out_length) {
  memset(large, 0, sizeof *large);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &large->cancellation);
  large->session = session;
  large->data = data;
  large->length = length;
  large->out = out;
  large->room = out_length == NULL ? 0 : codec_load(out_length);
  if (length == 0 || !overlaps(large)) return;
  large->copy = malloc(length);
  large->without_copy = large->copy == NULL;
  if (large->copy == NULL) return;
  memcpy(large->copy, data, length);
  large->data = large->copy;
}

CK_RV parts_close(const struct large *large, CK_RV rv) {
  if (large->copy != NULL) buffer_wipe(large->copy, large->length);
  free(large->copy);
  pthread_setcancelstate(large->cancellation, NULL);
  return rv;
}

/*
 * --- data and result -----------------------------------------------------------------------------
 */

static void put_data(struct call *call, const struct large *large, CK_ULONG from, CK_ULONG length) {
  buffer_put_u8(&call->request, 1);
  buffer_put_u32(&call->request, (uint32_t)length);
  call->given = length;
  if (length > 0) buffer_put_raw(&call->request, large->data + from, length);
}

/** The bytes of an answer behind those that have come before. */
static void take_result(struct call *call, struct large *large) {
  const unsigned char *from;
  size_t got;

  if (buffer_get_u8(&call->reply) == 0) {
    large->told = buffer_get_u32(&call->reply);
    large->broken = call->reply.failed;
    call->rv = call->reply.failed ? CKR_DEVICE_ERROR : CKR_BUFFER_TOO_SMALL;
    return;
  }
  from = buffer_get_array(&call->reply, &got);
  /* Who asks for the length has given no room, whatever its length says. */
  if (call->reply.failed || (got > 0 && (large->out == NULL || got > large->room - large->written))) {
    large->broken = true;
    call->rv = CKR_DEVICE_ERROR;
    return;
  }
  if (got > 0) memcpy(large->out + large->written, from, got);
  large->written += got;
  call->got = got;
}

/*
 * --- single messages -----------------------------------------------------------------------------
 */

bool parts_begin(struct call *call, const struct large *large, const struct call_row *row) {
  if (!call_begin(call, row)) return false;
  call->only = large->only;
  call_put_session(call, large->session);
  if (large->without_copy) call->rv = CKR_HOST_MEMORY;
  return !large->without_copy;
}

CK_RV parts_end(struct call *call, struct large *large) {
  large->lost = call->lost;
  if (call->rv != CKR_OK && !call->answered) large->broken = true;
  return call_end(call);
}

void parts_put_parameter(struct call *call, const struct large *large, enum tag_use tag) {
  if (large->message.is)
    call_put_message(call, large->message.parameter, large->message.parameter_length, tag);
}

static void put_room(struct call *call, const struct large *large) {
  const CK_ULONG left = large->room - large->written;
  /*
   * The whole length counts for what the agent has only measured; others allocate a buffer of that
   * size.
   */
  const CK_ULONG room = parts_least(left, call->dialect == DIALECT_OWN ? BUFFER_NULL - 1 : BUFFER_MAX);

  if (large->out == NULL) return;
  buffer_put_u32(&call->request, room > 0 ? (uint32_t)room : call->dialect == DIALECT_P11KIT_24 ? 0 : BUFFER_NULL);
}

bool parts_is_sealing(const struct call_row *row) { return row->reply[strlen(row->reply) - 1] == 'g'; }

/** Data from `from` on, as one message of its own; the tag of a message goes with its last part. */
CK_RV parts_send_one(struct large *large, const struct call_row *row, CK_ULONG from, CK_ULONG length, CK_FLAGS flags) {
  const bool sealing = row->reply[0] != '\0' && parts_is_sealing(row);
  const enum tag_use tag = (flags & CKF_END_OF_MESSAGE) == 0 ? TAG_UNUSED : sealing ? TAG_WRITTEN : TAG_READ;
  struct call call;

  if (parts_begin(&call, large, row)) {
    parts_put_parameter(&call, large, tag);
    put_data(&call, large, from, length);
    put_room(&call, large);
    if (large->message.is) call_put_ulong(&call, flags);
    if (call_run(&call)) {
      if (large->out != NULL) take_result(&call, large);
      if (sealing) call_get_message(&call);
    }
  }
  return parts_end(&call, large);
}

/** All of the data, part by part. The end of a message is sent without data too. */
CK_RV parts_send_all(struct large *large, const struct call_row *row) {
  CK_ULONG at = 0;
  CK_RV rv = CKR_OK;

  if (large->length == 0 && !large->message.is) return CKR_OK;
  do {
    const CK_ULONG part = parts_least(LARGE_PART, large->length - at);
    rv = parts_send_one(large, row, at, part, at + part == large->length ? large->message.flags : 0);
    at += part;
  } while (rv == CKR_OK && at < large->length);
  return rv;
}

/*
 * What the last part of a result may be longer than that of the data: by a block that is not full,
 * and one of padding.
 */
enum { LONGEST_REST = 32 };

/** Before a peer that is not our agent, and takes no announcement: what can be said without one. */
static CK_RV announce_foreign(const struct large *large, const struct call_row *row, CK_BYTE_PTR data, CK_ULONG_PTR out_length) {
  const bool streams = row->last < 0 || call_rows[row->part].reply[0] != '\0';
  struct call call;

  if (data == NULL || out_length == NULL) return CKR_ARGUMENTS_BAD;
  if (large->length > CALL_DATA_MOST) return CKR_DATA_LEN_RANGE;
  if (streams) {
    /* No mechanism makes it longer than that; less room than data is taken for too little. */
    if (large->out != NULL && large->room >= large->length) return CKR_OK;
    codec_store(out_length, large->length + LONGEST_REST);
    return large->out == NULL ? CKR_OK : CKR_BUFFER_TOO_SMALL;
  }
  if (parts_begin(&call, large, &call_rows[row->last])) {
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

/**
 * The call itself, with its data's length in place of the data: whether it will do, and whether its
 * result fits.
 */
CK_RV parts_announce(struct large *large, const struct call_row *row, CK_BYTE_PTR data, CK_ULONG_PTR out_length) {
  const bool whole = row->begin >= 0;
  const bool sealing = parts_is_sealing(row);
  struct call call;

  if (library_ready() == CKR_OK && connect_dialect() != DIALECT_OWN && row->foreign)
    return announce_foreign(large, row, data, out_length);
  if (parts_begin(&call, large, row)) {
    parts_put_parameter(&call, large, !whole ? TAG_UNUSED : sealing ? TAG_WRITTEN : TAG_READ);
    if (whole) call_put_bytes(&call, large->message.associated, large->message.associated_length);
    call_put_length(&call, data, large->length);
    call_put_room(&call, large->out, out_length);
    if (large->message.is && !whole) call_put_ulong(&call, large->message.flags);
    if (call_run(&call)) {
      take_result(&call, large);
      if (sealing) call_get_message(&call);
      if (call.rv == CKR_BUFFER_TOO_SMALL) {
        codec_store(out_length, large->told);
        if (large->out == NULL) call.rv = CKR_OK;
      }
    }
    call.asked_length = true; /* no input was consumed: the operation continues */
    large->only = call.epoch;
  }
  return parts_end(&call, large);
}

/** What the standard's own way of calling in parts ends with. */
CK_RV parts_send_last(struct large *large, const struct call_row *row, unsigned char *out, CK_ULONG room) {
  struct call call;

  if (parts_begin(&call, large, row)) {
    struct large place = *large;
    if (large->out == NULL) {
      place.out = out;
      place.room = room;
      place.written = 0;
    }
    put_room(&call, &place);
    if (call_run(&call)) take_result(&call, &place);
    large->written = place.written;
    large->told = place.told;
  }
  return parts_end(&call, large);
}
