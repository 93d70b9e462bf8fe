/*
 * Whether a thread that waits for an answer should spin, yielding the CPU, or sleep at once. On a
 * quiet CPU spinning makes calls several times faster; where others want the CPU, or the scheduler
 * divides it between groups of processes, several times slower. This is not known beforehand, so
 * both are tried alternately and the better is kept for a while.
 *
 * What this leaves out: the waiting itself, and the clock, which are transport.c's business.
 */
#ifndef DKE_SPINNING_H
#define DKE_SPINNING_H

#include <stdbool.h>
#include <stdint.h>

enum {
  SPINNING_PHASES = 4, /* spinning, sleeping, spinning, sleeping: what changes meanwhile meets both */
  SPINNING_FIRST = 8, /* of a phase's calls that do not count: both sides are only getting used to it */
  SPINNING_CALLS = 32, /* that count */
  SPINNING_ODD = 8, /* the longest of those that count each way, left out */
  SPINNING_LONGEST = 1000, /* microseconds: a longer call has another cause */
  SPINNING_KEPT = 4096, /* calls until the next trial */
  SPINNING_KEPT_LONG = 8 * SPINNING_KEPT /* when trial after trial comes out the same way */
};

/** What the calls of one way took. */
struct spinning_tally {
  int64_t sum; /* microseconds, without the longest */
  int64_t longest[SPINNING_ODD];
};

struct spinning {
  bool sleeps; /* what to do with the next call */
  bool slept; /* the verdict of the last trial */
  unsigned phase; /* SPINNING_PHASES: between trials */
  unsigned left; /* calls of this phase, or until the next trial */
  unsigned kept; /* how many that were; 0 before the first verdict */
  struct spinning_tally tallies[2]; /* spinning, sleeping */
};

/** The start of a trial, with nothing known. */
void spinning_begin(struct spinning *spinning);
/** Whether the time of the next call is required. */
bool spinning_counts(const struct spinning *spinning);
/**
 * A call is over that took so many microseconds (any number when its time is not wanted). True when
 * `sleeps` has to be checked.
 */
bool spinning_note(struct spinning *spinning, int64_t took);

#endif
