/* The reference; see reference.h. */
#include "reference.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, "the reference failed: %s\n", what);
  ERR_print_errors_fp(stderr);
  _exit(3);
}

size_t reference_encrypt(const struct reference_cipher *cipher, const uint8_t *in, size_t length, uint8_t *out) {
  EVP_CIPHER *fetched = EVP_CIPHER_fetch(NULL, cipher->name, NULL);
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  const bool ccm = strstr(cipher->name, "CCM") != NULL;
  const bool gcm = strstr(cipher->name, "GCM") != NULL;
  int first = 0;
  int last = 0;
  int none;

  must(fetched != NULL && context != NULL && EVP_EncryptInit_ex2(context, fetched, NULL, NULL, NULL) == 1, cipher->name);
  if (ccm || gcm) must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, (int)cipher->iv_length, NULL) == 1, "the IV's length");
  if (ccm) must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, (int)cipher->tag, NULL) == 1, "the tag's length");
  must(EVP_EncryptInit_ex2(context, NULL, cipher->key, cipher->iv, NULL) == 1, "the key");
  EVP_CIPHER_CTX_set_padding(context, cipher->padded);
  if (ccm) must(EVP_EncryptUpdate(context, NULL, &none, NULL, (int)length) == 1, "the data's length");
  if (cipher->aad_length > 0) must(EVP_EncryptUpdate(context, NULL, &none, cipher->aad, (int)cipher->aad_length) == 1, "the AAD");
  must(EVP_EncryptUpdate(context, out, &first, in, (int)length) == 1, "the data");
  must(EVP_EncryptFinal_ex(context, out + first, &last) == 1, "the end");
  if (cipher->tag > 0)
    must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, (int)cipher->tag, out + first + last) == 1, "the tag");
  EVP_CIPHER_CTX_free(context);
  EVP_CIPHER_free(fetched);
  return (size_t)(first + last) + cipher->tag;
}

size_t reference_digest(const char *digest, const uint8_t *in, size_t length, uint8_t *out) {
  size_t written = 0;
  must(EVP_Q_digest(NULL, digest, NULL, in, length, out, &written) == 1, digest);
  return written;
}

size_t reference_mac(const char *digest, const uint8_t *key, size_t key_length, const uint8_t *in, size_t length, uint8_t *out) {
  char cipher[16];
  size_t written = 0;

  snprintf(cipher, sizeof cipher, "AES-%zu-CBC", key_length * 8);
  must(EVP_Q_mac(NULL, digest == NULL ? "CMAC" : "HMAC", NULL, digest == NULL ? cipher : digest, NULL, key, key_length, in, length, out, 64,
                 &written) != NULL,
       "a MAC");
  return written;
}

/*
 * --- derivation ----------------------------------------------------------------------------------
 */

static OSSL_PARAM text(const char *name, const char *value) { return OSSL_PARAM_construct_utf8_string(name, (char *)value, 0); }
static OSSL_PARAM octets(const char *name, const uint8_t *value, size_t length) {
  return OSSL_PARAM_construct_octet_string(name, (void *)value, length);
}

static void derive(const char *name, const OSSL_PARAM *parameters, uint8_t *out, size_t length) {
  EVP_KDF *fetched = EVP_KDF_fetch(NULL, name, NULL);
  EVP_KDF_CTX *context = EVP_KDF_CTX_new(fetched);

  must(context != NULL && EVP_KDF_derive(context, out, length, parameters) == 1, name);
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(fetched);
}

void reference_hkdf(enum reference_hkdf_step step, const char *digest, const uint8_t *key, size_t key_length, const uint8_t *salt, size_t salt_length,
                    const uint8_t *info, size_t info_length, uint8_t *out, size_t length) {
  static const char *const modes[] = {[HKDF_BOTH] = "EXTRACT_AND_EXPAND", [HKDF_EXTRACT] = "EXTRACT_ONLY", [HKDF_EXPAND] = "EXPAND_ONLY"};
  OSSL_PARAM parameters[6];
  size_t count = 0;

  parameters[count++] = text(OSSL_KDF_PARAM_MODE, modes[step]);
  parameters[count++] = text(OSSL_KDF_PARAM_DIGEST, digest);
  parameters[count++] = octets(OSSL_KDF_PARAM_KEY, key, key_length);
  if (step != HKDF_EXPAND && salt_length > 0) parameters[count++] = octets(OSSL_KDF_PARAM_SALT, salt, salt_length);
  if (step != HKDF_EXTRACT) parameters[count++] = octets(OSSL_KDF_PARAM_INFO, info, info_length);
  parameters[count] = OSSL_PARAM_construct_end();
  derive("HKDF", parameters, out, length);
}

