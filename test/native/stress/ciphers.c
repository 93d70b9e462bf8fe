/*
 * AES: ciphers in one piece and in parts, messages of 3.0, and functions that do two things at
 * once.
 */
#include <stdio.h>
#include <string.h>

#include "worker.h"

enum kind { BLOCKS, PADDED, STREAM, GCM, CCM };
static const struct cipher_row {
  const char *job;
  CK_MECHANISM_TYPE type;
  const char *mode;
  enum kind kind;
} ciphers[] = {
    {"AES-ECB", CKM_AES_ECB, "ECB", BLOCKS},         {"AES-CBC", CKM_AES_CBC, "CBC", BLOCKS},
    {"AES-CBC-PAD", CKM_AES_CBC_PAD, "CBC", PADDED}, {"AES-CTR", CKM_AES_CTR, "CTR", STREAM},
    {"AES-GCM", CKM_AES_GCM, "GCM", GCM},            {"AES-CCM", CKM_AES_CCM, "CCM", CCM},
};

struct cipher_use {
  CK_MECHANISM mechanism;
  CK_BYTE iv[128];
  CK_ULONG iv_length;
  CK_BYTE aad[512];
  CK_ULONG aad_length;
  CK_ULONG tag;
  union {
    CK_AES_CTR_PARAMS ctr;
    CK_GCM_PARAMS gcm;
    CK_CCM_PARAMS ccm;
  } parameter;
};

/*
 * IVs of GCM are random, so they have at least 12 bytes: shorter ones would repeat, which is
 * refused.
 */
static CK_ULONG iv_length_of(struct worker *w, const struct cipher_row *row) {
  switch (row->kind) {
    case GCM: return once_in(w, 2) ? 12 : 12 + below(w, 117);
    case CCM: return 7 + below(w, 7);
    default: return row->type == CKM_AES_ECB ? 0 : 16;
  }
}

static void prepare(struct worker *w, const struct cipher_row *row, struct cipher_use *use, CK_ULONG *data) {
  const bool aead = row->kind == GCM || row->kind == CCM;

  memset(use, 0, sizeof *use);
  use->iv_length = iv_length_of(w, row);
  fill(w, use->iv, use->iv_length);
  use->aad_length = aead ? below(w, sizeof use->aad) : 0;
  fill(w, use->aad, use->aad_length);
  use->mechanism.mechanism = row->type;
  switch (row->kind) {
    case STREAM: {
      /* A counter that begins at zero does not complete, where the standard and OpenSSL differ. */
      const CK_ULONG bytes = 4 + below(w, 13);
      if (bytes < 16) memset(use->iv + 16 - bytes, 0, bytes);
      use->parameter.ctr.ulCounterBits = bytes * 8;
      memcpy(use->parameter.ctr.cb, use->iv, 16);
      use->mechanism.pParameter = &use->parameter.ctr;
      use->mechanism.ulParameterLen = sizeof use->parameter.ctr;
      break;
    }
    case GCM:
      use->tag = 12 + below(w, 5);
      use->parameter.gcm = (CK_GCM_PARAMS){use->iv, use->iv_length, use->iv_length * 8, use->aad, use->aad_length, use->tag * 8};
      use->mechanism.pParameter = &use->parameter.gcm;
      use->mechanism.ulParameterLen = sizeof use->parameter.gcm;
      break;
    case CCM:
      use->tag = 4 + 2 * below(w, 7);
      /* With a nonce of 13 bytes, two remain for the length. */
      if (use->iv_length == 13 && *data > 65535) *data = 65535;
      use->parameter.ccm = (CK_CCM_PARAMS){*data, use->iv, use->iv_length, use->aad, use->aad_length, use->tag};
      use->mechanism.pParameter = &use->parameter.ccm;
      use->mechanism.ulParameterLen = sizeof use->parameter.ccm;
      break;
    default:
      use->mechanism.pParameter = use->iv_length == 0 ? NULL : use->iv;
      use->mechanism.ulParameterLen = use->iv_length;
  }
}

static CK_ULONG expect(struct worker *w, const struct cipher_row *row, const struct cipher_use *use, const CK_BYTE *key, CK_ULONG key_length) {
  char name[16];
  const struct reference_cipher reference = {.name = name,
                                             .key = key,
                                             .iv = use->iv,
                                             .iv_length = use->iv_length,
                                             .aad = use->aad,
                                             .aad_length = use->aad_length,
                                             .tag = use->tag,
                                             .padded = row->kind == PADDED};

  snprintf(name, sizeof name, "AES-%lu-%s", key_length * 8, row->mode);
  return reference_encrypt(&reference, w->plain, w->size, w->expected);
}

