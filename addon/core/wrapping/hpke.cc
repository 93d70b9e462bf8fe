#include "wrapping/hpke.h"

#include <openssl/crypto.h>

#include <cstring>
#include <initializer_list>
#include <string_view>

#include "base/random.h"
#include "digests/kdf.h"

namespace dke {
namespace {

constexpr size_t kKek = 32;

constexpr size_t kHash = 32;  // Nh of HKDF-SHA256, Nsecret of the KEM
constexpr size_t kAesKey = 32;
constexpr size_t kX25519Secret = 32;  // Nsk
constexpr size_t kNonce = 12;
constexpr size_t kTag = 16;
// The info is hashed in the arena, whose blocks end at 128 KiB.
constexpr size_t kMostInfo = size_t{1} << 16;
constexpr size_t kMostAad = size_t{1} << 20;
constexpr size_t kMostSealed = kHpkePublic + (size_t{1} << 16) + kTag;

// RFC 9180, 4.1 and 5.1: "KEM" || kem_id, and "HPKE" || kem_id || kdf_id || aead_id.
constexpr std::string_view kKemSuite("KEM\x00\x20", 5);
constexpr std::string_view kSuite("HPKE\x00\x20\x00\x01\x00\x02", 10);
constexpr std::string_view kVersion = "HPKE-v1";
constexpr uint8_t kModeBase = 0;

struct Part {
  Part(const uint8_t* bytes, size_t count) : data(bytes), size(count) {}
  Part(std::string_view text) : data(reinterpret_cast<const uint8_t*>(text.data())), size(text.size()) {}
  Part(const SecureBuffer& secret) : data(secret.data()), size(secret.size()) {}
  const uint8_t* data;
  size_t size;
};

// Some parts contain secrets, so their concatenation is in the arena.
Result<SecureBuffer> Concatenate(std::initializer_list<Part> parts) {
  size_t size = 0;
  for (const Part& part : parts) size += part.size;
  Result<SecureBuffer> out = SecureBuffer::Make(size);
  if (!out.ok()) return out;
  uint8_t* cursor = out.value().data();
  for (const Part& part : parts) {
    if (part.size != 0) memcpy(cursor, part.data, part.size);
    cursor += part.size;
  }
  return out;
}

Result<SecureBuffer> LabeledExtract(std::string_view suite, Part salt, std::string_view label, Part secret) {
  Result<SecureBuffer> labeled = Concatenate({kVersion, suite, label, secret});
  if (!labeled.ok()) return labeled;
  Result<SecureBuffer> out = SecureBuffer::Make(kHash);
  if (!out.ok()) return out;
  DKE_RETURN_IF_ERROR(HkdfInto(Digest::kSha256, labeled.value().data(), labeled.value().size(), salt.data, salt.size, nullptr, 0,
                               out.value().data(), kHash, HkdfSteps::kExtract));
  return out;
}

Result<SecureBuffer> LabeledExpand(std::string_view suite, const SecureBuffer& secret, std::string_view label, Part info, size_t length) {
  const uint8_t bytes[2] = {static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
  Result<SecureBuffer> labeled = Concatenate({Part(bytes, 2), kVersion, suite, label, info});
  if (!labeled.ok()) return labeled;
  Result<SecureBuffer> out = SecureBuffer::Make(length);
  if (!out.ok()) return out;
  DKE_RETURN_IF_ERROR(HkdfInto(Digest::kSha256, secret.data(), secret.size(), nullptr, 0, labeled.value().data(), labeled.value().size(),
                               out.value().data(), length, HkdfSteps::kExpand));
  return out;
}

Status PublicOf(EVP_PKEY* pair, uint8_t (&out)[kHpkePublic]) {
  size_t length = sizeof out;
  if (EVP_PKEY_get_raw_public_key(pair, out, &length) != 1 || length != sizeof out) return CryptoFailure("X25519 public key");
  return {};
}

// DHKEM's shared secret (4.1): `encapsulated` and `recipient` are the two public keys, one of them
// the peer's. A peer of low order gives all zeros, which says nothing about who can open: refused
// (7.1.4).
Result<SecureBuffer> SharedSecret(EVP_PKEY* own, const uint8_t* peer, const uint8_t* encapsulated, const uint8_t* recipient) {
  EvpPkeyPtr other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer, kHpkePublic));
  EvpPkeyCtxPtr agreement(EVP_PKEY_CTX_new(own, nullptr));
  Result<SecureBuffer> dh = SecureBuffer::Make(kHash);
  if (!dh.ok()) return dh;
  if (other == nullptr || agreement == nullptr || EVP_PKEY_derive_init(agreement.get()) != 1) return CryptoFailure("X25519");
  size_t length = kHash;
  const uint8_t zeros[kHash] = {};
  if (EVP_PKEY_derive_set_peer(agreement.get(), other.get()) != 1 || EVP_PKEY_derive(agreement.get(), dh.value().data(), &length) != 1 ||
      length != kHash || CRYPTO_memcmp(dh.value().data(), zeros, kHash) == 0) {
    (void)CryptoFailure("");
    return BadArgument("the public key is not a point that a secret can be agreed on with");
  }
  Result<SecureBuffer> extracted = LabeledExtract(kKemSuite, std::string_view(), "eae_prk", dh.value());
  if (!extracted.ok()) return extracted;
  uint8_t context[2 * kHpkePublic];
  memcpy(context, encapsulated, kHpkePublic);
  memcpy(context + kHpkePublic, recipient, kHpkePublic);
  return LabeledExpand(kKemSuite, extracted.value(), "shared_secret", Part(context, sizeof context), kHash);
}

struct Schedule {
  SecureBuffer key;
  SecureBuffer nonce;
};

// Section 5.1, mode_base: no pre-shared key, so its hash and the secret's input are of nothing.
Result<Schedule> KeySchedule(const SecureBuffer& shared, Part info) {
  const Part nothing{std::string_view()};
  Result<SecureBuffer> no_psk = LabeledExtract(kSuite, nothing, "psk_id_hash", nothing);
  if (!no_psk.ok()) return no_psk.status();
  Result<SecureBuffer> info_hash = LabeledExtract(kSuite, nothing, "info_hash", info);
  if (!info_hash.ok()) return info_hash.status();
  Result<SecureBuffer> context = Concatenate({Part(&kModeBase, 1), no_psk.value(), info_hash.value()});
  if (!context.ok()) return context.status();
  Result<SecureBuffer> secret = LabeledExtract(kSuite, shared, "secret", nothing);
  if (!secret.ok()) return secret.status();
  Result<SecureBuffer> key = LabeledExpand(kSuite, secret.value(), "key", context.value(), kAesKey);
  if (!key.ok()) return key.status();
  Result<SecureBuffer> nonce = LabeledExpand(kSuite, secret.value(), "base_nonce", context.value(), kNonce);
  if (!nonce.ok()) return nonce.status();
  return Schedule{key.Take(), nonce.Take()};
}

Status CheckContext(const HpkeContext& context) {
  const bool fits = context.info_length <= kMostInfo && context.aad_length <= kMostAad;
  return fits ? Status() : BadArgument("info has at most 64 KiB, aad at most 1 MiB");
}

const EVP_CIPHER* Gcm() { return AesCipher(Row(CipherMode::kGcm), kAesKey); }

}  // namespace

