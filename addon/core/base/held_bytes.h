// Plaintext that is held back until its tag has been checked.
#pragma once

#include <openssl/crypto.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace dke {

// Memory of the crypto heap: wiped when it is released.
struct CryptoFree {
  void operator()(uint8_t* memory) const { OPENSSL_free(memory); }
};

// Plaintext that is held back, in memory of the crypto heap. It never moves, so no copy of it is
// left behind.
class HeldBytes {
 public:
  // Most bytes that one operation holds back.
  static constexpr size_t kMost = size_t{64} << 20;

  // Room for `length` more bytes in one piece, counted as held. Null when there is no memory.
  uint8_t* Extend(size_t length);
  size_t size() const { return size_; }
  // Moves up to `length` bytes from the front to `output`; the rest stays. Returns how many.
  size_t Take(uint8_t* output, size_t length);

 private:
  struct Chunk {
    std::unique_ptr<uint8_t, CryptoFree> bytes;
    size_t from;
    size_t to;
    size_t capacity;
  };
  std::deque<Chunk> chunks_;
  size_t size_ = 0;
};

}  // namespace dke
