/* Key pairs: RSA, the curves, and pairs that the token generates. */
#include <stdio.h>
#include <string.h>

#include "worker.h"

/* What the headers of 2.40 do not have. */
enum {
  CKK_EC_EDWARDS_3_0 = 0x40,
  CKK_EC_MONTGOMERY_3_0 = 0x41,
  CKM_EC_EDWARDS_KEY_PAIR_GEN_3_0 = 0x1055,
  CKM_EC_MONTGOMERY_KEY_PAIR_GEN_3_0 = 0x1056,
  CKM_EDDSA_3_0 = 0x1057,
};

struct reference_rsa rsa;

static const struct curve {
  const char *name; /* as OpenSSL has it */
  CK_KEY_TYPE type;
  CK_ULONG params_length;
  CK_BYTE params[12]; /* the object identifier, in DER */
} curves[CURVES] = {
    {"P-224", CKK_EC, 7, {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x21}},
    {"P-256", CKK_EC, 10, {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}},
    {"P-384", CKK_EC, 7, {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22}},
    {"P-521", CKK_EC, 7, {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23}},
    {"secp256k1", CKK_EC, 7, {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a}},
    {"brainpoolP256r1", CKK_EC, 11, {0x06, 0x09, 0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07}},
    {"brainpoolP384r1", CKK_EC, 11, {0x06, 0x09, 0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0b}},
    {"brainpoolP512r1", CKK_EC, 11, {0x06, 0x09, 0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0d}},
    {"ED25519", CKK_EC_EDWARDS_3_0, 5, {0x06, 0x03, 0x2b, 0x65, 0x70}},
    {"ED448", CKK_EC_EDWARDS_3_0, 5, {0x06, 0x03, 0x2b, 0x65, 0x71}},
    {"X25519", CKK_EC_MONTGOMERY_3_0, 5, {0x06, 0x03, 0x2b, 0x65, 0x6e}},
    {"X448", CKK_EC_MONTGOMERY_3_0, 5, {0x06, 0x03, 0x2b, 0x65, 0x6f}},
};
static struct reference_curve_key own[CURVES], peer[CURVES];

void prepare_pairs(void) {
  reference_make_rsa(&rsa);
  for (int i = 0; i < CURVES; i++) {
    reference_make_curve_key(curves[i].name, &own[i]);
    reference_make_curve_key(curves[i].name, &peer[i]);
  }
}

/*
 * --- signatures: signed by the library and verified by OpenSSL, and the reverse ------------------
 */

static bool makes_signature(struct worker *w, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, bool parts, const void *pkey, size_t coordinate,
                            const struct reference_signature *how) {
  CK_BYTE got[REFERENCE_SIGNATURE];
  CK_ULONG written = sizeof got;

  TRY(C_SignInit, w->session, mechanism, key);
  if (parts && once_in(w, 2)) {
    const CK_ULONG first = below(w, w->size + 1);
    TRY(C_SignUpdate, w->session, w->plain, first);
    TRY(C_SignUpdate, w->session, w->plain + first, w->size - first);
    TRY(C_SignFinal, w->session, got, &written);
  } else {
    TRY(C_Sign, w->session, w->plain, w->size, got, &written);
  }
  atomic_fetch_add(&bytes_compared, written);
  if (!reference_verify(pkey, coordinate, how, w->plain, w->size, got, written)) wrong_result(w, "a signature", written);
  return true;
}

static bool takes_signature(struct worker *w, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, bool parts, const void *pkey, size_t coordinate,
                            const struct reference_signature *how) {
  CK_BYTE signature[REFERENCE_SIGNATURE];
  const CK_ULONG length = reference_sign(pkey, coordinate, how, w->plain, w->size, signature);

  TRY(C_VerifyInit, w->session, mechanism, key);
  if (parts && once_in(w, 2)) {
    const CK_ULONG first = below(w, w->size + 1);
    TRY(C_VerifyUpdate, w->session, w->plain, first);
    TRY(C_VerifyUpdate, w->session, w->plain + first, w->size - first);
    TRY(C_VerifyFinal, w->session, signature, length);
  } else {
    TRY(C_Verify, w->session, w->plain, w->size, signature, length);
  }
  /* The data changed: the signature is none of theirs. */
  w->plain[below(w, w->size)] ^= 1;
  TRY(C_VerifyInit, w->session, mechanism, key);
  EXPECT(CKR_SIGNATURE_INVALID, C_Verify, w->session, w->plain, w->size, signature, length);
  return true;
}

/*
 * --- RSA -----------------------------------------------------------------------------------------
 */

