// AES key wrap, RFC 3394 (KW), and with padding, RFC 5649 (KWP): over keys, and over a caller's
// data. Keys also under the AES modes and RSA-OAEP, as PKCS#11 wraps them. A private key travels as
// its PKCS#8. What a key is never leaves this library.
//
// KW and CBC take whole blocks only. PKCS#11 has a key of another length padded with zeros (3.1,
// sections 6.16 and 6.11.5), and cut to CKA_VALUE_LEN when it is unwrapped.
#pragma once

#include <optional>
#include <vector>

#include "ciphers/block_cipher.h"
#include "keys/key_table.h"
#include "public_key/rsa_encryption.h"

namespace dke {

// The initial value of KW has 8 bytes, that of KWP 4; null means the one that the RFC defines.
struct KeyWrapParameters {
  bool padded = false;
  const uint8_t* iv = nullptr;
};
size_t InitialValueLength(bool padded);

Result<std::vector<uint8_t>> WrapKey(KeyRef wrapping, KeyRef key, const KeyWrapParameters& parameters);
// What an unwrapped key is to become: a secret key of a kind, or, absent, the private key that its
// PKCS#8 says.
using UnwrappedKind = std::optional<KeyKind>;
// `bytes` is the length of the secret key where that is known, and 0 otherwise: where it differs
// from what was wrapped by no more than the padding, the padding is removed.
Result<LooseKey> UnwrapKey(KeyRef wrapping, const uint8_t* wrapped, size_t length, const KeyWrapParameters& parameters, UnwrappedKind kind,
                           size_t bytes);
Result<std::vector<uint8_t>> WrapKeyCipher(KeyRef wrapping, const CipherParameters& parameters, KeyRef key);
Result<std::vector<uint8_t>> WrapKeyOaep(KeyRef wrapping, const RsaEncryptionParameters& parameters, KeyRef key);
// The two ends of every wrapping: the bytes that travel (never a KEK's), and the key they become.
// Bytes that are no such key are told apart from a wrong wrapping by no one: both are
// kAuthenticationFailed.
Result<SecureBuffer> ValueToWrap(KeyRef key);
// The value of a wrapped key, before OpenUnwrapped makes a key of it. RsaDecrypt gives that of the
// third way.
Result<SecureBuffer> UnwrapValue(KeyRef wrapping, const uint8_t* wrapped, size_t length, const KeyWrapParameters& parameters,
                                 UnwrappedKind kind, size_t bytes);
Result<SecureBuffer> UnwrapCipherValue(KeyRef wrapping, const CipherParameters& parameters, const uint8_t* wrapped, size_t length,
                                       UnwrappedKind kind, size_t bytes);
// Checks the numbers of a private key, which takes up to 8 ms (key_check.h).
Result<LooseKey> OpenUnwrapped(SecureBuffer value, UnwrappedKind kind);
Result<std::vector<uint8_t>> WrapData(KeyRef wrapping, const uint8_t* data, size_t length, const KeyWrapParameters& parameters);
Result<SecureBuffer> UnwrapData(KeyRef wrapping, const uint8_t* wrapped, size_t length, const KeyWrapParameters& parameters);

}  // namespace dke
