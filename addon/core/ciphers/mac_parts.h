// HMAC and CMAC block by block, with everything between two blocks in a state that can be kept
// (ciphers/message_state.h).
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/assert.h"
#include "ciphers/message_state.h"

namespace dke {

// A message under one key. `state` outlives it.
class MacParts {
 public:
  // `is_first`: of a message that begins. Otherwise the state is one that `Parse` has proved.
  static Result<std::unique_ptr<MacParts>> Begin(const Key& key, const MacRow& row, MacState& state, bool is_first);
  virtual ~MacParts() = default;

  Status Update(const uint8_t* data, size_t length);
  // Puts everything that the next part needs into the state.
  virtual void Keep() = 0;
  virtual Status End(uint8_t* mac) = 0;

 protected:
  MacParts(const Key& key, const MacRow& row, MacState& state) : key_(key), row_(row), state_(state) {}
  virtual Status Start(bool is_first) = 0;
  // Whole blocks.
  virtual Status Blocks(const uint8_t* data, size_t length) = 0;

  const Key& key_;
  const MacRow& row_;
  MacState& state_;
};

// Takes whole blocks out of what was left over and what has come, and keeps the rest, with zeros
// behind it. `keeps_last`: the last block is kept, too.
template <typename Blocks>
Status Absorb(uint8_t* rest, size_t rest_length, size_t block, bool keeps_last, const uint8_t* data, size_t length, const Blocks& blocks) {
  DKE_ASSERT(rest_length < block || (keeps_last && rest_length == block));
  const size_t spare = keeps_last ? 1 : 0;
  if (rest_length > 0) {
    const size_t taken = std::min(length, block - rest_length);
    if (taken > 0) memcpy(rest + rest_length, data, taken);
    data += taken;
    length -= taken;
    if (rest_length + taken < block || length < spare) return {};
    DKE_RETURN_IF_ERROR(blocks(rest, block));
    memset(rest, 0, block);
  }
  const size_t whole = length < spare ? 0 : (length - spare) / block * block;
  DKE_RETURN_IF_ERROR(blocks(data, whole));
  if (length > whole) memcpy(rest, data + whole, length - whole);
  return {};
}

}  // namespace dke
