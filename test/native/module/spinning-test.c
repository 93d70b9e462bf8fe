/* When the library spins for its answers and when it sleeps: the verdict of a trial, by what calls took each way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "spinning.h"

enum { TRIAL = SPINNING_PHASES * (SPINNING_FIRST + SPINNING_CALLS) };

/** One trial, with what calls take each way. */
static void try_both(struct spinning *spinning, int64_t spun, int64_t slept) {
  for (unsigned i = 0; i < TRIAL; i++) spinning_note(spinning, spinning->sleeps ? slept : spun);
}

/** Calls until the next trial begins. */
static unsigned calls_kept(struct spinning *spinning) {
  unsigned calls = 0;
  do {
    assert_false(spinning_counts(spinning));
    calls++;
  } while (!spinning_note(spinning, 0));
  return calls;
}

static void keeps_the_faster(void **state) {
  struct spinning spinning;

  (void)state;
  spinning_begin(&spinning);
  try_both(&spinning, 5, 16);
  assert_false(spinning.sleeps);
  spinning_begin(&spinning);
  try_both(&spinning, 57, 14);
  assert_true(spinning.sleeps);
}

static void spins_when_both_are_about_the_same(void **state) {
  struct spinning spinning;

  (void)state;
  spinning_begin(&spinning);
  try_both(&spinning, 100, 95);
  assert_false(spinning.sleeps);
}

static void a_few_long_calls_decide_nothing(void **state) {
  struct spinning spinning;
  unsigned calls = 0;

  (void)state;
  spinning_begin(&spinning);
  /* The first ones spin, and eight of them are interrupted. */
  for (unsigned i = 0; i < TRIAL; i++) {
    const int64_t usual = spinning.sleeps ? 16 : 5;
    const bool interrupted = !spinning.sleeps && spinning_counts(&spinning) && calls < SPINNING_ODD;
    if (interrupted) calls++;
    spinning_note(&spinning, interrupted ? 5000 : usual);
  }
  assert_int_equal(calls, SPINNING_ODD);
  assert_false(spinning.sleeps);
}

static void many_long_calls_do(void **state) {
  struct spinning spinning;

  (void)state;
  spinning_begin(&spinning);
  for (unsigned i = 0; i < TRIAL; i++) spinning_note(&spinning, spinning.sleeps ? 16 : i % 3 == 0 ? 3000 : 5);
  assert_true(spinning.sleeps);
}

static void first_calls_of_a_phase_do_not_count(void **state) {
  struct spinning spinning;

  (void)state;
  spinning_begin(&spinning);
  for (unsigned i = 0; i < TRIAL; i++)
    spinning_note(&spinning, spinning.sleeps ? 16 : spinning_counts(&spinning) ? 5 : 1000);
  assert_false(spinning.sleeps);
}

static void equal_verdicts_last_longer(void **state) {
  struct spinning spinning;

  (void)state;
  spinning_begin(&spinning);
  try_both(&spinning, 5, 16);
  assert_int_equal(calls_kept(&spinning), SPINNING_KEPT);
  try_both(&spinning, 5, 16);
  assert_int_equal(calls_kept(&spinning), 2 * SPINNING_KEPT);
  for (int i = 0; i < 4; i++) {
    try_both(&spinning, 5, 16);
    assert_true(calls_kept(&spinning) <= SPINNING_KEPT_LONG);
  }
  try_both(&spinning, 57, 14);
  assert_true(spinning.sleeps);
  assert_int_equal(calls_kept(&spinning), SPINNING_KEPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_the_faster),
      cmocka_unit_test(spins_when_both_are_about_the_same),
      cmocka_unit_test(a_few_long_calls_decide_nothing),
      cmocka_unit_test(many_long_calls_do),
      cmocka_unit_test(first_calls_of_a_phase_do_not_count),
      cmocka_unit_test(equal_verdicts_last_longer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
