// AES key wrap, RFC 3394 (KW), and with padding, RFC 5649 (KWP): over keys, and over a caller's data. Keys also under the AES
// modes and RSA-OAEP, as PKCS#11 wraps them. A private key travels as its PKCS#8. What a key is never leaves this library.
#pragma once

#include <optional>
#include <vector>

#include "block_cipher.h"
#include "key_table.h"
#include "signature.h"

namespace dke {

Result<std::vector<uint8_t>> WrapKey(KeyRef wrapping, KeyRef key, bool padded);
// What an unwrapped key is to become: a secret key of a kind, or, absent, the private key that its PKCS#8 says.
using UnwrappedKind = std::optional<KeyKind>;
Result<KeyRef> UnwrapKey(KeyRef wrapping, const uint8_t* wrapped, size_t length, bool padded, UnwrappedKind kind);
Result<std::vector<uint8_t>> WrapKeyCipher(KeyRef wrapping, const CipherParameters& parameters, KeyRef key);
Result<KeyRef> UnwrapKeyCipher(KeyRef wrapping, const CipherParameters& parameters, const uint8_t* wrapped, size_t length,
                               UnwrappedKind kind);
Result<std::vector<uint8_t>> WrapKeyOaep(KeyRef wrapping, const OaepParameters& parameters, KeyRef key);
Result<KeyRef> UnwrapKeyOaep(KeyRef wrapping, const OaepParameters& parameters, const uint8_t* wrapped, size_t length,
                             UnwrappedKind kind);
// The two ends of every wrapping: the bytes that travel (never a KEK's), and the key they become. Bytes that are no such key are
// told apart from a wrong wrapping by nobody: both are kAuthenticationFailed.
Result<SecureBuffer> ValueToWrap(KeyRef key);
Result<KeyRef> AddUnwrapped(SecureBuffer value, UnwrappedKind kind);
Result<std::vector<uint8_t>> WrapData(KeyRef wrapping, const uint8_t* data, size_t length, bool padded);
Result<SecureBuffer> UnwrapData(KeyRef wrapping, const uint8_t* wrapped, size_t length, bool padded);

}  // namespace dke
