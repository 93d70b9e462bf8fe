// When the loop looks for another CPU than its caller's, and which it chooses. That it runs there
// is the scheduler's business.
#include "frames/cpu_placement.h"

#include <algorithm>

#include "support.h"

namespace dke {
namespace {

using Step = CpuPlacement::Step;

// Looks that find both on one CPU, the last at `now`.
Step Together(CpuPlacement& placement, int looks, int64_t now) {
  Step step = Step::kStay;
  for (int i = 0; i < looks; ++i) {
    assert_true(step == Step::kStay);
    step = placement.Check(true, now);
  }
  return step;
}

TEST(WatchesTheOthersBeforeItGoes) {
  CpuPlacement placement;
  assert_true(Together(placement, CpuPlacement::kChecks - 1, 1) == Step::kStay);
  assert_true(placement.Check(true, 1) == Step::kBegin);
  assert_true(Together(placement, 100, CpuPlacement::kWatch) == Step::kStay);
  assert_true(placement.Check(true, CpuPlacement::kWatch + 1) == Step::kEnd);
}

TEST(StaysWhenTheCallerHasGoneElsewhere) {
  CpuPlacement placement;
  for (int i = 0; i < 100; ++i) {
    assert_true(Together(placement, CpuPlacement::kChecks - 1, 1) == Step::kStay);
    assert_true(placement.Check(false, 1) == Step::kStay);
  }
  assert_true(Together(placement, CpuPlacement::kChecks, 1) == Step::kBegin);
  assert_true(placement.Check(false, 2) == Step::kStay);
  assert_true(placement.Check(true, CpuPlacement::kWatch + 2) == Step::kStay);
}

TEST(TriesLessAndLessOften) {
  CpuPlacement placement;
  int64_t now = 0;
  assert_true(Together(placement, CpuPlacement::kChecks, now) == Step::kBegin);
  for (int64_t pause = CpuPlacement::kFirstPause; pause < 4 * CpuPlacement::kLongestPause; pause *= 2) {
    now += CpuPlacement::kWatch;
    assert_true(placement.Check(true, now) == Step::kEnd);
    now += std::min(pause, CpuPlacement::kLongestPause);
    assert_true(Together(placement, CpuPlacement::kChecks, now - 1) == Step::kStay);
    assert_true(placement.Check(true, now) == Step::kBegin);
  }
  // After some time apart from the caller, the pauses begin with the first one again.
  for (int i = 0; i < CpuPlacement::kChecks; ++i) placement.Check(false, now);
  now += CpuPlacement::kLongestPause;
  assert_true(Together(placement, CpuPlacement::kChecks, now) == Step::kBegin);
  now += CpuPlacement::kWatch;
  assert_true(placement.Check(true, now) == Step::kEnd);
  assert_true(Together(placement, CpuPlacement::kChecks, now + CpuPlacement::kFirstPause) == Step::kBegin);
}

TEST(ReadsWhatTheKernelTells) {
  const std::vector<CpuTime> times = ParseCpuTimes(
      "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 9 10\ncpu2 1 1 1 1 1 1 1 1 0 0\ncpux 1 1\nintr 12 13\ncpu1");
  assert_int_equal(times.size(), 3);
  assert_int_equal(times[0].idle, 45);
  assert_int_equal(times[0].all, 91);
  assert_int_equal(times[1].all, 0);
  assert_int_equal(times[2].idle, 2);
  assert_int_equal(times[2].all, 8);
  assert_true(ParseCpuTimes("").empty());
  assert_true(ParseCpuTimes("cpu99999999999 1 2 3 4 5\ncpu-1 1 2 3 4 5\n").empty());
}

TEST(ReadsThisMachines) {
  const std::vector<CpuTime> times = ReadCpuTimes();
  assert_false(times.empty());
  assert_true(std::any_of(times.begin(), times.end(), [](const CpuTime& each) { return each.all > 0; }));
  for (const CpuTime& each : times) assert_true(each.idle <= each.all);
}

TEST(ChoosesTheMostIdleOfThoseAllowed) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const int cpu : {0, 1, 2, 4, 5}) CPU_SET(cpu, &allowed);
  const std::vector<CpuTime> before(6, CpuTime{100, 1'000});
  // Own, busy, idle nearly all the time, not allowed, idle, did not run.
  const std::vector<CpuTime> after = {{200, 1'100}, {189, 1'100}, {191, 1'100}, {200, 1'100}, {195, 1'100}, {100, 1'000}};
  assert_int_equal(IdleCpu(before, after, allowed, 0), 4);
  assert_int_equal(IdleCpu(before, after, allowed, 4), 0);
  CPU_CLR(4, &allowed);
  assert_int_equal(IdleCpu(before, after, allowed, 0), 2);
  CPU_CLR(2, &allowed);
  assert_int_equal(IdleCpu(before, after, allowed, 0), -1);
  assert_int_equal(IdleCpu(before, {}, allowed, 0), -1);
}

TEST(MayRunWhereItMightBefore) {
  cpu_set_t before;
  cpu_set_t after;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    assert_int_equal(MoveTo(cpu), CPU_ISSET(cpu, &before) != 0);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
  }
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
