#include "digests/mac.h"

#include <openssl/core_names.h>

namespace dke {
namespace {

struct MacDeleter {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
};
using MacPtr = std::unique_ptr<EVP_MAC, MacDeleter>;

// A context keyed and ready for one message.
Result<EvpMacCtxPtr> Keyed(const Key& key, const MacRow& row) {
  static const MacPtr hmac(EVP_MAC_fetch(nullptr, HmacRow(Digest::kSha256).libcrypto, nullptr));
  static const MacPtr cmac(EVP_MAC_fetch(nullptr, CmacRow().libcrypto, nullptr));
  const char* const cipher = key.secret.size() == 16 ? "AES-128-CBC" : key.secret.size() == 24 ? "AES-192-CBC" : "AES-256-CBC";
  const char* const name = row.of_aes ? OSSL_MAC_PARAM_CIPHER : OSSL_MAC_PARAM_DIGEST;
  const char* const value = row.of_aes ? cipher : Row(row.digest).libcrypto;
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(name, const_cast<char*>(value), 0), OSSL_PARAM_construct_end()};
  EvpMacCtxPtr context(EVP_MAC_CTX_new((row.of_aes ? cmac : hmac).get()));
  if (context == nullptr || EVP_MAC_init(context.get(), key.secret.data(), key.secret.size(), params) != 1) return CryptoFailure("MAC");
  return context;
}

}  // namespace

Status CheckMacKey(const KeyUse& key, const MacRow& row) {
  if (!key) return BadKey();
  if (!key.is_data_key() || (row.of_aes && !key.is_aes())) return WrongKeyType();
  return {};
}

Result<size_t> MacMessage(KeyRef ref, const MacParameters& parameters, const uint8_t* input, size_t input_length, uint8_t* output,
                          size_t output_length) {
  return MacMessage(FindKey(ref), parameters, input, input_length, output, output_length);
}

Result<size_t> MacMessage(const KeyPtr& handle, const MacParameters& parameters, const uint8_t* input, size_t input_length,
                          uint8_t* output, size_t output_length) {
  KeyUse key(handle);
  DKE_RETURN_IF_ERROR(CheckMacKey(key, Row(parameters)));
  if (output_length < MacLength(parameters)) return BufferTooSmall();
  EvpMacCtxPtr& cached = key->macs[Row(parameters).index];
  if (cached == nullptr) {
    Result<EvpMacCtxPtr> keyed = Keyed(*key, Row(parameters));
    if (!keyed.ok()) return keyed.status();
    cached = keyed.Take();
  } else if (EVP_MAC_init(cached.get(), nullptr, 0, nullptr) != 1) {
    cached.reset();
    return CryptoFailure("MAC");
  }
  size_t written = 0;
  if (EVP_MAC_update(cached.get(), input, input_length) != 1 || EVP_MAC_final(cached.get(), output, &written, output_length) != 1) {
    cached.reset();
    return CryptoFailure("MAC");
  }
  return written;
}

Result<std::unique_ptr<MacOperation>> MacOperation::Begin(KeyRef ref, const MacParameters& parameters) {
  KeyPtr handle = FindKey(ref);
  KeyUse key(handle);
  DKE_RETURN_IF_ERROR(CheckMacKey(key, Row(parameters)));
  Result<EvpMacCtxPtr> keyed = Keyed(*key, Row(parameters));
  if (!keyed.ok()) return keyed.status();
  return std::unique_ptr<MacOperation>(new MacOperation(handle, parameters, keyed.Take()));
}

Status MacOperation::Update(const uint8_t* input, size_t input_length) {
  KeyUse key(key_);
  if (!key) {
    context_.reset();  // what it holds of the key goes, too
    return BadKey();
  }
  if (input_length != 0 && EVP_MAC_update(context_.get(), input, input_length) != 1) return CryptoFailure("MAC");
  return {};
}

Result<size_t> MacOperation::Final(uint8_t* output, size_t output_length) {
  KeyUse key(key_);
  if (!key) {
    context_.reset();  // what it holds of the key goes, too
    return BadKey();
  }
  if (output_length < MacLength(parameters_)) return BufferTooSmall();
  size_t written = 0;
  if (EVP_MAC_final(context_.get(), output, &written, output_length) != 1) return CryptoFailure("MAC");
  return written;
}

}  // namespace dke
