// The frame server's loop; frames.h says what it is and what it leaves out.
#include "frames.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "lane.h"

namespace dke {
namespace {

constexpr size_t kHeader = 12;
constexpr uint32_t kLargestFrame = 64u << 20;
constexpr size_t kHighWater = 256 * 1024;
constexpr int kEventsPerRound = 64;
constexpr int kAcceptsPerRound = 32;
// One connection's share of a round: a peer that sends a thousand frames at once does not keep the others waiting.
constexpr int kFramesPerRound = 16;
// Calls "flow" while the pause between two of them is at most this many spin windows. A wake-up across CPUs costs about two
// windows of the usual 20 microseconds, so a peer that calls without a pause is recognised even while the loop still sleeps.
constexpr int64_t kFlowWindows = 10;
// After so many rounds with the same single caller it counts as alone; it is then read this often without asking epoll for
// others.
constexpr uint64_t kLoneRounds = 16;
// More lanes than this are not looked at: the other peers have their sockets.
constexpr size_t kMostLanes = 1024;
// A lane that had nothing so often in a row gives its place to others.
constexpr uint32_t kIdleLooks = 1000;
// With more lanes than this the loop does not yield: it would wait behind all of them.
constexpr size_t kMostYieldedTo = 16;
// Where a lone caller runs is looked at every so many messages.
constexpr uint64_t kMessagesAPlace = 64;
// Callers are counted over so long, in nanoseconds: longer than a round among many hundreds takes.
constexpr int64_t kCensus = 8'000'000;
// With more callers than this requests gather: one wake-up serves many, and who is answered does not take the CPU from who has not asked yet.
constexpr size_t kCrowd = 32;
// A round among many waits for all but one in so many: who misses a round waits for all of the next.
constexpr int64_t kStragglers = 64;
// A nap, in nanoseconds: for each caller that has not asked yet, and at most. Answers that come over HTTPS end it.
constexpr int64_t kNapPerCaller = 4'000;
constexpr int64_t kShortestNap = 50'000;
constexpr int64_t kLongestNap = 2'000'000;
// After so many naps in which nobody asked the loop sleeps.
constexpr int kMostNaps = 4;
// When the sockets had nothing this often in a row, they are asked only every so many looks at the lanes.
constexpr uint64_t kQuietRounds = 16;
constexpr int64_t kMuteNanoseconds = 100'000'000;

// glibc 2.35 and newer register restartable sequences (rseq(2)) for every thread, which costs each change of process an eighth of a
// microsecond, and use them for sched_getcpu alone, which does without. A loop that changes places with its peers at every call does
// without, too.
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
  // What was registered is at least 32 bytes long, though newer versions tell how much of it means something.
  if (syscall(SYS_rseq, area, std::max(*size, 32u), kUnregister, kSignature) != 0) syscall(SYS_rseq, area, *size, kUnregister, kSignature);
#endif
}

int64_t Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

uint32_t GetU32(const uint8_t* from) {
  return static_cast<uint32_t>(from[0]) << 24 | static_cast<uint32_t>(from[1]) << 16 |
         static_cast<uint32_t>(from[2]) << 8 | from[3];
}

void PutU32(uint8_t* to, uint32_t value) {
  to[0] = static_cast<uint8_t>(value >> 24);
  to[1] = static_cast<uint8_t>(value >> 16);
  to[2] = static_cast<uint8_t>(value >> 8);
  to[3] = static_cast<uint8_t>(value);
}

void PutHeader(uint8_t* to, uint32_t call_code, size_t body) {
  PutU32(to, call_code);
  PutU32(to + 4, 0);
  PutU32(to + 8, static_cast<uint32_t>(body));
}

std::string Describe(const std::string& what, const std::string& path, int error) {
  return what + " " + path + ": " + strerrordesc_np(error);
}

// Bytes between the network and a frame, or a reply and the network. Whatever is taken out, moved or freed is wiped.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { Clear(); }

