// The blocks of GCM, CCM and CMAC that are computed from part to part: AES on single blocks, CBC
// chains, the counter, and GHASH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ciphers/block_cipher.h"
#include "base/bytes.h"

namespace dke {

// What is processed at once where the output is thrown away.
constexpr size_t kChunk = 4096;

Result<EvpCipherCtxPtr> BlockContext(const Key& key, CipherMode mode, const uint8_t* iv);
Status EncryptBlock(const Key& key, const uint8_t in[kBlock], uint8_t out[kBlock]);
// CBC from `chain` on over whole blocks: the last one becomes the chain.
Status ChainBlocks(const Key& key, uint8_t chain[kBlock], const uint8_t* data, size_t length);
// CTR behind `first`, the block before that of the first byte of the message, from a byte of the
// message on. GCM counts in 32 bits.
Status ApplyCounter(const Key& key, const uint8_t first[kBlock], bool in_32_bits, uint64_t from, const uint8_t* input, size_t length, uint8_t* output);

// A block as an element of GF(2^128).
struct Element {
  uint64_t high = 0;
  uint64_t low = 0;
  ~Element() { Wipe(this, sizeof *this); }
};

Element LoadElement(const uint8_t bytes[kBlock]);
void StoreElement(const Element& element, uint8_t bytes[kBlock]);

// GHASH of the input so far, multiplied by H again (SP 800-38D, 6.3 and 6.4). GHASH of two pieces
// is that of the first times a power of H, plus that of the second, which libcrypto's GMAC gives:
// so all but a few multiplications are done by libcrypto.
class Ghash {
 public:
  static Result<std::unique_ptr<Ghash>> Begin(const Key& key);

  // Whole blocks.
  Status Add(const uint8_t* data, size_t length);
  Status AddPadded(const uint8_t* data, size_t length);
  // With the block of both lengths, in bits.
  Element End(uint64_t first, uint64_t second) const;

  Element value;

 private:
  explicit Ghash(const Key& key) : key_(key) {}
  const Key& key_;
  Element h_;
  Element mask_;  // of libcrypto's tags
};

// SP 800-38D, 7.1, step 2: the block that encrypts the tag, before the first one of the message.
Status GcmFirstBlock(const Key& key, const CipherParameters& parameters, uint8_t first[kBlock]);

}  // namespace dke
