#include "digests/hedge.h"

#include <openssl/hmac.h>

#include <atomic>
#include <cstring>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/random.h"
#include "digests/digest.h"
#include "keys/labels.h"

namespace dke {

Status HedgeWith(const SecureBuffer& secret, uint64_t count, const uint8_t (&random)[32], const uint8_t* message, size_t size, uint8_t* out,
                 size_t out_size) {
  constexpr std::string_view kText = TextOf(Label::kHedge);
  DKE_ASSERT(out_size <= kMostHedged);
  uint8_t input[kText.size() + 8 + 32 + 32];
  uint8_t* at = input;
  memcpy(at, kText.data(), kText.size());
  at += kText.size();
  PutU64(at, count);
  memcpy(at + 8, random, 32);
  Result<size_t> digest = DigestMessage(Digest::kSha256, message, size, at + 40, 32);
  if (!digest.ok()) return digest.status();
  Wiped<kMostHedged> whole;
  unsigned length = 0;
  const bool done = HMAC(Row(Digest::kSha512).md(), secret.data(), static_cast<int>(secret.size()), input, sizeof input, whole.bytes, &length) != nullptr;
  Wipe(input, sizeof input);
  if (!done) return CryptoFailure("MAC");
  memcpy(out, whole.bytes, out_size);
  return {};
}

Status HedgedRandom(const SecureBuffer& secret, const uint8_t* message, size_t size, uint8_t* out, size_t out_size) {
  static std::atomic<uint64_t> count{0};
  uint8_t random[32];
  DKE_RETURN_IF_ERROR(RandomPublic(random, sizeof random));
  return HedgeWith(secret, count.fetch_add(1, std::memory_order_relaxed), random, message, size, out, out_size);
}

}  // namespace dke