bool need_rsa(struct worker *w) {
  CK_OBJECT_CLASS private = CKO_PRIVATE_KEY;
  CK_OBJECT_CLASS public = CKO_PUBLIC_KEY;
  CK_KEY_TYPE type = CKK_RSA;
  CK_ATTRIBUTE private_template[] = {VALUE(CKA_CLASS, private), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_SIGN, yes), VALUE(CKA_SIGN_RECOVER, yes),
                                     VALUE(CKA_DECRYPT, yes), VALUE(CKA_UNWRAP, yes),
                                     VALUE(CKA_MODULUS, rsa.modulus), VALUE(CKA_PUBLIC_EXPONENT, rsa.public_exponent),
                                     VALUE(CKA_PRIVATE_EXPONENT, rsa.private_exponent), VALUE(CKA_PRIME_1, rsa.prime1), VALUE(CKA_PRIME_2, rsa.prime2),
                                     VALUE(CKA_EXPONENT_1, rsa.exponent1), VALUE(CKA_EXPONENT_2, rsa.exponent2), VALUE(CKA_COEFFICIENT, rsa.coefficient)};
  CK_ATTRIBUTE public_template[] = {VALUE(CKA_CLASS, public), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_VERIFY, yes), VALUE(CKA_VERIFY_RECOVER, yes),
                                    VALUE(CKA_ENCRYPT, yes), VALUE(CKA_WRAP, yes),
                                    VALUE(CKA_MODULUS, rsa.modulus), VALUE(CKA_PUBLIC_EXPONENT, rsa.public_exponent)};
  if (w->rsa_private == 0) TRY(C_CreateObject, w->session, private_template, COUNT(private_template), &w->rsa_private);
  if (w->rsa_public == 0) TRY(C_CreateObject, w->session, public_template, COUNT(public_template), &w->rsa_public);
  return true;
}

static bool rsa_signature(struct worker *w) {
  static atomic_uint turn;
  const unsigned next = next_of(&turn, 4 * SIGNING_DIGESTS);
  const unsigned kind = next % 4;
  const struct digest *digest = signing_digest(next / 4);
  const struct digest *mask = once_in(w, 2) ? digest : any_signing_digest(w);
  const bool makes = digest->signs && once_in(w, 2);
  CK_RSA_PKCS_PSS_PARAMS parameter = {digest->digest, mask->mask, below(w, 65)};
  CK_MECHANISM mechanism = {0, NULL, 0};
  struct reference_signature how = {.digest = digest->name, .mask = mask->name, .salt = parameter.sLen};

  w->size = size_of_message(w, 65536);
  switch (kind) {
    case 0:
      mechanism.mechanism = digest->pkcs;
      how.mask = NULL;
      break;
    case 1:
      mechanism.mechanism = CKM_RSA_PKCS;
      how = (struct reference_signature){.hashed = true};
      w->size = 1 + below(w, REFERENCE_RSA - 11);
      break;
    case 2:
      mechanism = (CK_MECHANISM){digest->pss, &parameter, sizeof parameter};
      break;
    default:
      mechanism = (CK_MECHANISM){CKM_RSA_PKCS_PSS, &parameter, sizeof parameter};
      how.hashed = true;
      w->size = reference_digest(digest->name, w->plain, 1, w->expected);
  }
  fill(w, w->plain, w->size);
  if (makes ? !makes_signature(w, &mechanism, w->rsa_private, kind % 2 == 0, rsa.pkey, 0, &how)
            : !takes_signature(w, &mechanism, w->rsa_public, kind % 2 == 0, rsa.pkey, 0, &how))
    return false;
  covered(w, mechanism.mechanism);
  return true;
}

static bool rsa_recovery(struct worker *w) {
  const struct reference_signature how = {.hashed = true};
  CK_MECHANISM mechanism = {CKM_RSA_PKCS, NULL, 0};
  CK_BYTE got[REFERENCE_RSA];
  CK_ULONG written = sizeof got;
  CK_ULONG length;

  w->size = 1 + below(w, REFERENCE_RSA - 11);
  fill(w, w->plain, w->size);
  length = reference_sign(rsa.pkey, 0, &how, w->plain, w->size, w->expected);
  TRY(C_SignRecoverInit, w->session, &mechanism, w->rsa_private);
  TRY(C_SignRecover, w->session, w->plain, w->size, got, &written);
  compare(w, got, written, w->expected, length);
  written = sizeof got;
  TRY(C_VerifyRecoverInit, w->session, &mechanism, w->rsa_public);
  TRY(C_VerifyRecover, w->session, w->expected, length, got, &written);
  compare(w, got, written, w->plain, w->size);
  return true;
}

