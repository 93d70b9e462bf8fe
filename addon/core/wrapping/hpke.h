// HPKE (RFC 9180), base mode, one message: how a key gets to another process that has shown its
// public key. One suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM. Leaves out the other
// modes, a second message and secret export.
//
// The sender is not authenticated here: the recipient must know from elsewhere (TLS) who answered,
// and binds what was asked for in `info` and `aad`.
#pragma once

#include <vector>

#include "wrapping/key_wrap.h"

namespace dke {

// Bytes of a public key (Npk) and of an encapsulated key (Nenc).
constexpr size_t kHpkePublic = 32;

struct HpkeContext {
  const uint8_t* info = nullptr;
  size_t info_length = 0;
  const uint8_t* aad = nullptr;
  size_t aad_length = 0;
};

Result<KeyRef> GenerateHpkeKey();
// The key pair that follows from a secret key of at least 32 bytes (DeriveKeyPair, 7.1.3): the same
// on every host that has the secret.
Result<KeyRef> DeriveHpkeKey(KeyRef secret);
Result<std::vector<uint8_t>> HpkePublicKey(KeyRef own);
// A secret key's value or a private key's PKCS#8, sealed to `recipient`: encapsulated key,
// ciphertext, tag (FORMAT.md, 4).
Result<std::vector<uint8_t>> HpkeSealKey(const uint8_t* recipient, size_t recipient_length, const HpkeContext& context, KeyRef key);
// kAuthenticationFailed whatever is wrong with `sealed`, and when it does not contain a key of the
// requested kind.
Result<LooseKey> HpkeOpenKey(KeyRef own, const HpkeContext& context, const uint8_t* sealed, size_t length, UnwrappedKind kind);
// Its second step: what was opened as a key.
Result<LooseKey> HpkeOpened(SecureBuffer value, UnwrappedKind kind);

// HpkeSealKey and HpkeOpenKey for a key encryption key, which nothing else lets out: a root key on
// its way to another node. The caller answers for the recipient.
Result<std::vector<uint8_t>> HpkeSealKek(const uint8_t* recipient, size_t recipient_length, const HpkeContext& context, KeyRef kek);
Result<KeyRef> HpkeOpenKek(KeyRef own, const HpkeContext& context, const uint8_t* sealed, size_t length);

// The two halves over bytes, the ephemeral key as given: for the published vectors.
Result<std::vector<uint8_t>> HpkeSealWith(EVP_PKEY* ephemeral, const uint8_t* recipient, const HpkeContext& context, const uint8_t* plain,
                                          size_t length);
Result<SecureBuffer> HpkeOpen(KeyRef own, const HpkeContext& context, const uint8_t* sealed, size_t length);

}  // namespace dke
