/*
 * Data longer than one message carries (PROTOCOL.md, "Large data"): a call is split into parts,
 * each an ordinary message, so that other threads get their turn in between. The caller's memory is
 * read and written in place. Only data that the result is written over are copied. A generated
 * entry point comes here when `large_is` says so; `row` is its position in call_rows.
 */
#ifndef DKE_LARGE_H
#define DKE_LARGE_H

#include "call/call.h"

enum {
  LARGE_DATA = BUFFER_MAX - 8192, /* most bytes of data that travel in one message */
  LARGE_PART = 256 * 1024         /* bytes in each part of more */
};

static inline bool large_is(CK_ULONG length) { return length > LARGE_DATA; }

/** `large_is` for a message and its associated data, which travel in one piece. */
static inline bool large_is_message(CK_ULONG associated, CK_ULONG length) {
  return large_is(length) || (length > 0 && associated <= BUFFER_MAX && large_is(associated + length));
}

/**
 * The last part of a message that is decrypted, whose result may be longer than an answer carries:
 * all of it was held until now.
 */
static inline bool large_is_end(CK_FLAGS flags, CK_BYTE_PTR out, CK_ULONG_PTR room) {
  return (flags & CKF_END_OF_MESSAGE) != 0 && out != NULL && room != NULL && large_is(codec_load(room));
}

/** C_Encrypt, C_Decrypt, C_Digest and C_Sign. */
CK_RV large_whole(int row, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length);
/** C_Verify. */
CK_RV large_verify(int row, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR signature, CK_ULONG signature_length);
/** A part with a result: C_EncryptUpdate, C_DecryptUpdate and the dual functions. */
CK_RV large_update(int row, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length);
/** A part without one: C_DigestUpdate, C_SignUpdate, C_VerifyUpdate and C_SeedRandom. */
CK_RV large_feed(int row, CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length);
/** C_GenerateRandom. */
CK_RV large_fill(int row, CK_SESSION_HANDLE session, CK_BYTE_PTR out, CK_ULONG length);
/** C_DecryptFinal, of any length: its result may be longer than a message carries. */
CK_RV large_final(int row, CK_SESSION_HANDLE session, CK_BYTE_PTR out, CK_ULONG_PTR out_length);
/** C_EncryptMessage and C_DecryptMessage. */
CK_RV large_message(int row, CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR associated,
                    CK_ULONG associated_length, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length);
/** C_EncryptMessageNext and C_DecryptMessageNext. */
CK_RV large_message_part(int row, CK_SESSION_HANDLE session, CK_VOID_PTR parameter, CK_ULONG parameter_length, CK_BYTE_PTR data,
                         CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR out_length, CK_FLAGS flags);

#endif
