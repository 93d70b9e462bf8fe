// What other threads may do to a loop, and the registry of loops: frames.h.
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>

#include "frames.h"

namespace dke {
namespace {

struct Registry {
  std::mutex mutex;
  uint32_t next = 1;
  std::unordered_map<uint32_t, std::weak_ptr<FrameSignal>> signals;
};

// Never destroyed: a thread may still stop a loop while the process runs its exit handlers.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

std::shared_ptr<FrameSignal> FindSignal(uint32_t id) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.signals.find(id);
  return found == registry.signals.end() ? nullptr : found->second.lock();
}

}  // namespace

uint32_t FrameSignal::Register(const std::shared_ptr<FrameSignal>& signal) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const uint32_t id = registry.next++;
  registry.signals.emplace(id, signal);
  return id;
}

void FrameSignal::Unregister(uint32_t id) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  registry.signals.erase(id);
}

FrameSignal::FrameSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

FrameSignal::~FrameSignal() {
  if (fd_ >= 0) close(fd_);
}

void FrameSignal::Raise(uint32_t what) {
  raised_.fetch_or(what, std::memory_order_acq_rel);
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const ssize_t ignored = write(fd_, &one, sizeof one);
}

uint32_t FrameSignal::Take() {
  // The descriptor first: a signal raised in between leaves it readable, which costs one empty round and loses nothing.
  uint64_t count;
  [[maybe_unused]] const ssize_t ignored = read(fd_, &count, sizeof count);
  return raised_.fetch_and(kStop, std::memory_order_acq_rel);
}

void FrameSignal::WakeById(uint32_t id) {
  if (const auto signal = FindSignal(id)) signal->Wake();
}

void FrameSignal::StopById(uint32_t id) {
  if (const auto signal = FindSignal(id)) signal->Stop();
}

}  // namespace dke