  const uint8_t* data() const { return memory_ + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  uint8_t* tail() { return memory_ + end_; }
  size_t space() const { return capacity_ - end_; }
  void Commit(size_t length) { end_ += length; }

  // Makes room for `total` bytes from data() on. False when there is no memory.
  bool Reserve(size_t total) {
    if (capacity_ - begin_ >= total) return true;
    auto* fresh = static_cast<uint8_t*>(malloc(total));
    if (fresh == nullptr) return false;
    const size_t kept = size();
    if (kept > 0) memcpy(fresh, data(), kept);
    Clear();
    memory_ = fresh;
    capacity_ = total;
    end_ = kept;
    return true;
  }

  bool Append(const uint8_t* from, size_t length) {
    if (length == 0) return true;
    if (space() < length && !Reserve(std::max(size() + length, 2 * size()))) return false;
    memcpy(tail(), from, length);
    Commit(length);
    return true;
  }

  void Discard(size_t length) {
    if (length == 0) return;
    explicit_bzero(memory_ + begin_, length);
    begin_ += length;
    if (begin_ == end_) Clear();
  }

  void Clear() {
    if (memory_ == nullptr) return;
    explicit_bzero(memory_ + begin_, size());
    free(memory_);
    memory_ = nullptr;
    begin_ = end_ = capacity_ = 0;
  }

 private:
  uint8_t* memory_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
};

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

uint32_t Register(const std::shared_ptr<FrameSignal>& signal) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const uint32_t id = registry.next++;
  registry.signals.emplace(id, signal);
  return id;
}

void Unregister(uint32_t id) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  registry.signals.erase(id);
}

std::shared_ptr<FrameSignal> FindSignal(uint32_t id) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.signals.find(id);
  return found == registry.signals.end() ? nullptr : found->second.lock();
}

}  // namespace

// ---- Buffers ----------------------------------------------------------------------------------------------------------

std::shared_ptr<FrameBuffers> FrameBuffers::Create(size_t max_frame) {
  constexpr size_t kPage = 4096;
  const size_t frame = (max_frame + kPage - 1) / kPage * kPage;
  const size_t size = frame + kPage + frame + kScratch + kBatch + kLane;
  void* region = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return nullptr;
  madvise(region, size, MADV_DONTDUMP);
  std::shared_ptr<FrameBuffers> buffers(new FrameBuffers);
  buffers->region_ = region;
  buffers->region_size_ = size;
  buffers->request_ = static_cast<uint8_t*>(region);
  buffers->reply_ = buffers->request_ + frame + kPage;
  buffers->scratch_ = buffers->reply_ + frame;
  buffers->batch_ = buffers->scratch_ + kScratch;
  buffers->lane_ = buffers->batch_ + kBatch;
  return buffers;
}

FrameBuffers::~FrameBuffers() {
  if (region_ == nullptr) return;
  explicit_bzero(region_, region_size_);
  munmap(region_, region_size_);
}

// ---- Signals ----------------------------------------------------------------------------------------------------------

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
  // The descriptor first: a signal raised in between leaves it readable, which costs one empty round and loses nothing.
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

// ---- Opening and closing ----------------------------------------------------------------------------------------------

struct FrameLoop::Connection {
  uint64_t id = 0;
  int fd = -1;
  FramePeer peer{};
  bool greeted = false;
  bool closed = false;
  bool paused = false;    // too much output waits: its frames wait, too
  bool ready = false;     // listed in ready_
  bool watched = false;   // listed in lanes_
  uint32_t idle_looks = 0;
  uint32_t census = 0;    // the last one in which it was counted
  std::unique_ptr<FrameLane> lane;
  std::unique_ptr<Routines> routines;  // null until something was learned
  uint32_t interest = EPOLLIN;
  int64_t deadline = INT64_MAX;
  Bytes in;
  Bytes out;

