// HKDF (RFC 5869): into a key, or into a secure buffer for the core's own use. The KDFs of SP
// 800-108: from a key to a key. scrypt (RFC 7914): from a passphrase to a key. Argon2id (RFC 9106):
// from a person's password to what is stored of it.
#pragma once

#include <optional>

#include "keys/key_table.h"
#include "digests/mac.h"

namespace dke {

// HKDF, and the KDF of ANSI X9.63, hash the info once for each digest of output. Bytes of info in
// all: a few milliseconds of work. A key of 512 bytes may have an info of 32 KiB.
constexpr size_t kMostHashedInfo = 1 << 20;

// The steps of HKDF to run: both, or one of them (RFC 5869, 2.2 and 2.3). Extraction without
// expansion gives as many bytes as the digest has.
enum class HkdfSteps : uint8_t { kBoth, kExtract, kExpand };

Status HkdfInto(Digest digest, const uint8_t* secret, size_t secret_length, const uint8_t* salt, size_t salt_length,
                const uint8_t* info, size_t info_length, uint8_t* output, size_t output_length,
                HkdfSteps steps = HkdfSteps::kBoth);
Result<KeyRef> HkdfKey(KeyRef key, Digest digest, const uint8_t* salt, size_t salt_length, const uint8_t* info, size_t info_length,
                       KeyKind kind, size_t bytes, HkdfSteps steps = HkdfSteps::kBoth);

// SP 800-108 in counter and feedback mode: what the pseudorandom function takes for each block.
// `data` is the fixed part; the counter, and in feedback mode the block before (at first the IV),
// are in it at these places, the counter first where `counter_first` says so and both are at one.
struct Sp800108 {
  const uint8_t* data = nullptr;
  size_t length = 0;
  std::optional<size_t> counter_at;
  size_t counter_bytes = 0;  // 1 to 4
  bool little_endian = false;
  std::optional<size_t> previous_at;
  bool counter_first = false;
  const uint8_t* iv = nullptr;
  size_t iv_length = 0;
};
// `length` and `iv_length` are at most this, so that no derivation takes long.
constexpr size_t kMostSp800108 = 4096;
Result<KeyRef> Sp800108Key(KeyRef key, const MacParameters& prf, const Sp800108& parameters, KeyKind kind, size_t bytes);

// A key encryption key from a passphrase. `cost` is N as a power of two, 1 to 24; the work takes
// 128 * r * N bytes, at most 1 GiB.
Result<LooseKey> ScryptKey(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost,
                           uint32_t r, uint32_t p);
// The work of ScryptKey with its result as bytes: for the published vectors.
Status ScryptInto(const uint8_t* passphrase, size_t passphrase_length, const uint8_t* salt, size_t salt_length, uint32_t cost,
                  uint32_t r, uint32_t p, uint8_t* output, size_t output_length);

// The tag of a password by Argon2id, version 1.3, in one lane. `memory` in KiB, 8 to 1 GiB;
// `passes` 1 to 100; `tag_length` 16 to 64 bytes.
Result<SecureBuffer> Argon2id(const uint8_t* password, size_t password_length, const uint8_t* salt, size_t salt_length,
                              uint32_t memory, uint32_t passes, size_t tag_length);

}  // namespace dke
