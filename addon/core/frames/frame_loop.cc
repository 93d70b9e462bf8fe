// The frame server's loop: what it waits for, which connection is served when, the end of a
// connection, and what other threads may do to a loop. frames.h says what it is; the other
// frame_*.cc contain the listener, input and output, and the lanes.
#include "frames/frame_loop.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "frames/frame_connection.h"

namespace dke {
namespace {

struct Registry {
  std::mutex mutex;
  uint32_t next = 1;
  std::unordered_map<uint32_t, std::weak_ptr<FrameSignal>> signals;
};

// Never destroyed: a thread may still stop a loop while the process runs its exit handlers.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

std::shared_ptr<FrameSignal> FindSignal(uint32_t id) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.signals.find(id);
  return found == registry.signals.end() ? nullptr : found->second.lock();
}

}  // namespace

uint32_t FrameSignal::Register(const std::shared_ptr<FrameSignal>& signal) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const uint32_t id = registry.next++;
  registry.signals.emplace(id, signal);
  return id;
}

void FrameSignal::Unregister(uint32_t id) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  registry.signals.erase(id);
}

FrameSignal::FrameSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

FrameSignal::~FrameSignal() {
  if (fd_ >= 0) close(fd_);
}

void FrameSignal::Raise(uint32_t what) {
  raised_.fetch_or(what, std::memory_order_acq_rel);
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const ssize_t ignored = write(fd_, &one, sizeof one);
}

uint32_t FrameSignal::Take() {
  // The descriptor first: a signal raised in between leaves it readable, which costs one empty
  // round and loses nothing.
  uint64_t count;
  [[maybe_unused]] const ssize_t ignored = read(fd_, &count, sizeof count);
  return raised_.fetch_and(kStop, std::memory_order_acq_rel);
}

void FrameSignal::WakeById(uint32_t id) {
  if (const auto signal = FindSignal(id)) signal->Wake();
}

void FrameSignal::StopById(uint32_t id) {
  if (const auto signal = FindSignal(id)) signal->Stop();
}

namespace {

constexpr uint32_t kLargestFrame = 64u << 20;
constexpr size_t kHighWater = 256 * 1024;
// Most events in a round: as many as one user may have connections. With fewer, that user would
// have most rounds alone.
constexpr int kEventsPerRound = 4096;
// How long a user may have the loop in one round when there are others, in nanoseconds.
constexpr int64_t kTurn = 2'000'000;
// Calls "flow" while the pause between two of them is at most this many spin windows. A wake-up
// across CPUs costs about two windows of the usual 20 microseconds, so a peer that calls without a
// pause is recognised even while the loop still sleeps.
constexpr int64_t kFlowWindows = 10;

// glibc 2.35 and newer register restartable sequences (rseq(2)) for every thread, which costs each
// change of process an eighth of a microsecond, and use them only for sched_getcpu, which works
// without them. A loop that changes places with its peers at every call does without, too.
void LeaveRestartableSequences() {
#ifdef SYS_rseq
  constexpr int kUnregister = 1;
#ifdef __aarch64__
  constexpr uint32_t kSignature = 0xd428bc00;
#else
  constexpr uint32_t kSignature = 0x53053053;
#endif
  const auto* const offset = static_cast<const ptrdiff_t*>(dlsym(RTLD_DEFAULT, "__rseq_offset"));
  const auto* const size = static_cast<const unsigned*>(dlsym(RTLD_DEFAULT, "__rseq_size"));
  if (offset == nullptr || size == nullptr || *size == 0) return;
  void* const area = static_cast<char*>(__builtin_thread_pointer()) + *offset;
  // What was registered is at least 32 bytes long, though newer versions tell how much of it means
  // something.
  if (syscall(SYS_rseq, area, std::max(*size, 32u), kUnregister, kSignature) != 0) syscall(SYS_rseq, area, *size, kUnregister, kSignature);
#endif
}

}  // namespace

