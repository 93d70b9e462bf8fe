// The keys of this process, behind numbers. Usable from every thread.
//
// A number is given once and never again. `Release` wipes the key at once: who still holds the Key
// object finds it dead. A key that is not released goes with the thread that made it. Secret keys
// are raw bytes in the key arena. Private keys are libcrypto objects: their numbers live in the
// crypto heap (secure_buffer.h), which is wiped and not dumped, and locked as far as the process's
// limit allows.
#pragma once

#include <openssl/evp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "keys/algorithms.h"
#include "base/owner.h"
#include "base/secure_buffer.h"
#include "base/status.h"

namespace dke {

struct EvpPkeyDeleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct EvpPkeyCtxDeleter {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
struct EvpCipherCtxDeleter {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
struct EvpMdCtxDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct EvpMacCtxDeleter {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using EvpPkeyPtr = std::unique_ptr<EVP_PKEY, EvpPkeyDeleter>;
using EvpPkeyCtxPtr = std::unique_ptr<EVP_PKEY_CTX, EvpPkeyCtxDeleter>;
using EvpCipherCtxPtr = std::unique_ptr<EVP_CIPHER_CTX, EvpCipherCtxDeleter>;
using EvpMdCtxPtr = std::unique_ptr<EVP_MD_CTX, EvpMdCtxDeleter>;
using EvpMacCtxPtr = std::unique_ptr<EVP_MAC_CTX, EvpMacCtxDeleter>;

using KeyRef = uint64_t;

struct KeyDescription {
  KeyKind kind;
  int bits;
  const CurveRow* curve;  // null unless the key is on one
};

// A key. A user of its content has locked `mutex` and has seen `alive`.
struct Key {
  KeyDescription description;
  SecureBuffer secret;
  EvpPkeyPtr pkey;
  const Owner owner = ThisThread();
  bool alive = true;
  std::mutex mutex;

  // Contexts that carry this key's schedule, so that a further message only sets its IV. Indexed by
  // mode and direction.
  EvpCipherCtxPtr contexts[kCipherModeCount][2];
  // Contexts of the MACs under this key, indexed by MacRow::index.
  EvpMacCtxPtr macs[kMacCount];
};
using KeyPtr = std::shared_ptr<Key>;

// Whether a secret key of this kind may have so many bytes.
Status CheckSecretSize(KeyKind kind, size_t bytes);
Result<KeyRef> AddSecretKey(KeyKind kind, SecureBuffer value);
Result<KeyRef> AddPkey(EvpPkeyPtr pkey, bool is_private);

// A secret or private key that is not in the table: what a job (binding/jobs.h) hands to the thread
// that will own it.
struct LooseKey {
  KeyKind kind = KeyKind::kGeneric;  // of a secret
  SecureBuffer secret;
  EvpPkeyPtr pkey;  // of a private key
};
Result<KeyRef> AddKey(LooseKey key);

// A key of a pair for work that takes long. The work does not hold the key's mutex, so releasing
// the key never waits for it: from then on the number is unknown, and libcrypto's numbers are wiped
// when the last holder is done. One EVP_PKEY may be used from several threads.
struct HeldPkey {
  KeyDescription description;
  EvpPkeyPtr pkey;
};
Result<HeldPkey> HoldPkey(KeyRef ref);
// Null when the reference is unknown or released.
KeyPtr FindKey(KeyRef ref);
void ReleaseKey(KeyRef ref);
void ReleaseKeysOf(Owner owner);
size_t KeyCount();

Result<KeyRef> GenerateAes(int bits);
Result<KeyRef> GenerateSecret(KeyKind kind, size_t bytes);
Result<KeyRef> GenerateRsa(int bits);
// GenerateRsa without a place in the table: for a thread that is not the key's owner. Ends soon
// after `ending` has become true.
Result<EvpPkeyPtr> FindRsa(int bits, const std::atomic<bool>* ending = nullptr);
// On a curve of any form.
Result<KeyRef> GenerateEc(Curve curve);
Result<KeyRef> ImportSecret(KeyKind kind, const uint8_t* data, size_t size);
// Checks first the form of the key and then its numbers: key_check.h.
Result<KeyRef> ImportPrivateKey(const uint8_t* pkcs8, size_t size);
// ImportPrivateKey without a place in the table: for a thread that is not the key's owner.
Result<EvpPkeyPtr> OpenPrivateKey(const uint8_t* pkcs8, size_t size);
// For a key from a record that has authenticated: it was checked when it was imported or generated,
// so its numbers are taken as they are.
Result<KeyRef> RestorePrivateKey(const uint8_t* pkcs8, size_t size);
Result<KeyRef> ImportPublicKey(const uint8_t* spki, size_t size);
Result<KeyDescription> DescribeKey(KeyRef ref);
Result<std::vector<uint8_t>> ExportPublicKey(KeyRef ref);
Result<std::vector<uint8_t>> CheckValue(KeyRef ref);
// The raw value of a secret key, or the PKCS#8 of a private key, in the arena.
Result<SecureBuffer> ExportKey(const KeyPtr& key);

// Holds a key for one use: locked and alive, or an error.
class KeyUse {
 public:
  explicit KeyUse(KeyRef ref) : KeyUse(FindKey(ref)) {}
  explicit KeyUse(KeyPtr key) : key_(std::move(key)) {
    if (key_ != nullptr) {
      lock_ = std::unique_lock<std::mutex>(key_->mutex);
      if (!key_->alive) Drop();
    }
  }
  explicit operator bool() const { return key_ != nullptr; }
  Key* operator->() const { return key_.get(); }
  Key& operator*() const { return *key_; }
  bool is_secret() const { return key_ && Row(key_->description.kind).secret; }
  bool is_aes() const { return key_ && key_->description.kind == KeyKind::kAes; }
  // A secret key for data: a KEK seals and opens records, and is the start of derived keys, nothing
  // else.
  bool is_data_key() const { return is_secret() && key_->description.kind != KeyKind::kKek; }

 private:
  void Drop() {
    lock_.unlock();
    key_.reset();
  }
  KeyPtr key_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace dke
