/* Spinning tried against sleeping; see spinning.h. */
#include "connection/spinning.h"

#include <string.h>

static void begin_phase(struct spinning *spinning, unsigned phase) {
  spinning->phase = phase;
  spinning->left = SPINNING_FIRST + SPINNING_CALLS;
  spinning->sleeps = phase % 2 != 0;
}

void spinning_begin(struct spinning *spinning) {
  memset(spinning, 0, sizeof *spinning);
  begin_phase(spinning, 0);
}

bool spinning_counts(const struct spinning *spinning) {
  return spinning->phase < SPINNING_PHASES && spinning->left <= SPINNING_CALLS;
}

/*
 * A few calls in which one side lost the CPU, or the agent collected its garbage, weigh more than
 * all the others together. So the longest are kept out of the sum.
 */
static void add(struct spinning_tally *tally, int64_t took) {
  if (took > SPINNING_LONGEST) took = SPINNING_LONGEST;
  for (int i = 0; i < SPINNING_ODD; i++) {
    const int64_t longer = tally->longest[i];
    if (took <= longer) continue;
    tally->longest[i] = took;
    took = longer;
  }
  tally->sum += took;
}

/* Sleeping must be clearly better, because it takes more of everybody's CPU. */
static void judge(struct spinning *spinning) {
  const bool sleeps = spinning->tallies[1].sum * 8 < spinning->tallies[0].sum * 7;

  if (spinning->kept == 0 || sleeps != spinning->slept) spinning->kept = SPINNING_KEPT;
  else if (spinning->kept < SPINNING_KEPT_LONG) spinning->kept *= 2;
  spinning->phase = SPINNING_PHASES;
  spinning->left = spinning->kept;
  spinning->slept = spinning->sleeps = sleeps;
}

bool spinning_note(struct spinning *spinning, int64_t took) {
  if (spinning_counts(spinning)) add(&spinning->tallies[spinning->sleeps], took);
  if (--spinning->left > 0) return false;
  if (spinning->phase == SPINNING_PHASES) {
    memset(spinning->tallies, 0, sizeof spinning->tallies);
    begin_phase(spinning, 0);
  } else if (spinning->phase + 1 < SPINNING_PHASES) {
    begin_phase(spinning, spinning->phase + 1);
  } else {
    judge(spinning);
  }
  return true;
}
