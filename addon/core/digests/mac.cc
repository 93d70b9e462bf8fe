#include "digests/mac.h"

#include <openssl/core_names.h>

namespace dke {
namespace {

struct MacDeleter {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
};
using MacPtr = std::unique_ptr<EVP_MAC, MacDeleter>;

EVP_MAC* Fetched(bool cmac) {
  static const MacPtr hmac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  static const MacPtr aes_cmac(EVP_MAC_fetch(nullptr, "CMAC", nullptr));
  return cmac ? aes_cmac.get() : hmac.get();
}

// A context keyed and ready for one message.
Result<EvpMacCtxPtr> Keyed(const Key& key, const MacParameters& parameters) {
  const char* cipher = key.secret.size() == 16 ? "AES-128-CBC" : key.secret.size() == 24 ? "AES-192-CBC" : "AES-256-CBC";
  OSSL_PARAM params[] = {
      parameters.cmac ? OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, const_cast<char*>(cipher), 0)
                      : OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(Row(parameters.digest).libcrypto), 0),
      OSSL_PARAM_construct_end(),
  };
  EvpMacCtxPtr context(EVP_MAC_CTX_new(Fetched(parameters.cmac)));
  if (context == nullptr || EVP_MAC_init(context.get(), key.secret.data(), key.secret.size(), params) != 1) return CryptoFailure("MAC");
  return context;
}

Status CheckKey(const KeyUse& key, const MacParameters& parameters) {
  if (!key) return BadKey();
  if (!key.is_data_key() || (parameters.cmac && !key.is_aes())) return WrongKeyType();
  return {};
}

}  // namespace

size_t MacLength(const MacParameters& parameters) { return parameters.cmac ? 16 : Row(parameters.digest).bytes; }

Result<size_t> MacMessage(KeyRef ref, const MacParameters& parameters, const uint8_t* input, size_t input_length, uint8_t* output,
                          size_t output_length) {
  return MacMessage(FindKey(ref), parameters, input, input_length, output, output_length);
}

Result<size_t> MacMessage(const KeyPtr& handle, const MacParameters& parameters, const uint8_t* input, size_t input_length,
                          uint8_t* output, size_t output_length) {
  KeyUse key(handle);
  DKE_RETURN_IF_ERROR(CheckKey(key, parameters));
  if (output_length < MacLength(parameters)) return BufferTooSmall();
  EvpMacCtxPtr& cached = key->macs[parameters.cmac ? kDigestCount : static_cast<size_t>(parameters.digest)];
  if (cached == nullptr) {
    Result<EvpMacCtxPtr> keyed = Keyed(*key, parameters);
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
  DKE_RETURN_IF_ERROR(CheckKey(key, parameters));
  Result<EvpMacCtxPtr> keyed = Keyed(*key, parameters);
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
