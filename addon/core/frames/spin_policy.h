// How long a loop that waits for calls spins before it sleeps.
//
// Waking it costs a caller on another CPU some 30 to 50 microseconds, more than most calls take. A
// database that calls at short intervals but thinks a little longer than the usual window now and
// then pays for a wake-up each time. So the loop looks longer, while that catches calls: the time
// from one call to the next tells. It is the machine's CPU that is spent, so where another process
// wants it the loop soon looks no longer than usual.
//
// What this leaves out: the clock and the waiting itself (frames/frame_loop.cc).
#pragma once

#include <cstdint>

namespace dke {

class SpinPolicy {
 public:
  // An extended window is this many usual ones.
  static constexpr int64_t kExtended = 5;
  // Scores: the window is extended from the upper one on, until the score falls to the lower one.
  static constexpr int kExtendAt = 8;
  static constexpr int kShortenAt = 0;
  static constexpr int kMost = 32;
  // What a pause adds to the score that an extended window would have met, and what a longer one,
  // or a disturbed window, takes from it.
  static constexpr int kGain = 1;
  static constexpr int kLoss = 2;

  // A call came so long after the one before. In the same unit as `window`.
  void Note(int64_t pause, int64_t window);
  // While the loop looked, others had the CPU.
  void Disturb();
  // How long to look.
  int64_t Window(int64_t window) const { return extended_ ? kExtended * window : window; }

 private:
  void Add(int score);

  int score_ = 0;
  bool extended_ = false;
};

}  // namespace dke
