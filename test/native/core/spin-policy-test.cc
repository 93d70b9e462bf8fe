// How long the loop polls for calls, depending on the pauses between them.
#include "frames/spin_policy.h"

#include "support.h"

namespace dke {
namespace {

constexpr int64_t kWindow = 20'000;

void Pauses(SpinPolicy& policy, int64_t pause, int count) {
  for (int i = 0; i < count; ++i) policy.Note(pause, kWindow);
}

TEST(LooksAsLongAsUsualAtFirst) {
  const SpinPolicy policy;
  assert_int_equal(policy.Window(kWindow), kWindow);
}

TEST(LooksLongerForPausesThatThisMeets) {
  SpinPolicy policy;
  Pauses(policy, 3 * kWindow, SpinPolicy::kExtendAt - 1);
  assert_int_equal(policy.Window(kWindow), kWindow);
  Pauses(policy, 3 * kWindow, 1);
  assert_int_equal(policy.Window(kWindow), SpinPolicy::kExtended * kWindow);
  // Short ones in between change nothing.
  Pauses(policy, kWindow, 1'000);
  assert_int_equal(policy.Window(kWindow), SpinPolicy::kExtended * kWindow);
}

TEST(DoesNotForPausesThatAreLongerStill) {
  SpinPolicy policy;
  for (int i = 0; i < 1'000; ++i) {
    Pauses(policy, 3 * kWindow, 1);
    Pauses(policy, (SpinPolicy::kExtended + 1) * kWindow, 1);
    assert_int_equal(policy.Window(kWindow), kWindow);
  }
}

TEST(LosesPatienceWithinSomeCalls) {
  SpinPolicy policy;
  Pauses(policy, 3 * kWindow, 1'000);
  Pauses(policy, 1'000 * kWindow, SpinPolicy::kMost / SpinPolicy::kLoss - 1);
  assert_int_equal(policy.Window(kWindow), SpinPolicy::kExtended * kWindow);
  Pauses(policy, 1'000 * kWindow, 1);
  assert_int_equal(policy.Window(kWindow), kWindow);
}

TEST(GivesWayToOthers) {
  SpinPolicy policy;
  Pauses(policy, 3 * kWindow, 1'000);
  for (int i = 0; i < SpinPolicy::kMost / SpinPolicy::kLoss; ++i) policy.Disturb();
  assert_int_equal(policy.Window(kWindow), kWindow);
  for (int i = 0; i < 100; ++i) {
    Pauses(policy, 3 * kWindow, 2);
    policy.Disturb();
  }
  assert_int_equal(policy.Window(kWindow), kWindow);
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