void reference_kbkdf(bool feedback, const char *digest, const uint8_t *key, size_t key_length, const uint8_t *label, size_t label_length,
                     const uint8_t *context, size_t context_length, const uint8_t *iv, size_t iv_length, uint8_t *out, size_t length) {
  char cipher[16];
  OSSL_PARAM parameters[8];
  size_t count = 0;

  snprintf(cipher, sizeof cipher, "AES-%zu-CBC", key_length * 8);
  parameters[count++] = text(OSSL_KDF_PARAM_MODE, feedback ? "FEEDBACK" : "COUNTER");
  parameters[count++] = text(OSSL_KDF_PARAM_MAC, digest == NULL ? "CMAC" : "HMAC");
  parameters[count++] = digest == NULL ? text(OSSL_KDF_PARAM_CIPHER, cipher) : text(OSSL_KDF_PARAM_DIGEST, digest);
  parameters[count++] = octets(OSSL_KDF_PARAM_KEY, key, key_length);
  parameters[count++] = octets(OSSL_KDF_PARAM_SALT, label, label_length);
  parameters[count++] = octets(OSSL_KDF_PARAM_INFO, context, context_length);
  if (iv != NULL) parameters[count++] = octets(OSSL_KDF_PARAM_SEED, iv, iv_length);
  parameters[count] = OSSL_PARAM_construct_end();
  derive("KBKDF", parameters, out, length);
}

void reference_x963(const char *digest, const uint8_t *secret, size_t secret_length, const uint8_t *shared, size_t shared_length, uint8_t *out,
                    size_t length) {
  const OSSL_PARAM parameters[] = {text(OSSL_KDF_PARAM_DIGEST, digest), octets(OSSL_KDF_PARAM_KEY, secret, secret_length),
                                   octets(OSSL_KDF_PARAM_INFO, shared, shared_length), OSSL_PARAM_construct_end()};
  derive("X963KDF", parameters, out, length);
}

size_t reference_wrap(bool padded, const uint8_t *kek, size_t kek_length, const uint8_t *iv, const uint8_t *in, size_t length, uint8_t *out) {
  char name[24];
  EVP_CIPHER *fetched;
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int first = 0;
  int last = 0;

  snprintf(name, sizeof name, "AES-%zu-WRAP%s", kek_length * 8, padded ? "-PAD" : "");
  fetched = EVP_CIPHER_fetch(NULL, name, NULL);
  EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  must(fetched != NULL && EVP_EncryptInit_ex2(context, fetched, kek, iv, NULL) == 1 &&
           EVP_EncryptUpdate(context, out, &first, in, (int)length) == 1 && EVP_EncryptFinal_ex(context, out + first, &last) == 1,
       name);
  EVP_CIPHER_CTX_free(context);
  EVP_CIPHER_free(fetched);
  return (size_t)(first + last);
}

/*
 * --- key pairs -----------------------------------------------------------------------------------
 */

static void number(const EVP_PKEY *key, const char *name, uint8_t *out, size_t length) {
  BIGNUM *value = NULL;
  must(EVP_PKEY_get_bn_param(key, name, &value) == 1 && BN_bn2binpad(value, out, (int)length) == (int)length, name);
  BN_clear_free(value);
}

void reference_make_rsa(struct reference_rsa *key) {
  EVP_PKEY *pkey = EVP_RSA_gen(2048);
  must(pkey != NULL, "an RSA key pair");
  key->pkey = pkey;
  number(pkey, OSSL_PKEY_PARAM_RSA_N, key->modulus, sizeof key->modulus);
  number(pkey, OSSL_PKEY_PARAM_RSA_E, key->public_exponent, sizeof key->public_exponent);
  number(pkey, OSSL_PKEY_PARAM_RSA_D, key->private_exponent, sizeof key->private_exponent);
  number(pkey, OSSL_PKEY_PARAM_RSA_FACTOR1, key->prime1, sizeof key->prime1);
  number(pkey, OSSL_PKEY_PARAM_RSA_FACTOR2, key->prime2, sizeof key->prime2);
  number(pkey, OSSL_PKEY_PARAM_RSA_EXPONENT1, key->exponent1, sizeof key->exponent1);
  number(pkey, OSSL_PKEY_PARAM_RSA_EXPONENT2, key->exponent2, sizeof key->exponent2);
  number(pkey, OSSL_PKEY_PARAM_RSA_COEFFICIENT1, key->coefficient, sizeof key->coefficient);
}