/** One call, perhaps after a question for the length and a buffer that is too small. */
static bool in_one_piece(struct worker *w, bool encrypt, CK_BYTE *in, CK_ULONG length, CK_BYTE *out, CK_ULONG *written, CK_ULONG room) {
  const unsigned way = (unsigned)below(w, 6);
  CK_ULONG asked = 0;

  if (way == 0) {
    if (encrypt) TRY(C_Encrypt, w->session, in, length, NULL, &asked);
    else TRY(C_Decrypt, w->session, in, length, NULL, &asked);
    if (asked > room) wrong_result(w, "the length that is asked for", asked);
  } else if (way == 1 && encrypt && length > 16) {
    asked = below(w, length);
    EXPECT(CKR_BUFFER_TOO_SMALL, C_Encrypt, w->session, in, length, out, &asked);
  }
  *written = room;
  guard(out + room);
  if (encrypt) TRY(C_Encrypt, w->session, in, length, out, written);
  else TRY(C_Decrypt, w->session, in, length, out, written);
  check_guard(w, out + room);
  return true;
}

static bool in_parts(struct worker *w, bool encrypt, CK_BYTE *in, CK_ULONG length, CK_BYTE *out, CK_ULONG *written, CK_ULONG room) {
  const CK_ULONG most = 1 + length / (1 + below(w, 4));
  CK_ULONG at = 0;
  CK_ULONG put = 0;

  guard(out + room);
  while (at < length) {
    CK_ULONG part = 1 + below(w, most);
    CK_ULONG got = room - put;
    if (part > length - at) part = length - at;
    if (encrypt) TRY(C_EncryptUpdate, w->session, in + at, part, out + put, &got);
    else TRY(C_DecryptUpdate, w->session, in + at, part, out + put, &got);
    at += part;
    put += got;
  }
  *written = room - put;
  if (encrypt) TRY(C_EncryptFinal, w->session, out + put, written);
  else TRY(C_DecryptFinal, w->session, out + put, written);
  *written += put;
  check_guard(w, out + room);
  return true;
}

static bool one_way(struct worker *w, bool encrypt, struct cipher_use *use, CK_BYTE *in, CK_ULONG length, const CK_BYTE *expected, CK_ULONG expected_length,
                    CK_OBJECT_HANDLE key, bool parts) {
  CK_ULONG written = 0;

  if (encrypt) TRY(C_EncryptInit, w->session, &use->mechanism, key);
  else TRY(C_DecryptInit, w->session, &use->mechanism, key);
  if (!(parts ? in_parts : in_one_piece)(w, encrypt, in, length, w->got, &written, expected_length + (encrypt ? 0 : 16))) return false;
  compare(w, w->got, written, expected, expected_length);
  return true;
}

static bool there_and_back(struct worker *w, const struct cipher_row *row, CK_OBJECT_HANDLE key, const CK_BYTE *value, CK_ULONG value_length) {
  struct cipher_use use;
  CK_ULONG encrypted;

  w->job = row->job;
  if (row->kind == BLOCKS) w->size = (w->size + 15) / 16 * 16;
  prepare(w, row, &use, &w->size);
  fill(w, w->plain, w->size);
  encrypted = expect(w, row, &use, value, value_length);
  if (!one_way(w, true, &use, w->plain, w->size, w->expected, encrypted, key, once_in(w, 3))) return false;
  if (!one_way(w, false, &use, w->expected, encrypted, w->plain, w->size, key, once_in(w, 3))) return false;
  covered(w, row->type);
  /* A changed byte is refused without any plaintext. A short tag occasionally matches by chance. */
  if (use.tag < 8 || !once_in(w, 4)) return true;
  w->expected[below(w, encrypted)] ^= 0x40;
  TRY(C_DecryptInit, w->session, &use.mechanism, key);
  memset(w->got, 0, w->size);
  encrypted -= use.tag;
  EXPECT(CKR_ENCRYPTED_DATA_INVALID, C_Decrypt, w->session, w->expected, encrypted + use.tag, w->got, &encrypted);
  for (CK_ULONG i = 0; i < w->size; i++)
    if (w->got[i] != 0) {
      wrong_result(w, "plaintext of a changed message", i);
      break;
    }
  return true;
}

