// Fuzzes the XKS bodies: the first byte chooses the operation (h, m, e, d), the rest is the
// request's body. What is accepted is carried out: an encryption must decrypt again, a decryption
// must not succeed, and nothing may stay in the arena.
#include "xks/xks_body.h"

#include <stdlib.h>
#include <string.h>

#include <string>

#include "base/base64.h"
#include "base/json_reader.h"

namespace {

using dke::KeyRef;
using dke::XksOperation;

KeyRef TheKey() {
  if (!dke::AdoptCryptoAllocations() || !dke::InitializeMemory(size_t{4} << 20, true).ok()) abort();
  const dke::Result<KeyRef> key = dke::GenerateAes(256);
  if (!key.ok()) abort();
  return key.value();
}

// The members of our own answer, back as a request to decrypt.
std::string AskBack(const std::vector<uint8_t>& answer, const std::vector<uint8_t>& aad) {
  std::string text(answer.begin(), answer.end());
  text.pop_back();
  text += R"(,"encryptionAlgorithm":"AES_GCM","requestMetadata":{"kmsRequestId":"","kmsOperation":"","awsPrincipalArn":"","kmsKeyArn":""})";
  if (!aad.empty()) {
    std::string encoded(dke::Base64Length(aad.size()), '\0');
    dke::EncodeBase64(aad.data(), aad.size(), reinterpret_cast<uint8_t*>(encoded.data()));
    text += ",\"additionalAuthenticatedData\":\"" + encoded + "\"";
  }
  return text + "}";
}

void CarryOut(XksOperation operation, const dke::XksBody& body, KeyRef key) {
  static const uint8_t kBinding[32] = {};
  if (operation == XksOperation::kEncrypt) {
    if (body.text.empty() || body.text.size() > 32768 || body.aad.size() > 32768) abort();
    const auto answer = dke::XksEncrypt(body, key, 1, kBinding, sizeof kBinding);
    if (!answer.ok()) abort();
    const std::string back = AskBack(answer.value(), body.aad);
    const auto reading = dke::ReadXksBody(XksOperation::kDecrypt, reinterpret_cast<const uint8_t*>(back.data()), back.size());
    if (reading.body == nullptr) abort();
    const auto plain = dke::XksDecrypt(*reading.body, key, kBinding, sizeof kBinding);
    std::string encoded(dke::Base64Length(body.text.size()), '\0');
    dke::EncodeBase64(body.text.data(), body.text.size(), reinterpret_cast<uint8_t*>(encoded.data()));
    const std::string wanted = "{\"plaintext\":\"" + encoded + "\"}";
    if (!plain.ok() || plain.value().size() != wanted.size() || memcmp(plain.value().data(), wanted.data(), wanted.size()) != 0) abort();
  } else if (operation == XksOperation::kDecrypt) {
    const auto plain = dke::XksDecrypt(body, key, kBinding, sizeof kBinding);
    if (plain.ok() || plain.status().code() != dke::Code::kAuthenticationFailed) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const KeyRef key = TheKey();
  static const size_t used = dke::KeyArenaStatus().used;
  if (size == 0 || size > 300000) return 0;
  const XksOperation operation = data[0] == 'e'   ? XksOperation::kEncrypt
                                 : data[0] == 'd' ? XksOperation::kDecrypt
                                 : data[0] == 'm' ? XksOperation::kMetadata
                                                  : XksOperation::kHealth;
  {
    const dke::XksReading reading = dke::ReadXksBody(operation, data + 1, size - 1);
    if (reading.body == nullptr) {
      // A refusal has one of the protocol's names and a sentence of ours.
      if (reading.refusal.error_name == nullptr || reading.refusal.message.empty() || reading.refusal.message.size() > 120) abort();
      if (strcmp(reading.refusal.error_name, "InternalException") == 0) abort();
    } else {
      CarryOut(operation, *reading.body, key);
    }
  }
  if (dke::KeyArenaStatus().used != used) abort();
  return 0;
}