/* Edwards and Montgomery curves have a key type each, the others share one. */
static bool has_own_type(const char *curve) { return strncmp(curve, "ED", 2) == 0 || curve[0] == 'X'; }

void reference_make_curve_key(const char *name, struct reference_curve_key *key) {
  EVP_PKEY *pkey = has_own_type(name) ? EVP_PKEY_Q_keygen(NULL, NULL, name) : EVP_EC_gen(name);

  must(pkey != NULL, name);
  key->pkey = pkey;
  must(EVP_PKEY_get_octet_string_param(pkey, OSSL_PKEY_PARAM_PUB_KEY, key->point, sizeof key->point, &key->point_length) == 1, "a point");
  if (has_own_type(name)) {
    key->size = sizeof key->value;
    must(EVP_PKEY_get_raw_private_key(pkey, key->value, &key->size) == 1, "a private key");
  } else {
    key->size = (key->point_length - 1) / 2;
    number(pkey, OSSL_PKEY_PARAM_PRIV_KEY, key->value, key->size);
  }
}

static void *from_parts(const char *type, OSSL_PARAM_BLD *parts) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
  OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(parts);
  EVP_PKEY *pkey = NULL;

  must(context != NULL && parameters != NULL && EVP_PKEY_fromdata_init(context) == 1, type);
  if (EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_PUBLIC_KEY, parameters) != 1) pkey = NULL;
  ERR_clear_error();
  OSSL_PARAM_free(parameters);
  EVP_PKEY_CTX_free(context);
  return pkey;
}

void *reference_rsa_public(const uint8_t *modulus, size_t modulus_length, const uint8_t *exponent, size_t exponent_length) {
  OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
  BIGNUM *n = BN_bin2bn(modulus, (int)modulus_length, NULL);
  BIGNUM *e = BN_bin2bn(exponent, (int)exponent_length, NULL);
  void *pkey;

  must(OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_N, n) == 1 && OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_E, e) == 1, "RSA");
  pkey = from_parts("RSA", parts);
  OSSL_PARAM_BLD_free(parts);
  BN_free(n);
  BN_free(e);
  return pkey;
}

void *reference_curve_public(const char *name, const uint8_t *point, size_t length) {
  OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
  void *pkey;

  if (!has_own_type(name)) must(OSSL_PARAM_BLD_push_utf8_string(parts, OSSL_PKEY_PARAM_GROUP_NAME, name, 0) == 1, name);
  must(OSSL_PARAM_BLD_push_octet_string(parts, OSSL_PKEY_PARAM_PUB_KEY, point, length) == 1, name);
  pkey = from_parts(has_own_type(name) ? name : "EC", parts);
  OSSL_PARAM_BLD_free(parts);
  return pkey;
}

void reference_free(void *pkey) { EVP_PKEY_free(pkey); }

/*
 * --- signatures ----------------------------------------------------------------------------------
 */

static bool with_padding(EVP_PKEY_CTX *context, const struct reference_signature *how) {
  if (how->mask == NULL) return true;
  return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, (int)how->salt) == 1 &&
         EVP_PKEY_CTX_set_rsa_mgf1_md_name(context, how->mask, NULL) == 1;
}
/*
 * The digest of data that are hashed already matters to PSS only: CKM_RSA_PKCS and CKM_ECDSA take
 * any bytes.
 */
static bool with_digest(EVP_PKEY_CTX *context, const struct reference_signature *how) {
  return how->mask == NULL || EVP_PKEY_CTX_set_signature_md(context, EVP_get_digestbyname(how->digest)) == 1;
}

static size_t to_pair(const uint8_t *der, size_t der_length, size_t coordinate, uint8_t *out) {
  const uint8_t *at = der;
  ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)der_length);

  must(pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, (int)coordinate) == (int)coordinate &&
           BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + coordinate, (int)coordinate) == (int)coordinate,
       "r and s");
  ECDSA_SIG_free(pair);
  return 2 * coordinate;
}

static size_t to_der(const uint8_t *signature, size_t coordinate, uint8_t *der) {
  ECDSA_SIG *pair = ECDSA_SIG_new();
  uint8_t *at = der;
  int length;

  must(ECDSA_SIG_set0(pair, BN_bin2bn(signature, (int)coordinate, NULL), BN_bin2bn(signature + coordinate, (int)coordinate, NULL)) == 1, "a signature");
  length = i2d_ECDSA_SIG(pair, &at);
  must(length > 0, "a signature");
  ECDSA_SIG_free(pair);
  return (size_t)length;
}

