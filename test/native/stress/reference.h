/*
 * OpenSSL's results for the same data and key: the reference for every result of the library. Each
 * function ends the process when OpenSSL itself fails, because then the test proves nothing.
 */
#ifndef DKE_STRESS_REFERENCE_H
#define DKE_STRESS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REFERENCE_RSA = 256, REFERENCE_POINT = 133, REFERENCE_VALUE = 66, REFERENCE_SIGNATURE = 256 };

/**
 * A cipher in OpenSSL's terms. `tag` is the length of the tag that follows the ciphertext, 0 for
 * none.
 */
struct reference_cipher {
  const char *name; /* as EVP_CIPHER_fetch takes it */
  const uint8_t *key;
  const uint8_t *iv;
  size_t iv_length;
  const uint8_t *aad;
  size_t aad_length;
  size_t tag;
  bool padded;
};

/** Encrypts; returns the length, tag included. `out` has room for `length` + 32 bytes. */
size_t reference_encrypt(const struct reference_cipher *cipher, const uint8_t *in, size_t length, uint8_t *out);

size_t reference_digest(const char *digest, const uint8_t *in, size_t length, uint8_t *out);
/** HMAC, or CMAC when `digest` is NULL (AES of the key's length). */
size_t reference_mac(const char *digest, const uint8_t *key, size_t key_length, const uint8_t *in, size_t length, uint8_t *out);

enum reference_hkdf_step { HKDF_BOTH, HKDF_EXTRACT, HKDF_EXPAND };
void reference_hkdf(enum reference_hkdf_step step, const char *digest, const uint8_t *key, size_t key_length, const uint8_t *salt, size_t salt_length,
                    const uint8_t *info, size_t info_length, uint8_t *out, size_t length);
/**
 * SP 800-108 with 32-bit counter and length: [counter] label 00 context [length in bits]. HMAC, or
 * CMAC when `digest` is NULL. `iv` is for feedback mode: as long as the PRF's output, or NULL.
 */
void reference_kbkdf(bool feedback, const char *digest, const uint8_t *key, size_t key_length, const uint8_t *label, size_t label_length,
                     const uint8_t *context, size_t context_length, const uint8_t *iv, size_t iv_length, uint8_t *out, size_t length);
/** The KDF of X9.63. */
void reference_x963(const char *digest, const uint8_t *secret, size_t secret_length, const uint8_t *shared, size_t shared_length, uint8_t *out,
                    size_t length);
/**
 * AES key wrap (RFC 3394), or with padding (RFC 5649). `iv` has 8 bytes, with padding 4; NULL: that
 * of the RFC. Returns the length.
 */
size_t reference_wrap(bool padded, const uint8_t *kek, size_t kek_length, const uint8_t *iv, const uint8_t *in, size_t length, uint8_t *out);

/** The numbers of an RSA-2048 key pair, big-endian. */
struct reference_rsa {
  void *pkey;
  uint8_t modulus[REFERENCE_RSA];
  uint8_t public_exponent[3];
  uint8_t private_exponent[REFERENCE_RSA];
  uint8_t prime1[REFERENCE_RSA / 2], prime2[REFERENCE_RSA / 2];
  uint8_t exponent1[REFERENCE_RSA / 2], exponent2[REFERENCE_RSA / 2], coefficient[REFERENCE_RSA / 2];
};
/**
 * A key pair on a curve: the private number, and the public point, uncompressed where the curve has
 * both forms.
 */
struct reference_curve_key {
  void *pkey;
  size_t size; /* of a coordinate */
  uint8_t value[REFERENCE_VALUE];
  uint8_t point[REFERENCE_POINT];
  size_t point_length;
};
void reference_make_rsa(struct reference_rsa *key);
/** `name` as OpenSSL has it: P-256, secp256k1, …, or ED25519, ED448, X25519, X448. */
void reference_make_curve_key(const char *name, struct reference_curve_key *key);
/** A public key from its parts, to be freed with reference_free; NULL when OpenSSL refuses it. */
void *reference_rsa_public(const uint8_t *modulus, size_t modulus_length, const uint8_t *exponent, size_t exponent_length);
void *reference_curve_public(const char *name, const uint8_t *point, size_t length);
void reference_free(void *pkey);

/**
 * How data are signed. `digest`: NULL for signatures of the data as they are (CKM_RSA_PKCS, EdDSA).
 * `hashed`: the data are the digest already.
 */
struct reference_signature {
  const char *digest;
  bool hashed;
  const char *mask; /* of PSS: MGF1's digest; NULL: no PSS */
  size_t salt;
};
/**
 * Signatures of elliptic curves are r and s, each as long as the order. `coordinate`: their length;
 * 0 for RSA and EdDSA. Returns the length.
 */
size_t reference_sign(const void *pkey, size_t coordinate, const struct reference_signature *how, const uint8_t *in, size_t length, uint8_t *out);
bool reference_verify(const void *pkey, size_t coordinate, const struct reference_signature *how, const uint8_t *in, size_t length,
                      const uint8_t *signature, size_t signature_length);

struct reference_oaep {
  const char *digest, *mask;
  const uint8_t *label;
  size_t label_length;
};
void reference_oaep_encrypt(const void *pkey, const struct reference_oaep *how, const uint8_t *in, size_t length, uint8_t *out);
/** Returns the length; (size_t)-1 when the ciphertext is refused. */
size_t reference_oaep_decrypt(const void *pkey, const struct reference_oaep *how, const uint8_t *in, size_t length, uint8_t *out);

/** What both sides of an ECDH agree on: the x coordinate. Returns the length. */
size_t reference_agree(const void *own, const void *peer, uint8_t *out);

#endif
