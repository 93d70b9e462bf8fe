#include "ciphers/mac_parts.h"

#include <cstring>

#include "ciphers/mode_blocks.h"
#include "digests/digest.h"
#include "digests/digest_state.h"

namespace dke {
namespace {

class HmacParts final : public MacParts {
 public:
  HmacParts(const Key& key, const MacRow& row, MacState& state) : MacParts(key, row, state), inner_(row.digest) {
    DKE_ASSERT(inner_.block() == row.block && inner_.saved_size() == row.chain);
  }

  void Keep() override { inner_.Save(state_.chain); }

  Status End(uint8_t* mac) override {
    Wiped<kLongestMacBlock + SHA512_DIGEST_LENGTH> outer;
    DKE_RETURN_IF_ERROR(PadKey(0x5c, outer.bytes));
    inner_.Finish(state_.rest, state_.rest_length(row_), row_.block + state_.total, outer.bytes + row_.block);
    Result<size_t> done = DigestMessage(row_.digest, outer.bytes, row_.block + row_.bytes, mac, row_.bytes);
    return done.ok() ? Status() : done.status();
  }

 protected:
  Status Start(bool is_first) override {
    if (!is_first) {
      inner_.Load(state_.chain);
      return {};
    }
    Wiped<kLongestMacBlock> pad;
    DKE_RETURN_IF_ERROR(PadKey(0x36, pad.bytes));
    inner_.Blocks(pad.bytes, 1);
    return {};
  }

  Status Blocks(const uint8_t* data, size_t length) override {
    if (length > 0) inner_.Blocks(data, length / row_.block);
    return {};
  }

 private:
  // FIPS 198-1: the key as one block, combined with the inner or the outer pad.
  Status PadKey(uint8_t pad, uint8_t* out) const {
    memset(out, 0, row_.block);
    if (key_.secret.size() > row_.block) {
      Result<size_t> hashed = DigestMessage(row_.digest, key_.secret.data(), key_.secret.size(), out, row_.block);
      if (!hashed.ok()) return hashed.status();
    } else {
      memcpy(out, key_.secret.data(), key_.secret.size());
    }
    for (size_t i = 0; i < row_.block; i++) out[i] ^= pad;
    return {};
  }

  DigestState inner_;
};

// SP 800-38B, 6.1: the subkeys K1 = dbl(L) and K2 = dbl(K1), where dbl multiplies by x in
// GF(2^128).
void Double(uint8_t block[kBlock]) {
  const uint8_t carry = static_cast<uint8_t>(0 - (block[0] >> 7));
  for (size_t i = 0; i < kBlock; i++) block[i] = static_cast<uint8_t>(block[i] << 1 | (i + 1 < kBlock ? block[i + 1] >> 7 : 0));
  block[kBlock - 1] ^= carry & 0x87;
}

class CmacParts final : public MacParts {
 public:
  CmacParts(const Key& key, const MacRow& row, MacState& state) : MacParts(key, row, state) {}

  void Keep() override {}

  // 6.2: Mn = K1 xor Mn* where Mn* is a whole block, else K2 xor (Mn* || 10^j); Cn = CIPH(Cn-1 xor
  // Mn).
  Status End(uint8_t* mac) override {
    const size_t length = state_.rest_length(row_);
    DKE_ASSERT(length <= kBlock);
    Wiped<kBlock> subkey;
    const uint8_t zeros[kBlock] = {};
    DKE_RETURN_IF_ERROR(EncryptBlock(key_, zeros, subkey.bytes));
    Double(subkey.bytes);
    if (length < kBlock) {
      Double(subkey.bytes);
      state_.rest[length] = 0x80;
    }
    for (size_t i = 0; i < kBlock; i++) state_.rest[i] ^= subkey.bytes[i];
    DKE_RETURN_IF_ERROR(ChainBlocks(key_, state_.chain, state_.rest, kBlock));
    memcpy(mac, state_.chain, kBlock);
    return {};
  }

 protected:
  Status Start(bool) override { return {}; }
  Status Blocks(const uint8_t* data, size_t length) override { return ChainBlocks(key_, state_.chain, data, length); }
};

}  // namespace

Result<std::unique_ptr<MacParts>> MacParts::Begin(const Key& key, const MacRow& row, MacState& state, bool is_first) {
  std::unique_ptr<MacParts> parts;
  if (row.of_aes) parts = std::make_unique<CmacParts>(key, row, state);
  else parts = std::make_unique<HmacParts>(key, row, state);
  DKE_RETURN_IF_ERROR(parts->Start(is_first));
  return parts;
}

Status MacParts::Update(const uint8_t* data, size_t length) {
  if (length > kMostMac - state_.total) return DataLength("the message is longer than a MAC takes");
  DKE_RETURN_IF_ERROR(Absorb(state_.rest, state_.rest_length(row_), row_.block, row_.keeps_last, data, length,
                             [this](const uint8_t* blocks, size_t size) { return Blocks(blocks, size); }));
  state_.total += length;
  return {};
}

}  // namespace dke
