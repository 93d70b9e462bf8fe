#include "wrapping/key_record.h"

#include <openssl/crypto.h>

#include <cstring>

#include "base/assert.h"
#include "base/bytes.h"
#include "digests/kdf.h"
#include "keys/labels.h"
#include "digests/hedge.h"

namespace dke {
namespace {

constexpr uint8_t kMagic[4] = {'D', 'K', 'E', '1'};
constexpr uint8_t kSuite = 1;  // HKDF-SHA-256, AES-256-GCM, committing
constexpr uint8_t kFlags = 0;
constexpr std::string_view kInfo = TextOf(Label::kKeyRecord);
constexpr size_t kNonce = 12;
constexpr size_t kCommitment = 32;
constexpr size_t kTag = 16;

// Offsets of the head.
constexpr size_t kAtSuite = 4;
constexpr size_t kAtFlags = 5;
constexpr size_t kAtEpoch = 6;
constexpr size_t kAtTenant = 10;
constexpr size_t kAtObject = 26;
constexpr size_t kAtVersion = 42;
constexpr size_t kAtSalt = 46;
constexpr size_t kAtNonce = kAtSalt + kRecordSalt;
constexpr size_t kAtCommitment = kAtNonce + kNonce;
constexpr size_t kHead = kAtCommitment + kCommitment;

static_assert(kAtVersion + 4 == kAtSalt && kAtCommitment == kAtNonce + kNonce, "nonce and commitment are one piece, and no field overlaps another");

// One expansion: AES key, nonce, commitment.
constexpr size_t kDerived = 32 + kNonce + kCommitment;

std::vector<uint8_t> AdditionalData(const RecordContext& context) {
  std::vector<uint8_t> out;
  uint8_t number[4];
  AppendField(out, &kSuite, 1);
  AppendField(out, &kFlags, 1);
  PutU32(number, context.epoch);
  AppendField(out, number, 4);
  AppendField(out, context.tenant, 16);
  AppendField(out, context.object, 16);
  PutU32(number, context.version);
  AppendField(out, number, 4);
  AppendField(out, context.record_class.data(), context.record_class.size());
  AppendField(out, context.attributes.data(), context.attributes.size());
  return out;
}

Result<SecureBuffer> Derive(KeyRef kek, const uint8_t* salt) {
  KeyUse key(kek);
  if (!key) return BadKey();
  if (key->description.kind != KeyKind::kKek) return WrongKeyType();
  Result<SecureBuffer> derived = SecureBuffer::Make(kDerived);
  if (!derived.ok()) return derived.status();
  DKE_RETURN_IF_ERROR(HkdfInto(Digest::kSha256, key->secret.data(), key->secret.size(), salt, kRecordSalt,
                               reinterpret_cast<const uint8_t*>(kInfo.data()), kInfo.size(), derived.value().data(), kDerived));
  return derived;
}

Status CheckContext(const RecordContext& context) {
  if (context.record_class.empty() || context.record_class.size() > 255 || context.attributes.size() > (1u << 20)) {
    return BadArgument("a record needs a class of 1 to 255 bytes and attributes below 1 MiB");
  }
  return {};
}

bool IsStored(uint8_t kind) {
  const KeyKindRow* row = FindKeyKind(kind);
  return row != nullptr && (row->secret || row->is_private);
}

// Seals `kind || value`.
Result<std::vector<uint8_t>> SealPlain(KeyRef kek, const RecordContext& context, const SecureBuffer& plain, const uint8_t* salt) {
  DKE_RETURN_IF_ERROR(CheckContext(context));
  DKE_ASSERT(plain.size() > 1 && IsStored(plain.data()[0]));
  Result<SecureBuffer> derived = Derive(kek, salt);
  if (!derived.ok()) return derived.status();

  std::vector<uint8_t> record(kHead + plain.size() + kTag);
  memcpy(record.data(), kMagic, sizeof kMagic);
  record[kAtSuite] = kSuite;
  record[kAtFlags] = kFlags;
  PutU32(&record[kAtEpoch], context.epoch);
  memcpy(&record[kAtTenant], context.tenant, 16);
  memcpy(&record[kAtObject], context.object, 16);
  PutU32(&record[kAtVersion], context.version);
  memcpy(&record[kAtSalt], salt, kRecordSalt);
  memcpy(&record[kAtNonce], derived.value().data() + 32, kNonce + kCommitment);

  const std::vector<uint8_t> aad = AdditionalData(context);
  EvpCipherCtxPtr cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  int last = 0;
  if (cipher == nullptr ||
      EVP_EncryptInit_ex(cipher.get(), AesCipher(Row(CipherMode::kGcm), 32), nullptr, derived.value().data(), &record[kAtNonce]) != 1 ||
      EVP_EncryptUpdate(cipher.get(), nullptr, &written, aad.data(), static_cast<int>(aad.size())) != 1 ||
      EVP_EncryptUpdate(cipher.get(), &record[kHead], &written, plain.data(), static_cast<int>(plain.size())) != 1 ||
      EVP_EncryptFinal_ex(cipher.get(), &record[kHead] + written, &last) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTag, &record[kHead + plain.size()]) != 1) {
    return CryptoFailure("key record");
  }
  DKE_ASSERT(static_cast<size_t>(written) + static_cast<size_t>(last) == plain.size());
  return record;
}

// Gives `kind || value` of a record that authenticates and contains a kind that can be stored.
Result<SecureBuffer> OpenPlain(KeyRef kek, const RecordContext& context, const uint8_t* record, size_t size) {
  DKE_RETURN_IF_ERROR(CheckContext(context));
  Result<RecordHead> head = PeekRecord(record, size);
  if (!head.ok()) return head.status();
  Result<SecureBuffer> derived = Derive(kek, record + kAtSalt);
  if (!derived.ok()) return derived.status();

  // The head repeats what the seal binds: a difference is a moved or changed record, and fails like
  // any other.
  bool same = head.value().epoch == context.epoch && head.value().version == context.version;
  same &= CRYPTO_memcmp(record + kAtTenant, context.tenant, 16) == 0;
  same &= CRYPTO_memcmp(record + kAtObject, context.object, 16) == 0;
  same &= CRYPTO_memcmp(record + kAtNonce, derived.value().data() + 32, kNonce + kCommitment) == 0;
  if (!same) return AuthenticationFailed();

  const size_t plain_size = size - kHead - kTag;
  Result<SecureBuffer> plain = SecureBuffer::Make(plain_size);
  if (!plain.ok()) return plain.status();
  const std::vector<uint8_t> aad = AdditionalData(context);
  EvpCipherCtxPtr cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  int last = 0;
  if (cipher == nullptr ||
      EVP_DecryptInit_ex(cipher.get(), AesCipher(Row(CipherMode::kGcm), 32), nullptr, derived.value().data(), record + kAtNonce) != 1 ||
      EVP_DecryptUpdate(cipher.get(), nullptr, &written, aad.data(), static_cast<int>(aad.size())) != 1 ||
      EVP_DecryptUpdate(cipher.get(), plain.value().data(), &written, record + kHead, static_cast<int>(plain_size)) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTag, const_cast<uint8_t*>(record + kHead + plain_size)) != 1) {
    return CryptoFailure("key record");
  }
  if (EVP_DecryptFinal_ex(cipher.get(), plain.value().data() + written, &last) != 1) {
    (void)CryptoFailure("");
    return AuthenticationFailed();
  }
  // The length is outside of the seal: PeekRecord has refused a record without a value.
  DKE_ASSERT(plain_size > 1 && static_cast<size_t>(written) + static_cast<size_t>(last) == plain_size);
  if (!IsStored(plain.value().data()[0])) return Status(Code::kFormat, "the key record holds an unknown kind of key");
  return plain;
}

}  // namespace