std::unique_ptr<FrameLoop> FrameLoop::Open(const FrameOptions& options, Fault* fault, std::string* message) {
  *fault = Fault::kArgument;
  if (options.max_frame == 0 || options.max_frame > kLargestFrame) {
    *message = "maxFrame must be 1 to 67108864 bytes";
    return nullptr;
  }
  if (options.max_connections == 0) {
    *message = "maxConnections must be at least 1";
    return nullptr;
  }
  if (options.path.empty() == (options.fd < 0)) {
    *message = "exactly one of path and fd is needed";
    return nullptr;
  }

  *fault = Fault::kIo;
  std::unique_ptr<FrameLoop> loop(new FrameLoop);
  loop->options_ = options;
  loop->high_water_ = std::min(kHighWater, options.max_frame + kHeader);
  LimitToDescriptors(&loop->options_);
  loop->buffers_ = FrameBuffers::Create(options.max_frame);
  loop->signal_ = std::make_shared<FrameSignal>();
  loop->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (loop->buffers_ == nullptr || loop->signal_->fd() < 0 || loop->epoll_ < 0) {
    *message = Describe("cannot set up the frame server for", options.path, errno);
    return nullptr;
  }
  if (!loop->Listen(message)) return nullptr;
  if (!loop->Arm(loop->signal_->fd(), EPOLLIN, loop->signal_.get()) ||
      !loop->Arm(loop->listener_, EPOLLIN, &loop->listener_)) {
    *message = Describe("cannot watch", options.path, errno);
    return nullptr;
  }
  loop->id_ = FrameSignal::Register(loop->signal_);
  *fault = Fault::kNone;
  return loop;
}

FrameLoop::~FrameLoop() {
  if (id_ != 0) FrameSignal::Unregister(id_);
  CloseListener();
  connections_.clear();
  deferred_.clear();
  if (epoll_ >= 0) close(epoll_);
}

bool FrameLoop::Arm(int fd, uint32_t events, void* tag) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool FrameLoop::Watch(int fd) { return Arm(fd, EPOLLIN, &watch_fired_); }

FrameStatistics FrameLoop::statistics() const {
  return {connections_.size(), frames_, replayed_frames_, lane_messages_, rejected_, refused_frames_, users_.held()};
}

FrameLoop::RunResult FrameLoop::Run(FrameHandler* handler) { return Rounds(handler, false); }

FrameLoop::RunResult FrameLoop::Glance(FrameHandler* handler) { return Rounds(handler, true); }

FrameLoop::RunResult FrameLoop::Rounds(FrameHandler* handler, bool glance) {
  struct Running {
    FrameLoop* loop;
    ~Running() {
      loop->running_ = false;
      loop->handler_ = nullptr;
    }
  } const running{this};
  running_ = true;
  handler_ = handler;
  failed_ = false;
  thread_local bool without_sequences = false;
  if (!without_sequences) LeaveRestartableSequences();
  without_sequences = true;

  static thread_local std::vector<epoll_event> room(kEventsPerRound);
  epoll_event* const events = room.data();
  for (bool looked = false;; looked = true) {
    deferred_.clear();
    ++round_;
    const uint32_t raised = signal_fired_ || signal_->raised() ? signal_->Take() : 0;
    signal_fired_ = false;
    if ((raised & FrameSignal::kStop) != 0) Stop();
    DropStalled();
    if (!ReportClosed()) return RunResult::kFailed;
    if (stopped_) return RunResult::kStopped;
    // A glance looks once, also when it was woken before, and ends then.
    if (looked || !glance) {
      if ((raised & FrameSignal::kWake) != 0 || watch_fired_ || (glance && !pending_)) {
        watch_fired_ = false;
        pending_ = false;
        return RunResult::kWoken;
      }
      if (pending_) {
        pending_ = false;
        return RunResult::kPending;
      }
    }

    const int count = glance ? Look(events, kEventsPerRound) : Wait(events, kEventsPerRound);
    serving_.swap(ready_);
    Connection* const last = lone_;
    if (count != 0) lone_ = nullptr;
    for (int i = 0; i < count; ++i) {
      void* const tag = events[i].data.ptr;
      if (tag == &listener_) {
        Accept();
      } else if (tag == &watch_fired_) {
        watch_fired_ = true;
      } else if (tag == signal_.get()) {
        signal_fired_ = true;
      } else if (!failed_) {
        auto* const connection = static_cast<Connection*>(tag);
        Serve(connection, events[i].events);
        if (count == 1 && !connection->closed) {
          lone_ = connection;
          lone_rounds_ = connection == last ? lone_rounds_ + 1 : 0;
        }
      }
    }
    ServeReady();
    if (failed_) return RunResult::kFailed;
  }
}

