#include "ciphers/service_seal.h"

#include <openssl/hmac.h>

#include <cstring>

#include "base/bytes.h"
#include "digests/kdf.h"

namespace dke {
namespace {

constexpr size_t kHalf = 32;
constexpr size_t kSalt = 32;
constexpr size_t kTag = 16;
static_assert(ServiceKey::kOverhead == kSalt + kTag);
constexpr size_t kMacs = 0;
constexpr size_t kSeals = 1;

}  // namespace

Result<ServiceKey> ServiceKey::Of(KeyRef ref, Label label, const uint8_t* owner, size_t owner_length) {
  Result<SecureBuffer> value = SecureBuffer::Make(2 * kHalf);
  if (!value.ok()) return value.status();
  KeyUse kek(ref);
  if (!kek) return BadKey();
  if (kek->description.kind != KeyKind::kKek) return WrongKeyType();
  const std::string_view text = TextOf(label);
  DKE_RETURN_IF_ERROR(HkdfInto(Digest::kSha256, kek->secret.data(), kek->secret.size(), owner, owner_length,
                               reinterpret_cast<const uint8_t*>(text.data()), text.size(), value.value().data(), value.value().size()));
  return ServiceKey(value.Take());
}

Status ServiceKey::Mac(size_t half, const uint8_t* input, size_t size, uint8_t out[32]) const {
  unsigned length = 0;
  if (HMAC(Row(Digest::kSha256).md(), value_.data() + half * kHalf, kHalf, input, size, out, &length) == nullptr) return CryptoFailure("MAC");
  return {};
}

Status ServiceKey::Fingerprint(const SecureBuffer& secret, uint8_t out[32]) const { return Mac(kMacs, secret.data(), secret.size(), out); }

// AES-256-GCM under a key of one use: it follows from the salt, and the salt from all that is
// sealed.
Result<EvpCipherCtxPtr> ServiceKey::Context(const uint8_t* salt, const std::vector<uint8_t>& binding, int encrypting) const {
  const uint8_t nonce[12] = {};
  Wiped<32> key;
  DKE_RETURN_IF_ERROR(Mac(kSeals, salt, kSalt, key.bytes));
  EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  int written = 0;
  if (context == nullptr ||
      EVP_CipherInit_ex(context.get(), AesCipher(Row(CipherMode::kGcm), 32), nullptr, key.bytes, nonce, encrypting) != 1 ||
      EVP_CipherUpdate(context.get(), nullptr, &written, binding.data(), static_cast<int>(binding.size())) != 1) {
    return CryptoFailure("sealing");
  }
  return context;
}

Result<std::vector<uint8_t>> ServiceKey::Seal(const std::vector<uint8_t>& binding, const uint8_t* plain, size_t size) const {
  std::vector<uint8_t> sealed(kSalt + size + kTag);
  std::vector<uint8_t> all;
  all.reserve(4 + binding.size() + size);
  AppendField(all, binding.data(), binding.size());
  all.insert(all.end(), plain, plain + size);
  const Status derived = Mac(kMacs, all.data(), all.size(), sealed.data());
  Wipe(all.data(), all.size());
  DKE_RETURN_IF_ERROR(derived);
  Result<EvpCipherCtxPtr> context = Context(sealed.data(), binding, 1);
  if (!context.ok()) return context.status();
  int written = 0;
  if (EVP_CipherUpdate(context.value().get(), sealed.data() + kSalt, &written, plain, static_cast<int>(size)) != 1 ||
      EVP_CipherFinal_ex(context.value().get(), sealed.data() + kSalt + size, &written) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.value().get(), EVP_CTRL_AEAD_GET_TAG, kTag, sealed.data() + kSalt + size) != 1) {
    return CryptoFailure("sealing");
  }
  return sealed;
}

Result<SecureBuffer> ServiceKey::Open(const std::vector<uint8_t>& binding, const uint8_t* sealed, size_t sealed_size) const {
  const Status refused = BadArgument("the sealed value does not open");
  if (sealed_size <= kOverhead || sealed_size > SecureBuffer::kLargest) return refused;
  const size_t size = sealed_size - kOverhead;
  Result<SecureBuffer> plain = SecureBuffer::Make(size);
  if (!plain.ok()) return plain.status();
  Result<EvpCipherCtxPtr> context = Context(sealed, binding, 0);
  if (!context.ok()) return context.status();
  uint8_t tag[kTag];
  uint8_t none[16];
  int written = 0;
  memcpy(tag, sealed + kSalt + size, sizeof tag);
  if (EVP_CipherUpdate(context.value().get(), plain.value().data(), &written, sealed + kSalt, static_cast<int>(size)) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.value().get(), EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) != 1 ||
      EVP_CipherFinal_ex(context.value().get(), none, &written) != 1) {
    (void)CryptoFailure("");
    return refused;
  }
  return plain;
}

}  // namespace dke