static bool rsa_encryption(struct worker *w) {
  const struct digest *digest = any_signing_digest(w);
  const struct digest *mask = once_in(w, 2) ? digest : any_signing_digest(w);
  CK_BYTE label[64];
  const struct reference_oaep how = {digest->name, mask->name, label, below(w, sizeof label)};
  CK_RSA_PKCS_OAEP_PARAMS parameter = {digest->digest, mask->mask, CKZ_DATA_SPECIFIED, label, how.label_length};
  CK_MECHANISM mechanism = {CKM_RSA_PKCS_OAEP, &parameter, sizeof parameter};
  const CK_ULONG most = REFERENCE_RSA - 2 - 2 * reference_digest(digest->name, w->plain, 1, w->expected);
  CK_BYTE got[REFERENCE_RSA];
  CK_ULONG written = sizeof got;

  fill(w, label, sizeof label);
  w->size = 1 + below(w, most);
  fill(w, w->plain, w->size);
  if (once_in(w, 2)) {
    TRY(C_EncryptInit, w->session, &mechanism, w->rsa_public);
    TRY(C_Encrypt, w->session, w->plain, w->size, got, &written);
    compare(w, w->expected, reference_oaep_decrypt(rsa.pkey, &how, got, written, w->expected), w->plain, w->size);
  } else {
    reference_oaep_encrypt(rsa.pkey, &how, w->plain, w->size, w->expected);
    TRY(C_DecryptInit, w->session, &mechanism, w->rsa_private);
    TRY(C_Decrypt, w->session, w->expected, REFERENCE_RSA, got, &written);
    compare(w, got, written, w->plain, w->size);
  }
  covered(w, CKM_RSA_PKCS_OAEP);
  return true;
}

bool rsa_job(struct worker *w) {
  w->job = "RSA";
  w->size = 0;
  if (!need_rsa(w)) return false;
  switch (below(w, 6)) {
    case 0: return rsa_recovery(w);
    case 1: return rsa_encryption(w);
    default: return rsa_signature(w);
  }
}

/*
 * --- curves --------------------------------------------------------------------------------------
 */

/* A point is accepted raw or in an OCTET STRING. */
static CK_ULONG encode_point(struct worker *w, const struct reference_curve_key *key, CK_BYTE *to) {
  CK_ULONG at = 0;

  if (!once_in(w, 3)) {
    to[at++] = 0x04;
    if (key->point_length > 127) to[at++] = 0x81;
    to[at++] = (CK_BYTE)key->point_length;
  }
  memcpy(to + at, key->point, key->point_length);
  return at + key->point_length;
}

static bool need_curve(struct worker *w, int i) {
  const struct curve *curve = &curves[i];
  CK_OBJECT_CLASS private = CKO_PRIVATE_KEY;
  CK_OBJECT_CLASS public = CKO_PUBLIC_KEY;
  CK_KEY_TYPE type = curve->type;
  CK_BBOOL *signs = type == CKK_EC_MONTGOMERY_3_0 ? &no : &yes;
  CK_BBOOL *derives = type == CKK_EC_EDWARDS_3_0 ? &no : &yes;
  CK_BYTE point[3 + REFERENCE_POINT];
  const CK_ATTRIBUTE params = {CKA_EC_PARAMS, (void *)curve->params, curve->params_length};
  CK_ATTRIBUTE private_template[] = {VALUE(CKA_CLASS, private), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_SIGN, *signs), VALUE(CKA_DERIVE, *derives), params,
                                     {CKA_VALUE, own[i].value, own[i].size}};
  CK_ATTRIBUTE public_template[] = {VALUE(CKA_CLASS, public), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_VERIFY, *signs), params,
                                    {CKA_EC_POINT, point, encode_point(w, &own[i], point)}};

  if (w->curve_private[i] == 0) TRY(C_CreateObject, w->session, private_template, COUNT(private_template), &w->curve_private[i]);
  if (w->curve_public[i] == 0) TRY(C_CreateObject, w->session, public_template, COUNT(public_template), &w->curve_public[i]);
  return true;
}