  // The peer may be asleep at the lane while something comes to it through the socket.
  void Notify() {
    if (lane != nullptr && lane->joined()) lane->Notify();
  }

  ~Connection() {
    if (fd >= 0) close(fd);
  }
};

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
  loop->output_cap_ = 4 * (options.max_frame + kHeader);
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
  loop->id_ = Register(loop->signal_);
  *fault = Fault::kNone;
  return loop;
}

FrameLoop::~FrameLoop() {
  if (id_ != 0) Unregister(id_);
  CloseListener();
  connections_.clear();
  graveyard_.clear();
  if (epoll_ >= 0) close(epoll_);
}

bool FrameLoop::Arm(int fd, uint32_t events, void* tag) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool FrameLoop::Listen(std::string* message) {
  return options_.fd >= 0 ? AdoptSocket(message) : MakeSocket(message);
}

bool FrameLoop::AdoptSocket(std::string* message) {
  const std::string name = "descriptor " + std::to_string(options_.fd);
  int domain = 0;
  int type = 0;
  int listening = 0;
  socklen_t length = sizeof(int);
  if (getsockopt(options_.fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
      getsockopt(options_.fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
      getsockopt(options_.fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || domain != AF_UNIX ||
      type != SOCK_STREAM || listening == 0) {
    *message = name + " is no listening unix stream socket: check what the service manager passes";
    return false;
  }
  const int flags = fcntl(options_.fd, F_GETFL);
  if (flags < 0 || fcntl(options_.fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(options_.fd, F_SETFD, FD_CLOEXEC) != 0) {
    *message = Describe("cannot use", name, errno);
    return false;
  }
  listener_ = options_.fd;
  return true;
}

bool FrameLoop::MakeSocket(std::string* message) {
  const std::string& path = options_.path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path || path.find('\0') != std::string::npos) {
    *message = "the socket path is longer than the 107 bytes that unix sockets allow: " + path;
    return false;
  }
  memcpy(address.sun_path, path.data(), path.size());
  const auto* name = reinterpret_cast<const sockaddr*>(&address);

  struct stat found;
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      *message = path + " exists and is no socket: move it away or name another path";
      return false;
    }
    // A socket that nobody listens on any more is what an owner that died leaves behind.
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int failure = probe < 0 ? errno : connect(probe, name, sizeof address) == 0 ? 0 : errno;
    if (probe >= 0) close(probe);
    if (failure != ECONNREFUSED) {
      *message = failure == 0 || failure == EAGAIN ? "another process serves " + path + " already"
                                                   : Describe("cannot replace", path, failure);
      return false;
    }
    if (found.st_uid != geteuid() && geteuid() != 0) {
      *message = path + " belongs to another user: remove it or name another path";
      return false;
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      *message = Describe("cannot replace", path, errno);
      return false;
    }
  }

  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The mode goes onto the socket before it gets its name, so that the name never has a wider one.
  if (listener_ < 0 || fchmod(listener_, options_.mode) != 0 || bind(listener_, name, sizeof address) != 0) {
    *message = Describe("cannot listen on", path, errno);
    return false;
  }
  if (lstat(path.c_str(), &found) != 0) {
    *message = Describe("cannot find again", path, errno);
    return false;
  }
  made_socket_ = true;
  socket_device_ = found.st_dev;
  socket_inode_ = found.st_ino;
  // The umask may have taken bits away.
  if ((found.st_mode & 07777) != options_.mode && chmod(path.c_str(), options_.mode) != 0) {
    *message = Describe("cannot set the mode of", path, errno);
    return false;
  }
  if (listen(listener_, SOMAXCONN) != 0) {
    *message = Describe("cannot listen on", path, errno);
    return false;
  }
  return true;
}

void FrameLoop::CloseListener() {
  if (listener_ < 0) return;
  struct stat found;
  // Only our own: a successor may have put its socket there meanwhile.
  if (made_socket_ && lstat(options_.path.c_str(), &found) == 0 && found.st_dev == socket_device_ &&
      found.st_ino == socket_inode_) {
    unlink(options_.path.c_str());
  }
  close(listener_);
  listener_ = -1;
}

bool FrameLoop::Watch(int fd) { return Arm(fd, EPOLLIN, &watch_fired_); }

FrameStatistics FrameLoop::statistics() const { return {connections_.size(), frames_, routine_frames_, lane_messages_, rejected_}; }

// ---- The loop ---------------------------------------------------------------------------------------------------------

FrameLoop::Turn FrameLoop::Run(FrameHandler* handler) {
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

  epoll_event events[kEventsPerRound];
  for (;;) {
    graveyard_.clear();
    const uint32_t raised = signal_fired_ || signal_->raised() ? signal_->Take() : 0;
    signal_fired_ = false;
    if ((raised & FrameSignal::kStop) != 0) Stop();
    DropStalled();
    if (!ReportClosed()) return Turn::kFailed;
    if (stopped_) return Turn::kStopped;
    if ((raised & FrameSignal::kWake) != 0 || watch_fired_) {
      watch_fired_ = false;
      pending_ = false;
      return Turn::kWoken;
    }
    if (pending_) {
      pending_ = false;
      return Turn::kPending;
    }

    const int count = Wait(events, kEventsPerRound);
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
    if (failed_) return Turn::kFailed;
  }
}

int FrameLoop::Wait(epoll_event* events, int capacity) {
  if (!ready_.empty()) {
    ServeLanes();
    return epoll_wait(epoll_, events, capacity, 0);
  }
  if (options_.spin_microseconds > 0 && frames_ != frames_seen_) {
    const int64_t window = static_cast<int64_t>(options_.spin_microseconds) * 1000;
    const int64_t now = Now();
    const bool flowing = now - last_busy_ <= kFlowWindows * window && spin_wanted_;
    patience_.Note(now - last_busy_, window);
    TakeCensus(now);
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

// Among many callers the lanes stay open, and nobody has to wake the loop: it naps until nearly all of them have asked, then serves each
// once, in turn. What comes through sockets, or from the host, ends a nap. Answers as Spin does.
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

// Yielding, not pausing: when the peer shares this CPU, it can only send its next call if it gets to run. A peer that is alone is
// let run before anything else, since nothing can have come yet. What epoll_wait told, 0 when frames came another way, or
// kNothingCame.
int FrameLoop::Spin(epoll_event* events, int capacity, int64_t from, int64_t window) {
  const int64_t until = from + patience_.Window(window);
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
    if (now - before > window) patience_.Disturb();
    if (now >= until || lanes_.size() > kMostYieldedTo) break;
    before = now;
    if (!yielded) sched_yield();
  }
  return kNothingCame;
}

int FrameLoop::SleepTimeout() const {
  if (next_deadline_ == INT64_MAX) return -1;
  const int64_t left = next_deadline_ - Now();
  return left <= 0 ? 0 : static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, INT32_MAX));
}

