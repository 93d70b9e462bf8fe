// RSA encryption (RFC 8017): OAEP, and PKCS#1 v1.5.
//
// PKCS#1 v1.5 padding must not be checked where an attacker sees the result: each answer reveals
// something about the message (Bleichenbacher, 1998). Decryption here never reports wrong padding.
// It answers with a message that follows from the key and the ciphertext, as libcrypto does since
// 3.2 ("implicit rejection", draft-irtf-cfrg-rsa-guidance), and takes the same steps either way.
// Who may use this padding is the callers' decision.
#pragma once

#include <vector>

#include "keys/key_table.h"

namespace dke {

enum class RsaPadding : uint8_t { kOaep, kPkcs1 };

struct RsaEncryptionParameters {
  RsaPadding padding = RsaPadding::kOaep;
  // The rest is for OAEP.
  Digest digest = Digest::kSha256;
  Digest mgf_digest = Digest::kSha256;
  const uint8_t* label = nullptr;
  size_t label_length = 0;
};

Result<std::vector<uint8_t>> RsaEncrypt(KeyRef key, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t input_length);
// With a private key of 4096 bits this takes 4 to 8 ms. kAuthenticationFailed: the input is not as
// long as the modulus or not less than it, or OAEP does not open it.
Result<SecureBuffer> RsaDecrypt(const HeldPkey& key, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t input_length);
// RsaDecrypt with a key of the key table.
Result<SecureBuffer> RsaDecrypt(KeyRef key, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t input_length);

}  // namespace dke