Result<KeyRef> GenerateHpkeKey() {
  EvpPkeyPtr pair(NewPair("X25519"));
  if (pair == nullptr) return CryptoFailure("X25519 key generation");
  return AddPkey(std::move(pair), true);
}

Result<KeyRef> DeriveHpkeKey(KeyRef ref) {
  Result<SecureBuffer> bytes = Status(Code::kInternal, "not derived");
  {
    KeyUse secret(ref);
    if (!secret) return BadKey();
    if (!secret.is_data_key()) return WrongKeyType();
    if (secret->secret.size() < kX25519Secret) return BadArgument("a key pair is derived from a secret of at least 32 bytes");
    Result<SecureBuffer> extracted = LabeledExtract(kKemSuite, std::string_view(), "dkp_prk", secret->secret);
    if (!extracted.ok()) return extracted.status();
    bytes = LabeledExpand(kKemSuite, extracted.value(), "sk", std::string_view(), kX25519Secret);
  }
  if (!bytes.ok()) return bytes.status();
  EvpPkeyPtr pair(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes.value().data(), bytes.value().size()));
  if (pair == nullptr) return CryptoFailure("X25519 key derivation");
  return AddPkey(std::move(pair), true);
}

Result<std::vector<uint8_t>> HpkePublicKey(KeyRef ref) {
  KeyUse own(ref);
  if (!own) return BadKey();
  if (own->description.kind != KeyKind::kX25519Private) return WrongKeyType();
  uint8_t bytes[kHpkePublic];
  DKE_RETURN_IF_ERROR(PublicOf(own->pkey.get(), bytes));
  return std::vector<uint8_t>(bytes, bytes + sizeof bytes);
}

Result<std::vector<uint8_t>> HpkeSealWith(EVP_PKEY* ephemeral, const uint8_t* recipient, const HpkeContext& context, const uint8_t* plain,
                                          size_t length) {
  DKE_RETURN_IF_ERROR(CheckContext(context));
  uint8_t encapsulated[kHpkePublic];
  DKE_RETURN_IF_ERROR(PublicOf(ephemeral, encapsulated));
  Result<SecureBuffer> shared = SharedSecret(ephemeral, recipient, encapsulated, recipient);
  if (!shared.ok()) return shared.status();
  Result<Schedule> schedule = KeySchedule(shared.value(), Part(context.info, context.info_length));
  if (!schedule.ok()) return schedule.status();

  std::vector<uint8_t> sealed(kHpkePublic + length + kTag);
  memcpy(sealed.data(), encapsulated, kHpkePublic);
  uint8_t* const ciphertext = sealed.data() + kHpkePublic;
  EvpCipherCtxPtr cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  int last = 0;
  if (cipher == nullptr ||
      EVP_EncryptInit_ex(cipher.get(), Gcm(), nullptr, schedule.value().key.data(), schedule.value().nonce.data()) != 1 ||
      EVP_EncryptUpdate(cipher.get(), nullptr, &written, context.aad, static_cast<int>(context.aad_length)) != 1 ||
      EVP_EncryptUpdate(cipher.get(), ciphertext, &written, plain, static_cast<int>(length)) != 1 ||
      EVP_EncryptFinal_ex(cipher.get(), ciphertext + written, &last) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTag, ciphertext + length) != 1) {
    return CryptoFailure("HPKE");
  }
  return sealed;
}

