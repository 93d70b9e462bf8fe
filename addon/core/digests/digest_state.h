// The inside of a running digest, which libcrypto does not let out: what a digest comes to after
// whole blocks, so that another process can continue from there. SHA-1 and SHA-2 (FIPS 180-4) by
// libcrypto's block functions, SHA-3 (FIPS 202) by the permutation here.
#pragma once

#include <openssl/sha.h>

#include <cstddef>
#include <cstdint>

#include "keys/algorithms.h"

namespace dke {

class DigestState {
 public:
  // Bytes that `Save` writes at most, and the longest block.
  static constexpr size_t kMostSaved = 200;
  static constexpr size_t kMostBlock = 144;

  explicit DigestState(Digest digest);
  ~DigestState();
  DigestState(const DigestState&) = delete;
  DigestState& operator=(const DigestState&) = delete;

  size_t block() const { return block_; }
  size_t saved_size() const;
  void Save(uint8_t* out) const;
  void Load(const uint8_t* in);
  void Blocks(const uint8_t* data, size_t count);
  // The digest. `rest` is shorter than a block; `total` counts all bytes, those of `rest` included.
  void Finish(const uint8_t* rest, size_t rest_length, uint64_t total, uint8_t* out);

 private:
  enum class Family : uint8_t { kSha1, kSha256, kSha512, kSha3 };

  const Digest digest_;
  Family family_;
  size_t block_;
  union {
    SHA_CTX sha1_;
    SHA256_CTX sha256_;
    SHA512_CTX sha512_;
    uint64_t lanes_[25];
  };
};

}  // namespace dke
