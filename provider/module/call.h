/*
 * One Cryptoki call: its request, its way to the agent and back, and what the library has to remember of it. Generated
 * entry points (gen/entries.c) are made of these; `rv` is sticky, so an entry puts all its arguments and asks at the end.
 */
#ifndef DKE_CALL_H
#define DKE_CALL_H

#include "buffer.h"
#include "codec.h"

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
};

struct call {
  const struct call_row *row;
  CK_RV rv;
  enum dialect dialect;
  bool answered; /* an rv of the agent's, not ours */
  bool asked_length;
  CK_SESSION_HANDLE session;
  CK_ULONG room; /* of a list */
  CK_ULONG given; /* bytes of data that were put last */
  CK_ULONG got;   /* bytes that came back */
  uint32_t age;  /* of the table of sessions, when an Init was sent */
  struct message_place message;
  struct buffer request;
  struct buffer reply;
};

/** False when the library is not initialised in this process: `call->rv` says so, and call_end still has to be called. */
bool call_begin(struct call *call, const struct call_row *row);
void call_put_ulong(struct call *call, CK_ULONG value);
void call_put_session(struct call *call, CK_SESSION_HANDLE session);
void call_put_flag(struct call *call, CK_BBOOL value);
void call_put_bytes(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length);
void call_put_label(struct call *call, CK_UTF8CHAR_PTR label);
void call_put_template(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
void call_put_mechanism(struct call *call, CK_MECHANISM_PTR mechanism);
/** Of a message-based function: what its parameter says comes with each message. */
void call_put_message_mechanism(struct call *call, CK_MECHANISM_PTR mechanism);
void call_put_message(struct call *call, const void *parameter, CK_ULONG length, enum tag_use tag);
void call_put_out(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length);
void call_put_fill(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length);
void call_put_list(struct call *call, CK_ULONG_PTR list, CK_ULONG_PTR count);
void call_put_batch(struct call *call, CK_ULONG_PTR list, CK_ULONG most, CK_ULONG_PTR count);
void call_put_query(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
/** A pointer that will receive something: CKR_ARGUMENTS_BAD when null. */
void call_need(struct call *call, const void *pointer);
/** Sends and waits. True when there is an answer to read. */
bool call_run(struct call *call);
void call_get_out(struct call *call, CK_BYTE_PTR bytes, CK_ULONG_PTR length);
void call_get_fill(struct call *call, CK_BYTE_PTR bytes, CK_ULONG length);
void call_get_list(struct call *call, CK_ULONG_PTR list, CK_ULONG_PTR count);
void call_get_result(struct call *call, CK_ULONG_PTR result);
/** Writes an IV and a tag back, if the call went well and the answer holds them. */
void call_get_message(struct call *call);
void call_get_query(struct call *call, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
CK_RV call_end(struct call *call);

/** The set of operations that flags of C_SessionCancel name. */
unsigned call_operations(CK_FLAGS flags);

/** The rows, by position: gen/tables.c. */
extern const struct call_row call_rows[];
/** Their names, for the log: of the row at the same place. */
extern const char *const call_names[];

CK_RV call_initialize(void);
CK_RV call_finalize(void);
/** CKR_OK, or CKR_CRYPTOKI_NOT_INITIALIZED: in a process, or a forked child of one, that has not called C_Initialize. */
CK_RV call_ready(void);

#endif
