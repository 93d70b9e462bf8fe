// Bytes between the network and a frame, or between an answer and the network. Whatever is taken
// out, moved or freed is wiped.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"

namespace dke {

class FrameBytes {
 public:
  // `held` counts the memory of all that share it. It outlives this.
  explicit FrameBytes(size_t* held) : held_(held) {}
  FrameBytes(const FrameBytes&) = delete;
  FrameBytes& operator=(const FrameBytes&) = delete;
  ~FrameBytes() { Clear(); }

  const uint8_t* data() const { return memory_ + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  uint8_t* tail() { return memory_ + end_; }
  size_t capacity() const { return capacity_; }
  size_t space() const { return capacity_ - end_; }
  void Commit(size_t length) {
    DKE_ASSERT(length <= space());
    end_ += length;
  }

  // Makes room for `total` bytes from data() on. False when there is no memory.
  bool Reserve(size_t total) {
    if (capacity_ - begin_ >= total) return true;
    auto* fresh = static_cast<uint8_t*>(malloc(total));
    if (fresh == nullptr) return false;
    const size_t kept = size();
    if (kept > 0) memcpy(fresh, data(), kept);
    Clear();
    memory_ = fresh;
    capacity_ = total;
    *held_ += total;
    end_ = kept;
    return true;
  }

  bool Append(const uint8_t* from, size_t length) {
    if (length == 0) return true;
    if (space() < length && !Reserve(std::max(size() + length, 2 * size()))) return false;
    memcpy(tail(), from, length);
    Commit(length);
    return true;
  }

  void Discard(size_t length) {
    if (length == 0) return;
    DKE_ASSERT(length <= size());
    explicit_bzero(memory_ + begin_, length);
    begin_ += length;
    if (begin_ == end_) Clear();
  }

  void Clear() {
    if (memory_ == nullptr) return;
    explicit_bzero(memory_ + begin_, size());
    free(memory_);
    DKE_ASSERT(*held_ >= capacity_);
    *held_ -= capacity_;
    memory_ = nullptr;
    begin_ = end_ = capacity_ = 0;
  }

 private:
  size_t* held_;
  uint8_t* memory_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
};

}  // namespace dke