Result<std::vector<uint8_t>> HpkeSealKey(const uint8_t* recipient, size_t recipient_length, const HpkeContext& context, KeyRef key) {
  if (recipient_length != kHpkePublic) return BadArgument("an X25519 public key has 32 bytes");
  Result<SecureBuffer> value = ValueToWrap(key);
  if (!value.ok()) return value.status();
  EvpPkeyPtr ephemeral(NewPair("X25519"));
  if (ephemeral == nullptr) return CryptoFailure("X25519 key generation");
  return HpkeSealWith(ephemeral.get(), recipient, context, value.value().data(), value.value().size());
}

Result<std::vector<uint8_t>> HpkeSealKek(const uint8_t* recipient, size_t recipient_length, const HpkeContext& context, KeyRef ref) {
  if (recipient_length != kHpkePublic) return BadArgument("an X25519 public key has 32 bytes");
  KeyUse kek(ref);
  if (!kek) return BadKey();
  if (kek->description.kind != KeyKind::kKek) return WrongKeyType();
  EvpPkeyPtr ephemeral(NewPair("X25519"));
  if (ephemeral == nullptr) return CryptoFailure("X25519 key generation");
  return HpkeSealWith(ephemeral.get(), recipient, context, kek->secret.data(), kek->secret.size());
}

Result<SecureBuffer> HpkeOpen(KeyRef ref, const HpkeContext& context, const uint8_t* sealed, size_t length) {
  DKE_RETURN_IF_ERROR(CheckContext(context));
  Result<SecureBuffer> shared = Status(Code::kInternal, "not agreed");
  {
    KeyUse own(ref);
    if (!own) return BadKey();
    if (own->description.kind != KeyKind::kX25519Private) return WrongKeyType();
    if (length <= kHpkePublic + kTag || length > kMostSealed) return AuthenticationFailed();
    uint8_t recipient[kHpkePublic];
    DKE_RETURN_IF_ERROR(PublicOf(own->pkey.get(), recipient));
    shared = SharedSecret(own->pkey.get(), sealed, sealed, recipient);
  }
  if (!shared.ok()) return shared.status().code() == Code::kBadArgument ? AuthenticationFailed() : shared.status();
  Result<Schedule> schedule = KeySchedule(shared.value(), Part(context.info, context.info_length));
  if (!schedule.ok()) return schedule.status();

  const uint8_t* const ciphertext = sealed + kHpkePublic;
  const size_t size = length - kHpkePublic - kTag;
  Result<SecureBuffer> plain = SecureBuffer::Make(size);
  if (!plain.ok()) return plain;
  EvpCipherCtxPtr cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  int last = 0;
  if (cipher == nullptr ||
      EVP_DecryptInit_ex(cipher.get(), Gcm(), nullptr, schedule.value().key.data(), schedule.value().nonce.data()) != 1 ||
      EVP_DecryptUpdate(cipher.get(), nullptr, &written, context.aad, static_cast<int>(context.aad_length)) != 1 ||
      EVP_DecryptUpdate(cipher.get(), plain.value().data(), &written, ciphertext, static_cast<int>(size)) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTag, const_cast<uint8_t*>(ciphertext + size)) != 1) {
    return CryptoFailure("HPKE");
  }
  if (EVP_DecryptFinal_ex(cipher.get(), plain.value().data() + written, &last) != 1) {
    (void)CryptoFailure("");
    return AuthenticationFailed();
  }
  return plain;
}

Result<LooseKey> HpkeOpened(SecureBuffer value, UnwrappedKind kind) {
  Result<LooseKey> key = OpenUnwrapped(std::move(value), kind);
  if (!key.ok() && key.status().code() == Code::kUnsupported) return AuthenticationFailed();
  return key;
}

Result<LooseKey> HpkeOpenKey(KeyRef own, const HpkeContext& context, const uint8_t* sealed, size_t length, UnwrappedKind kind) {
  Result<SecureBuffer> value = HpkeOpen(own, context, sealed, length);
  if (!value.ok()) return value.status();
  return HpkeOpened(value.Take(), kind);
}

Result<KeyRef> HpkeOpenKek(KeyRef own, const HpkeContext& context, const uint8_t* sealed, size_t length) {
  Result<SecureBuffer> value = HpkeOpen(own, context, sealed, length);
  if (!value.ok()) return value.status();
  if (value.value().size() != kKek) return AuthenticationFailed();
  return AddSecretKey(KeyKind::kKek, value.Take());
}

}  // namespace dke
