/*
 * One Cryptoki call: its request, its reply, and what they are made of. `rv` is sticky, so an entry
 * point puts all its arguments and asks at the end.
 */
#ifndef DKE_ARGUMENTS_H
#define DKE_ARGUMENTS_H

#include "message/argument_codec.h"
#include "message/buffer.h"

/** A row of calls.ts. */
struct call_row {
  const char *request; /* the signatures */
  const char *reply;
  uint16_t code;
  bool in_session;     /* the first argument is a session handle */
  bool once;           /* not sent a second time when the first may have been carried out */
  bool foreign;        /* p11-kit 0.24 has it too */
  int8_t starts;       /* an operation, -1 for none */
  int8_t ends;
  uint16_t continues;  /* a set of operations */
  bool quiet;          /* keys, sessions and the login stay as they are */
  bool slow;           /* waited for ten times as long */
  int8_t begin;        /* rows that carry its data in parts, -1 for none (large.h) */
  int8_t part;
  int8_t last;
};

/**
 * Most bytes of data in one call: more is CKR_DATA_LEN_RANGE, of random numbers CKR_ARGUMENTS_BAD.
 */
#define CALL_DATA_MOST ((CK_ULONG)1 << 31)

struct call {
  const struct call_row *row;
  CK_RV rv;
  int cancellation; /* the thread's cancel state outside the call */
  enum dialect dialect;
  bool answered; /* an rv of the agent's, not ours */
  bool asked_length;
  CK_SESSION_HANDLE session;
  CK_ULONG room; /* of a list */
  CK_ULONG given; /* bytes of data that were put last */
  CK_ULONG got;   /* bytes that came back */
  uint32_t only;  /* the connection that it is for; 0 for any */
  uint32_t epoch; /* the connection that it was answered on */
  bool lost;      /* the one that it was for has ended */
  uint32_t age;  /* of the table of sessions, when an Init was sent */
  struct message_place message;
  struct buffer request;
  struct buffer reply;
};

/**
 * Keeps the thread from being cancelled until call_end: most of what a call does is a cancellation
 * point, and other threads wait for what it has started. False when the library is not initialised
 * in this process: `call->rv` says so, and call_end still has to be called.
 */
bool call_begin(struct call *call, const struct call_row *row);
void call_put_ulong(struct call *call, CK_ULONG value);
void call_put_session(struct call *call, CK_SESSION_HANDLE session);
void call_put_flag(struct call *call, CK_BBOOL value);
void call_put_bytes(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length);
/** The length of data that follows in parts, in its place. */
void call_put_length(struct call *call, const void *bytes, CK_ULONG length);
void call_put_label(struct call *call, CK_UTF8CHAR_PTR label);
void call_put_template(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
void call_put_mechanism(struct call *call, CK_MECHANISM_PTR mechanism);
/**
 * Writes the mechanism of a message-based function, without its parameter: that comes with each
 * message.
 */
void call_put_message_mechanism(struct call *call, CK_MECHANISM_PTR mechanism);
void call_put_message(struct call *call, const void *parameter, CK_ULONG length, enum tag_use tag);
void call_put_out(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length);
/** `call_put_out` for a result that comes in parts: states all of the room. */
void call_put_room(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length);
void call_put_fill(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length);
void call_put_list(struct call *call, CK_ULONG_PTR list, CK_ULONG_PTR count);
void call_put_batch(struct call *call, CK_ULONG_PTR list, CK_ULONG most, CK_ULONG_PTR count);
void call_put_query(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
/** A pointer that will receive something: CKR_ARGUMENTS_BAD when null. */
void call_need(struct call *call, const void *pointer);
void call_get_out(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length);
void call_get_fill(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length);
void call_get_list(struct call *call, CK_ULONG_PTR list, CK_ULONG_PTR count);
void call_get_result(struct call *call, CK_ULONG_PTR result);
/** Writes an IV and a tag back, if the call succeeded and the answer contains them. */
void call_get_message(struct call *call);
void call_get_query(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
/** Frees what a call has, lets its thread be cancelled again, and answers the return value. */
CK_RV call_close(struct call *call);

/** What C_SessionCancel calls an operation. */
CK_FLAGS call_operation_flag(int operation);
/** The set of operations that flags of C_SessionCancel name. */
unsigned call_operations(CK_FLAGS flags);

/** The rows, by position: module/entry/gen/tables.c. */
extern const struct call_row call_rows[];
/** Their names, for the log: of the row at the same place. */
extern const char *const call_names[];

#endif