void FrameLoop::ServeReady() {
  size_t served = 0;
  for (; served < serving_.size() && !failed_; ++served) {
    const auto found = connections_.find(serving_[served]);
    if (found == connections_.end()) continue;
    Connection* const connection = found->second.get();
    connection->ready = false;
    if (!connection->paused) connection->in.Discard(Consume(connection, connection->in.data(), connection->in.size()));
    ServeLane(connection);
  }
  ready_.insert(ready_.end(), serving_.begin() + static_cast<std::ptrdiff_t>(served), serving_.end());
  serving_.clear();
}

void FrameLoop::Accept() {
  for (int i = 0; i < kAcceptsPerRound && listener_ >= 0; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory: the peer keeps its place in the queue, and the loop does not turn idle circles.
      if (errno != EAGAIN) MuteListener();
      return;
    }
    auto connection = std::make_unique<Connection>();
    connection->fd = fd;
    connection->id = next_connection_;
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (connections_.size() >= options_.max_connections ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 || !Arm(fd, EPOLLIN, connection.get())) {
      ++rejected_;
      continue;
    }
    connection->peer = {credentials.pid, credentials.uid, credentials.gid};
    StartStallClock(connection.get());
    connections_.emplace(next_connection_++, std::move(connection));
  }
}

void FrameLoop::MuteListener() {
  epoll_event event{};
  event.data.ptr = &listener_;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
  listener_muted_ = true;
  next_deadline_ = std::min(next_deadline_, Now() + kMuteNanoseconds);
}