bool ciphers_job(struct worker *w) {
  w->size = size_of_message(w, largest - 16);
  if (!need_secret(w)) return false;
  return there_and_back(w, &ciphers[below(w, COUNT(ciphers))], w->aes, w->secret, w->secret_length);
}

/** A key of the token is used by the service. */
bool token_key_job(struct worker *w) {
  CK_BYTE value[32];
  CK_BYTE got[64];
  CK_MECHANISM mechanism;
  CK_ULONG length = sizeof got;
  CK_OBJECT_HANDLE key = 0;
  CK_ULONG expected;

  w->size = size_of_message(w, 16384);
  fill(w, value, sizeof value);
  if (once_in(w, 3)) {
    const struct digest *digest = any_digest(w);
    w->job = "an HMAC key of the token";
    mechanism = (CK_MECHANISM){digest->hmac, NULL, 0};
    if (!create_secret(w, true, CKK_GENERIC_SECRET, value, sizeof value, &key)) return false;
    fill(w, w->plain, w->size);
    expected = reference_mac(digest->name, value, sizeof value, w->plain, w->size, w->expected);
    TRY(C_SignInit, w->session, &mechanism, key);
    TRY(C_Sign, w->session, w->plain, w->size, got, &length);
    compare(w, got, length, w->expected, expected);
  } else {
    if (!create_secret(w, true, CKK_AES, value, sizeof value, &key)) return false;
    if (!there_and_back(w, &ciphers[below(w, COUNT(ciphers))], key, value, sizeof value)) return false;
  }
  TRY(C_DestroyObject, w->session, key);
  return true;
}

/*
 * --- messages of 3.0 -----------------------------------------------------------------------------
 */

/*
 * A message that is decrypted in parts is held until its tag is checked: at most so much of it
 * (docs/developers.md).
 */
enum { MOST_IN_PARTS = 1000000 };

/** One message under GCM, in one call or in parts; its IV is the caller's or the token's. */
static bool one_message(struct worker *w, bool encrypt, struct cipher_use *use, CK_BYTE *tag, bool generated, const CK_BYTE *in, CK_BYTE *out) {
  CK_GCM_MESSAGE_PARAMS parameter = {use->iv, use->iv_length, 0, generated && encrypt ? 1 /* CKG_GENERATE */ : 0, tag, use->tag * 8};
  CK_BYTE *from = (CK_BYTE *)in;
  CK_ULONG at = 0;
  CK_ULONG put = 0;
  CK_ULONG got = w->size;

  guard(out + w->size);
  if (once_in(w, 2) || (!encrypt && w->size > MOST_IN_PARTS)) {
    if (encrypt) TRY(C_EncryptMessage, w->session, &parameter, sizeof parameter, use->aad, use->aad_length, from, w->size, out, &got);
    else TRY(C_DecryptMessage, w->session, &parameter, sizeof parameter, use->aad, use->aad_length, from, w->size, out, &got);
    put = got;
  } else {
    if (encrypt) TRY(C_EncryptMessageBegin, w->session, &parameter, sizeof parameter, use->aad, use->aad_length);
    else TRY(C_DecryptMessageBegin, w->session, &parameter, sizeof parameter, use->aad, use->aad_length);
    do {
      CK_ULONG part = 1 + below(w, w->size);
      CK_FLAGS flags;
      if (part > w->size - at) part = w->size - at;
      flags = at + part == w->size ? CKF_END_OF_MESSAGE : 0;
      got = w->size - put;
      if (encrypt) TRY(C_EncryptMessageNext, w->session, &parameter, sizeof parameter, from + at, part, out + put, &got, flags);
      else TRY(C_DecryptMessageNext, w->session, &parameter, sizeof parameter, from + at, part, out + put, &got, flags);
      at += part;
      put += got;
    } while (at < w->size);
  }
  if (put != w->size) wrong_result(w, "another length", put);
  check_guard(w, out + w->size);
  return true;
}

