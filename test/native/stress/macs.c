/* Digests, HMAC and CMAC, in one piece and in parts. */
#include <string.h>

#include "worker.h"

/* What the headers of 2.40 do not have. */
enum { KEY_GENERATION = 0x4003, CKK_SHA512_224_HMAC_3_0 = 0x43, CKK_SHA512_256_HMAC_3_0 = 0x44, CKK_SHA3_224_HMAC_3_0 = 0x36 };

const struct digest digests[DIGESTS] = {
    {"SHA1", CKM_SHA_1, CKM_SHA_1_HMAC, CKM_SHA_1_HMAC_GENERAL, CKM_SHA1_RSA_PKCS, CKM_SHA1_RSA_PKCS_PSS, CKM_ECDSA_SHA1, CKG_MGF1_SHA1,
     CKD_SHA1_KDF, KEY_GENERATION, CKK_SHA_1_HMAC, false},
    {"SHA224", CKM_SHA224, CKM_SHA224_HMAC, CKM_SHA224_HMAC_GENERAL, CKM_SHA224_RSA_PKCS, CKM_SHA224_RSA_PKCS_PSS, CKM_ECDSA_SHA224,
     CKG_MGF1_SHA224, CKD_SHA224_KDF, KEY_GENERATION + 1, CKK_SHA224_HMAC, true},
    {"SHA256", CKM_SHA256, CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL, CKM_SHA256_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKM_ECDSA_SHA256,
     CKG_MGF1_SHA256, CKD_SHA256_KDF, KEY_GENERATION + 2, CKK_SHA256_HMAC, true},
    {"SHA384", CKM_SHA384, CKM_SHA384_HMAC, CKM_SHA384_HMAC_GENERAL, CKM_SHA384_RSA_PKCS, CKM_SHA384_RSA_PKCS_PSS, CKM_ECDSA_SHA384,
     CKG_MGF1_SHA384, CKD_SHA384_KDF, KEY_GENERATION + 3, CKK_SHA384_HMAC, true},
    {"SHA512", CKM_SHA512, CKM_SHA512_HMAC, CKM_SHA512_HMAC_GENERAL, CKM_SHA512_RSA_PKCS, CKM_SHA512_RSA_PKCS_PSS, CKM_ECDSA_SHA512,
     CKG_MGF1_SHA512, CKD_SHA512_KDF, KEY_GENERATION + 4, CKK_SHA512_HMAC, true},
    {"SHA512-224", CKM_SHA512_224, CKM_SHA512_224_HMAC, CKM_SHA512_224_HMAC_GENERAL, 0, 0, 0, 0, 0, KEY_GENERATION + 5, CKK_SHA512_224_HMAC_3_0, false},
    {"SHA512-256", CKM_SHA512_256, CKM_SHA512_256_HMAC, CKM_SHA512_256_HMAC_GENERAL, 0, 0, 0, 0, 0, KEY_GENERATION + 6, CKK_SHA512_256_HMAC_3_0, false},
    {"SHA3-224", 0x2b5, 0x2b6, 0x2b7, 0x66, 0x67, 0x1047, 6, 0xa, 0x2b8, CKK_SHA3_224_HMAC_3_0, true},
    {"SHA3-256", 0x2b0, 0x2b1, 0x2b2, 0x60, 0x63, 0x1048, 7, 0xb, 0x2b3, CKK_SHA3_224_HMAC_3_0 + 1, true},
    {"SHA3-384", 0x2c0, 0x2c1, 0x2c2, 0x61, 0x64, 0x1049, 8, 0xc, 0x2c3, CKK_SHA3_224_HMAC_3_0 + 2, true},
    {"SHA3-512", 0x2d0, 0x2d1, 0x2d2, 0x62, 0x65, 0x104a, 9, 0xd, 0x2d3, CKK_SHA3_224_HMAC_3_0 + 3, true},
};

const struct digest *any_digest(struct worker *w) { return &digests[below(w, DIGESTS)]; }

