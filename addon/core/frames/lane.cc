#include "frames/lane.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/assert.h"

namespace dke {

using Word = std::atomic<uint32_t>;

// What the peer writes into `listening`.
constexpr uint32_t kAsleep = 2;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free, "the words are the other side's plain ones");

// Each line is written by one side only.
struct FrameLane::Shared {
  struct alignas(64) Peer {
    Word joined;
    Word asked;
    Word asked_length;
    Word fetched;
    Word listening;
    Word spinning;
    Word cpu;
  } peer;
  struct alignas(64) Own {
    Word answered;
    Word answered_length;
    Word taken;
    Word watching;
    Word crowded;
    Word bell;
  } own;
  alignas(4096) uint8_t request[kLargestRequest];
  uint8_t answer[kLargestAnswer];
};

std::unique_ptr<FrameLane> FrameLane::Create() {
  static_assert(sizeof(Shared) == 16384 && offsetof(Shared, own) == 64 && offsetof(Shared, request) == 4096, "as in PROTOCOL.md");
  std::unique_ptr<FrameLane> lane(new FrameLane);
  lane->fd_ = memfd_create("dke-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed, so that neither side can pull the memory from under the other.
  if (lane->fd_ < 0 || ftruncate(lane->fd_, sizeof(Shared)) != 0 ||
      fcntl(lane->fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return nullptr;
  }
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, lane->fd_, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, sizeof(Shared), MADV_DONTDUMP);
  madvise(memory, sizeof(Shared), MADV_DONTFORK);
  lane->shared_ = static_cast<Shared*>(memory);
  return lane;
}

FrameLane::~FrameLane() {
  CloseDescriptor();
  if (shared_ == nullptr) return;
  explicit_bzero(shared_->request, kLargestRequest);
  explicit_bzero(shared_->answer, kLargestAnswer);
  munmap(shared_, sizeof(Shared));
}

void FrameLane::CloseDescriptor() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool FrameLane::joined() const { return shared_->peer.joined.load(std::memory_order_relaxed) != 0; }

bool FrameLane::spinning() const { return joined() && shared_->peer.spinning.load(std::memory_order_relaxed) != 0; }

int FrameLane::cpu() const {
  const uint32_t told = shared_->peer.cpu.load(std::memory_order_relaxed);
  return told == 0 || told > INT32_MAX ? -1 : static_cast<int>(told) - 1;
}

void FrameLane::Watch(bool watching) { shared_->own.watching.store(watching ? 1 : 0, std::memory_order_seq_cst); }

void FrameLane::TellCrowded(bool crowded) {
  if (crowded == crowded_) return;
  crowded_ = crowded;
  shared_->own.crowded.store(crowded ? 1 : 0, std::memory_order_relaxed);
}

bool FrameLane::waiting() const { return shared_->peer.asked.load(std::memory_order_seq_cst) != taken_; }

int FrameLane::Take(uint8_t* into) {
  if (!waiting()) return 0;
  const uint32_t asked = shared_->peer.asked.load(std::memory_order_acquire);
  const uint32_t length = shared_->peer.asked_length.load(std::memory_order_relaxed);
  if (asked != taken_ + 1 || length == 0 || length > kLargestRequest) return -1;
  memcpy(into, shared_->request, length);
  explicit_bzero(shared_->request, length);
  taken_ = asked;
  shared_->own.taken.store(taken_, std::memory_order_release);
  return static_cast<int>(length);
}

bool FrameLane::Fits(size_t length) const {
  return length <= kLargestAnswer && shared_->peer.listening.load(std::memory_order_acquire) != 0 &&
         shared_->peer.fetched.load(std::memory_order_acquire) == answered_;
}

bool FrameLane::Put(const uint8_t* head, size_t head_length, const uint8_t* body, size_t body_length) {
  DKE_ASSERT(head_length + body_length > 0 && head_length + body_length <= kLargestAnswer);
  memcpy(shared_->answer, head, head_length);
  if (body_length > 0) memcpy(shared_->answer + head_length, body, body_length);
  shared_->own.answered_length.store(static_cast<uint32_t>(head_length + body_length), std::memory_order_relaxed);
  shared_->own.answered.store(++answered_, std::memory_order_seq_cst);
  Notify();
  return shared_->peer.listening.load(std::memory_order_seq_cst) != 0;
}

void FrameLane::Notify() {
  shared_->own.bell.store(++bell_, std::memory_order_seq_cst);
  if (shared_->peer.listening.load(std::memory_order_seq_cst) == kAsleep) {
    syscall(SYS_futex, &shared_->own.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace dke
