#include "wrapping/key_wrap.h"

#include <openssl/asn1.h>

#include <algorithm>
#include <cstring>

#include "keys/key_check.h"

namespace dke {
namespace {

// A key of any kind is shorter. AES key wrap encrypts each 8 bytes six times: 1 MiB would take 0.1
// s.
constexpr size_t kMaxKey = kMostEncodedKey;

constexpr size_t kSemiblock = 8;

struct WrapRow {
  const EVP_CIPHER* (*cipher128)();
  const EVP_CIPHER* (*cipher192)();
  const EVP_CIPHER* (*cipher256)();
};
constexpr WrapRow kPlain = {EVP_aes_128_wrap, EVP_aes_192_wrap, EVP_aes_256_wrap};
constexpr WrapRow kPadded = {EVP_aes_128_wrap_pad, EVP_aes_192_wrap_pad, EVP_aes_256_wrap_pad};

Result<EvpCipherCtxPtr> Context(const Key& key, const KeyWrapParameters& parameters, bool wrapping) {
  const WrapRow& row = parameters.padded ? kPadded : kPlain;
  const EVP_CIPHER* cipher = key.secret.size() == 16 ? row.cipher128() : key.secret.size() == 24 ? row.cipher192() : row.cipher256();
  EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
  if (context == nullptr) return CryptoFailure("key wrap");
  EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  if (EVP_CipherInit_ex(context.get(), cipher, nullptr, key.secret.data(), parameters.iv, wrapping ? 1 : 0) != 1) return CryptoFailure("key wrap");
  return context;
}

Status CheckWrappingKey(const KeyUse& key) {
  if (!key) return BadKey();
  return key.is_aes() ? Status() : WrongKeyType();
}

size_t RoundUp(size_t length, size_t unit) { return (length + unit - 1) / unit * unit; }

bool IsZero(const uint8_t* bytes, size_t length) {
  uint8_t any = 0;
  for (size_t i = 0; i < length; i++) any |= bytes[i];
  return any == 0;
}

// The length of the DER value that the bytes begin with, or 0 when they begin with none.
size_t DerLength(const uint8_t* bytes, size_t length) {
  const uint8_t* cursor = bytes;
  long content = 0;
  int tag = 0;
  int tag_class = 0;
  const int head = ASN1_get_object(&cursor, &content, &tag, &tag_class, static_cast<long>(length));
  if ((head & 0x80) != 0) {
    (void)CryptoFailure("");
    return 0;
  }
  return static_cast<size_t>(cursor - bytes) + static_cast<size_t>(content);
}

// What KW makes of a key's length: whole semiblocks, and two of them at least (RFC 3394, section
// 2.2.1).
size_t KwLength(size_t length) { return std::max(RoundUp(length, kSemiblock), 2 * kSemiblock); }
size_t CbcLength(size_t length) { return RoundUp(length, kBlock); }

Result<SecureBuffer> WithZeros(SecureBuffer value, size_t (*padded_length)(size_t)) {
  const size_t length = padded_length(value.size());
  if (length == value.size()) return value;
  Result<SecureBuffer> out = SecureBuffer::Make(length);
  if (!out.ok()) return out.status();
  memset(out.value().data(), 0, length);
  memcpy(out.value().data(), value.data(), value.size());
  return out;
}

// Takes off the zeros that WithZeros has added. `padded_length` says what it makes of a length; any
// other difference stays, for the caller to refuse. Under KW the zeros are checked, so that no part
// of a key can be had instead of it: a short part could be guessed. Under CBC they are not: whether
// they are there would tell about what was decrypted.
Status TakeZerosOff(SecureBuffer& value, UnwrappedKind kind, size_t bytes, size_t (*padded_length)(size_t), bool authentic) {
  const size_t size = value.size();
  const size_t length = kind.has_value() ? bytes : DerLength(value.data(), size);
  if (length == 0 || length >= size || padded_length(length) != size) return {};
  if (authentic && !IsZero(value.data() + length, size - length)) return AuthenticationFailed();
  value.Truncate(length);
  return {};
}

}  // namespace

size_t InitialValueLength(bool padded) { return padded ? 4 : 8; }

Result<std::vector<uint8_t>> WrapData(KeyRef wrapping, const uint8_t* data, size_t length, const KeyWrapParameters& parameters) {
  KeyUse key(wrapping);
  DKE_RETURN_IF_ERROR(CheckWrappingKey(key));
  // RFC 3394 needs two blocks of 64 bits at least; libcrypto lets empty keys through, the standards
  // do not.
  if (length == 0 || length > kMaxKey) return DataLength("there is nothing to wrap, or too much");
  if (!parameters.padded && (length % 8 != 0 || length < 16)) return DataLength("AES key wrap takes multiples of 8 bytes, 16 at least");
  Result<EvpCipherCtxPtr> context = Context(*key, parameters, true);
  if (!context.ok()) return context.status();
  std::vector<uint8_t> out((length + 7) / 8 * 8 + 8);
  int written = 0;
  if (EVP_CipherUpdate(context.value().get(), out.data(), &written, data, static_cast<int>(length)) != 1) return CryptoFailure("key wrap");
  out.resize(static_cast<size_t>(written));
  return out;
}

Result<SecureBuffer> UnwrapData(KeyRef wrapping, const uint8_t* wrapped, size_t length, const KeyWrapParameters& parameters) {
  KeyUse key(wrapping);
  DKE_RETURN_IF_ERROR(CheckWrappingKey(key));
  if (length % 8 != 0 || length < (parameters.padded ? 16u : 24u) || length > kMaxKey + 16) return DataLength("this is not a wrapped key");
  Result<EvpCipherCtxPtr> context = Context(*key, parameters, false);
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

Result<LooseKey> OpenUnwrapped(SecureBuffer value, UnwrappedKind kind) {
  if (kind.has_value()) {
    const Status fits = CheckSecretSize(*kind, value.size());
    if (!fits.ok()) return AuthenticationFailed();
    return LooseKey{*kind, std::move(value), nullptr};
  }
  Result<EvpPkeyPtr> pkey = OpenPrivateKey(value.data(), value.size());
  if (pkey.ok()) return LooseKey{KeyKind::kGeneric, {}, pkey.Take()};
  return pkey.status().code() == Code::kBadArgument ? AuthenticationFailed() : pkey.status();
}

Result<std::vector<uint8_t>> WrapKey(KeyRef wrapping, KeyRef ref, const KeyWrapParameters& parameters) {
  Result<SecureBuffer> value = ValueToWrap(ref);
  if (value.ok() && !parameters.padded) value = WithZeros(value.Take(), KwLength);
  if (!value.ok()) return value.status();
  return WrapData(wrapping, value.value().data(), value.value().size(), parameters);
}

Result<SecureBuffer> UnwrapValue(KeyRef wrapping, const uint8_t* wrapped, size_t length, const KeyWrapParameters& parameters,
                                 UnwrappedKind kind, size_t bytes) {
  Result<SecureBuffer> value = UnwrapData(wrapping, wrapped, length, parameters);
  if (!value.ok()) return value.status();
  if (!parameters.padded) DKE_RETURN_IF_ERROR(TakeZerosOff(value.value(), kind, bytes, KwLength, true));
  return value;
}

Result<LooseKey> UnwrapKey(KeyRef wrapping, const uint8_t* wrapped, size_t length, const KeyWrapParameters& parameters, UnwrappedKind kind,
                           size_t bytes) {
  Result<SecureBuffer> value = UnwrapValue(wrapping, wrapped, length, parameters, kind, bytes);
  if (!value.ok()) return value.status();
  return OpenUnwrapped(value.Take(), kind);
}

Result<std::vector<uint8_t>> WrapKeyCipher(KeyRef wrapping, const CipherParameters& parameters, KeyRef ref) {
  Result<SecureBuffer> value = ValueToWrap(ref);
  if (value.ok() && parameters.mode == CipherMode::kCbc) value = WithZeros(value.Take(), CbcLength);
  if (!value.ok()) return value.status();
  const size_t size = value.value().size();
  std::vector<uint8_t> out(CipherLength(Direction::kEncrypt, parameters, size));
  Result<size_t> written =
      CipherMessage(wrapping, Direction::kEncrypt, parameters, value.value().data(), size, out.data(), out.size());
  if (!written.ok()) return written.status();
  out.resize(written.value());
  return out;
}

Result<SecureBuffer> UnwrapCipherValue(KeyRef wrapping, const CipherParameters& parameters, const uint8_t* wrapped, size_t length,
                                       UnwrappedKind kind, size_t bytes) {
  if (length == 0 || length > kMaxKey) return DataLength("this is not a wrapped key");
  Result<SecureBuffer> value = SecureBuffer::Make(length);
  if (!value.ok()) return value.status();
  Result<size_t> written =
      CipherMessage(wrapping, Direction::kDecrypt, parameters, wrapped, length, value.value().data(), length);
  if (!written.ok()) return written.status();
  value.value().Truncate(written.value());
  if (parameters.mode == CipherMode::kCbc) DKE_RETURN_IF_ERROR(TakeZerosOff(value.value(), kind, bytes, CbcLength, false));
  return value;
}

Result<std::vector<uint8_t>> WrapKeyOaep(KeyRef wrapping, const RsaEncryptionParameters& parameters, KeyRef ref) {
  Result<SecureBuffer> value = ValueToWrap(ref);
  if (!value.ok()) return value.status();
  return RsaEncrypt(wrapping, parameters, value.value().data(), value.value().size());
}

}  // namespace dke