const struct digest *signing_digest(unsigned position) {
  const struct digest *digest = digests;

  for (;; digest++)
    if (digest->pkcs != 0 && position-- == 0) return digest;
}
const struct digest *any_signing_digest(struct worker *w) { return signing_digest((unsigned)below(w, SIGNING_DIGESTS)); }

bool digests_job(struct worker *w) {
  static atomic_uint turn;
  const struct digest *row = &digests[next_of(&turn, DIGESTS)];
  CK_MECHANISM mechanism = {row->digest, NULL, 0};
  CK_BYTE got[64];
  CK_ULONG written = sizeof got;
  CK_ULONG expected;

  w->job = row->name;
  w->size = size_of_message(w, largest);
  fill(w, w->plain, w->size);
  expected = reference_digest(row->name, w->plain, w->size, w->expected);
  TRY(C_DigestInit, w->session, &mechanism);
  if (once_in(w, 2)) {
    TRY(C_Digest, w->session, w->plain, w->size, got, &written);
  } else {
    const CK_ULONG first = below(w, w->size);
    TRY(C_DigestUpdate, w->session, w->plain, first);
    TRY(C_DigestUpdate, w->session, w->plain + first, w->size - first);
    TRY(C_DigestFinal, w->session, got, &written);
  }
  compare(w, got, written, w->expected, expected);
  covered(w, row->digest);
  return true;
}

bool macs_job(struct worker *w) {
  static atomic_uint turn;
  const unsigned next = next_of(&turn, 2 * (DIGESTS + 1));
  const struct digest *row = next / 2 == DIGESTS ? NULL : &digests[next / 2];
  const bool general = next % 2 == 1;
  CK_ULONG part;
  CK_MECHANISM mechanism = {0, NULL, 0};
  CK_BYTE got[64];
  CK_ULONG written = sizeof got;
  CK_ULONG expected;
  CK_OBJECT_HANDLE key;

  w->job = row == NULL ? "AES-CMAC" : "HMAC";
  w->size = size_of_message(w, largest);
  if (!need_secret(w)) return false;
  key = row == NULL ? w->aes : w->generic;
  fill(w, w->plain, w->size);
  expected = reference_mac(row == NULL ? NULL : row->name, w->secret, w->secret_length, w->plain, w->size, w->expected);
  mechanism.mechanism = row == NULL ? (general ? CKM_AES_CMAC_GENERAL : CKM_AES_CMAC) : (general ? row->hmac_general : row->hmac);
  if (general) {
    part = 4 + below(w, expected - 3);
    mechanism.pParameter = &part;
    mechanism.ulParameterLen = sizeof part;
    expected = part;
  }
  TRY(C_SignInit, w->session, &mechanism, key);
  if (once_in(w, 2)) {
    TRY(C_Sign, w->session, w->plain, w->size, got, &written);
  } else {
    const CK_ULONG first = below(w, w->size);
    TRY(C_SignUpdate, w->session, w->plain, first);
    TRY(C_SignUpdate, w->session, w->plain + first, w->size - first);
    TRY(C_SignFinal, w->session, got, &written);
  }
  compare(w, got, written, w->expected, expected);
  TRY(C_VerifyInit, w->session, &mechanism, key);
  if (once_in(w, 2)) {
    TRY(C_Verify, w->session, w->plain, w->size, w->expected, expected);
  } else {
    const CK_ULONG first = below(w, w->size);
    TRY(C_VerifyUpdate, w->session, w->plain, first);
    TRY(C_VerifyUpdate, w->session, w->plain + first, w->size - first);
    TRY(C_VerifyFinal, w->session, w->expected, expected);
  }
  covered(w, mechanism.mechanism);
  w->expected[below(w, expected)] ^= 1;
  TRY(C_VerifyInit, w->session, &mechanism, key);
  EXPECT(CKR_SIGNATURE_INVALID, C_Verify, w->session, w->plain, w->size, w->expected, expected);
  return true;
}
