#include "keys/key_table.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <cstring>

#include "base/assert.h"
#include "keys/key_check.h"
#include "base/random.h"

namespace dke {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<KeyRef, KeyPtr> keys;
  KeyRef next = 1;
};
Table& KeyTable() {
  static Table* table = new Table;
  return *table;
}

Result<KeyRef> Add(KeyPtr key) {
  Table& table = KeyTable();
  std::unique_lock<std::shared_mutex> lock(table.mutex);
  KeyRef ref = table.next++;
  // A number is never given twice, and JavaScript carries it.
  DKE_ASSERT(ref != 0 && ref < KeyRef{1} << 53 && key != nullptr);
  const bool fresh = table.keys.emplace(ref, std::move(key)).second;
  DKE_ASSERT(fresh);
  return ref;
}

bool IsAesSize(size_t bytes) { return bytes == 16 || bytes == 24 || bytes == 32; }

// What a libcrypto key is, or an error when it is of a sort or size that this core does not carry.
Result<KeyDescription> DescribePkey(EVP_PKEY* pkey, bool is_private) {
  switch (EVP_PKEY_get_base_id(pkey)) {
    case EVP_PKEY_RSA: {
      int bits = EVP_PKEY_get_bits(pkey);
      if (bits < kLeastRsaBits || bits > kMostRsaBits) return Unsupported("an RSA modulus has 1024 to 4096 bits");
      return KeyDescription{is_private ? KeyKind::kRsaPrivate : KeyKind::kRsaPublic, bits, nullptr};
    }
    case EVP_PKEY_EC: {
      char group[64];
      size_t length = 0;
      if (EVP_PKEY_get_group_name(pkey, group, sizeof group, &length) != 1) return Unsupported("an EC key needs a named curve");
      const CurveRow* curve = FindCurveByGroup({group, length});
      if (curve == nullptr) return Unsupported("the curve is not one of this core's");
      return KeyDescription{is_private ? KeyKind::kEcPrivate : KeyKind::kEcPublic, curve->bits, curve};
    }
    default: {
      const CurveRow* curve = FindCurveByType(EVP_PKEY_get_base_id(pkey));
      if (curve == nullptr) return Unsupported("the key is not RSA, and on no curve of this core's");
      return KeyDescription{is_private ? curve->private_kind : curve->public_kind, curve->bits, curve};
    }
  }
}

Result<KeyRef> Generated(EVP_PKEY* pkey, const char* what) {
  if (pkey == nullptr) return CryptoFailure(what);
  return AddPkey(EvpPkeyPtr(pkey), true);
}

}  // namespace

Status CheckSecretSize(KeyKind kind, size_t bytes) {
  if (kind != KeyKind::kGeneric && !IsAesSize(bytes)) return BadArgument("an AES key has 16, 24 or 32 bytes");
  if (kind == KeyKind::kKek && bytes != 32) return BadArgument("a key encryption key has 32 bytes");
  return bytes == 0 ? BadArgument("a key cannot be empty") : Status();
}

Result<KeyRef> AddSecretKey(KeyKind kind, SecureBuffer value) {
  DKE_RETURN_IF_ERROR(CheckSecretSize(kind, value.size()));
  auto key = std::make_shared<Key>();
  key->description = {kind, static_cast<int>(value.size() * 8), nullptr};
  key->secret = std::move(value);
  return Add(std::move(key));
}

Result<KeyRef> AddPkey(EvpPkeyPtr pkey, bool is_private) {
  Result<KeyDescription> description = DescribePkey(pkey.get(), is_private);
  if (!description.ok()) return description.status();
  auto key = std::make_shared<Key>();
  key->description = description.value();
  key->pkey = std::move(pkey);
  return Add(std::move(key));
}

Result<KeyRef> AddKey(LooseKey key) {
  return key.pkey != nullptr ? AddPkey(std::move(key.pkey), true) : AddSecretKey(key.kind, std::move(key.secret));
}

KeyPtr FindKey(KeyRef ref) {
  Table& table = KeyTable();
  std::shared_lock<std::shared_mutex> lock(table.mutex);
  auto found = table.keys.find(ref);
  return found == table.keys.end() ? nullptr : found->second;
}

Result<HeldPkey> HoldPkey(KeyRef ref) {
  KeyUse key(ref);
  if (!key) return BadKey();
  if (key->pkey == nullptr) return WrongKeyType();
  EVP_PKEY_up_ref(key->pkey.get());
  return HeldPkey{key->description, EvpPkeyPtr(key->pkey.get())};
}

namespace {

void Kill(Key& key) {
  std::lock_guard<std::mutex> lock(key.mutex);
  DKE_ASSERT(key.alive);  // ended once, by the call that took it out of the table
  key.alive = false;
  key.secret.Release();
  key.pkey.reset();
  for (auto& directions : key.contexts) {
    for (auto& context : directions) context.reset();
  }
  for (auto& mac : key.macs) mac.reset();
}

}  // namespace

