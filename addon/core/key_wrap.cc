#include "key_wrap.h"

namespace dke {
namespace {

constexpr size_t kMaxWrapped = size_t{1} << 20;
// A key of any sort that this library holds is shorter.
constexpr size_t kMaxKey = 16384;

struct WrapRow {
  const EVP_CIPHER* (*cipher128)();
  const EVP_CIPHER* (*cipher192)();
  const EVP_CIPHER* (*cipher256)();
};
constexpr WrapRow kPlain = {EVP_aes_128_wrap, EVP_aes_192_wrap, EVP_aes_256_wrap};
constexpr WrapRow kPadded = {EVP_aes_128_wrap_pad, EVP_aes_192_wrap_pad, EVP_aes_256_wrap_pad};

Result<EvpCipherCtxPtr> Context(const Key& key, bool padded, bool wrapping) {
  const WrapRow& row = padded ? kPadded : kPlain;
  const EVP_CIPHER* cipher = key.secret.size() == 16 ? row.cipher128() : key.secret.size() == 24 ? row.cipher192() : row.cipher256();
  EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  if (context == nullptr) return CryptoFailure("key wrap");
  EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  if (EVP_CipherInit_ex(context.get(), cipher, nullptr, key.secret.data(), nullptr, wrapping ? 1 : 0) != 1) return CryptoFailure("key wrap");
  return context;
}

Status CheckWrappingKey(const KeyUse& key) {
  if (!key) return BadKey();
  return key.is_aes() ? Status() : WrongKeyType();
}

}  // namespace

Result<std::vector<uint8_t>> WrapData(KeyRef wrapping, const uint8_t* data, size_t length, bool padded) {
  KeyUse key(wrapping);
  DKE_RETURN_IF_ERROR(CheckWrappingKey(key));
  // RFC 3394 needs two blocks of 64 bits at least; libcrypto lets empty keys through, the standards do not.
  if (length == 0 || length > kMaxWrapped) return DataLength("there is nothing to wrap, or too much");
  if (!padded && (length % 8 != 0 || length < 16)) return DataLength("AES key wrap takes multiples of 8 bytes, 16 at least");
  Result<EvpCipherCtxPtr> context = Context(*key, padded, true);
  if (!context.ok()) return context.status();
  std::vector<uint8_t> out((length + 7) / 8 * 8 + 8);
  int written = 0;
  if (EVP_CipherUpdate(context.value().get(), out.data(), &written, data, static_cast<int>(length)) != 1) return CryptoFailure("key wrap");
  out.resize(static_cast<size_t>(written));
  return out;
}

Result<SecureBuffer> UnwrapData(KeyRef wrapping, const uint8_t* wrapped, size_t length, bool padded) {
  KeyUse key(wrapping);
  DKE_RETURN_IF_ERROR(CheckWrappingKey(key));
  if (length % 8 != 0 || length < (padded ? 16u : 24u) || length > kMaxWrapped) return DataLength("this is no wrapped key");
  Result<EvpCipherCtxPtr> context = Context(*key, padded, false);
  if (!context.ok()) return context.status();
  Result<SecureBuffer> out = SecureBuffer::Make(length);
  if (!out.ok()) return out.status();
  int written = 0;
  if (EVP_CipherUpdate(context.value().get(), out.value().data(), &written, wrapped, static_cast<int>(length)) != 1 || written <= 0) {
    (void)CryptoFailure("");
    return AuthenticationFailed();
  }
  out.value().Truncate(static_cast<size_t>(written));
  return out;
}

Result<SecureBuffer> ValueToWrap(KeyRef ref) {
  KeyPtr key = FindKey(ref);
  if (key == nullptr) return BadKey();
  // Under a key whose value the caller knows, a wrapped KEK would be an open one.
  if (key->description.kind == KeyKind::kKek) return WrongKeyType();
  return ExportKey(key);
}

Result<KeyRef> AddUnwrapped(SecureBuffer value, UnwrappedKind kind) {
  Result<KeyRef> key = kind.has_value() ? AddSecretKey(*kind, std::move(value)) : ImportPrivateKey(value.data(), value.size());
  if (!key.ok() && key.status().code() == Code::kBadArgument) return AuthenticationFailed();
  return key;
}

Result<std::vector<uint8_t>> WrapKey(KeyRef wrapping, KeyRef ref, bool padded) {
  Result<SecureBuffer> value = ValueToWrap(ref);
  if (!value.ok()) return value.status();
  return WrapData(wrapping, value.value().data(), value.value().size(), padded);
}

Result<KeyRef> UnwrapKey(KeyRef wrapping, const uint8_t* wrapped, size_t length, bool padded, UnwrappedKind kind) {
  Result<SecureBuffer> value = UnwrapData(wrapping, wrapped, length, padded);
  if (!value.ok()) return value.status();
  return AddUnwrapped(value.Take(), kind);
}

Result<std::vector<uint8_t>> WrapKeyCipher(KeyRef wrapping, const CipherParameters& parameters, KeyRef ref) {
  Result<SecureBuffer> value = ValueToWrap(ref);
  if (!value.ok()) return value.status();
  const size_t size = value.value().size();
  std::vector<uint8_t> out(CipherLength(Direction::kEncrypt, parameters, size));
  Result<size_t> written =
      CipherMessage(wrapping, Direction::kEncrypt, parameters, value.value().data(), size, out.data(), out.size());
  if (!written.ok()) return written.status();
  out.resize(written.value());
  return out;
}

Result<KeyRef> UnwrapKeyCipher(KeyRef wrapping, const CipherParameters& parameters, const uint8_t* wrapped, size_t length,
                               UnwrappedKind kind) {
  if (length == 0 || length > kMaxKey) return DataLength("this is no wrapped key");
  Result<SecureBuffer> value = SecureBuffer::Make(length);
  if (!value.ok()) return value.status();
  Result<size_t> written =
      CipherMessage(wrapping, Direction::kDecrypt, parameters, wrapped, length, value.value().data(), length);
  if (!written.ok()) return written.status();
  value.value().Truncate(written.value());
  return AddUnwrapped(value.Take(), kind);
}

Result<std::vector<uint8_t>> WrapKeyOaep(KeyRef wrapping, const OaepParameters& parameters, KeyRef ref) {
  Result<SecureBuffer> value = ValueToWrap(ref);
  if (!value.ok()) return value.status();
  return OaepEncrypt(wrapping, parameters, value.value().data(), value.value().size());
}

Result<KeyRef> UnwrapKeyOaep(KeyRef wrapping, const OaepParameters& parameters, const uint8_t* wrapped, size_t length,
                             UnwrappedKind kind) {
  Result<SecureBuffer> value = OaepDecrypt(wrapping, parameters, wrapped, length);
  if (!value.ok()) return value.status();
  return AddUnwrapped(value.Take(), kind);
}

}  // namespace dke
