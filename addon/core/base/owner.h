// Who made a key, a running operation or a request body: the thread that asked for it. What a
// thread has made and not released ends when its Node environment ends (binding/addon.cc), so
// that a worker that is terminated leaves nothing behind.
#pragma once

#include <atomic>
#include <cstdint>

namespace dke {

using Owner = uint64_t;

// This thread's number, never given to another one.
inline Owner ThisThread() {
  static std::atomic<Owner> next{1};
  thread_local const Owner mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace dke
