#include "kdf.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

namespace dke {
namespace {

struct KdfCtxDeleter {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

EVP_KDF* Hkdf() {
  static EVP_KDF* kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  return kdf;
}

}  // namespace

Status HkdfInto(Digest digest, const uint8_t* secret, size_t secret_length, const uint8_t* salt, size_t salt_length,
                const uint8_t* info, size_t info_length, uint8_t* output, size_t output_length, HkdfSteps steps) {
  if (output_length == 0 || output_length > 255 * Row(digest).bytes) return BadArgument("HKDF gives 1 to 255 digests of output");
  std::unique_ptr<EVP_KDF_CTX, KdfCtxDeleter> context(EVP_KDF_CTX_new(Hkdf()));
  if (steps == HkdfSteps::kExtract && output_length != Row(digest).bytes) return BadArgument("HKDF's extraction gives one digest of output");
  int mode = steps == HkdfSteps::kBoth      ? EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND
             : steps == HkdfSteps::kExtract ? EVP_KDF_HKDF_MODE_EXTRACT_ONLY
                                            : EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  OSSL_PARAM params[6];
  size_t count = 0;
  params[count++] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
  params[count++] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, const_cast<char*>(Row(digest).libcrypto), 0);
  params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<uint8_t*>(secret), secret_length);
  if (salt_length != 0) params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<uint8_t*>(salt), salt_length);
  if (info_length != 0) params[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<uint8_t*>(info), info_length);
  params[count] = OSSL_PARAM_construct_end();
  if (context == nullptr || EVP_KDF_derive(context.get(), output, output_length, params) != 1) return CryptoFailure("HKDF");
  return {};
}

Result<KeyRef> HkdfKey(KeyRef ref, Digest digest, const uint8_t* salt, size_t salt_length, const uint8_t* info, size_t info_length,
                       KeyKind kind, size_t bytes, HkdfSteps steps) {
  if (bytes == 0 || bytes > 4096) return BadArgument("a secret key has 1 to 4096 bytes");
  Result<SecureBuffer> derived = SecureBuffer::Make(bytes);
  if (!derived.ok()) return derived.status();
  {
    KeyUse key(ref);
    if (!key) return BadKey();
    if (!key.is_secret()) return WrongKeyType();
    DKE_RETURN_IF_ERROR(HkdfInto(digest, key->secret.data(), key->secret.size(), salt, salt_length, info, info_length,
                                 derived.value().data(), bytes, steps));
  }
  return AddSecretKey(kind, derived.Take());
}

Status ScryptInto(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost, uint32_t r,
                  uint32_t p, uint8_t* output, size_t output_length) {
  // libcrypto's own limit is 32 MiB, below what a passphrase needs today; and what a file asks for must not take the machine down.
  constexpr uint64_t kMostMemory = uint64_t{1} << 30;
  if (cost < 1 || cost > 24 || r < 1 || r > 64 || p < 1 || p > 16) return BadArgument("scrypt's N, r or p is out of range");
  const uint64_t n = uint64_t{1} << cost;
  if (128 * r * (n + p + 2) > kMostMemory) return BadArgument("scrypt would take more than 1 GiB");
  if (EVP_PBE_scrypt(reinterpret_cast<const char*>(passphrase), passphrase_length, salt, salt_length, n, r, p, kMostMemory, output,
                     output_length) != 1) {
    return CryptoFailure("scrypt");
  }
  return {};
}

Result<KeyRef> ScryptKey(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost,
                         uint32_t r, uint32_t p) {
  Result<SecureBuffer> derived = SecureBuffer::Make(32);
  if (!derived.ok()) return derived.status();
  DKE_RETURN_IF_ERROR(
      ScryptInto(passphrase, passphrase_length, salt, salt_length, cost, r, p, derived.value().data(), derived.value().size()));
  return AddSecretKey(KeyKind::kKek, derived.Take());
}

}  // namespace dke
