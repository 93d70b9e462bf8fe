// What goes from one part of a long message to the next, one type for each kind of message. `Save`
// writes the bytes that are sealed (ciphers/service_seal.h), and `Parse` is the only way back.
//
// That a state opened says that this service sealed it, and not that it is well formed: `Parse`
// proves every relation that the code behind it relies on. How much of a block is kept follows from
// the length of the message, so no state can claim more.
#pragma once

#include "ciphers/block_cipher.h"
#include "digests/mac.h"

namespace dke {

// SP 800-38D, 5.2.1.1.
constexpr uint64_t kMostGcm = (uint64_t{1} << 36) - 32;
// FIPS 180-4: SHA-256 counts the bits of a message in 64 bits. One block is the key.
constexpr uint64_t kMostMac = (uint64_t{1} << 61) - 1 - kLongestMacBlock;

// GCM and CCM.
struct CipherState {
  static constexpr size_t kSize = 2 * kBlock + 16;

  uint8_t chain[kBlock] = {};  // GHASH, or CBC, of whole blocks
  uint8_t rest[kBlock] = {};   // what has not made a block yet; zeros behind it
  uint64_t total = 0;          // bytes of data so far
  uint64_t aad_length = 0;

  CipherState() = default;
  CipherState(const CipherState&) = default;
  ~CipherState() { Wipe(this, sizeof *this); }

  static Result<CipherState> Parse(const CipherParameters& parameters, const uint8_t* in, size_t size);
  void Save(uint8_t out[kSize]) const;
  size_t rest_length() const { return total % kBlock; }
};

// HMAC and CMAC.
struct MacState {
  static constexpr size_t kMost = kLongestMacChain + kLongestMacBlock + 8;

  uint8_t chain[kLongestMacChain] = {};
  uint8_t rest[kLongestMacBlock] = {};
  uint64_t total = 0;

  MacState() = default;
  MacState(const MacState&) = default;
  ~MacState() { Wipe(this, sizeof *this); }

  static size_t Size(const MacRow& row) { return row.chain + row.block + 8; }
  static Result<MacState> Parse(const MacRow& row, const uint8_t* in, size_t size);
  void Save(const MacRow& row, uint8_t* out) const;
  size_t rest_length(const MacRow& row) const {
    if (total == 0) return 0;
    return row.keeps_last ? (total - 1) % row.block + 1 : total % row.block;
  }
};

}  // namespace dke