void ReleaseKey(KeyRef ref) {
  KeyPtr key;
  {
    Table& table = KeyTable();
    std::unique_lock<std::shared_mutex> lock(table.mutex);
    auto found = table.keys.find(ref);
    if (found == table.keys.end()) return;
    key = std::move(found->second);
    table.keys.erase(found);
  }
  Kill(*key);
}

void ReleaseKeysOf(Owner owner) {
  std::vector<KeyPtr> released;
  {
    Table& table = KeyTable();
    std::unique_lock<std::shared_mutex> lock(table.mutex);
    for (auto entry = table.keys.begin(); entry != table.keys.end();) {
      if (entry->second->owner == owner) {
        released.push_back(std::move(entry->second));
        entry = table.keys.erase(entry);
      } else {
        ++entry;
      }
    }
  }
  for (const KeyPtr& key : released) Kill(*key);
}

size_t KeyCount() {
  Table& table = KeyTable();
  std::shared_lock<std::shared_mutex> lock(table.mutex);
  return table.keys.size();
}

Result<KeyRef> GenerateSecret(KeyKind kind, size_t bytes) {
  if (bytes == 0 || bytes > 4096) return BadArgument("a secret key has 1 to 4096 bytes");
  Result<SecureBuffer> value = SecureBuffer::Make(bytes);
  if (!value.ok()) return value.status();
  DKE_RETURN_IF_ERROR(RandomSecret(value.value().data(), bytes));
  return AddSecretKey(kind, value.Take());
}

Result<KeyRef> GenerateAes(int bits) {
  if (bits != 128 && bits != 192 && bits != 256) return BadArgument("an AES key has 128, 192 or 256 bits");
  return GenerateSecret(KeyKind::kAes, static_cast<size_t>(bits) / 8);
}

namespace {

// libcrypto asks after each candidate for a prime.
int GoesOn(EVP_PKEY_CTX* context) {
  const auto* ending = static_cast<const std::atomic<bool>*>(EVP_PKEY_CTX_get_app_data(context));
  return ending->load(std::memory_order_relaxed) ? 0 : 1;
}

}  // namespace

Result<EvpPkeyPtr> FindRsa(int bits, const std::atomic<bool>* ending) {
  if (bits < kLeastGeneratedRsaBits || bits > kMostRsaBits) return BadArgument("a new RSA modulus has 2048 to 4096 bits");
  const EvpPkeyCtxPtr context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1 || EVP_PKEY_CTX_set_rsa_keygen_bits(context.get(), bits) != 1) {
    return CryptoFailure("RSA key generation");
  }
  if (ending != nullptr) {
    EVP_PKEY_CTX_set_app_data(context.get(), const_cast<std::atomic<bool>*>(ending));
    EVP_PKEY_CTX_set_cb(context.get(), GoesOn);
  }
  EvpPkeyPtr pkey(NewPair(context.get()));
  if (pkey == nullptr) return CryptoFailure("RSA key generation");
  return pkey;
}

Result<KeyRef> GenerateRsa(int bits) {
  Result<EvpPkeyPtr> pkey = FindRsa(bits);
  if (!pkey.ok()) return pkey.status();
  return AddPkey(pkey.Take(), true);
}

Result<KeyRef> GenerateEc(Curve curve) {
  const CurveRow& row = Row(curve);
  EVP_PKEY* pkey = row.form == CurveForm::kWeierstrass ? NewPair("EC", row.group) : NewPair(row.group);
  return Generated(pkey, "key generation on a curve");
}

Result<KeyRef> ImportSecret(KeyKind kind, const uint8_t* data, size_t size) {
  if (size > 4096) return BadArgument("a secret key has 1 to 4096 bytes");
  Result<SecureBuffer> value = SecureBuffer::CopyOf(data, size);
  if (!value.ok()) return value.status();
  return AddSecretKey(kind, value.Take());
}

namespace {

// A key whose form this core carries. Its numbers are not checked.
Result<EvpPkeyPtr> ParsePrivateKey(const uint8_t* pkcs8, size_t size) {
  DKE_RETURN_IF_ERROR(CheckPrivateForm(pkcs8, size));
  const uint8_t* cursor = pkcs8;
  PKCS8_PRIV_KEY_INFO* info = d2i_PKCS8_PRIV_KEY_INFO(nullptr, &cursor, static_cast<long>(size));
  if (info == nullptr || cursor != pkcs8 + size) {
    PKCS8_PRIV_KEY_INFO_free(info);
    (void)CryptoFailure("");
    return BadArgument("not a PKCS#8 private key");
  }
  EvpPkeyPtr pkey(EVP_PKCS82PKEY(info));
  PKCS8_PRIV_KEY_INFO_free(info);
  if (pkey == nullptr) {
    (void)CryptoFailure("");
    return BadArgument("not a PKCS#8 private key");
  }
  const Result<KeyDescription> description = DescribePkey(pkey.get(), true);
  if (!description.ok()) return description.status();
  return pkey;
}

}  // namespace