bool messages_job(struct worker *w) {
  static const struct cipher_row row = {"AES-GCM messages", CKM_AES_GCM, "GCM", GCM};
  CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
  const CK_ULONG messages = 1 + below(w, 3);

  w->job = row.job;
  w->size = 0;
  if (!need_secret(w)) return false;
  TRY(C_MessageEncryptInit, w->session, &mechanism, w->aes);
  TRY(C_MessageDecryptInit, w->session, &mechanism, w->aes);
  for (CK_ULONG i = 0; i < messages; i++) {
    const bool generated = once_in(w, 2);
    struct cipher_use use;
    CK_BYTE tag[16];
    w->size = size_of_message(w, largest - 16);
    prepare(w, &row, &use, &w->size);
    fill(w, w->plain, w->size);
    if (!one_message(w, true, &use, tag, generated, w->plain, w->got)) return false;
    expect(w, &row, &use, w->secret, w->secret_length);
    compare(w, w->got, w->size, w->expected, w->size);
    compare(w, tag, use.tag, w->expected + w->size, use.tag);
    if (!one_message(w, false, &use, tag, generated, w->expected, w->got)) return false;
    compare(w, w->got, w->size, w->plain, w->size);
  }
  TRY(C_MessageEncryptFinal, w->session);
  TRY(C_MessageDecryptFinal, w->session);
  return true;
}

/*
 * --- two things at once --------------------------------------------------------------------------
 */

bool dual_job(struct worker *w) {
  const struct digest *digest = any_digest(w);
  static const struct cipher_row row = {"two operations at once", CKM_AES_CBC_PAD, "CBC", PADDED};
  const bool digests_too = once_in(w, 2);
  CK_MECHANISM digesting = {digest->digest, NULL, 0};
  CK_MECHANISM signing = {digest->hmac, NULL, 0};
  struct cipher_use use;
  CK_BYTE got[64];
  CK_BYTE expected[64];
  CK_ULONG length = sizeof got;
  CK_ULONG expected_length;
  CK_ULONG encrypted;
  CK_ULONG written;
  CK_ULONG last;
  CK_ULONG first;

  w->job = row.job;
  w->size = size_of_message(w, largest - 16);
  if (!need_secret(w)) return false;
  prepare(w, &row, &use, &w->size);
  fill(w, w->plain, w->size);
  encrypted = expect(w, &row, &use, w->secret, w->secret_length);
  expected_length = digests_too ? reference_digest(digest->name, w->plain, w->size, expected)
                                : reference_mac(digest->name, w->secret, w->secret_length, w->plain, w->size, expected);

  TRY(C_EncryptInit, w->session, &use.mechanism, w->aes);
  if (digests_too) TRY(C_DigestInit, w->session, &digesting);
  else TRY(C_SignInit, w->session, &signing, w->generic);
  first = below(w, w->size + 1);
  written = encrypted;
  if (digests_too) TRY(C_DigestEncryptUpdate, w->session, w->plain, first, w->got, &written);
  else TRY(C_SignEncryptUpdate, w->session, w->plain, first, w->got, &written);
  last = encrypted - written;
  if (digests_too) TRY(C_DigestEncryptUpdate, w->session, w->plain + first, w->size - first, w->got + written, &last);
  else TRY(C_SignEncryptUpdate, w->session, w->plain + first, w->size - first, w->got + written, &last);
  written += last;
  last = encrypted - written;
  TRY(C_EncryptFinal, w->session, w->got + written, &last);
  compare(w, w->got, written + last, w->expected, encrypted);
  if (digests_too) TRY(C_DigestFinal, w->session, got, &length);
  else TRY(C_SignFinal, w->session, got, &length);
  compare(w, got, length, expected, expected_length);

  TRY(C_DecryptInit, w->session, &use.mechanism, w->aes);
  if (digests_too) TRY(C_DigestInit, w->session, &digesting);
  else TRY(C_VerifyInit, w->session, &signing, w->generic);
  written = encrypted;
  if (digests_too) TRY(C_DecryptDigestUpdate, w->session, w->expected, encrypted, w->got, &written);
  else TRY(C_DecryptVerifyUpdate, w->session, w->expected, encrypted, w->got, &written);
  last = encrypted + 16 - written;
  TRY(C_DecryptFinal, w->session, w->got + written, &last);
  compare(w, w->got, written + last, w->plain, w->size);
  /*
   * The standard returns the last part of the plaintext only from C_DecryptFinal, so the other
   * operation needs it separately.
   */
  if (digests_too) {
    TRY(C_DigestUpdate, w->session, w->got + written, last);
    length = sizeof got;
    TRY(C_DigestFinal, w->session, got, &length);
    compare(w, got, length, expected, expected_length);
  } else {
    TRY(C_VerifyUpdate, w->session, w->got + written, last);
    TRY(C_VerifyFinal, w->session, expected, expected_length);
  }
  return true;
}
