// How long the loop looks for calls: by what the pauses between them were.
#include "patience.h"

#include "support.h"

namespace dke {
namespace {

constexpr int64_t kWindow = 20'000;

void Pauses(Patience& patience, int64_t pause, int count) {
  for (int i = 0; i < count; ++i) patience.Note(pause, kWindow);
}

void LooksAsLongAsUsualAtFirst(void**) {
  const Patience patience;
  assert_int_equal(patience.Window(kWindow), kWindow);
}

void LooksLongerForPausesThatThisMeets(void**) {
  Patience patience;
  Pauses(patience, 3 * kWindow, Patience::kBegin - 1);
  assert_int_equal(patience.Window(kWindow), kWindow);
  Pauses(patience, 3 * kWindow, 1);
  assert_int_equal(patience.Window(kWindow), Patience::kPatient * kWindow);
  // Short ones in between change nothing.
  Pauses(patience, kWindow, 1'000);
  assert_int_equal(patience.Window(kWindow), Patience::kPatient * kWindow);
}

void DoesNotForPausesThatAreLongerStill(void**) {
  Patience patience;
  for (int i = 0; i < 1'000; ++i) {
    Pauses(patience, 3 * kWindow, 1);
    Pauses(patience, (Patience::kPatient + 1) * kWindow, 1);
    assert_int_equal(patience.Window(kWindow), kWindow);
  }
}

void LosesPatienceWithinSomeCalls(void**) {
  Patience patience;
  Pauses(patience, 3 * kWindow, 1'000);
  Pauses(patience, 1'000 * kWindow, Patience::kMost / Patience::kLoss - 1);
  assert_int_equal(patience.Window(kWindow), Patience::kPatient * kWindow);
  Pauses(patience, 1'000 * kWindow, 1);
  assert_int_equal(patience.Window(kWindow), kWindow);
}

void GivesWayToOthers(void**) {
  Patience patience;
  Pauses(patience, 3 * kWindow, 1'000);
  for (int i = 0; i < Patience::kMost / Patience::kLoss; ++i) patience.Disturb();
  assert_int_equal(patience.Window(kWindow), kWindow);
  for (int i = 0; i < 100; ++i) {
    Pauses(patience, 3 * kWindow, 2);
    patience.Disturb();
  }
  assert_int_equal(patience.Window(kWindow), kWindow);
}

}  // namespace
}  // namespace dke

int main() {
  using namespace dke;
  const CMUnitTest tests[] = {
      cmocka_unit_test(LooksAsLongAsUsualAtFirst),          cmocka_unit_test(LooksLongerForPausesThatThisMeets),
      cmocka_unit_test(DoesNotForPausesThatAreLongerStill), cmocka_unit_test(LosesPatienceWithinSomeCalls),
      cmocka_unit_test(GivesWayToOthers),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