Result<EvpPkeyPtr> OpenPrivateKey(const uint8_t* pkcs8, size_t size) {
  Result<EvpPkeyPtr> pkey = ParsePrivateKey(pkcs8, size);
  if (!pkey.ok()) return pkey;
  // A key whose parts do not fit together would sign or decrypt wrongly, or leak through its
  // faults.
  DKE_RETURN_IF_ERROR(CheckPrivateKey(pkey.value().get()));
  return pkey;
}

Result<KeyRef> ImportPrivateKey(const uint8_t* pkcs8, size_t size) {
  Result<EvpPkeyPtr> pkey = OpenPrivateKey(pkcs8, size);
  if (!pkey.ok()) return pkey.status();
  return AddPkey(pkey.Take(), true);
}

Result<KeyRef> RestorePrivateKey(const uint8_t* pkcs8, size_t size) {
  Result<EvpPkeyPtr> pkey = ParsePrivateKey(pkcs8, size);
  if (!pkey.ok()) return pkey.status();
  return AddPkey(pkey.Take(), true);
}

Result<KeyRef> ImportPublicKey(const uint8_t* spki, size_t size) {
  DKE_RETURN_IF_ERROR(CheckPublicForm(spki, size));
  const uint8_t* cursor = spki;
  EvpPkeyPtr pkey(d2i_PUBKEY(nullptr, &cursor, static_cast<long>(size)));
  if (pkey == nullptr || cursor != spki + size) {
    (void)CryptoFailure("");
    return BadArgument("not a SubjectPublicKeyInfo");
  }
  const Result<KeyDescription> description = DescribePkey(pkey.get(), false);
  if (!description.ok()) return description.status();
  DKE_RETURN_IF_ERROR(CheckPublicKey(pkey.get()));
  return AddPkey(std::move(pkey), false);
}

Result<KeyDescription> DescribeKey(KeyRef ref) {
  KeyPtr key = FindKey(ref);
  if (key == nullptr) return BadKey();
  return key->description;
}

Result<std::vector<uint8_t>> ExportPublicKey(KeyRef ref) {
  KeyUse key(ref);
  if (!key) return BadKey();
  if (key->pkey == nullptr) return WrongKeyType();
  uint8_t* der = nullptr;
  int length = i2d_PUBKEY(key->pkey.get(), &der);
  if (length <= 0) return CryptoFailure("public key encoding");
  std::vector<uint8_t> out(der, der + length);
  OPENSSL_free(der);
  return out;
}

Result<std::vector<uint8_t>> CheckValue(KeyRef ref) {
  KeyUse key(ref);
  if (!key) return BadKey();
  if (!key.is_data_key()) return WrongKeyType();
  uint8_t out[64] = {};
  if (key.is_aes()) {
    // PKCS#11 2.40, 4.9.1: the first three bytes of one zero block under the key.
    EvpCipherCtxPtr context(EVP_CIPHER_CTX_new());
    const uint8_t zeros[16] = {};
    int written = 0;
    const EVP_CIPHER* cipher = AesCipher(Row(CipherMode::kEcb), key->secret.size());
    if (context == nullptr || EVP_EncryptInit_ex(context.get(), cipher, nullptr, key->secret.data(), nullptr) != 1 ||
        EVP_EncryptUpdate(context.get(), out, &written, zeros, sizeof zeros) != 1) {
      return CryptoFailure("check value");
    }
  } else {
    unsigned length = 0;
    if (EVP_Digest(key->secret.data(), key->secret.size(), out, &length, EVP_sha1(), nullptr) != 1) return CryptoFailure("check value");
  }
  return std::vector<uint8_t>(out, out + 3);
}

Result<SecureBuffer> ExportKey(const KeyPtr& handle) {
  KeyUse key(handle);
  if (!key) return BadKey();
  if (key.is_secret()) return SecureBuffer::CopyOf(key->secret.data(), key->secret.size());
  if (!Row(key->description.kind).is_private) return WrongKeyType();
  PKCS8_PRIV_KEY_INFO* info = EVP_PKEY2PKCS8(key->pkey.get());
  if (info == nullptr) return CryptoFailure("private key encoding");
  uint8_t* der = nullptr;
  int length = i2d_PKCS8_PRIV_KEY_INFO(info, &der);
  PKCS8_PRIV_KEY_INFO_free(info);
  if (length <= 0) return CryptoFailure("private key encoding");
  Result<SecureBuffer> out = SecureBuffer::CopyOf(der, static_cast<size_t>(length));
  OPENSSL_clear_free(der, static_cast<size_t>(length));
  return out;
}

}  // namespace dke
