// Chooses the CPU on which a loop runs, relative to the peer that calls it.
//
// Two processes that pass messages to and fro look like one to the scheduler: at each moment only
// one of them has something to do, so it may leave both on one CPU permanently while another is
// idle. There each message costs two changes of process, and where the two are scheduled as two
// groups, yielding the CPU to the other does not even work. So a loop that has found itself on its
// only caller's CPU for some time, and another CPU idle in the meantime, goes there. Only its own
// thread moves, and it may run where it might before.
//
// What this leaves out: who calls, and on which CPU (frames/frame_loop.cc, lane.h).
#pragma once

#include <sched.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace dke {

// When to check the other CPUs, and when to move: by samples of the caller's CPU. Nanoseconds.
class CpuPlacement {
 public:
  enum class Step { kStay, kBegin, kEnd };
  // Samples in a row that find both on one CPU before the others are checked, and samples that find
  // them apart after which the count restarts.
  static constexpr int kChecks = 8;
  // How long the others are watched.
  static constexpr int64_t kWatch = 100'000'000;
  // Between two attempts, when the scheduler has brought both together again: twice as long each
  // time.
  static constexpr int64_t kFirstPause = 200'000'000;
  static constexpr int64_t kLongestPause = 30'000'000'000;

  // kBegin: remember how idle the CPUs have been so far. kEnd: whichever was idle since then is the
  // placement to go to.
  Step Check(bool together, int64_t now);

 private:
  int together_ = 0;
  int apart_ = 0;
  bool watching_ = false;
  int64_t since_ = 0;
  int64_t pause_ = 0;
  int64_t next_ = 0;
};

// What a CPU has done since the machine started, in the kernel's ticks.
struct CpuTime {
  uint64_t idle = 0;
  uint64_t all = 0;
};

// The text of /proc/stat. A CPU that it does not name has done nothing and never been idle.
std::vector<CpuTime> ParseCpuTimes(std::string_view text);
// The CPU times of this moment; empty when the system does not tell them.
std::vector<CpuTime> ReadCpuTimes();
// One that has been idle for at least nine tenths of the time between, the most idle; -1 for none.
int IdleCpu(const std::vector<CpuTime>& before, const std::vector<CpuTime>& after, const cpu_set_t& allowed, int own);
// Goes to a CPU where this thread may run. Where it may run stays as it was.
bool MoveTo(int cpu);

}  // namespace dke
