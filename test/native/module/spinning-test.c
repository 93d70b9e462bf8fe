/*
 * When the library spins for its answers and when it sleeps: the verdict of a trial, by what calls
 * took each way.
 */
#include "../tests.h"
#include "connection/spinning.h"

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

TEST(keeps_the_faster) {
  struct spinning spinning;

  spinning_begin(&spinning);
  try_both(&spinning, 5, 16);
  assert_false(spinning.sleeps);
  spinning_begin(&spinning);
  try_both(&spinning, 57, 14);
  assert_true(spinning.sleeps);
}

TEST(spins_when_both_are_about_the_same) {
  struct spinning spinning;

  spinning_begin(&spinning);
  try_both(&spinning, 100, 95);
  assert_false(spinning.sleeps);
}

TEST(a_few_long_calls_decide_nothing) {
  struct spinning spinning;
  unsigned calls = 0;

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

TEST(many_long_calls_do) {
  struct spinning spinning;

  spinning_begin(&spinning);
  for (unsigned i = 0; i < TRIAL; i++) spinning_note(&spinning, spinning.sleeps ? 16 : i % 3 == 0 ? 3000 : 5);
  assert_true(spinning.sleeps);
}

TEST(first_calls_of_a_phase_do_not_count) {
  struct spinning spinning;

  spinning_begin(&spinning);
  for (unsigned i = 0; i < TRIAL; i++)
    spinning_note(&spinning, spinning.sleeps ? 16 : spinning_counts(&spinning) ? 5 : 1000);
  assert_false(spinning.sleeps);
}

TEST(equal_verdicts_last_longer) {
  struct spinning spinning;

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

int main(void) { return run_written_tests(NULL, NULL); }