/** ECDSA and EdDSA. */
static bool curve_signature(struct worker *w, int i) {
  const bool edwards = curves[i].type == CKK_EC_EDWARDS_3_0;
  static atomic_uint turn;
  const unsigned next = next_of(&turn, SIGNING_DIGESTS + 1);
  const bool hashed = !edwards && next == SIGNING_DIGESTS;
  const struct digest *digest = signing_digest(next % SIGNING_DIGESTS);
  const bool makes = (edwards || hashed || digest->signs) && once_in(w, 2);
  CK_MECHANISM mechanism = {edwards ? CKM_EDDSA_3_0 : hashed ? CKM_ECDSA : digest->ecdsa, NULL, 0};
  const struct reference_signature how = {.digest = edwards || hashed ? NULL : digest->name, .hashed = hashed};
  const size_t coordinate = edwards ? 0 : own[i].size;

  w->size = hashed ? 20 + below(w, 45) : size_of_message(w, 65536);
  fill(w, w->plain, w->size);
  /* Bytes after the length of the order are not signed. */
  if (hashed && w->size > coordinate) w->size = coordinate;
  if (makes ? !makes_signature(w, &mechanism, w->curve_private[i], !hashed, own[i].pkey, coordinate, &how)
            : !takes_signature(w, &mechanism, w->curve_public[i], !hashed, own[i].pkey, coordinate, &how))
    return false;
  covered(w, mechanism.mechanism);
  return true;
}

static bool agreement(struct worker *w, int i) {
  const struct digest *digest = once_in(w, 2) ? any_signing_digest(w) : NULL;
  const bool cofactor = curves[i].type == CKK_EC && once_in(w, 2);
  CK_BYTE shared[64];
  CK_BYTE point[3 + REFERENCE_POINT];
  CK_BYTE secret[REFERENCE_VALUE];
  const CK_ULONG secret_length = reference_agree(own[i].pkey, peer[i].pkey, secret);
  CK_ECDH1_DERIVE_PARAMS parameter = {CKD_NULL, 0, NULL, encode_point(w, &peer[i], point), point};
  CK_MECHANISM mechanism = {cofactor ? CKM_ECDH1_COFACTOR_DERIVE : CKM_ECDH1_DERIVE, &parameter, sizeof parameter};
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_GENERIC_SECRET;
  CK_ULONG size = secret_length;
  CK_ATTRIBUTE template[] = {VALUE(CKA_CLASS, class), VALUE(CKA_KEY_TYPE, type), VALUE(CKA_VALUE_LEN, size), VALUE(CKA_SENSITIVE, no),
                             VALUE(CKA_EXTRACTABLE, yes)};
  CK_OBJECT_HANDLE derived = 0;

  if (digest == NULL) {
    memcpy(w->expected, secret, size);
  } else {
    size = 16 + below(w, 200);
    fill(w, shared, sizeof shared);
    parameter.kdf = digest->kdf;
    parameter.pSharedData = shared;
    parameter.ulSharedDataLen = below(w, sizeof shared);
    reference_x963(digest->name, secret, secret_length, shared, parameter.ulSharedDataLen, w->expected, size);
  }
  w->size = size;
  TRY(C_DeriveKey, w->session, &mechanism, w->curve_private[i], template, COUNT(template), &derived);
  if (!compare_value(w, derived, w->expected, size)) return false;
  TRY(C_DestroyObject, w->session, derived);
  covered(w, mechanism.mechanism);
  return true;
}

bool curves_job(struct worker *w) {
  const int i = (int)below(w, CURVES);

  w->job = curves[i].name;
  w->size = 0;
  if (!need_curve(w, i)) return false;
  if (curves[i].type == CKK_EC_MONTGOMERY_3_0) return agreement(w, i);
  if (curves[i].type == CKK_EC_EDWARDS_3_0) return curve_signature(w, i);
  return once_in(w, 3) ? agreement(w, i) : curve_signature(w, i);
}

/*
 * --- pairs that the token generates --------------------------------------------------------------
 */

bool rsa_pair_job(struct worker *w) {
  CK_MECHANISM generation = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
  CK_MECHANISM mechanism = {CKM_SHA256_RSA_PKCS, NULL, 0};
  const struct reference_signature how = {.digest = "SHA256"};
  CK_ULONG bits = 2048;
  CK_ATTRIBUTE public_template[] = {VALUE(CKA_MODULUS_BITS, bits), VALUE(CKA_PUBLIC_EXPONENT, rsa.public_exponent)};
  CK_ATTRIBUTE private_template[] = {VALUE(CKA_SIGN, yes)};
  CK_BYTE modulus[REFERENCE_RSA];
  CK_BYTE exponent[8];
  CK_ATTRIBUTE read[] = {VALUE(CKA_MODULUS, modulus), VALUE(CKA_PUBLIC_EXPONENT, exponent)};
  CK_OBJECT_HANDLE public = 0;
  CK_OBJECT_HANDLE private = 0;
  void *pkey;
  bool fine;

  w->job = "an RSA pair of the token's making";
  w->size = size_of_message(w, 65536);
  TRY(C_GenerateKeyPair, w->session, &generation, public_template, COUNT(public_template), private_template, COUNT(private_template), &public, &private);
  TRY(C_GetAttributeValue, w->session, public, read, COUNT(read));
  pkey = reference_rsa_public(modulus, read[0].ulValueLen, exponent, read[1].ulValueLen);
  fill(w, w->plain, w->size);
  fine = makes_signature(w, &mechanism, private, true, pkey, 0, &how);
  reference_free(pkey);
  if (!fine) return false;
  TRY(C_DestroyObject, w->session, public);
  TRY(C_DestroyObject, w->session, private);
  covered(w, CKM_RSA_PKCS_KEY_PAIR_GEN);
  return true;
}