int FrameLoop::Look(epoll_event* events, int capacity) {
  ServeLanes();
  return epoll_wait(epoll_, events, capacity, 0);
}

int FrameLoop::Wait(epoll_event* events, int capacity) {
  if (!ready_.empty()) return Look(events, capacity);
  const int64_t window = static_cast<int64_t>(spin_microseconds_) * 1000;
  spin_microseconds_ = 0;
  if (window > 0 && frames_ != frames_seen_) {
    const int64_t now = Now();
    const bool flowing = now - last_busy_ <= kFlowWindows * window && spin_wanted_;
    spin_policy_.Note(now - last_busy_, window);
    TakeCensus(options_.clock == nullptr ? now : options_.clock());
    frames_seen_ = frames_;
    last_busy_ = now;
    spin_wanted_ = false;
    if (crowded_ || flowing) {
      const int count = crowded_ ? Gather(events, capacity) : Spin(events, capacity, now, window);
      if (count != kNothingCame) return count;
    }
  }
  if (LeaveLanes()) return 0;
  return epoll_wait(epoll_, events, capacity, SleepTimeout());
}

int FrameLoop::SleepTimeout() const {
  if (next_deadline_ == INT64_MAX) return -1;
  const int64_t left = next_deadline_ - Now();
  return left <= 0 ? 0 : static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, INT32_MAX));
}

// However many connections a user has, others are served after one turn. A connection whose user is
// behind joins the queue, so that it does not overtake those that are there.
bool FrameLoop::HasTurn(FrameUser* user) {
  if (!users_.several()) return true;
  if (!serving_ready_ && user->behind + 1 >= round_) return false;
  const int64_t now = options_.clock == nullptr ? Now() : options_.clock();
  if (user->round != round_) {
    user->round = round_;
    user->turn_ends = now + kTurn;
  }
  return now < user->turn_ends;
}

void FrameLoop::ServeReady() {
  std::vector<uint64_t> left;
  serving_ready_ = true;
  size_t served = 0;
  for (; served < serving_.size() && !failed_; ++served) {
    const auto found = connections_.find(serving_[served]);
    if (found == connections_.end()) continue;
    Connection* const connection = found->second.get();
    if (!HasTurn(connection->user.get())) {
      connection->user->behind = round_;
      left.push_back(connection->id);
      continue;
    }
    connection->ready = false;
    if (!connection->lane_rest.empty()) ServeLane(connection);
    if (!connection->paused) connection->in.Discard(Consume(connection, connection->in.data(), connection->in.size()));
    ServeLane(connection);
  }
  serving_ready_ = false;
  left.insert(left.end(), serving_.begin() + static_cast<std::ptrdiff_t>(served), serving_.end());
  ready_.insert(ready_.begin(), left.begin(), left.end());
  serving_.clear();
}

void FrameLoop::StartStallClock(Connection* connection) {
  if (options_.stall_milliseconds == 0) return;
  connection->deadline = Now() + static_cast<int64_t>(options_.stall_milliseconds) * 1'000'000;
  next_deadline_ = std::min(next_deadline_, connection->deadline);
}

void FrameLoop::StartAdmissionClock(Connection* connection, uint32_t milliseconds) {
  if (milliseconds == 0) return;
  connection->admit_by = Now() + static_cast<int64_t>(milliseconds) * 1'000'000;
  next_deadline_ = std::min(next_deadline_, connection->admit_by);
}

void FrameLoop::Admit(uint64_t connection, bool admitted) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || options_.admission_milliseconds == 0) return;
  found->second->admitted = admitted;
  found->second->admit_by = INT64_MAX;
  if (!admitted) StartAdmissionClock(found->second.get(), options_.admission_milliseconds);
}