size_t reference_sign(const void *pkey, size_t coordinate, const struct reference_signature *how, const uint8_t *in, size_t length, uint8_t *out) {
  uint8_t made[REFERENCE_SIGNATURE];
  size_t written = sizeof made;

  if (how->hashed) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, (EVP_PKEY *)pkey, NULL);
    must(context != NULL && EVP_PKEY_sign_init(context) == 1 && with_padding(context, how) && with_digest(context, how) &&
             EVP_PKEY_sign(context, made, &written, in, length) == 1,
         "a signature");
    EVP_PKEY_CTX_free(context);
  } else {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *settings = NULL;
    must(EVP_DigestSignInit_ex(context, &settings, how->digest, NULL, NULL, (EVP_PKEY *)pkey, NULL) == 1 && with_padding(settings, how) &&
             EVP_DigestSign(context, made, &written, in, length) == 1,
         "a signature");
    EVP_MD_CTX_free(context);
  }
  if (coordinate > 0) return to_pair(made, written, coordinate, out);
  memcpy(out, made, written);
  return written;
}

bool reference_verify(const void *pkey, size_t coordinate, const struct reference_signature *how, const uint8_t *in, size_t length,
                      const uint8_t *signature, size_t signature_length) {
  uint8_t der[REFERENCE_SIGNATURE];
  bool valid;

  if (coordinate > 0) {
    if (signature_length != 2 * coordinate) return false;
    signature_length = to_der(signature, coordinate, der);
    signature = der;
  }
  if (how->hashed) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, (EVP_PKEY *)pkey, NULL);
    must(context != NULL && EVP_PKEY_verify_init(context) == 1 && with_padding(context, how) && with_digest(context, how), "verification");
    valid = EVP_PKEY_verify(context, signature, signature_length, in, length) == 1;
    EVP_PKEY_CTX_free(context);
  } else {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *settings = NULL;
    must(EVP_DigestVerifyInit_ex(context, &settings, how->digest, NULL, NULL, (EVP_PKEY *)pkey, NULL) == 1 && with_padding(settings, how),
         "verification");
    valid = EVP_DigestVerify(context, signature, signature_length, in, length) == 1;
    EVP_MD_CTX_free(context);
  }
  ERR_clear_error();
  return valid;
}

/*
 * --- OAEP, agreement -----------------------------------------------------------------------------
 */

static bool with_oaep(EVP_PKEY_CTX *context, const struct reference_oaep *how) {
  uint8_t *label = how->label_length == 0 ? NULL : OPENSSL_memdup(how->label, how->label_length);

  return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1 && EVP_PKEY_CTX_set_rsa_oaep_md_name(context, how->digest, NULL) == 1 &&
         EVP_PKEY_CTX_set_rsa_mgf1_md_name(context, how->mask, NULL) == 1 &&
         /* The context owns the label from here on. */
         (label == NULL || EVP_PKEY_CTX_set0_rsa_oaep_label(context, label, (int)how->label_length) == 1);
}

void reference_oaep_encrypt(const void *pkey, const struct reference_oaep *how, const uint8_t *in, size_t length, uint8_t *out) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, (EVP_PKEY *)pkey, NULL);
  size_t written = REFERENCE_RSA;

  must(context != NULL && EVP_PKEY_encrypt_init(context) == 1 && with_oaep(context, how) &&
           EVP_PKEY_encrypt(context, out, &written, in, length) == 1 && written == REFERENCE_RSA,
       "OAEP");
  EVP_PKEY_CTX_free(context);
}

size_t reference_oaep_decrypt(const void *pkey, const struct reference_oaep *how, const uint8_t *in, size_t length, uint8_t *out) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, (EVP_PKEY *)pkey, NULL);
  size_t written = REFERENCE_RSA;

  must(context != NULL && EVP_PKEY_decrypt_init(context) == 1 && with_oaep(context, how), "OAEP");
  if (EVP_PKEY_decrypt(context, out, &written, in, length) != 1) written = (size_t)-1;
  ERR_clear_error();
  EVP_PKEY_CTX_free(context);
  return written;
}

size_t reference_agree(const void *own, const void *peer, uint8_t *out) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, (EVP_PKEY *)own, NULL);
  size_t length = REFERENCE_VALUE;

  must(context != NULL && EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, (EVP_PKEY *)peer) == 1 &&
           EVP_PKEY_derive(context, out, &length) == 1,
       "ECDH");
  EVP_PKEY_CTX_free(context);
  return length;
}