/** The bare point in an OCTET STRING. */
static const CK_BYTE *point_in(const CK_BYTE *octets, CK_ULONG length, CK_ULONG *point_length) {
  const CK_ULONG head = length > 2 && octets[1] == 0x81 ? 3 : 2;
  *point_length = length - head;
  return octets + head;
}

bool curve_pair_job(struct worker *w) {
  static atomic_uint turn;
  const unsigned i = next_of(&turn, CURVES);
  const CK_KEY_TYPE type = curves[i].type;
  CK_MECHANISM generation = {type == CKK_EC                 ? CKM_EC_KEY_PAIR_GEN
                             : type == CKK_EC_EDWARDS_3_0 ? CKM_EC_EDWARDS_KEY_PAIR_GEN_3_0
                                                          : CKM_EC_MONTGOMERY_KEY_PAIR_GEN_3_0,
                             NULL, 0};
  CK_MECHANISM mechanism = {type == CKK_EC ? CKM_ECDSA_SHA384 : CKM_EDDSA_3_0, NULL, 0};
  const struct reference_signature how = {.digest = type == CKK_EC ? "SHA384" : NULL};
  CK_ATTRIBUTE public_template[] = {{CKA_EC_PARAMS, (void *)curves[i].params, curves[i].params_length}};
  CK_BYTE octets[3 + REFERENCE_POINT];
  CK_ATTRIBUTE read = {CKA_EC_POINT, octets, sizeof octets};
  CK_OBJECT_HANDLE public = 0;
  CK_OBJECT_HANDLE private = 0;
  const CK_BYTE *point;
  CK_ULONG point_length;
  void *pkey;
  bool fine = true;

  w->job = curves[i].name;
  w->size = size_of_message(w, 65536);
  TRY(C_GenerateKeyPair, w->session, &generation, public_template, 1, NULL, 0, &public, &private);
  TRY(C_GetAttributeValue, w->session, public, &read, 1);
  point = point_in(octets, read.ulValueLen, &point_length);
  pkey = reference_curve_public(curves[i].name, point, point_length);
  if (pkey == NULL) {
    wrong_result(w, "a point that is not on the curve", point_length);
  } else if (type != CKK_EC_MONTGOMERY_3_0) {
    fill(w, w->plain, w->size);
    fine = makes_signature(w, &mechanism, private, true, pkey, type == CKK_EC ? own[i].size : 0, &how);
  } else {
    /* The two sides agree: the token with its private key, OpenSSL with its own. */
    CK_ECDH1_DERIVE_PARAMS parameter = {CKD_NULL, 0, NULL, own[i].point_length, own[i].point};
    CK_OBJECT_CLASS class = CKO_SECRET_KEY;
    CK_KEY_TYPE generic = CKK_GENERIC_SECRET;
    CK_ATTRIBUTE template[] = {VALUE(CKA_CLASS, class), VALUE(CKA_KEY_TYPE, generic), VALUE(CKA_SENSITIVE, no), VALUE(CKA_EXTRACTABLE, yes)};
    CK_OBJECT_HANDLE derived = 0;
    mechanism = (CK_MECHANISM){CKM_ECDH1_DERIVE, &parameter, sizeof parameter};
    w->size = reference_agree(own[i].pkey, pkey, w->expected);
    fine = note(w, "C_DeriveKey", p11->C_DeriveKey(w->session, &mechanism, private, template, COUNT(template), &derived), CKR_OK) &&
           compare_value(w, derived, w->expected, w->size);
  }
  reference_free(pkey);
  if (!fine) return false;
  TRY(C_DestroyObject, w->session, public);
  TRY(C_DestroyObject, w->session, private);
  covered(w, generation.mechanism);
  return true;
}
