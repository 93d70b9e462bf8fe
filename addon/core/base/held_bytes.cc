#include "base/held_bytes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace dke {

uint8_t* HeldBytes::Extend(size_t length) {
  constexpr size_t kFirst = 1024;
  constexpr size_t kLargest = size_t{256} << 10;
  if (chunks_.empty() || chunks_.back().capacity - chunks_.back().to < length) {
    const size_t wanted = chunks_.empty() ? kFirst : std::min(2 * chunks_.back().capacity, kLargest);
    const size_t capacity = std::max(length, wanted);
    std::unique_ptr<uint8_t, CryptoFree> bytes(static_cast<uint8_t*>(OPENSSL_malloc(capacity)));
    if (bytes == nullptr) return nullptr;
    chunks_.push_back({std::move(bytes), 0, 0, capacity});
  }
  Chunk& chunk = chunks_.back();
  uint8_t* const place = chunk.bytes.get() + chunk.to;
  chunk.to += length;
  size_ += length;
  return place;
}

size_t HeldBytes::Take(uint8_t* output, size_t length) {
  size_t taken = 0;
  while (taken < length && !chunks_.empty()) {
    Chunk& chunk = chunks_.front();
    DKE_ASSERT(chunk.from <= chunk.to && chunk.to <= chunk.capacity);
    const size_t part = std::min(length - taken, chunk.to - chunk.from);
    if (part != 0) memcpy(output + taken, chunk.bytes.get() + chunk.from, part);
    chunk.from += part;
    taken += part;
    if (chunk.from == chunk.to) chunks_.pop_front();
  }
  DKE_ASSERT(taken <= size_);
  size_ -= taken;
  return taken;
}

}  // namespace dke
