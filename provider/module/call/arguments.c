/*
 * The arguments of a call into its request, and its reply into what they point to; see arguments.h.
 */
#include "call/arguments.h"

#include <pthread.h>
#include <string.h>

#include "connection/connect.h"
#include "connection/library.h"
#include "connection/resumption.h"
#include "connection/transport.h"
#include "host/last_cause.h"

bool call_begin(struct call *call, const struct call_row *row) {
  static const unsigned char header[TRANSPORT_HEADER];

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancellation);
  call->row = row;
  call->answered = false;
  call->asked_length = false;
  call->session = 0;
  call->room = 0;
  call->given = 0;
  call->got = 0;
  call->only = 0;
  call->epoch = 0;
  call->lost = false;
  last_cause_forget();
  buffer_open(&call->request);
  buffer_open(&call->reply);
  call->rv = library_ready();
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

CK_RV call_close(struct call *call) {
  buffer_close(&call->request);
  buffer_close(&call->reply);
  pthread_setcancelstate(call->cancellation, NULL);
  return call->rv;
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

CK_FLAGS call_operation_flag(int operation) { return operation_flags[operation]; }

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

void call_put_length(struct call *call, const void *bytes, CK_ULONG length) {
  if (bytes == NULL) note(call, CKR_ARGUMENTS_BAD);
  else if (length > CALL_DATA_MOST) note(call, CKR_DATA_LEN_RANGE);
  buffer_put_u8(&call->request, 0);
  buffer_put_u32(&call->request, (uint32_t)length);
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

void call_put_room(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length) {
  const CK_ULONG room = length == NULL ? 0 : codec_load(length);

  call->asked_length = bytes == NULL;
  if (length == NULL) note(call, CKR_ARGUMENTS_BAD);
  else if (bytes == NULL) buffer_put_u32(&call->request, 0);
  else if (room == 0) buffer_put_u32(&call->request, BUFFER_NULL);
  else buffer_put_u32(&call->request, room < BUFFER_NULL ? (uint32_t)room : BUFFER_NULL - 1);
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
