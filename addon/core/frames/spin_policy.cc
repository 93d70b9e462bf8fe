#include "frames/spin_policy.h"

#include <algorithm>

namespace dke {

void SpinPolicy::Note(int64_t pause, int64_t window) {
  // Whatever the usual window meets says nothing.
  if (pause > window) Add(pause <= kExtended * window ? kGain : -kLoss);
}

void SpinPolicy::Disturb() { Add(-kLoss); }

void SpinPolicy::Add(int score) {
  score_ = std::clamp(score_ + score, kShortenAt, kMost);
  if (score_ >= kExtendAt) extended_ = true;
  if (score_ == kShortenAt) extended_ = false;
}

}  // namespace dke