void FrameLoop::SetSpin(uint64_t connection, uint32_t microseconds) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) found->second->spin_microseconds = microseconds;
}

// Deadlines that were met stay in next_deadline_ until it passes: one needless scan, and no
// bookkeeping on the hot path.
void FrameLoop::DropStalled() {
  if (next_deadline_ == INT64_MAX) return;
  const int64_t now = Now();
  if (now < next_deadline_) return;
  next_deadline_ = INT64_MAX;
  if (listener_muted_ && listener_ >= 0) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &listener_;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
    listener_muted_ = false;
  }
  std::vector<Connection*> stalled;
  for (const auto& [id, connection] : connections_) {
    const int64_t deadline = std::min(connection->deadline, connection->admit_by);
    if (deadline <= now) {
      stalled.push_back(connection.get());
    } else {
      next_deadline_ = std::min(next_deadline_, deadline);
    }
  }
  for (Connection* connection : stalled) Drop(connection, true);
}

void FrameLoop::Serve(Connection* connection, uint32_t events) {
  if (connection->closed) return;
  Count(connection);
  if ((events & EPOLLOUT) != 0) Flush(connection);
  if (connection->closed) return;
  if (connection->paused) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) Drop(connection, false);
    return;
  }
  // Whole frames that are in memory come first; they are served in this round's second half.
  if (!connection->ready && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) Receive(connection);
  WatchLane(connection);
}

void FrameLoop::MarkReady(Connection* connection) {
  if (connection->ready) return;
  connection->ready = true;
  ready_.push_back(connection->id);
}

// The connection's memory stays until the batch is done: its frame may be in the handler's hands at
// this moment.
void FrameLoop::Drop(Connection* connection, bool rejected) {
  if (connection->closed) return;
  connection->closed = true;
  connection->user->Leave();
  if (lone_ == connection) lone_ = nullptr;
  if (connection->watched) std::replace(lanes_.begin(), lanes_.end(), connection, static_cast<Connection*>(nullptr));
  if (connection->watched) connection->lane->Watch(false);
  connection->watched = false;
  // The descriptor leaves epoll explicitly: while a forked process still has it, closing it here
  // does not end its events.
  epoll_ctl(epoll_, EPOLL_CTL_DEL, connection->fd, nullptr);
  close(connection->fd);
  connection->fd = -1;
  connection->Notify();
  connection->out.Clear();
  connection->lane_rest.Clear();
  if (rejected) ++rejected_;
  if (connection->greeted) closed_.push_back(connection->id);
  const auto found = connections_.find(connection->id);
  DKE_ASSERT(found != connections_.end() && found->second.get() == connection);
  deferred_.push_back(std::move(found->second));
  connections_.erase(found);
}

int64_t FrameLoop::Learn(uint64_t connection, Replay replay) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || replay.init.size() > options_.max_frame) return -1;
  if (found->second->replays == nullptr) found->second->replays = std::make_unique<ReplayCache>();
  return found->second->replays->Learn(std::move(replay));
}

void FrameLoop::SuspendReplays(uint64_t connection, const OperationSlot& slot, bool suspended) {
  const auto found = connections_.find(connection);
  if (found != connections_.end() && found->second->replays != nullptr) found->second->replays->Suspend(slot, suspended);
}

void FrameLoop::ForgetReplays(uint64_t connection) {
  const auto found = connections_.find(connection);
  if (found != connections_.end() && found->second->replays != nullptr) found->second->replays->Forget();
}

void FrameLoop::CloseConnection(uint64_t connection) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) Drop(found->second.get(), false);
}

void FrameLoop::Stop() {
  stopped_ = true;
  CloseListener();
  while (!connections_.empty()) Drop(connections_.begin()->second.get(), false);
}

bool FrameLoop::ReportClosed() {
  while (!closed_.empty()) {
    const uint64_t connection = closed_.front();
    closed_.pop_front();
    if (handler_->Close(connection) == FrameHandler::kFailed) return false;
  }
  return true;
}

}  // namespace dke
