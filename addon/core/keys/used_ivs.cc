#include "keys/used_ivs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
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

// Slots of a set of numbers, by open addressing; 0 is an empty one. Pages that hold none are not in
// memory.
class Slots {
 public:
  Slots() = default;
  explicit Slots(size_t count) : slots_(static_cast<uint64_t*>(calloc(count, sizeof(uint64_t)))), count_(count) {
    // Without memory for what was used, nothing can be encrypted safely.
    DKE_ASSERT(slots_ != nullptr);
  }
  size_t count() const { return count_; }
  uint64_t operator[](size_t at) const { return slots_.get()[at]; }
  bool Has(uint64_t mark) const { return count_ > 0 && slots_.get()[Place(mark)] == mark; }
  // False when it was there. At most half of the slots may be taken.
  bool Add(uint64_t mark) {
    uint64_t& slot = slots_.get()[Place(mark)];
    return std::exchange(slot, mark) != mark;
  }

 private:
  struct Free {
    void operator()(uint64_t* slots) const { free(slots); }
  };
  size_t Place(uint64_t mark) const {
    const size_t mask = count_ - 1;
    size_t at = static_cast<size_t>(mark) & mask;
    while (slots_.get()[at] != 0 && slots_.get()[at] != mark) at = (at + 1) & mask;
    return at;
  }
  std::unique_ptr<uint64_t, Free> slots_;
  size_t count_ = 0;
};

// A set of numbers that grows while it is used: each addition moves a few numbers from the smaller
// slots, so that none waits for all of them.
class Table {
 public:
  size_t size() const { return size_; }
  bool Has(uint64_t mark) const { return slots_.Has(mark) || smaller_.Has(mark); }
  void Add(uint64_t mark) {
    if (2 * (size_ + 1) > slots_.count()) Grow();
    Move(kMovedEach);
    if (slots_.Add(mark)) ++size_;
  }

 private:
  // From `count` slots, half of which are taken, all have moved before twice as many are half
  // taken: after `count` / 2 more additions.
  static constexpr size_t kMovedEach = 8;
  void Grow() {
    Move(smaller_.count());
    smaller_ = std::exchange(slots_, Slots(std::max(kFirstSlots, 2 * slots_.count())));
    moved_ = 0;
  }
  void Move(size_t most) {
    for (; most > 0 && moved_ < smaller_.count(); --most, ++moved_) {
      if (smaller_[moved_] != 0) slots_.Add(smaller_[moved_]);
    }
    if (moved_ == smaller_.count()) smaller_ = Slots();
  }
  Slots slots_;
  Slots smaller_;
  size_t moved_ = 0;
  size_t size_ = 0;
};

// What one owner has used. When the newer table is full, the older one is forgotten.
struct Share {
  Table newer;
  Table older;
  bool Has(uint64_t mark) const { return newer.Has(mark) || older.Has(mark); }
  bool HasAny() const { return newer.size() + older.size() > 0; }
};

struct Memory {
  std::mutex mutex;
  uint64_t key[2];
  std::unordered_map<uint64_t, Share> shares;
  uint64_t owners = 0;
  // Owners that have used an IV.
  size_t users = 0;
  // Without a working generator, nothing can continue.
  Memory() {
    const bool made = RandomPublic(reinterpret_cast<uint8_t*>(key), sizeof key).ok();
    DKE_ASSERT(made);
  }
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
  const auto share = memory.shares.find(owner);
  return share != memory.shares.end() &&
         std::any_of(identities.begin(), identities.end(), [&](const KeyIdentity& identity) {
           return share->second.Has(Mark(memory, owner, identity, iv, length));
         });
}

}  // namespace

uint64_t NewIvOwner() {
  Memory& memory = TheMemory();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  memory.shares.try_emplace(++memory.owners);
  return memory.owners;
}

void EndIvOwner(uint64_t owner) {
  Memory& memory = TheMemory();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  const auto share = memory.shares.find(owner);
  if (share == memory.shares.end()) return;
  if (share->second.HasAny()) --memory.users;
  memory.shares.erase(share);
}

size_t IvsEach(size_t owners) { return std::max(kLeastIvs, kMostIvs / std::max<size_t>(owners, 1)); }

bool IvUsed(uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length) {
  Memory& memory = TheMemory();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  return IsUsed(memory, owner, identities, iv, length);
}

bool ClaimIv(uint64_t owner, const std::vector<KeyIdentity>& identities, const uint8_t* iv, size_t length) {
  Memory& memory = TheMemory();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  const auto found = memory.shares.find(owner);
  // After its end, an owner has no memory that a use could be marked in.
  if (found == memory.shares.end() || IsUsed(memory, owner, identities, iv, length)) return false;
  Share& share = found->second;
  if (!share.HasAny() && !identities.empty()) ++memory.users;
  for (const KeyIdentity& identity : identities) {
    if (share.newer.size() >= IvsEach(memory.users)) share.older = std::exchange(share.newer, Table());
    share.newer.Add(Mark(memory, owner, identity, iv, length));
  }
  return true;
}

}  // namespace dke
