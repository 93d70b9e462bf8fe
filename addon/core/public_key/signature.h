// Signatures: RSA PKCS#1 v1.5 and PSS (RFC 8017), ECDSA (FIPS 186-5), Ed25519 and Ed448 (RFC 8032).
// Which digests may be used to sign is the callers' decision.
#pragma once

#include <optional>
#include <vector>

#include "keys/key_table.h"

namespace dke {

enum class SignatureAlgorithm : uint8_t { kRsaPkcs1, kRsaPss, kEcdsa, kEd25519, kEd448 };

struct SignatureParameters {
  SignatureAlgorithm algorithm;
  // Absent: the input is what the algorithm signs itself (a DigestInfo, or an ECDSA digest of any
  // length).
  std::optional<Digest> digest;
  Digest mgf_digest = Digest::kSha256;
  int salt_length = 32;
  bool prehashed = false;  // PSS: the input is the digest
  bool der = false;        // ECDSA: DER instead of r || s of fixed length
};

// With a private RSA key of 4096 bits this takes 4 to 8 ms.
Result<std::vector<uint8_t>> Sign(const HeldPkey& key, const SignatureParameters& parameters, const uint8_t* input, size_t input_length);
Result<bool> Verify(KeyRef key, const SignatureParameters& parameters, const uint8_t* input, size_t input_length,
                    const uint8_t* signature, size_t signature_length);
// What a PKCS#1 v1.5 signature was made of, by the public key (or the public half of a private
// one).
Result<std::vector<uint8_t>> Recover(KeyRef key, const uint8_t* signature, size_t signature_length);

// Sign with a key of the key table.
Result<std::vector<uint8_t>> Sign(KeyRef key, const SignatureParameters& parameters, const uint8_t* input, size_t input_length);

}  // namespace dke
