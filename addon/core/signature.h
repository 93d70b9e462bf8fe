// RSA PKCS#1 v1.5 and PSS (RFC 8017), ECDSA (FIPS 186-5), Ed25519 (RFC 8032), and RSA-OAEP encryption. PKCS#1 v1.5
// encryption is not here: its padding cannot be checked without telling. SHA-1 verifies old signatures and makes none.
#pragma once

#include <optional>
#include <vector>

#include "key_table.h"

namespace dke {

enum class SignatureAlgorithm : uint8_t { kRsaPkcs1, kRsaPss, kEcdsa, kEd25519 };

struct SignatureParameters {
  SignatureAlgorithm algorithm;
  // Absent: the input is what the algorithm signs itself (a DigestInfo, or an ECDSA digest of any length).
  std::optional<Digest> digest;
  Digest mgf_digest = Digest::kSha256;
  int salt_length = 32;
  bool prehashed = false;  // PSS: the input is the digest
  bool der = false;        // ECDSA: DER instead of r || s of fixed length
};

struct OaepParameters {
  Digest digest = Digest::kSha256;
  Digest mgf_digest = Digest::kSha256;
  const uint8_t* label = nullptr;
  size_t label_length = 0;
};

Result<std::vector<uint8_t>> Sign(KeyRef key, const SignatureParameters& parameters, const uint8_t* input, size_t input_length);
Result<bool> Verify(KeyRef key, const SignatureParameters& parameters, const uint8_t* input, size_t input_length,
                    const uint8_t* signature, size_t signature_length);
// What a PKCS#1 v1.5 signature was made of, by the public key (or the public half of a private one).
Result<std::vector<uint8_t>> Recover(KeyRef key, const uint8_t* signature, size_t signature_length);
Result<std::vector<uint8_t>> OaepEncrypt(KeyRef key, const OaepParameters& parameters, const uint8_t* input, size_t input_length);
Result<SecureBuffer> OaepDecrypt(KeyRef key, const OaepParameters& parameters, const uint8_t* input, size_t input_length);

}  // namespace dke
