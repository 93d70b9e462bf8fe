#include "keys/used_ivs.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/random.h"

namespace dke {
namespace {

constexpr size_t kFirstSlots = size_t{1} << 10;

uint64_t Rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

class SipHash {
 public:
  SipHash(const uint64_t key[2])
      : v0_(key[0] ^ 0x736f6d6570736575), v1_(key[1] ^ 0x646f72616e646f6d), v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  void Add(uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }

  // With its length, so that no two rows of bytes run into each other.
  void Add(const uint8_t* bytes, size_t length) {
    Add(length);
    for (; length > 0;) {
      uint64_t word = 0;
      const size_t taken = std::min(length, sizeof word);
      memcpy(&word, bytes, taken);
      Add(word);
      bytes += taken;
      length -= taken;
    }
  }

  uint64_t Finish() {
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void Round() {
    v0_ += v1_;
    v1_ = Rotate(v1_, 13) ^ v0_;
    v0_ = Rotate(v0_, 32);
    v2_ += v3_;
    v3_ = Rotate(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = Rotate(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = Rotate(v1_, 17) ^ v2_;
    v2_ = Rotate(v2_, 32);
  }
  uint64_t v0_, v1_, v2_, v3_;
};

// A set of numbers, by open addressing; 0 is an empty slot.
class Table {
 public:
  size_t size() const { return size_; }
  bool Has(uint64_t mark) const { return slots_[Place(slots_, mark)] == mark; }
  void Add(uint64_t mark) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    slots_[Place(slots_, mark)] = mark;
    ++size_;
  }

 private:
  static size_t Place(const std::vector<uint64_t>& slots, uint64_t mark) {
    const size_t mask = slots.size() - 1;
    size_t at = static_cast<size_t>(mark) & mask;
    while (slots[at] != 0 && slots[at] != mark) at = (at + 1) & mask;
    return at;
  }
  void Grow() {
    std::vector<uint64_t> larger(2 * slots_.size());
    for (const uint64_t mark : slots_) {
      if (mark != 0) larger[Place(larger, mark)] = mark;
    }
    slots_.swap(larger);
  }
  std::vector<uint64_t> slots_ = std::vector<uint64_t>(kFirstSlots);
  size_t size_ = 0;
};

struct Memory {
  std::mutex mutex;
  uint64_t key[2];
  Table newer;
  Table older;
  // Without a working generator, nothing can continue.
  Memory() {
    if (!RandomPublic(reinterpret_cast<uint8_t*>(key), sizeof key).ok()) abort();
  }
  bool Has(uint64_t mark) const { return newer.Has(mark) || older.Has(mark); }
};

// Never destroyed: a thread may still be at work while the process runs its exit handlers.
Memory& TheMemory() {
  static auto* const memory = new Memory;
  return *memory;
}

// Never zero, so that none looks like an empty slot.
uint64_t Mark(const Memory& memory, uint64_t owner, const KeyIdentity& identity, const uint8_t* iv, size_t length) {
  SipHash hash(memory.key);
  hash.Add(owner);
  hash.Add(identity.data, identity.size);
  hash.Add(iv, length);
  const uint64_t mark = hash.Finish();
  return mark == 0 ? 1 : mark;
}

bool IsUsed(const Memory& memory, uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length) {
  return std::any_of(identities.begin(), identities.end(), [&](const KeyIdentity& identity) {
    return memory.Has(Mark(memory, owner, identity, iv, length));
  });
}

}  // namespace

uint64_t NewIvOwner() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool IvUsed(uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length) {
  Memory& memory = TheMemory();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  return IsUsed(memory, owner, identities, iv, length);
}

bool ClaimIv(uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length) {
  Memory& memory = TheMemory();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  if (IsUsed(memory, owner, identities, iv, length)) return false;
  for (const KeyIdentity& identity : identities) {
    if (memory.newer.size() >= kMostIvs) memory.older = std::exchange(memory.newer, Table());
    memory.newer.Add(Mark(memory, owner, identity, iv, length));
  }
  return true;
}

}  // namespace dke
