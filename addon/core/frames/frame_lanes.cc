// The lanes of a frame server: which are polled, how long the loop waits for them, and where it
// runs. One lane: lane.h.
#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "frames/frame_connection.h"

namespace dke {
namespace {

// More lanes than this are not polled: the other peers use their sockets.
constexpr size_t kMostLanes = 1024;
// A lane that had nothing so often in a row gives its place to others.
constexpr uint32_t kIdleLooks = 1000;
// With more lanes than this the loop does not yield: it would wait behind all of them.
constexpr size_t kMostYieldedTo = 16;
// The CPU of a lone caller is sampled every so many messages.
constexpr uint64_t kMessagesAPlace = 64;
// Callers are counted over so long, in nanoseconds: longer than a round among many hundreds takes.
constexpr int64_t kCensus = 8'000'000;
// With more callers than this requests gather: one wake-up serves many, and who is answered does
// not take the CPU from who has not asked yet.
constexpr size_t kCrowd = 32;
// A round among many waits for all but one in so many: who misses a round waits for all of the
// next.
constexpr int64_t kStragglers = 64;
// A nap, in nanoseconds: for each caller that has not asked yet, and at most. Answers that come
// over HTTPS end it.
constexpr int64_t kNapPerCaller = 4'000;
constexpr int64_t kShortestNap = 50'000;
constexpr int64_t kLongestNap = 2'000'000;
// After so many naps without a request the loop sleeps.
constexpr int kMostNaps = 4;
// When the sockets had nothing this often in a row, they are polled only once in so many polls of
// the lanes.
constexpr uint64_t kQuietRounds = 16;

}  // namespace

// Looks how many have called lately.
void FrameLoop::TakeCensus(int64_t now) {
  if (now - census_began_ > kCensus) {
    callers_before_ = now - census_began_ > 2 * kCensus ? 0 : callers_;
    callers_ = 0;
    ++census_;
    census_began_ = now;
  }
  crowded_ = std::max(callers_, callers_before_) > kCrowd;
}

void FrameLoop::Count(Connection* connection) {
  if (connection->lane != nullptr) connection->lane->TellCrowded(crowded_);
  if (connection->census == census_) return;
  connection->census = census_;
  ++callers_;
}

// Among many callers the lanes stay open, and no caller has to wake the loop: it naps until nearly
// all of them have asked, then serves each once, in turn. What comes through sockets, or from the
// host, ends a nap. Answers as Spin does.
int FrameLoop::Gather(epoll_event* events, int capacity) {
  const auto callers = static_cast<int64_t>(std::max(callers_, callers_before_));
  for (int naps = 0; naps < kMostNaps && !signal_->raised(); ++naps) {
    const int64_t asking = std::count_if(lanes_.begin(), lanes_.end(), [](const Connection* each) {
      return each != nullptr && each->lane->waiting();
    });
    if (asking < callers - callers / kStragglers) {
      const timespec nap{0, std::clamp((callers - asking) * kNapPerCaller, kShortestNap, kLongestNap)};
      pollfd poller{epoll_, POLLIN, 0};
      ppoll(&poller, 1, &nap, nullptr);
    }
    const bool served = ServeLanes();
    const int count = failed_ ? 0 : epoll_wait(epoll_, events, capacity, 0);
    if (served || failed_ || pending_ || count != 0) return count;
  }
  return kNothingCame;
}

// Yielding, not pausing: when the peer shares this CPU, it can only send its next call if it gets
// to run. A peer that is alone is let run before anything else, since nothing can have come yet.
// What epoll_wait told, 0 when frames came another way, or kNothingCame.
int FrameLoop::Spin(epoll_event* events, int capacity, int64_t from, int64_t window) {
  const int64_t until = from + spin_policy_.Window(window);
  int64_t before = from;
  while (!signal_->raised()) {
    int count = 0;
    bool yielded = false;
    if (!lanes_.empty()) {
      const bool served = ServeLanes();
      // Sockets last, so that what a lane has brought is done when they are asked.
      if (!failed_ && (quiet_rounds_ < kQuietRounds || ++lane_rounds_ % kQuietRounds == 0)) {
        count = epoll_wait(epoll_, events, capacity, 0);
        quiet_rounds_ = count == 0 ? quiet_rounds_ + 1 : 0;
      }
      if (served || failed_ || pending_ || count != 0) return count;
    } else {
      if (lone_ != nullptr && lone_rounds_ >= kLoneRounds) {
        sched_yield();
        yielded = true;
        if (ReceiveLone()) return 0;
      }
      count = epoll_wait(epoll_, events, capacity, 0);
      if (count != 0) return count;
    }
    const int64_t now = Now();
    if (now - before > window) spin_policy_.Disturb();
    if (now >= until || lanes_.size() > kMostYieldedTo) break;
    before = now;
    if (!yielded) sched_yield();
  }
  return kNothingCame;
}

void FrameLoop::WatchLane(Connection* connection) {
  if (connection->closed || connection->watched || connection->lane == nullptr || connection->spin_microseconds == 0 ||
      lanes_.size() >= kMostLanes || !connection->lane->joined()) {
    return;
  }
  connection->watched = true;
  connection->idle_looks = 0;
  connection->lane->Watch(true);
  lanes_.push_back(connection);
}

// False when nothing waited.
bool FrameLoop::ServeLane(Connection* connection) {
  if (connection->closed || connection->paused || connection->lane == nullptr) return false;
  if (!connection->lane_rest.empty()) return ServeLaneRest(connection);
  uint8_t* const message = buffers_->lane();
  const int taken = connection->lane->Take(message);
  if (taken == 0) return false;
  if (taken < 0) {
    Drop(connection, true);
    return true;
  }
  Count(connection);
  if (++lane_messages_ % kMessagesAPlace == 0 && lanes_.size() == 1) CheckPlacement(connection);
  const auto length = static_cast<size_t>(taken);
  DKE_ASSERT(length <= FrameBuffers::kLane);
  const size_t used = HandOn(connection, message, length);
  TransmitBatch(connection);
  // Only whole frames pass through a lane. Those whose turn comes later wait.
  if (!connection->closed && used != length &&
      !((connection->ready || connection->paused) && connection->lane_rest.Append(message + used, length - used))) {
    Drop(connection, true);
  }
  explicit_bzero(message, length);
  return true;
}

// What waits of the last message: in the connection's turn, and before it takes another one.
bool FrameLoop::ServeLaneRest(Connection* connection) {
  FrameBytes& rest = connection->lane_rest;
  if (connection->ready) return false;
  const size_t used = HandOn(connection, rest.data(), rest.size());
  TransmitBatch(connection);
  rest.Discard(used);
  if (!connection->closed && !rest.empty() && !connection->ready && !connection->paused) Drop(connection, true);
  return true;
}

// Leaves the CPU of the only caller when another has nothing to do.
void FrameLoop::CheckPlacement(const Connection* connection) {
  const int own = sched_getcpu();
  if (own < 0) return;
  switch (cpu_placement_.Check(connection->lane->cpu() == own, Now())) {
    case CpuPlacement::Step::kStay:
      return;
    case CpuPlacement::Step::kBegin:
      cpu_times_ = ReadCpuTimes();
      return;
    case CpuPlacement::Step::kEnd:
      break;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const int idle = IdleCpu(cpu_times_, ReadCpuTimes(), allowed, own);
  if (idle >= 0) MoveTo(idle);
}

// Polls every lane once. False when all were empty.
bool FrameLoop::ServeLanes() {
  bool served = false;
  for (size_t i = 0; i < lanes_.size() && !failed_; ++i) {
    Connection* const connection = lanes_[i];
    if (connection == nullptr) continue;
    if (ServeLane(connection)) {
      served = true;
      connection->idle_looks = 0;
    } else if (++connection->idle_looks > kIdleLooks) {
      lanes_[i] = nullptr;
      if (LeaveLane(connection)) served = true;
    }
  }
  lanes_.erase(std::remove(lanes_.begin(), lanes_.end(), nullptr), lanes_.end());
  return served;
}

// Said first, looked after that: what the peer puts there in the meantime is seen here, or the peer
// sees that it must ring.
bool FrameLoop::LeaveLane(Connection* connection) {
  connection->watched = false;
  connection->lane->Watch(false);
  return ServeLane(connection);
}

// Before the loop sleeps: no peer may continue to write into a lane that is not polled. True when a
// message had come in the meantime.
bool FrameLoop::LeaveLanes() {
  bool served = false;
  std::vector<Connection*> left;
  left.swap(lanes_);
  // A connection that is dropped on the way stays in `deferred_` until the next round, but is no
  // longer to be touched.
  for (Connection* connection : left) {
    if (connection != nullptr && !connection->closed && LeaveLane(connection)) served = true;
  }
  return served;
}

}  // namespace dke