// `kind || value` of a key.
static Result<SecureBuffer> PlainOf(KeyRef ref) {
  KeyPtr key = FindKey(ref);
  if (key == nullptr) return BadKey();
  Result<SecureBuffer> value = ExportKey(key);
  if (!value.ok()) return value.status();
  Result<SecureBuffer> plain = SecureBuffer::Make(1 + value.value().size());
  if (!plain.ok()) return plain.status();
  plain.value().data()[0] = static_cast<uint8_t>(key->description.kind);
  memcpy(plain.value().data() + 1, value.value().data(), value.value().size());
  return plain;
}

// With a fresh salt.
static Result<std::vector<uint8_t>> SealFresh(KeyRef kek, const RecordContext& context, const SecureBuffer& plain) {
  uint8_t salt[kRecordSalt];
  {
    KeyUse key(kek);
    if (!key) return BadKey();
    if (key->description.kind != KeyKind::kKek) return WrongKeyType();
    DKE_RETURN_IF_ERROR(HedgedRandom(key->secret, plain.data(), plain.size(), salt, sizeof salt));
  }
  return SealPlain(kek, context, plain, salt);
}

Result<std::vector<uint8_t>> SealRecordWithSalt(KeyRef kek, const RecordContext& context, KeyRef key, const uint8_t (&salt)[kRecordSalt]) {
  Result<SecureBuffer> plain = PlainOf(key);
  if (!plain.ok()) return plain.status();
  return SealPlain(kek, context, plain.value(), salt);
}

Result<std::vector<uint8_t>> SealRecord(KeyRef kek, const RecordContext& context, KeyRef key) {
  Result<SecureBuffer> plain = PlainOf(key);
  if (!plain.ok()) return plain.status();
  return SealFresh(kek, context, plain.value());
}

Result<RecordHead> PeekRecord(const uint8_t* record, size_t size) {
  if (size < sizeof kMagic || memcmp(record, kMagic, sizeof kMagic - 1) != 0) return Status(Code::kFormat, "this is not a key record");
  if (record[3] != kMagic[3]) return Status(Code::kFormat, "the key record is of a format that this version does not know: use the version that wrote it");
  if (size < kHead + 2 + kTag) return Status(Code::kFormat, "the key record is cut short");
  if (record[kAtSuite] != kSuite || record[kAtFlags] != kFlags) {
    return Status(Code::kFormat, "the key record is of a suite that this version does not know: use the version that wrote it");
  }
  return RecordHead{GetU32(record + kAtEpoch), GetU32(record + kAtVersion)};
}

Result<KeyRef> OpenRecord(KeyRef kek, const RecordContext& context, const uint8_t* record, size_t size) {
  Result<SecureBuffer> plain = OpenPlain(kek, context, record, size);
  if (!plain.ok()) return plain.status();
  const KeyKindRow* kind = FindKeyKind(plain.value().data()[0]);
  DKE_ASSERT(kind != nullptr);
  const uint8_t* value = plain.value().data() + 1;
  const size_t value_size = plain.value().size() - 1;
  return kind->secret ? ImportSecret(kind->kind, value, value_size) : RestorePrivateKey(value, value_size);
}

Result<std::vector<uint8_t>> ResealRecord(KeyRef from, const RecordContext& was, const uint8_t* record, size_t size, KeyRef to,
                                          const RecordContext& becomes) {
  Result<SecureBuffer> plain = OpenPlain(from, was, record, size);
  if (!plain.ok()) return plain.status();
  return SealFresh(to, becomes, plain.value());
}

}  // namespace dke
