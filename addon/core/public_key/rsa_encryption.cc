#include "public_key/rsa_encryption.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <cstring>
#include <string_view>

#include "base/random.h"

namespace dke {
namespace {

Result<EvpPkeyCtxPtr> Context(const HeldPkey& key, int padding, bool encrypting) {
  EvpPkeyCtxPtr context(EVP_PKEY_CTX_new(key.pkey.get(), nullptr));
  if (context == nullptr || (encrypting ? EVP_PKEY_encrypt_init(context.get()) : EVP_PKEY_decrypt_init(context.get())) != 1 ||
      EVP_PKEY_CTX_set_rsa_padding(context.get(), padding) != 1) {
    return CryptoFailure("RSA encryption setup");
  }
  return context;
}

Result<EvpPkeyCtxPtr> OaepContext(const HeldPkey& key, const RsaEncryptionParameters& parameters, bool encrypting) {
  Result<EvpPkeyCtxPtr> made = Context(key, RSA_PKCS1_OAEP_PADDING, encrypting);
  if (!made.ok()) return made.status();
  EVP_PKEY_CTX* const context = made.value().get();
  if (EVP_PKEY_CTX_set_rsa_oaep_md(context, Row(parameters.digest).md()) != 1 ||
      EVP_PKEY_CTX_set_rsa_mgf1_md(context, Row(parameters.mgf_digest).md()) != 1) {
    return CryptoFailure("OAEP setup");
  }
  if (parameters.label_length != 0) {
    // The context becomes the owner of the copy.
    void* label = OPENSSL_memdup(parameters.label, parameters.label_length);
    if (label == nullptr || EVP_PKEY_CTX_set0_rsa_oaep_label(context, label, static_cast<int>(parameters.label_length)) != 1) {
      OPENSSL_free(label);
      return CryptoFailure("OAEP label");
    }
  }
  return made;
}

// --- PKCS#1 v1.5 without an answer about its padding ---------------------------------------------

// Conditions are masks: all ones for true, 0 for false. The compiler must not turn them back into
// branches.
uint32_t Hidden(uint32_t mask) {
  __asm__("" : "+r"(mask));
  return mask;
}
uint32_t MaskOfTopBit(uint32_t value) { return 0 - (value >> 31); }
uint32_t IsZero(uint32_t value) { return Hidden(MaskOfTopBit(~value & (value - 1))); }
uint32_t IsLess(uint32_t a, uint32_t b) { return Hidden(MaskOfTopBit(a ^ ((a ^ b) | ((a - b) ^ b)))); }
uint32_t Select(uint32_t mask, uint32_t a, uint32_t b) { return (Hidden(mask) & a) | (Hidden(~mask) & b); }

constexpr size_t kDerivedBytes = 32;

bool Hmac(const uint8_t* key, const uint8_t* data, size_t size, uint8_t out[kDerivedBytes]) {
  size_t length = 0;
  return EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key, kDerivedBytes, data, size, out, kDerivedBytes, &length) != nullptr &&
         length == kDerivedBytes;
}

// The private exponent and the ciphertext give the key of what replaces a message with wrong
// padding.
bool DeriveRejectionKey(EVP_PKEY* pkey, const uint8_t* ciphertext, size_t size, uint8_t* key) {
  BIGNUM* exponent = nullptr;
  if (EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_D, &exponent) != 1) return false;
  Result<SecureBuffer> bytes = SecureBuffer::Make(size + kDerivedBytes);
  const bool written = bytes.ok() && BN_bn2binpad(exponent, bytes.value().data(), static_cast<int>(size)) == static_cast<int>(size);
  BN_clear_free(exponent);
  if (!written) return false;
  uint8_t* const digest = bytes.value().data() + size;
  return EVP_Digest(bytes.value().data(), size, digest, nullptr, EVP_sha256(), nullptr) == 1 && Hmac(digest, ciphertext, size, key);
}

// HMAC-SHA-256 of a counter, a label and the length in bits, block by block; the last block is cut
// off.
bool Expand(const uint8_t* key, std::string_view label, uint8_t* out, size_t size) {
  const size_t bits = size * 8;
  uint8_t data[16];
  uint8_t block[kDerivedBytes];
  const size_t end = 2 + label.size();
  memcpy(data + 2, label.data(), label.size());
  data[end] = static_cast<uint8_t>(bits >> 8);
  data[end + 1] = static_cast<uint8_t>(bits);
  bool ok = true;
  for (size_t at = 0; ok && at < size; at += sizeof block) {
    const size_t number = at / sizeof block;
    data[0] = static_cast<uint8_t>(number >> 8);
    data[1] = static_cast<uint8_t>(number);
    ok = Hmac(key, data, end + 2, block);
    if (ok) memcpy(out + at, block, size - at < sizeof block ? size - at : sizeof block);
  }
  OPENSSL_cleanse(block, sizeof block);
  return ok;
}

// A length below `most` from the candidates: the last one that fits.
uint32_t ChooseLength(const uint8_t* candidates, size_t size, uint32_t most) {
  uint32_t mask = most;
  for (int shift = 1; shift < 16; shift *= 2) mask |= mask >> shift;
  uint32_t chosen = 0;
  for (size_t i = 0; i < size; i += 2) {
    const uint32_t candidate = (static_cast<uint32_t>(candidates[i]) << 8 | candidates[i + 1]) & mask;
    chosen = Select(IsLess(candidate, most), candidate, chosen);
  }
  return chosen;
}