void FrameLoop::StartStallClock(Connection* connection) {
  if (options_.stall_milliseconds == 0) return;
  connection->deadline = Now() + static_cast<int64_t>(options_.stall_milliseconds) * 1'000'000;
  next_deadline_ = std::min(next_deadline_, connection->deadline);
}

// Deadlines that were met stay in next_deadline_ until it passes: one needless scan, and no bookkeeping on the hot path.
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
    if (connection->deadline <= now) {
      stalled.push_back(connection.get());
    } else {
      next_deadline_ = std::min(next_deadline_, connection->deadline);
    }
  }
  for (Connection* connection : stalled) Drop(connection, true);
}

// ---- One connection ---------------------------------------------------------------------------------------------------

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

// False when there was nothing to read.
bool FrameLoop::Receive(Connection* connection) {
  Bytes& in = connection->in;
  const bool fresh = in.empty();
  if (!fresh && in.space() == 0) {
    // Grows with what has really come, not with what a header promises.
    if (!in.Reserve(std::min(std::max<size_t>(2 * in.size(), 4096), options_.max_frame + kHeader))) {
      Drop(connection, true);
      return true;
    }
  }
  uint8_t* const into = fresh ? buffers_->scratch() : in.tail();
  const ssize_t got = recv(connection->fd, into, fresh ? FrameBuffers::kScratch : in.space(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    Drop(connection, false);
    return true;
  }
  const auto length = static_cast<size_t>(got);
  // What the peer put into its lane before it sent this comes before it.
  ServeLane(connection);
  if (fresh) {
    const size_t used = Consume(connection, into, length);
    const bool kept = connection->closed || in.Append(into + used, length - used);
    explicit_bzero(into, length);
    if (!kept) Drop(connection, true);
  } else {
    in.Commit(length);
    in.Discard(Consume(connection, in.data(), in.size()));
  }
  return true;
}

bool FrameLoop::ReceiveLone() {
  if (lone_ == nullptr || lone_->paused || lone_->ready) return false;
  // Every few rounds the others are asked, too.
  if (++lone_unasked_ > kLoneRounds) {
    lone_unasked_ = 0;
    return false;
  }
  return Receive(lone_);
}

// ---- Lanes ------------------------------------------------------------------------------------------------------------

void FrameLoop::WatchLane(Connection* connection) {
  if (connection->closed || connection->watched || connection->lane == nullptr || options_.spin_microseconds == 0 ||
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
  uint8_t* const message = buffers_->lane();
  const int taken = connection->lane->Take(message);
  if (taken == 0) return false;
  if (taken < 0) {
    Drop(connection, true);
    return true;
  }
  Count(connection);
  if (++lane_messages_ % kMessagesAPlace == 0 && lanes_.size() == 1) LookAtPlace(connection);
  const auto length = static_cast<size_t>(taken);
  const size_t used = HandOn(connection, message, length, true);
  TransmitBatch(connection);
  explicit_bzero(message, length);
  // Only whole frames pass through a lane.
  if (!connection->closed && used != length) Drop(connection, true);
  return true;
}

// Leaves the CPU of the only caller when another has nothing to do.
void FrameLoop::LookAtPlace(const Connection* connection) {
  const int own = sched_getcpu();
  if (own < 0) return;
  switch (place_.Look(connection->lane->cpu() == own, Now())) {
    case Place::Step::kStay:
      return;
    case Place::Step::kBegin:
      cpu_times_ = ReadCpuTimes();
      return;
    case Place::Step::kEnd:
      break;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const int idle = IdleCpu(cpu_times_, ReadCpuTimes(), allowed, own);
  if (idle >= 0) GoTo(idle);
}

// Looks at every lane once. False when nothing waited in any.
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

// Said first, looked after that: what the peer puts there meanwhile is seen here, or the peer sees that it must ring.
bool FrameLoop::LeaveLane(Connection* connection) {
  connection->watched = false;
  connection->lane->Watch(false);
  return ServeLane(connection);
}

// Before the loop sleeps: nobody may go on writing into a lane that nobody looks at. True when something had come meanwhile.
bool FrameLoop::LeaveLanes() {
  bool served = false;
  std::vector<Connection*> left;
  left.swap(lanes_);
  // A connection that is dropped on the way stays in the graveyard until the next round, but is not to be touched any more.
  for (Connection* connection : left) {
    if (connection != nullptr && !connection->closed && LeaveLane(connection)) served = true;
  }
  return served;
}

// Hands on the whole frames at `data` and says how many bytes they were.
size_t FrameLoop::Consume(Connection* connection, const uint8_t* data, size_t length) {
  const size_t used = HandOn(connection, data, length, false);
  TransmitBatch(connection);
  return used;
}

// A message from a lane is short and has no other place to wait in: it is done at once, whatever it holds.
size_t FrameLoop::HandOn(Connection* connection, const uint8_t* data, size_t length, bool from_lane) {
  // Whether a whole frame follows at `data + at`.
  const auto another = [&](size_t at) {
    return length - at >= kHeader &&
           static_cast<uint64_t>(GetU32(data + at + 4)) + GetU32(data + at + 8) <= length - at - kHeader;
  };
  size_t at = 0;
  if (!connection->greeted) {
    if (length == 0) return 0;
    Greet(connection, data[at++]);
  }
  for (int budget = kFramesPerRound; !connection->closed && length - at >= kHeader; --budget) {
    const uint32_t call_code = GetU32(data + at);
    const uint32_t options = GetU32(data + at + 4);
    const uint32_t body = GetU32(data + at + 8);
    if (call_code == 0 && options == 0 && body == 0 && connection->lane != nullptr) {
      at += kHeader;  // a ring: the lane is looked at after this
      continue;
    }
    // Call code 0 means "no frame" to p11-kit's clients, so no reply could carry it.
    if (call_code == 0 || static_cast<uint64_t>(options) + body > options_.max_frame) {
      TransmitBatch(connection);
      Drop(connection, true);
      return at;
    }
    const size_t whole = kHeader + options + body;
    if (length - at < whole) return at;
    if (connection->paused && !from_lane) return at;
    if (budget <= 0 && !from_lane) {
      MarkReady(connection);
      return at;
    }
    const uint8_t* const message = data + at + kHeader + options;
    at += whole;
    ++frames_;
    if (connection->lane == nullptr || connection->lane->spinning()) spin_wanted_ = true;
    if (connection->routines != nullptr) {
      const size_t length_of_answer = connection->routines->Answer(message, body, reply(), options_.max_frame);
      if (length_of_answer > 0) {
        ++routine_frames_;
        Reply(connection, call_code, length_of_answer, another(at));
        continue;
      }
      if (connection->routines->unseen() && !ShowUnseen(connection)) return at;
    }
    if (body > 0) memcpy(request(), message, body);
    const int64_t answer = handler_->Frame(connection->id, call_code, body);
    if (body > 0) explicit_bzero(request(), body);
    if (answer == FrameHandler::kFailed) failed_ = true;
    if (connection->closed) return at;
    if (answer > 0 && answer <= static_cast<int64_t>(options_.max_frame)) {
      Reply(connection, call_code, static_cast<size_t>(answer), another(at));
    } else if (answer == FrameHandler::kLater) {
      pending_ = true;
    } else {
      TransmitBatch(connection);
      Drop(connection, false);
    }
  }
  return at;
}

// Hands the handler what was begun without it; the answers, which were given already, are dropped. False when the connection is gone.
bool FrameLoop::ShowUnseen(Connection* connection) {
  constexpr uint32_t kNobodys = 1;
  while (!connection->closed && connection->routines->unseen()) {
    const size_t length = connection->routines->TakeUnseen(request());
    const int64_t answer = handler_->Frame(connection->id, kNobodys, static_cast<uint32_t>(length));
    explicit_bzero(request(), length);
    if (answer == FrameHandler::kFailed) failed_ = true;
    if (connection->closed) return false;
    if (answer <= 0 || answer > static_cast<int64_t>(options_.max_frame)) {
      TransmitBatch(connection);
      Drop(connection, false);
      return false;
    }
    explicit_bzero(reply(), static_cast<size_t>(answer));
  }
  return !connection->closed;
}

void FrameLoop::Greet(Connection* connection, uint8_t version) {
  const int64_t answer = handler_->Connect(connection->id, connection->peer, version);
  if (answer == FrameHandler::kFailed) failed_ = true;
  if (connection->closed) return;
  if (answer < 0 || answer > 255) {
    Drop(connection, true);
    return;
  }
  connection->greeted = true;
  connection->deadline = INT64_MAX;
  if (!GreetBack(connection, static_cast<uint8_t>(answer))) Drop(connection, false);
}

// The version byte, with the lane's descriptor for who can use one. Nothing was sent before it, so there is room.
bool FrameLoop::GreetBack(Connection* connection, uint8_t version) {
  if (version == options_.lane_version && version != 0) connection->lane = FrameLane::Create();
  iovec part{&version, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {};
  if (connection->lane != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = connection->lane->fd();
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  const ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
  if (connection->lane != nullptr) connection->lane->CloseDescriptor();
  return sent == 1;
}

// With `more` to come the reply waits for the next one: a call less for us, and a peer that is not woken in between.
void FrameLoop::Reply(Connection* connection, uint32_t call_code, size_t length, bool more) {
  uint8_t* const frame = reply() - kHeader;
  const size_t whole = kHeader + length;
  PutHeader(frame, call_code, length);
  if (batched_ + whole > FrameBuffers::kBatch) TransmitBatch(connection);
  if ((more || batched_ > 0) && whole <= FrameBuffers::kBatch) {
    memcpy(buffers_->batch() + batched_, frame, whole);
    batched_ += whole;
    if (!more) TransmitBatch(connection);
  } else if (!connection->closed) {
    Transmit(connection, frame, whole, nullptr, 0);
  }
  explicit_bzero(frame, whole);
}

void FrameLoop::TransmitBatch(Connection* connection) {
  if (batched_ == 0) return;
  const size_t length = batched_;
  batched_ = 0;
  if (!connection->closed) Transmit(connection, buffers_->batch(), length, nullptr, 0);
  explicit_bzero(buffers_->batch(), length);
}

bool FrameLoop::Send(uint64_t connection, uint32_t call_code, const uint8_t* body, size_t length) {
  if (length > options_.max_frame) return false;
  const auto found = connections_.find(connection);
  if (found == connections_.end() || !found->second->greeted) return true;
  uint8_t header[kHeader];
  PutHeader(header, call_code, length);
  Transmit(found->second.get(), header, kHeader, body, length);
  return true;
}

void FrameLoop::Transmit(Connection* connection, const uint8_t* head, size_t head_length, const uint8_t* body,
                         size_t body_length) {
  size_t sent = 0;
  if (connection->lane != nullptr && connection->lane->Fits(head_length + body_length)) {
    if (connection->lane->Put(head, head_length, body, body_length)) return;
    // The peer sleeps: an empty frame wakes it. When the socket takes none, there is something in it that does.
    const uint8_t ring[kHeader] = {};
    [[maybe_unused]] const ssize_t ignored = send(connection->fd, ring, sizeof ring, MSG_NOSIGNAL);
    return;
  }
  if (connection->out.empty()) {
    iovec parts[2] = {{const_cast<uint8_t*>(head), head_length}, {const_cast<uint8_t*>(body), body_length}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = body_length == 0 ? 1 : 2;
    const ssize_t wrote = body_length == 0 ? send(connection->fd, head, head_length, MSG_NOSIGNAL)
                                           : sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
      Drop(connection, false);
      return;
    }
    sent = wrote < 0 ? 0 : static_cast<size_t>(wrote);
    if (sent > 0) connection->Notify();
    if (sent == head_length + body_length) return;
    StartStallClock(connection);
  }
  const size_t head_sent = std::min(sent, head_length);
  if (connection->out.size() + head_length + body_length - sent > output_cap_ ||
      !connection->out.Append(head + head_sent, head_length - head_sent) ||
      !connection->out.Append(body + (sent - head_sent), body_length - (sent - head_sent))) {
    Drop(connection, true);
    return;
  }
  UpdateInterest(connection);
}

void FrameLoop::Flush(Connection* connection) {
  Bytes& out = connection->out;
  while (!out.empty()) {
    const ssize_t wrote = send(connection->fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {
      Drop(connection, false);
      return;
    }
    out.Discard(static_cast<size_t>(wrote));
    connection->Notify();
    StartStallClock(connection);
  }
  if (out.empty()) connection->deadline = INT64_MAX;
  UpdateInterest(connection);
}

void FrameLoop::UpdateInterest(Connection* connection) {
  const bool was_paused = connection->paused;
  connection->paused = connection->out.size() >= high_water_;
  if (was_paused && !connection->paused &&
      (!connection->in.empty() || (connection->lane != nullptr && connection->lane->waiting()))) {
    MarkReady(connection);
  }
  const uint32_t interest = (connection->paused ? 0u : EPOLLIN) | (connection->out.empty() ? 0u : EPOLLOUT);
  if (interest == connection->interest) return;
  connection->interest = interest;
  epoll_event event{};
  event.events = interest;
  event.data.ptr = connection;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection->fd, &event);
}

void FrameLoop::MarkReady(Connection* connection) {
  if (connection->ready) return;
  connection->ready = true;
  ready_.push_back(connection->id);
}

// The connection's memory stays until the batch is done: its frame may be in the handler's hands at this moment.
void FrameLoop::Drop(Connection* connection, bool rejected) {
  if (connection->closed) return;
  connection->closed = true;
  if (lone_ == connection) lone_ = nullptr;
  if (connection->watched) std::replace(lanes_.begin(), lanes_.end(), connection, static_cast<Connection*>(nullptr));
  connection->watched = false;
  close(connection->fd);
  connection->fd = -1;
  connection->Notify();
  connection->out.Clear();
  if (rejected) ++rejected_;
  if (connection->greeted) closed_.push_back(connection->id);
  const auto found = connections_.find(connection->id);
  graveyard_.push_back(std::move(found->second));
  connections_.erase(found);
}

int64_t FrameLoop::Learn(uint64_t connection, Routine routine) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || routine.init.size() > options_.max_frame) return -1;
  if (found->second->routines == nullptr) found->second->routines = std::make_unique<Routines>();
  return found->second->routines->Learn(std::move(routine));
}

void FrameLoop::SuspendRoutines(uint64_t connection, const RoutinePlace& place, bool suspended) {
  const auto found = connections_.find(connection);
  if (found != connections_.end() && found->second->routines != nullptr) found->second->routines->Suspend(place, suspended);
}

void FrameLoop::ForgetRoutines(uint64_t connection) {
  const auto found = connections_.find(connection);
  if (found != connections_.end() && found->second->routines != nullptr) found->second->routines->Forget();
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
