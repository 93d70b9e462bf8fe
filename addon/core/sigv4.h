// The two secret steps of AWS Signature Version 4: deriving a signing key, and checking a signature under it. What is signed
// is put together in TypeScript (server/fronts/xks/sigv4.ts).
#pragma once

#include <string>

#include "key_table.h"

namespace dke {

// kSigning for one day, region and service, from a generic key that holds the characters of the secret access key.
Result<KeyRef> SigV4SigningKey(KeyRef secret, const std::string& date, const std::string& region, const std::string& service);
// Compares in constant time with 64 lower-case hexadecimal digits; anything else is false.
Result<bool> SigV4Verify(KeyRef signing_key, const uint8_t* string_to_sign, size_t size, const char* signature, size_t signature_length);

// A fresh secret access key of 64 characters from a 64-character alphabet: 384 bits.
constexpr size_t kSecretAccessKey = 64;
Result<SecureBuffer> MakeSecretAccessKey();

}  // namespace dke
