// Memory for secrets: locked, left out of core dumps, empty in a forked child, wiped when it is
// released.
//
// Two heaps. The key arena has a fixed size, is locked as a whole or not made at all, and holds key
// values. The crypto heap is where libcrypto allocates (key schedules, private key numbers,
// contexts): it grows, stays out of core dumps and is wiped on free; it is locked as far as the
// process's limit allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace dke {

struct MemoryStatus {
  size_t capacity = 0;
  size_t used = 0;
  bool locked = false;
};

// Reserves the key arena (whole steps of 128 KiB), once per process; later calls answer the status.
// Must run before any key is made. When `arena_bytes` cannot be locked, half of it is tried, and so
// on, down to `least_bytes`.
Result<MemoryStatus> InitializeMemory(size_t arena_bytes, size_t least_bytes, bool allow_unlocked);
inline Result<MemoryStatus> InitializeMemory(size_t arena_bytes, bool allow_unlocked) {
  return InitializeMemory(arena_bytes, arena_bytes, allow_unlocked);
}
MemoryStatus KeyArenaStatus();

// Points libcrypto's allocator at the crypto heap, and keeps libcrypto from reading openssl.cnf.
// Must run before libcrypto allocates for the first time.
bool AdoptCryptoAllocations();

// Overwrites memory in a way the compiler cannot drop.
void Wipe(void* data, size_t size);

// Bytes that are wiped when they go.
template <size_t Size>
struct Wiped {
  uint8_t bytes[Size] = {};
  Wiped() = default;
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { Wipe(bytes, Size); }
};

// A block of the key arena. Movable, wiped and returned on destruction.
class SecureBuffer {
 public:
  SecureBuffer() = default;
  // The longest one that fits into the arena.
  static constexpr size_t kLargest = (size_t{1} << 17) - 16;
  // kMemoryLock when the arena is not there or full, kInternal when `size` is more than kLargest.
  static Result<SecureBuffer> Make(size_t size);
  static Result<SecureBuffer> CopyOf(const void* data, size_t size);

  SecureBuffer(SecureBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SecureBuffer& operator=(SecureBuffer&& other) noexcept {
    if (this != &other) {
      Release();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  SecureBuffer(const SecureBuffer&) = delete;
  SecureBuffer& operator=(const SecureBuffer&) = delete;
  ~SecureBuffer() { Release(); }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Shortens the buffer; what is cut off is wiped.
  void Truncate(size_t size);
  void Release();

 private:
  SecureBuffer(uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace dke
