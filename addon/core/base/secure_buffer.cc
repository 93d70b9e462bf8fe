#include "base/secure_buffer.h"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/assert.h"

namespace dke {
namespace {

// Blocks are powers of two from 32 bytes to 128 KiB, each behind a header and aligned to its own
// size, so that the two halves of a block differ in one bit of their addresses. Larger ones are
// mapped on their own.
constexpr size_t kHeader = 16;
constexpr size_t kSmallestShift = 5;
constexpr size_t kLargestShift = 17;
constexpr size_t kLargest = size_t{1} << kLargestShift;
constexpr size_t kClasses = kLargestShift - kSmallestShift + 1;
constexpr uint32_t kOwnMapping = 0xffffffff;
static_assert(SecureBuffer::kLargest == kLargest - kHeader, "the header's figure is this one");

struct Header {
  uint64_t size;  // what the caller asked for, or the mapping's length
  uint32_t size_class;
  uint32_t guard;
};
static_assert(sizeof(Header) == kHeader, "blocks stay aligned to 16 bytes");
constexpr uint32_t kGuard = 0x444b4531;

// The content of a free block; the rest of it is zero.
struct FreeBlock {
  FreeBlock* next;
};

constexpr size_t BlockSize(size_t size_class) { return size_t{1} << (size_class + kSmallestShift); }

size_t ClassOf(size_t total) {
  size_t size_class = 0;
  while (BlockSize(size_class) < total) size_class++;
  return size_class;
}

// Memory that is left out of core dumps, at an address that is a multiple of `alignment` (a power
// of two).
void* MapSecret(size_t size, size_t alignment, bool empty_in_child) {
  void* mapped = mmap(nullptr, size + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  uint8_t* const start = static_cast<uint8_t*>(mapped);
  const size_t before = (alignment - reinterpret_cast<uintptr_t>(start) % alignment) % alignment;
  if (before != 0) munmap(start, before);
  if (alignment != before) munmap(start + before + size, alignment - before);
  madvise(start + before, size, MADV_DONTDUMP);
  if (empty_in_child) madvise(start + before, size, MADV_WIPEONFORK);
  return start + before;
}

// Each page is locked when it is first used, so that a large arena takes memory only as it fills;
// the process's limit counts all of it.
bool LockSecret(void* memory, size_t size) { return mlock2(memory, size, MLOCK_ONFAULT) == 0 || mlock(memory, size) == 0; }

class Heap {
 public:
  // A heap that grows by chunks when `growth` is not 0.
  explicit Heap(size_t growth) : growth_(growth) {}

  void AddChunk(void* memory, size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    Divide(memory, size);
  }

  // From here on chunks, and mappings of their own, are locked, as far as the process's limit
  // allows; those that are there are locked now.
  void LockChunks() {
    std::lock_guard<std::mutex> lock(mutex_);
    lock_chunks_ = true;
    for (const Chunk& chunk : chunks_) (void)mlock(chunk.memory, chunk.size);
  }

  void* Allocate(size_t size) {
    if (size > SIZE_MAX / 2) return nullptr;
    const size_t total = size + kHeader;
    if (total > kLargest) return growth_ == 0 ? nullptr : AllocateOwnMapping(total);
    const size_t size_class = ClassOf(total);
    std::lock_guard<std::mutex> lock(mutex_);
    uint8_t* memory = Take(size_class);
    if (memory == nullptr) memory = Split(size_class);
    if (memory == nullptr) {
      Join();
      memory = Split(size_class);
    }
    if (memory == nullptr && Grow()) memory = Split(size_class);
    if (memory == nullptr) return nullptr;
    used_ += BlockSize(size_class);
    const Header header{size, static_cast<uint32_t>(size_class), kGuard};
    memcpy(memory, &header, sizeof header);
    return memory + kHeader;
  }

  void Free(void* pointer) {
    if (pointer == nullptr) return;
    uint8_t* memory = static_cast<uint8_t*>(pointer) - kHeader;
    Header header;
    memcpy(&header, memory, sizeof header);
    // A foreign or a twice freed block: the heap is no longer to be trusted.
    DKE_ASSERT(header.guard == kGuard && (header.size_class == kOwnMapping || header.size_class < kClasses));
    if (header.size_class == kOwnMapping) {
      Wipe(memory, header.size);
      munmap(memory, header.size);
      return;
    }
    const size_t block = BlockSize(header.size_class);
    Wipe(memory, block);
    std::lock_guard<std::mutex> lock(mutex_);
    Put(memory, header.size_class);
    DKE_ASSERT(used_ >= block);
    used_ -= block;
  }

  static size_t SizeOf(void* pointer) {
    Header header;
    memcpy(&header, static_cast<uint8_t*>(pointer) - kHeader, sizeof header);
    return header.size_class == kOwnMapping ? header.size - kHeader : header.size;
  }

  size_t used() {
    std::lock_guard<std::mutex> lock(mutex_);
    return used_;
  }
  size_t capacity() {
    std::lock_guard<std::mutex> lock(mutex_);
    return capacity_;
  }

 private:
  struct Chunk {
    void* memory;
    size_t size;
  };

  // Everything below is called with the mutex held.

  void Put(uint8_t* memory, size_t size_class) {
    FreeBlock* freed = reinterpret_cast<FreeBlock*>(memory);
    freed->next = free_[size_class];
    free_[size_class] = freed;
  }

  uint8_t* Take(size_t size_class) {
    FreeBlock* block = free_[size_class];
    if (block == nullptr) return nullptr;
    free_[size_class] = block->next;
    block->next = nullptr;
    return reinterpret_cast<uint8_t*>(block);
  }

  // A block of this class from the smallest larger one that is free.
  uint8_t* Split(size_t size_class) {
    for (size_t larger = size_class; larger < kClasses; larger++) {
      uint8_t* memory = Take(larger);
      if (memory == nullptr) continue;
      while (larger > size_class) {
        larger--;
        Put(memory + BlockSize(larger), larger);
      }
      return memory;
    }
    return nullptr;
  }

  // Puts free halves together again. Only when nothing large enough is left: a block is mostly
  // wanted again in its own size.
  void Join() {
    for (size_t size_class = 0; size_class + 1 < kClasses; size_class++) {
      std::vector<uint8_t*> blocks;
      while (uint8_t* memory = Take(size_class)) blocks.push_back(memory);
      std::sort(blocks.begin(), blocks.end());
      const uintptr_t half = BlockSize(size_class);
      for (size_t i = 0; i < blocks.size(); i++) {
        const uintptr_t address = reinterpret_cast<uintptr_t>(blocks[i]);
        const bool both = (address & half) == 0 && i + 1 < blocks.size() && blocks[i + 1] == blocks[i] + half;
        Put(blocks[i], both ? size_class + 1 : size_class);
        if (both) i++;
      }
    }
  }

  void Divide(void* memory, size_t size) {
    chunks_.push_back({memory, size});
    capacity_ += size;
    // The last one first, so that the chunk is used from its start.
    for (size_t at = size; at >= kLargest; at -= kLargest) Put(static_cast<uint8_t*>(memory) + at - kLargest, kClasses - 1);
  }

  bool Grow() {
    if (growth_ == 0) return false;
    void* memory = MapSecret(growth_, kLargest, false);
    if (memory == nullptr) return false;
    if (lock_chunks_) (void)mlock(memory, growth_);
    Divide(memory, growth_);
    return true;
  }

  void* AllocateOwnMapping(size_t total) {
    void* memory = MapSecret(total, 4096, false);
    if (memory == nullptr) return nullptr;
    if (lock_chunks_) (void)mlock(memory, total);
    Header header{total, kOwnMapping, kGuard};
    memcpy(memory, &header, sizeof header);
    return static_cast<uint8_t*>(memory) + kHeader;
  }

  std::mutex mutex_;
  FreeBlock* free_[kClasses] = {};
  std::vector<Chunk> chunks_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  const size_t growth_;
  // Off until the key arena has been locked, so that libcrypto's own memory never takes the arena's
  // share of the limit.
  std::atomic<bool> lock_chunks_{false};
};

// Never destroyed: libcrypto and late destructors may still free into them at exit.
Heap& KeyArena() {
  static Heap* heap = new Heap(0);
  return *heap;
}
Heap& CryptoHeap() {
  static Heap* heap = new Heap(size_t{1} << 20);
  return *heap;
}

std::mutex initialize_mutex;
bool initialized = false;
std::atomic<bool> arena_locked{false};

void* CryptoAllocate(size_t size, const char*, int) { return size == 0 ? nullptr : CryptoHeap().Allocate(size); }
void CryptoFree(void* pointer, const char*, int) { CryptoHeap().Free(pointer); }
void* CryptoReallocate(void* pointer, size_t size, const char*, int) {
  if (pointer == nullptr) return CryptoAllocate(size, nullptr, 0);
  if (size == 0) {
    CryptoHeap().Free(pointer);
    return nullptr;
  }
  void* fresh = CryptoHeap().Allocate(size);
  if (fresh == nullptr) return nullptr;
  size_t old = Heap::SizeOf(pointer);
  memcpy(fresh, pointer, old < size ? old : size);
  CryptoHeap().Free(pointer);
  return fresh;
}

}  // namespace

bool AdoptCryptoAllocations() {
  // Without openssl.cnf of the host or OPENSSL_CONF: that could put other code, another source of
  // random numbers or fewer algorithms in the place of what is linked in.
  return CRYPTO_set_mem_functions(CryptoAllocate, CryptoReallocate, CryptoFree) == 1 &&
         OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1;
}

Result<MemoryStatus> InitializeMemory(size_t arena_bytes, size_t least_bytes, bool allow_unlocked) {
  std::lock_guard<std::mutex> lock(initialize_mutex);
  if (initialized) return KeyArenaStatus();
  if (least_bytes < (size_t{1} << 17) || arena_bytes < least_bytes || arena_bytes > (size_t{1} << 32)) {
    return BadArgument("the key arena must have 128 KiB to 4 GiB");
  }
  void* memory = nullptr;
  for (;;) {
    arena_bytes -= arena_bytes % kLargest;
    memory = MapSecret(arena_bytes, kLargest, true);
    if (memory == nullptr) return Status(Code::kInternal, "no memory for the key arena");
    arena_locked = LockSecret(memory, arena_bytes);
    if (arena_locked || arena_bytes / 2 < least_bytes) break;
    munmap(memory, arena_bytes);
    arena_bytes /= 2;
  }
  if (!arena_locked && !allow_unlocked) {
    munmap(memory, arena_bytes);
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return Status(Code::kMemoryLock,
                  "cannot lock " + std::to_string(arena_bytes / 1024) + " KiB of memory for keys: RLIMIT_MEMLOCK is " +
                      std::to_string(limit.rlim_cur / 1024) + " KiB. Raise it (ulimit -l, or LimitMEMLOCK= in the systemd unit)");
  }
  KeyArena().AddChunk(memory, arena_bytes);
  if (arena_locked) CryptoHeap().LockChunks();
  initialized = true;
  return KeyArenaStatus();
}

MemoryStatus KeyArenaStatus() { return {KeyArena().capacity(), KeyArena().used(), arena_locked}; }

void Wipe(void* data, size_t size) {
  if (size != 0) OPENSSL_cleanse(data, size);
}

Result<SecureBuffer> SecureBuffer::Make(size_t size) {
  if (size == 0) return SecureBuffer();
  if (size > kLargest) return Status(Code::kInternal, "more than a block of the key arena holds");
  void* memory = KeyArena().Allocate(size);
  if (memory == nullptr) {
    if (KeyArena().capacity() == 0) return Status(Code::kMemoryLock, "the key arena is not initialised");
    return Status(Code::kMemoryLock, "the key arena is full: fewer keys at once, or a larger arena");
  }
  return SecureBuffer(static_cast<uint8_t*>(memory), size);
}

Result<SecureBuffer> SecureBuffer::CopyOf(const void* data, size_t size) {
  Result<SecureBuffer> made = Make(size);
  if (made.ok() && size != 0) memcpy(made.value().data(), data, size);
  return made;
}

void SecureBuffer::Truncate(size_t size) {
  if (size >= size_) return;
  Wipe(data_ + size, size_ - size);
  size_ = size;
}

void SecureBuffer::Release() {
  if (data_ != nullptr) KeyArena().Free(data_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace dke
