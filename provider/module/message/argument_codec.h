/*
 * Cryptoki's arguments as bytes (PROTOCOL.md, "Frames"). The caller's memory is foreign: pointers
 * may be null, structures misaligned, counts absurd; everything is copied with memcpy and nothing
 * is written beyond the room the caller gave. The put functions return CKR_OK or what the caller
 * did wrong, and leave the buffer failed when the message is too long.
 */
#ifndef DKE_CODEC_H
#define DKE_CODEC_H

#include "message/buffer.h"
#include "message/cryptoki.h"
#include "message/gen/forms.h"

/** How the peer writes mechanisms and asks for attributes. */
enum dialect { DIALECT_OWN, DIALECT_P11KIT_24, DIALECT_P11KIT_26 };

/** What a call does with the tag of a message. */
enum tag_use { TAG_UNUSED, TAG_WRITTEN, TAG_READ };

/** Where a message's IV and tag go back to. */
struct message_place {
  void *iv;
  CK_ULONG iv_length;
  void *tag; /* NULL when this call writes none */
  CK_ULONG tag_length;
};

/** The kinds of attribute values. */
enum attribute_kind { KIND_BOOLEAN, KIND_ULONG, KIND_BYTES, KIND_DATE, KIND_TEMPLATE, KIND_MECHANISMS };

/** What of a mechanism's parameter travels, as provider/schema/parameters.ts has it. */
enum member_kind { MEMBER_END, MEMBER_ULONG, MEMBER_FLAG, MEMBER_BYTES, MEMBER_ARRAY, MEMBER_PRF_DATA };
struct parameter_member {
  enum member_kind kind;
  size_t at;
  size_t count_at; /* of what is behind a pointer */
};
/** A form: the length of its structure, 0 without one, and its members up to MEMBER_END. */
struct parameter_row {
  size_t length;
  struct parameter_member members[8];
};

/**
 * Handles of session objects start here; those of token objects, which the service assigns, stay
 * below it.
 */
#define CODEC_FIRST_SESSION_OBJECT 0x80000000u
/** C_EncryptInit's number. */
#define CODEC_ENCRYPT_INIT 29u

/** From module/entry/gen/tables.c. */
enum attribute_kind codec_attribute_kind(CK_ATTRIBUTE_TYPE type);
enum parameter_form codec_parameter_form(CK_MECHANISM_TYPE type);
extern const struct parameter_row codec_parameters[];

CK_RV codec_put_bytes(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG length);
CK_RV codec_put_template(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
CK_RV codec_put_mechanism(struct buffer *buffer, CK_MECHANISM_PTR mechanism, enum dialect dialect);
/**
 * The mechanism of a message-based function, in our own dialect: alone, because its parameter comes
 * with each message.
 */
CK_RV codec_put_message_mechanism(struct buffer *buffer, CK_MECHANISM_PTR mechanism);
/** The parameter of one message (CK_GCM_MESSAGE_PARAMS), and where its output belongs. */
CK_RV codec_put_message(struct buffer *buffer, const void *parameter, CK_ULONG length, enum tag_use tag,
                        struct message_place *place);
/**
 * Whether our agent, which has accepted the Init message `before`, is bound to accept `now` as
 * well, with nothing changed and no such operation running. Both are `length` bytes long, in our
 * own dialect.
 */
bool codec_init_repeats(const unsigned char *before, const unsigned char *now, size_t length);
/**
 * Whether an Init message that was accepted starts AES in ECB or CBC, without padding, under a
 * session key: whole blocks come back at once.
 */
bool codec_init_is_plain(const unsigned char *init, size_t length);
/** Room for output bytes. */
CK_RV codec_put_room(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG_PTR length, enum dialect dialect);
/** Room for a list. */
CK_RV codec_put_list_room(struct buffer *buffer, const void *list, CK_ULONG count);
CK_RV codec_put_query(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count, enum dialect dialect);

/** `room` is what *length was when the call was made. */
CK_RV codec_get_bytes(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG_PTR length);
CK_RV codec_get_exactly(struct buffer *buffer, CK_BYTE_PTR bytes, CK_ULONG length);
CK_RV codec_get_list(struct buffer *buffer, CK_ULONG_PTR list, CK_ULONG room, CK_ULONG_PTR count);
CK_RV codec_get_result(struct buffer *buffer, CK_ULONG_PTR result);
/** Reads an IV and a tag; writes them to their place when `write`. */
CK_RV codec_get_message(struct buffer *buffer, const struct message_place *place, bool write);
CK_RV codec_get_answers(struct buffer *buffer, CK_ATTRIBUTE_PTR attributes, CK_ULONG count);
/** Blank-padded text of exactly `length` bytes. */
void codec_get_text(struct buffer *buffer, CK_UTF8CHAR *text, size_t length);
void codec_get_version(struct buffer *buffer, CK_VERSION *version);

/**
 * The caller's memory may be misaligned, so its pointers travel as void: memcpy of a typed one
 * promises alignment.
 */
void codec_store(void *to, CK_ULONG value);
CK_ULONG codec_load(const void *from);

#endif
