// The two heaps of secure_buffer.h as the kernel sees them: locked, excluded from dumps, empty in a
// child, wiped; and as their users see them: blocks that do not overlap, space that is reused, an
// end with a reason.
#include "base/secure_buffer.h"

#include <openssl/crypto.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "support.h"

namespace dke {
namespace {

constexpr size_t kArena = size_t{1} << 20;
constexpr size_t kLargest = SecureBuffer::kLargest;

// The flags (proc(5), VmFlags) of the mapping that an address is in.
std::string FlagsOf(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    unsigned long from;
    unsigned long to;
    if (sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2 && line.find(':') > line.find(' ')) {
      inside = reinterpret_cast<unsigned long>(address) >= from && reinterpret_cast<unsigned long>(address) < to;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      return line + " ";
    }
  }
  return "";
}

bool HasFlag(const void* address, const char* flag) { return FlagsOf(address).find(std::string(" ") + flag + " ") != std::string::npos; }

// What a child does ends by this signal, or 0 when it ends on its own.
int SignalOf(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGABRT, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// The sanitizers replace mlock by nothing: locking is tested in the builds without them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DKE_MLOCK_REPLACED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DKE_MLOCK_REPLACED 1
#endif
#endif
#ifdef DKE_MLOCK_REPLACED
constexpr bool kLocks = false;
#else
constexpr bool kLocks = true;
#endif

// The tests are in the order in which a process lives: before the arena, making it, using it.

TEST(WithoutAnArenaThereIsNoBuffer) {
  const Result<SecureBuffer> made = SecureBuffer::Make(32);
  Refused(made, Code::kMemoryLock);
  assert_true(SecureBuffer::Make(0).ok());
  assert_int_equal(KeyArenaStatus().capacity, 0);
}

TEST(LibcryptoIsAdoptedBeforeItAllocates) {
  assert_true(AdoptCryptoAllocations());
  void* early = OPENSSL_malloc(100);
  assert_non_null(early);
  assert_true(HasFlag(early, "dd"));
  OPENSSL_free(early);
}

TEST(AnArenaHas128KibTo4Gib) {
  Refused(InitializeMemory(0, true), Code::kBadArgument);
  Refused(InitializeMemory((size_t{1} << 17) - 1, true), Code::kBadArgument);
  Refused(InitializeMemory((size_t{1} << 32) + 1, true), Code::kBadArgument);
}

TEST(ALimitThatIsTooLowIsNamedWithItsCure) {
  if (!kLocks) {
    print_message("skipped: the sanitizer replaces mlock\n");
    return;
  }
  // Root may lock beyond the limit (CAP_IPC_LOCK), so the child drops its capabilities.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit low{65536, 65536};
    if (setrlimit(RLIMIT_MEMLOCK, &low) != 0 || (geteuid() == 0 && setuid(65533) != 0)) _exit(2);
    const Result<MemoryStatus> made = InitializeMemory(kArena, false);
    const std::string& message = made.status().message();
    const bool good = made.status().code() == Code::kMemoryLock && message.find("cannot lock 1024 KiB") != std::string::npos &&
                      message.find("RLIMIT_MEMLOCK is 64 KiB") != std::string::npos && message.find("LimitMEMLOCK=") != std::string::npos &&
                      KeyArenaStatus().capacity == 0 && InitializeMemory(kArena, true).ok() && !KeyArenaStatus().locked;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(TheArenaIsLockedAndLeftOutOfDumps) {
  void* early = OPENSSL_malloc(100);
  Good(InitializeMemory(kArena + 5000, false));
  assert_true(KeyArenaStatus().locked);
  assert_int_equal(KeyArenaStatus().capacity, kArena);  // whole steps
  assert_int_equal(Good(InitializeMemory(kArena * 2, false)).capacity, kArena);  // once
  const SecureBuffer buffer = Good(SecureBuffer::Make(32));
  if (kLocks) assert_true(HasFlag(buffer.data(), "lo"));
  assert_true(HasFlag(buffer.data(), "dd"));
  assert_true(HasFlag(buffer.data(), "wf"));
  // Memory that libcrypto had before, and memory that it allocates now.
  void* late = OPENSSL_malloc(100);
  for (void* memory : {early, late}) {
    if (kLocks) assert_true(HasFlag(memory, "lo"));
    assert_true(HasFlag(memory, "dd"));
    OPENSSL_free(memory);
  }
}

TEST(ALargeCryptoBlockIsLockedAndLeftOutOfDumps) {
  uint8_t* memory = static_cast<uint8_t*>(OPENSSL_malloc(1000000));
  assert_non_null(memory);
  memory[999999] = 1;
  assert_true(HasFlag(memory, "dd"));
  if (kLocks) assert_true(HasFlag(memory, "lo"));
  OPENSSL_free(memory);
}

TEST(AForkedChildSeesNothing) {
  const SecureBuffer buffer = Good(SecureBuffer::CopyOf("the secret value", 16));
  const pid_t child = fork();
  if (child == 0) {
    bool empty = true;
    for (size_t i = 0; i < buffer.size(); i++) empty = empty && buffer.data()[i] == 0;
    _exit(empty ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_memory_equal(buffer.data(), "the secret value", 16);
}

TEST(WhatIsGivenBackIsWiped) {
  for (const size_t size : {size_t{1}, size_t{16}, size_t{32}, size_t{100}, size_t{4096}, kLargest}) {
    SecureBuffer buffer = Good(SecureBuffer::Make(size));
    for (size_t i = 0; i < size; i++) assert_int_equal(buffer.data()[i], 0);
    memset(buffer.data(), 0xa5, size);
    const uint8_t* memory = buffer.data();
    buffer.Release();
    assert_null(buffer.data());
    assert_int_equal(buffer.size(), 0);
    // The arena stays mapped, so its old content can be checked. Joining and splitting may write
    // addresses, never 0xa5.
    for (size_t i = 0; i < size; i++) assert_int_not_equal(memory[i], 0xa5);
    // Whatever is handed out next is zero throughout.
    for (const size_t next : {size_t{24}, size}) {
      const SecureBuffer again = Good(SecureBuffer::Make(next));
      for (size_t i = 0; i < next; i++) assert_int_equal(again.data()[i], 0);
    }
  }
}

TEST(CuttingAndMovingLeaveNothingBehind) {
  SecureBuffer buffer = Good(SecureBuffer::CopyOf("0123456789abcdef", 16));
  buffer.Truncate(4);
  assert_int_equal(buffer.size(), 4);
  assert_memory_equal(buffer.data(), "0123\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  buffer.Truncate(9);  // never longer
  assert_int_equal(buffer.size(), 4);
  const size_t used = KeyArenaStatus().used;
  SecureBuffer moved(std::move(buffer));
  assert_memory_equal(moved.data(), "0123", 4);
  assert_int_equal(KeyArenaStatus().used, used);
  SecureBuffer other = Good(SecureBuffer::Make(64));
  other = std::move(moved);
  assert_int_equal(KeyArenaStatus().used, used);
  assert_memory_equal(other.data(), "0123", 4);
}

TEST(CryptoMemoryIsWipedAndGrowsWithItsContents) {
  uint8_t* memory = static_cast<uint8_t*>(OPENSSL_malloc(48));
  memset(memory, 0x5a, 48);
  uint8_t* larger = static_cast<uint8_t*>(OPENSSL_realloc(memory, 4000));
  assert_true(larger != memory);
  for (size_t i = 0; i < 48; i++) {
    assert_int_not_equal(memory[i], 0x5a);
    assert_int_equal(larger[i], 0x5a);
  }
  uint8_t* smaller = static_cast<uint8_t*>(OPENSSL_realloc(larger, 8));
  for (size_t i = 0; i < 8; i++) assert_int_equal(smaller[i], 0x5a);
  OPENSSL_free(smaller);
  // Across the size from which blocks are mapped separately.
  uint8_t* mapped = static_cast<uint8_t*>(OPENSSL_malloc(kLargest));
  memset(mapped, 0x77, kLargest);
  mapped = static_cast<uint8_t*>(OPENSSL_realloc(mapped, kLargest + 1));
  for (size_t i = 0; i < kLargest; i++) assert_int_equal(mapped[i], 0x77);
  mapped = static_cast<uint8_t*>(OPENSSL_realloc(mapped, 100));
  for (size_t i = 0; i < 100; i++) assert_int_equal(mapped[i], 0x77);
  OPENSSL_free(mapped);
}

TEST(ABlockThatIsFreedTwiceOrForeignEndsTheProcess) {
  assert_int_equal(SignalOf([] {
                     void* memory = OPENSSL_malloc(40);
                     OPENSSL_free(memory);
                     OPENSSL_free(memory);
                   }),
                   SIGABRT);
  assert_int_equal(SignalOf([] {
                     alignas(16) static uint8_t foreign[64] = {};
                     OPENSSL_free(foreign + 32);
                   }),
                   SIGABRT);
  // Writing over the end of the block before it destroys the header.
  assert_int_equal(SignalOf([] {
                     uint8_t* memory = static_cast<uint8_t*>(OPENSSL_malloc(40));
                     volatile uint8_t* header = memory - 16;
                     for (int i = 0; i < 16; i++) header[i] = 0xff;
                     OPENSSL_free(memory);
                   }),
                   SIGABRT);
}

TEST(AFailedCheckSaysWhereAndLeavesNoCoreDump) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &any);
    signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    alignas(16) static uint8_t foreign[64] = {};
    memset(foreign, 'S', sizeof foreign);
    OPENSSL_free(foreign + 32);
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char text[256];
  for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;) said.append(text, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !WCOREDUMP(status));
  const std::string front = "dke: a check of the core failed, and the process ends: ";
  assert_int_equal(said.rfind(front, 0), 0);
  assert_true(said.find("base/secure_buffer.cc:") != std::string::npos && said.find("SS") == std::string::npos);
}

TEST(AFullArenaSaysSoAndComesBack) {
  const size_t before = KeyArenaStatus().used;
  for (const size_t size : {size_t{16}, size_t{40}, size_t{3000}, kLargest}) {
    std::vector<SecureBuffer> held;
    for (;;) {
      Result<SecureBuffer> made = SecureBuffer::Make(size);
      if (!made.ok()) {
        Refused(made, Code::kMemoryLock);
        assert_non_null(strstr(made.status().message().c_str(), "larger arena"));
        break;
      }
      held.push_back(made.Take());
    }
    // No space is lost: small blocks can be joined to large ones, down to the last block.
    assert_int_equal(KeyArenaStatus().used, kArena);
    held.clear();
    assert_int_equal(KeyArenaStatus().used, before);
  }
  Refused(SecureBuffer::Make(kLargest + 1), Code::kInternal);
  Refused(SecureBuffer::Make(SIZE_MAX), Code::kInternal);
  Refused(SecureBuffer::Make(SIZE_MAX / 2), Code::kInternal);
}

TEST(BlocksNeverOverlap) {
  // A fixed walk (a 64-bit linear congruential generator) of 200,000 steps over sizes and places.
  uint64_t state = 42;
  const auto pick = [&state](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  struct Held {
    SecureBuffer buffer;
    uint8_t fill;
  };
  std::vector<Held> held;
  const size_t before = KeyArenaStatus().used;
  size_t refused = 0;
  for (int step = 0; step < 200000; step++) {
    if (!held.empty() && (pick(2) == 0 || held.size() > 400)) {
      const size_t at = pick(held.size());
      const Held& one = held[at];
      // First, last and some byte between: what overlaps has another fill.
      const size_t size = one.buffer.size();
      for (const size_t i : {size_t{0}, size - 1, static_cast<size_t>(pick(size))}) assert_int_equal(one.buffer.data()[i], one.fill);
      std::swap(held[at], held.back());
      held.pop_back();
      continue;
    }
    const size_t size = 1 + pick(size_t{1} << (1 + pick(17)));
    Result<SecureBuffer> made = SecureBuffer::Make(std::min(size, kLargest));
    if (!made.ok()) {
      refused++;
      continue;
    }
    const uint8_t fill = static_cast<uint8_t>(1 + pick(255));
    assert_int_equal(reinterpret_cast<uintptr_t>(made.value().data()) % 16, 0);
    assert_int_equal(made.value().data()[made.value().size() - 1], 0);
    memset(made.value().data(), fill, made.value().size());
    held.push_back({made.Take(), fill});
  }
  held.clear();
  assert_int_equal(KeyArenaStatus().used, before);
  // The walk must have met a full arena, or it has not tried joining.
  assert_true(refused > 0);
  // All halves are joined again: the whole arena can be allocated in its largest blocks.
  std::vector<SecureBuffer> largest;
  for (Result<SecureBuffer> made = SecureBuffer::Make(kLargest); made.ok(); made = SecureBuffer::Make(kLargest)) largest.push_back(made.Take());
  assert_int_equal(largest.size(), kArena / (kLargest + 16));
}

TEST(ManyThreadsShareTheHeaps) {
  const size_t before = KeyArenaStatus().used;
  std::vector<std::thread> threads;
  std::atomic<int> faults{0};
  for (uint8_t number = 1; number <= 8; number++) {
    threads.emplace_back([number, &faults] {
      for (int round = 0; round < 3000; round++) {
        const size_t size = static_cast<size_t>(round * 7 % 2000 + 1);
        Result<SecureBuffer> made = SecureBuffer::Make(size);
        uint8_t* memory = static_cast<uint8_t*>(OPENSSL_malloc(size));
        if (!made.ok() || memory == nullptr) {
          faults++;
          return;
        }
        memset(made.value().data(), number, size);
        memset(memory, number, size);
        for (size_t i = 0; i < size; i += 13) {
          if (made.value().data()[i] != number || memory[i] != number) faults++;
        }
        OPENSSL_free(memory);
        (void)KeyArenaStatus();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  assert_int_equal(faults, 0);
  assert_int_equal(KeyArenaStatus().used, before);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
