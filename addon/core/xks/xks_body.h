// The bodies of the external key store proxy protocol (specification v1.0.x): reads the members of
// a request, encrypts or decrypts, and writes the whole JSON answer, so that no plaintext leaves
// this file but in the answer to Decrypt.
//
// Our ciphertextMetadata is 20 bytes: layout 1, key version (24 bits), salt (16 bytes). Each
// message has a key of its own, HMAC-SHA-256(key, "dke xks 1" || len16(binding) || binding ||
// version32 || salt), because random 96-bit IVs under one key are spent after 2^32 messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keys/key_table.h"

namespace dke {

enum class XksOperation : uint8_t { kHealth, kMetadata, kEncrypt, kDecrypt };

struct XksRequestMetadata {
  std::string kms_request_id;
  std::string kms_operation;
  std::optional<std::string> aws_principal_arn;
  std::optional<std::string> kms_key_arn;
  std::optional<std::string> aws_source_vpc;
  std::optional<std::string> aws_source_vpce;
  std::optional<std::string> kms_via_service;
};

struct XksBody {
  bool empty = false;  // the body was {}
  std::optional<XksRequestMetadata> metadata;
  SecureBuffer text;  // plaintext or ciphertext
  std::vector<uint8_t> aad;
  std::vector<uint8_t> iv;
  std::vector<uint8_t> tag;
  std::vector<uint8_t> ciphertext_metadata;
  bool wants_cdiv = false;
  uint32_t key_version = 0;  // Decrypt: from our metadata; 0, which no key has, when the metadata are not ours
};

// An error in the protocol's own terms.
struct XksRefusal {
  const char* error_name;
  std::string message;
};

struct XksReading {
  std::unique_ptr<XksBody> body;  // null when refused
  XksRefusal refusal;
};

XksReading ReadXksBody(XksOperation operation, const uint8_t* data, size_t size);

// The JSON answer. Encrypt decrypts what it produced and compares before it answers.
Result<std::vector<uint8_t>> XksEncrypt(const XksBody& body, KeyRef key, uint32_t key_version, const uint8_t* binding, size_t binding_size);
// kAuthenticationFailed when the ciphertext, IV, additional data, metadata or tag do not fit.
Result<SecureBuffer> XksDecrypt(const XksBody& body, KeyRef key, const uint8_t* binding, size_t binding_size);

// SHA-256(aad || metadata || iv || ciphertext || tag).
Status CiphertextDataIntegrityValue(const std::vector<uint8_t>& aad, const uint8_t* metadata, size_t metadata_size, const uint8_t* iv,
                                    size_t iv_size, const uint8_t* ciphertext, size_t ciphertext_size, const uint8_t* tag,
                                    size_t tag_size, uint8_t (&out)[32]);

}  // namespace dke
