#include "process_end.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace dke {

namespace {

std::atomic<int64_t> end_at{0};
std::atomic<int> code{0};
std::atomic<bool> is_running{false};

int64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

void* Wait(void*) {
  for (;;) {
    const int64_t left = end_at.load() - Now();
    if (left <= 0) _exit(code.load());
    // In steps, so that an earlier time that is set in the meantime counts.
    const int64_t step = left < 20 ? left : 20;
    const timespec pause{0, static_cast<long>(step) * 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

bool EndProcessIn(uint32_t milliseconds, int exit_code) {
  code.store(exit_code);
  end_at.store(Now() + milliseconds);
  if (is_running.exchange(true)) return true;
  // Signals are for the other threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, Wait, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_detach(thread);
  is_running.store(started);
  return started;
}

}  // namespace dke
