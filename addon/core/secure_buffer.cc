#include "secure_buffer.h"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

namespace dke {
namespace {

// Blocks are powers of two from 32 bytes to 128 KiB, each behind a header; larger ones are mapped by themselves.
constexpr size_t kHeader = 16;
constexpr size_t kSmallestShift = 5;
constexpr size_t kLargestShift = 17;
constexpr size_t kClasses = kLargestShift - kSmallestShift + 1;
constexpr uint32_t kOwnMapping = 0xffffffff;

struct Header {
  uint64_t size;  // what the caller asked for, or the mapping's length
  uint32_t size_class;
  uint32_t guard;
};
static_assert(sizeof(Header) == kHeader, "blocks stay aligned to 16 bytes");
constexpr uint32_t kGuard = 0x444b4531;

struct FreeBlock {
  FreeBlock* next;
};

size_t ClassOf(size_t total) {
  size_t shift = kSmallestShift;
  while ((size_t{1} << shift) < total) shift++;
  return shift - kSmallestShift;
}

void* MapSecret(size_t size, bool empty_in_child) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  madvise(mapped, size, MADV_DONTDUMP);
  if (empty_in_child) madvise(mapped, size, MADV_WIPEONFORK);
  return mapped;
}

class Heap {
 public:
  // A heap that grows by chunks when `growth` is not 0.
  explicit constexpr Heap(size_t growth) : growth_(growth) {}

  void AddChunk(void* memory, size_t size) {
    next_ = static_cast<uint8_t*>(memory);
    end_ = next_ + size;
    capacity_ += size;
  }

  void* Allocate(size_t size) {
    if (size > SIZE_MAX / 2) return nullptr;
    size_t total = size + kHeader;
    if (total > (size_t{1} << kLargestShift)) return growth_ == 0 ? nullptr : AllocateOwnMapping(total);
    size_t size_class = ClassOf(total);
    size_t block = size_t{1} << (size_class + kSmallestShift);
    std::lock_guard<std::mutex> lock(mutex_);
    uint8_t* memory;
    if (free_[size_class] != nullptr) {
      memory = reinterpret_cast<uint8_t*>(free_[size_class]);
      free_[size_class] = free_[size_class]->next;
      memset(memory, 0, sizeof(FreeBlock));
    } else {
      if (static_cast<size_t>(end_ - next_) < block && !Grow()) return nullptr;
      memory = next_;
      next_ += block;
    }
    used_ += block;
    Header header{size, static_cast<uint32_t>(size_class), kGuard};
    memcpy(memory, &header, sizeof header);
    return memory + kHeader;
  }

  void Free(void* pointer) {
    if (pointer == nullptr) return;
    uint8_t* memory = static_cast<uint8_t*>(pointer) - kHeader;
    Header header;
    memcpy(&header, memory, sizeof header);
    if (header.guard != kGuard) abort();  // a foreign or a twice freed block: the heap is no longer to be trusted
    if (header.size_class == kOwnMapping) {
      Wipe(memory, header.size);
      munmap(memory, header.size);
      return;
    }
    size_t block = size_t{1} << (header.size_class + kSmallestShift);
    Wipe(memory, block);
    std::lock_guard<std::mutex> lock(mutex_);
    FreeBlock* freed = reinterpret_cast<FreeBlock*>(memory);
    freed->next = free_[header.size_class];
    free_[header.size_class] = freed;
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
  size_t capacity() const { return capacity_; }

 private:
  void* AllocateOwnMapping(size_t total) {
    void* memory = MapSecret(total, false);
    if (memory == nullptr) return nullptr;
    Header header{total, kOwnMapping, kGuard};
    memcpy(memory, &header, sizeof header);
    return static_cast<uint8_t*>(memory) + kHeader;
  }

  // What is left of the old chunk is lost: at most one block of the largest class.
  bool Grow() {
    if (growth_ == 0) return false;
    void* memory = MapSecret(growth_, false);
    if (memory == nullptr) return false;
    // Locked as far as the limit allows; the key arena took its share first or takes it from what this leaves.
    if (lock_chunks_) (void)mlock(memory, growth_);
    AddChunk(memory, growth_);
    return true;
  }

  std::mutex mutex_;
  FreeBlock* free_[kClasses] = {};
  uint8_t* next_ = nullptr;
  uint8_t* end_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
  const size_t growth_;

 public:
  // Off until the key arena has been locked, so that libcrypto's own memory never takes the arena's share of the limit.
  bool lock_chunks_ = false;
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
bool arena_locked = false;

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
  return CRYPTO_set_mem_functions(CryptoAllocate, CryptoReallocate, CryptoFree) == 1;
}

Result<MemoryStatus> InitializeMemory(size_t arena_bytes, bool allow_unlocked) {
  std::lock_guard<std::mutex> lock(initialize_mutex);
  if (initialized) return KeyArenaStatus();
  if (arena_bytes < (size_t{1} << 17) || arena_bytes > (size_t{1} << 32)) {
    return BadArgument("the key arena must have 128 KiB to 4 GiB");
  }
  void* memory = MapSecret(arena_bytes, true);
  if (memory == nullptr) return Status(Code::kInternal, "no memory for the key arena");
  arena_locked = mlock(memory, arena_bytes) == 0;
  if (!arena_locked && !allow_unlocked) {
    munmap(memory, arena_bytes);
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return Status(Code::kMemoryLock,
                  "cannot lock " + std::to_string(arena_bytes / 1024) + " KiB of memory for keys: RLIMIT_MEMLOCK is " +
                      std::to_string(limit.rlim_cur / 1024) + " KiB. Raise it (ulimit -l, or LimitMEMLOCK= in the systemd unit)");
  }
  KeyArena().AddChunk(memory, arena_bytes);
  CryptoHeap().lock_chunks_ = arena_locked;
  initialized = true;
  return KeyArenaStatus();
}

MemoryStatus KeyArenaStatus() { return {KeyArena().capacity(), KeyArena().used(), arena_locked}; }

void Wipe(void* data, size_t size) {
  if (size != 0) OPENSSL_cleanse(data, size);
}

Result<SecureBuffer> SecureBuffer::Make(size_t size) {
  if (size == 0) return SecureBuffer();
  void* memory = KeyArena().Allocate(size);
  if (memory == nullptr) {
    if (KeyArena().capacity() == 0) return Status(Code::kMemoryLock, "the key arena is not initialised");
    return Status(Code::kInternal, "the key arena is full: fewer keys at once, or a larger arena");
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
