// The two secret steps of AWS Signature Version 4: deriving a signing key, and checking a signature
// under it. What is signed is read from the request in TypeScript (fronts/xks/sigv4-reading.ts).
#pragma once

#include <string>
#include <string_view>

#include "keys/key_table.h"

namespace dke {

// kSigning for one day, region and service, from a generic key that contains the characters of the
// secret access key.
Result<KeyRef> SigV4SigningKey(KeyRef secret, const std::string& date, const std::string& region, const std::string& service);
// What was signed, in the pieces that a verifier has: the canonical request but for its last line,
// and the string to sign but for its last line.
struct SigV4Request {
  std::string_view head;         // "<method>\n<path>\n<query>\n<headers>\n<signed headers>\n"
  const uint8_t* body;
  size_t body_size;
  std::string_view scope;        // "AWS4-HMAC-SHA256\n<date>\n<scope>\n"
  std::string_view stated_hash;  // x-amz-content-sha256; empty when it was not sent
  std::string_view signature;    // 64 lower-case hexadecimal digits; anything else does not verify
};

// Compares in constant time. False too when the stated hash is not the body's.
Result<bool> SigV4Verify(KeyRef signing_key, const SigV4Request& request);

// A fresh secret access key of 64 characters from a 64-character alphabet: 384 bits.
constexpr size_t kSecretAccessKey = 64;
Result<SecureBuffer> MakeSecretAccessKey();

}  // namespace dke
