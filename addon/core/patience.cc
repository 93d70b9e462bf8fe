#include "patience.h"

#include <algorithm>

namespace dke {

void Patience::Note(int64_t pause, int64_t window) {
  // Whatever the usual window meets says nothing.
  if (pause > window) Add(pause <= kPatient * window ? kGain : -kLoss);
}

void Patience::Disturb() { Add(-kLoss); }

void Patience::Add(int score) {
  score_ = std::clamp(score_ + score, kEnd, kMost);
  if (score_ >= kBegin) patient_ = true;
  if (score_ == kEnd) patient_ = false;
}

}  // namespace dke