// Moves the message to the front of `encoded` (0, 2, at least eight bytes that are not 0, 0, the
// message) and answers its length; where the padding is wrong, the end of `instead`, `length`
// bytes, takes its place.
size_t TakeMessage(uint8_t* encoded, const uint8_t* instead, uint32_t size, uint32_t length) {
  constexpr uint32_t kFewestPadding = 8;
  uint32_t good = IsZero(encoded[0]) & IsZero(encoded[1] ^ 2u);
  uint32_t found = 0;
  uint32_t zero_at = 0;
  for (uint32_t i = 2; i < size; i++) {
    const uint32_t is_zero = IsZero(encoded[i]);
    zero_at = Select(~found & is_zero, i, zero_at);
    found |= is_zero;
  }
  good &= ~IsLess(zero_at, 2 + kFewestPadding);
  const uint32_t from = Select(good, zero_at + 1, size - length);
  // The length is part of the answer, so the loop may show it.
  for (uint32_t i = from; i < size; i++) encoded[i - from] = static_cast<uint8_t>(Select(good, encoded[i], instead[i]));
  return size - from;
}

Result<SecureBuffer> DecryptPkcs1(const HeldPkey& key, const uint8_t* input, size_t size) {
  constexpr size_t kCandidates = 256;
  const Result<EvpPkeyCtxPtr> context = Context(key, RSA_NO_PADDING, false);
  if (!context.ok()) return context.status();
  Result<SecureBuffer> out = SecureBuffer::Make(size);
  if (!out.ok()) return out.status();
  Result<SecureBuffer> rejection = SecureBuffer::Make(kDerivedBytes + kCandidates + size);
  if (!rejection.ok()) return rejection.status();
  uint8_t* const derived = rejection.value().data();
  uint8_t* const candidates = derived + kDerivedBytes;
  uint8_t* const instead = candidates + kCandidates;
  if (!DeriveRejectionKey(key.pkey.get(), input, size, derived) || !Expand(derived, "message", instead, size) ||
      !Expand(derived, "length", candidates, kCandidates)) {
    return CryptoFailure("RSA decryption");
  }
  size_t length = size;
  // Fails only for a number that is not below the modulus, which everybody can see.
  if (EVP_PKEY_decrypt(context.value().get(), out.value().data(), &length, input, size) != 1 || length != size) {
    (void)CryptoFailure("");
    return AuthenticationFailed();
  }
  constexpr uint32_t kAroundPadding = 2 + 8;
  const uint32_t bytes = static_cast<uint32_t>(size);
  out.value().Truncate(TakeMessage(out.value().data(), instead, bytes, ChooseLength(candidates, kCandidates, bytes - kAroundPadding)));
  return out;
}

Result<SecureBuffer> DecryptOaep(const HeldPkey& key, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t size) {
  const Result<EvpPkeyCtxPtr> context = OaepContext(key, parameters, false);
  if (!context.ok()) return context.status();
  Result<SecureBuffer> out = SecureBuffer::Make(size);
  if (!out.ok()) return out.status();
  size_t length = size;
  if (EVP_PKEY_decrypt(context.value().get(), out.value().data(), &length, input, size) != 1) {
    (void)CryptoFailure("");
    return AuthenticationFailed();
  }
  out.value().Truncate(length);
  return out;
}

}  // namespace

Result<std::vector<uint8_t>> RsaEncrypt(KeyRef ref, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t input_length) {
  const Result<HeldPkey> held = HoldPkey(ref);
  if (!held.ok()) return held.status();
  const HeldPkey& key = held.value();
  if (key.description.kind != KeyKind::kRsaPublic && key.description.kind != KeyKind::kRsaPrivate) return WrongKeyType();
  const bool oaep = parameters.padding == RsaPadding::kOaep;
  const Result<EvpPkeyCtxPtr> context = oaep ? OaepContext(key, parameters, true) : Context(key, RSA_PKCS1_PADDING, true);
  if (!context.ok()) return context.status();
  std::vector<uint8_t> out(static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get())));
  size_t length = out.size();
  DKE_RETURN_IF_ERROR(StirPublic());
  if (EVP_PKEY_encrypt(context.value().get(), out.data(), &length, input, input_length) != 1) {
    (void)CryptoFailure("");
    return DataLength("the input is too long for the key");
  }
  out.resize(length);
  return out;
}

Result<SecureBuffer> RsaDecrypt(const HeldPkey& key, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t input_length) {
  if (key.description.kind != KeyKind::kRsaPrivate) return WrongKeyType();
  if (input_length != static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get()))) return AuthenticationFailed();
  return parameters.padding == RsaPadding::kOaep ? DecryptOaep(key, parameters, input, input_length) : DecryptPkcs1(key, input, input_length);
}

Result<SecureBuffer> RsaDecrypt(KeyRef ref, const RsaEncryptionParameters& parameters, const uint8_t* input, size_t input_length) {
  const Result<HeldPkey> held = HoldPkey(ref);
  return held.ok() ? RsaDecrypt(held.value(), parameters, input, input_length) : held.status();
}

}  // namespace dke
