/*
 * Keys under keys: AES key wrap with and without padding, AES-CBC, OAEP. What is wrapped is
 * compared, and unwrapped again.
 */
#include <stdio.h>
#include <string.h>

#include "worker.h"

enum { CKM_AES_KEY_WRAP_KWP_3_0 = 0x210b };

static bool unwraps(struct worker *w, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_ULONG length, CK_BYTE *secret, CK_ULONG size) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_GENERIC_SECRET;
  CK_ATTRIBUTE template[] = {VALUE(CKA_CLASS, class), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_SENSITIVE, no), VALUE(CKA_EXTRACTABLE, yes),
                             VALUE(CKA_VALUE_LEN, size)};
  CK_OBJECT_HANDLE unwrapped = 0;

  TRY(C_UnwrapKey, w->session, mechanism, key, w->expected, length, template, COUNT(template), &unwrapped);
  if (!compare_value(w, unwrapped, secret, size)) return false;
  TRY(C_DestroyObject, w->session, unwrapped);
  return true;
}

/** OAEP is random: OpenSSL unwraps the token's result, and wraps for the token. */
static bool oaep(struct worker *w, CK_OBJECT_HANDLE key, CK_BYTE *secret, CK_ULONG size) {
  const struct reference_oaep how = {"SHA256", "SHA256", NULL, 0};
  CK_RSA_PKCS_OAEP_PARAMS parameter = {CKM_SHA256, CKG_MGF1_SHA256, CKZ_DATA_SPECIFIED, NULL, 0};
  CK_MECHANISM mechanism = {CKM_RSA_PKCS_OAEP, &parameter, sizeof parameter};
  CK_BYTE got[REFERENCE_RSA];
  CK_ULONG written = sizeof got;

  TRY(C_WrapKey, w->session, &mechanism, w->rsa_public, key, got, &written);
  compare(w, w->expected, reference_oaep_decrypt(rsa.pkey, &how, got, written, w->expected), secret, size);
  reference_oaep_encrypt(rsa.pkey, &how, secret, size, w->expected);
  return unwraps(w, &mechanism, w->rsa_private, REFERENCE_RSA, secret, size);
}

bool wrapping_job(struct worker *w) {
  static const struct {
    const char *job;
    CK_MECHANISM_TYPE type;
    bool padded; /* RFC 5649 */
    CK_ULONG iv; /* length; a key wrap may be without one */
  } ways[] = {
      {"AES-KW", CKM_AES_KEY_WRAP, false, 8},     {"AES-KWP", CKM_AES_KEY_WRAP_PAD, true, 4}, {"AES-KWP", CKM_AES_KEY_WRAP_KWP_3_0, true, 4},
      {"AES-CBC of a key", CKM_AES_CBC, false, 16}, {"AES-CBC-PAD of a key", CKM_AES_CBC_PAD, false, 16}, {"OAEP of a key", CKM_RSA_PKCS_OAEP, false, 0},
  };
  const size_t way = below(w, COUNT(ways));
  CK_BYTE secret[64];
  CK_BYTE padded[80] = {0};
  CK_BYTE iv[16];
  CK_BYTE got[96];
  CK_ULONG size = 1 + below(w, sizeof secret);
  const CK_ULONG unit = ways[way].type == CKM_AES_CBC ? 16 : ways[way].type == CKM_AES_KEY_WRAP ? 8 : 1;
  CK_ULONG whole;
  const bool cbc = ways[way].type == CKM_AES_CBC || ways[way].type == CKM_AES_CBC_PAD;
  const bool with_iv = cbc || once_in(w, 2);
  CK_MECHANISM mechanism = {ways[way].type, with_iv ? iv : NULL, with_iv ? ways[way].iv : 0};
  CK_ULONG written = sizeof got;
  CK_ULONG expected;
  CK_OBJECT_HANDLE key = 0;

  w->job = ways[way].job;
  /* RFC 3394 wraps two blocks at least. */
  if (ways[way].type == CKM_AES_KEY_WRAP && size < 9) size += 8;
  w->size = size;
  whole = (size + unit - 1) / unit * unit;
  if (!need_secret(w) || !need_rsa(w)) return false;
  fill(w, secret, size);
  fill(w, iv, sizeof iv);
  memcpy(padded, secret, size);
  if (!create_secret(w, false, CKK_GENERIC_SECRET, secret, size, &key)) return false;
  if (ways[way].type == CKM_RSA_PKCS_OAEP) {
    if (!oaep(w, key, secret, size)) return false;
  } else {
    if (cbc) {
      char name[16];
      const struct reference_cipher reference = {.name = name, .key = w->secret, .iv = iv, .iv_length = 16, .padded = ways[way].type == CKM_AES_CBC_PAD};
      snprintf(name, sizeof name, "AES-%lu-CBC", w->secret_length * 8);
      expected = reference_encrypt(&reference, padded, whole, w->expected);
    } else {
      expected = reference_wrap(ways[way].padded, w->secret, w->secret_length, with_iv ? iv : NULL, padded, whole, w->expected);
    }
    TRY(C_WrapKey, w->session, &mechanism, w->aes, key, got, &written);
    compare(w, got, written, w->expected, expected);
    if (!unwraps(w, &mechanism, w->aes, expected, secret, size)) return false;
  }
  TRY(C_DestroyObject, w->session, key);
  covered(w, ways[way].type);
  return true;
}
