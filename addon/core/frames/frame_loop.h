// The frame server: one epoll loop that speaks the framing of p11-kit's RPC protocol on a unix
// stream socket.
//
// It knows connections, frames and limits, and nothing of what a frame says. What its handler has
// taught it (replay_cache.h) it answers on its own. The wire: the client's first byte is its
// protocol version and is answered by one byte; from then on both sides send frames, a header of
// three big-endian 32-bit numbers (call code, length of the options, length of the body), the
// options, the body. Options name a module to p11-kit and mean nothing here: they are skipped on
// the way in and left empty on the way out.
//
// While calls flow, a peer of our own dialect and this loop pass messages through shared memory in
// addition to the socket (lane.h).
//
// One thread owns a FrameLoop. Only FrameSignal (wake, stop) may be used from others.
//
// Frame bodies may carry key values and plaintext. Memory that held one is wiped as soon as the
// frame is done with, and the buffers that the handler sees are kept out of core dumps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "frames/cpu_placement.h"
#include "frames/user_table.h"
#include "frames/replay_cache.h"
#include "frames/spin_policy.h"

struct epoll_event;

namespace dke {

// Who is on the other end, as the kernel recorded it when the peer connected.
struct FramePeer {
  int32_t pid;
  uint32_t uid;
  uint32_t gid;
  // Its other groups; none where the kernel does not tell them (before Linux 4.13).
  std::vector<uint32_t> groups = {};
};

struct FrameOptions {
  // The socket to make at `path`; or, when `fd` is not negative, an already listening unix stream
  // socket.
  std::string path;
  int fd = -1;
  uint32_t mode = 0600;
  // How long the loop yields the CPU and looks again before it sleeps, while calls are flowing. 0 =
  // never. Of a connection until FrameLoop::SetSpin; of several callers the longest.
  uint32_t spin_microseconds = 0;
  // Largest sum of options and body of one frame, in bytes; also the largest reply.
  uint32_t max_frame = 1 << 20;
  uint32_t max_connections = 1024;
  // A peer that does not send its version byte, or does not take a byte of what waits for it, for
  // this long is dropped.
  uint32_t stall_milliseconds = 30000;
  // A peer must be admitted (FrameLoop::Admit) within this time after it connects, or it is
  // dropped; until then its frames have at most `admission_frame` bytes. 0 = every greeted peer is
  // admitted.
  uint32_t admission_milliseconds = 0;
  uint32_t admission_frame = 1 << 20;
  // Limits for all connections of one user (uid) together. 0 = none.
  uint32_t user_connections = 0;
  // Bytes that the loop stores: frames that are not complete, and answers that the peer has not
  // read.
  uint64_t user_bytes = 0;
  // A peer that is answered this version byte is offered a lane. 0 = none is.
  uint32_t lane_version = 0;
  // The clock, in nanoseconds, by which callers are counted and turns end: a test's clock can stand
  // still. Null: the monotonic one.
  int64_t (*clock)() = nullptr;
};

struct FrameStatistics {
  uint64_t connections = 0;  // open now
  uint64_t frames = 0;       // served since the start
  uint64_t replayed_frames = 0;  // of them, those that the handler has not seen
  uint64_t lane_messages = 0;  // requests that came through a lane
  uint64_t rejected = 0;     // connections refused or closed because of a limit or a broken frame
  uint64_t refused_frames = 0;  // frames and answers that were not accepted because their user has too much in memory
  uint64_t held_bytes = 0;   // of all users
};

// What the owner of a loop does with its events. Every method runs inside FrameLoop::Run, on its
// thread.
class FrameHandler {
 public:
  // The handler itself failed: the connection is closed and Run returns kFailed.
  static constexpr int64_t kFailed = -2;
  static constexpr int64_t kClose = -1;
  static constexpr int64_t kLater = 0;
  // Frames and answers of this length are taken even from a user who holds too much, and so is what
  // Refuse answers.
  static constexpr size_t kSmall = 4096;

  virtual ~FrameHandler() = default;
  // The version byte to answer with (0 to 255), kClose to refuse, or kFailed.
  virtual int64_t Connect(uint64_t connection, const FramePeer& peer, uint8_t version) = 0;
  // The frame's body is the first `length` bytes of FrameLoop::request(). Returns how many bytes of
  // FrameLoop::reply() to send (1 to max_frame), kLater when FrameLoop::Send will bring them,
  // kClose or kFailed.
  virtual int64_t Frame(uint64_t connection, uint32_t call_code, uint32_t length) = 0;
  // The user of this connection holds too much memory: a frame is thrown away, of whose body the
  // first `length` bytes are in FrameLoop::request(); or the answer to a frame is, and then
  // `length` is 0. Returns how many bytes of FrameLoop::reply() to answer instead, at most kSmall;
  // kClose or kFailed.
  virtual int64_t Refuse(uint64_t /*connection*/, uint32_t /*length*/) { return kClose; }
  // A connection of this user was closed at once because the user has too many. Told once in ten
  // seconds for each user. Returns kFailed or anything else.
  virtual int64_t TooMany(const FramePeer& /*peer*/) { return 0; }
  // Once for each connection that Connect accepted, after it is closed. Returns kFailed or anything
  // else.
  virtual int64_t Close(uint64_t connection) = 0;
};

// The two buffers that every frame goes through. They outlive the loop for as long as they are
// referenced, so a language that keeps a view on them never sees freed memory.
class FrameBuffers {
 public:
  static std::shared_ptr<FrameBuffers> Create(size_t max_frame);
  ~FrameBuffers();
  FrameBuffers(const FrameBuffers&) = delete;
  FrameBuffers& operator=(const FrameBuffers&) = delete;

  uint8_t* request() const { return request_; }
  uint8_t* reply() const { return reply_; }
  // What one read takes from a socket at most, before it is cut into frames.
  uint8_t* scratch() const { return scratch_; }
  static constexpr size_t kScratch = 64 * 1024;
  // One message from a lane. Apart from what a socket gave: that may be in hand at the same time.
  uint8_t* lane() const { return lane_; }
  static constexpr size_t kLane = 4096;
  // Replies to frames that came in one piece, until they leave in one piece.
  uint8_t* batch() const { return batch_; }
  static constexpr size_t kBatch = 64 * 1024;

 private:
  FrameBuffers() = default;
  void* region_ = nullptr;
  size_t region_size_ = 0;
  uint8_t* request_ = nullptr;
  uint8_t* reply_ = nullptr;  // with room for a header in front, so that a reply leaves in one write
  uint8_t* scratch_ = nullptr;
  uint8_t* batch_ = nullptr;
  uint8_t* lane_ = nullptr;
};

// The part of a loop that other threads may touch. Both calls are remembered: one made while the
// loop is not running ends its next run at once.
class FrameSignal {
 public:
  FrameSignal();
  ~FrameSignal();
  FrameSignal(const FrameSignal&) = delete;
  FrameSignal& operator=(const FrameSignal&) = delete;

  void Wake() { Raise(kWake); }
  void Stop() { Raise(kStop); }
  int fd() const { return fd_; }

  static constexpr uint32_t kWake = 1;
  static constexpr uint32_t kStop = 2;
  // What was raised; wakes are taken (and will not be answered again), a stop stays.
  uint32_t Take();
  bool raised() const { return raised_.load(std::memory_order_acquire) != 0; }

  // The process-wide registry: every open loop has a number in it. Unknown numbers are ignored.
  static void WakeById(uint32_t id);
  static void StopById(uint32_t id);
  // For the loop: its number in the registry.
  static uint32_t Register(const std::shared_ptr<FrameSignal>& signal);
  static void Unregister(uint32_t id);

 private:
  void Raise(uint32_t what);
  std::atomic<uint32_t> raised_{0};
  int fd_;
};

class FrameLoop {
 public:
  enum class RunResult { kWoken, kPending, kStopped, kFailed };
  enum class Fault { kNone, kArgument, kIo };

  // Makes the socket and listens. On failure returns null and says in `fault` and `message` what is
  // wrong.
  static std::unique_ptr<FrameLoop> Open(const FrameOptions& options, Fault* fault, std::string* message);
  ~FrameLoop();
  FrameLoop(const FrameLoop&) = delete;
  FrameLoop& operator=(const FrameLoop&) = delete;

  uint32_t id() const { return id_; }
  const std::shared_ptr<FrameBuffers>& buffers() const { return buffers_; }
  uint8_t* request() const { return buffers_->request(); }
  uint8_t* reply() const { return buffers_->reply(); }
  FrameStatistics statistics() const;
  bool running() const { return running_; }

  // Serves until the loop is woken or stopped, or until the events at hand are done and a handler
  // answered kLater. Not re-entrant. After kFailed and every answer but kStopped it may be called
  // again; kStopped is then the answer to every call.
  RunResult Run(FrameHandler* handler);
  // Serves what is there now and does not sleep: for a host that has work of its own left. Then
  // kWoken, or as above.
  RunResult Glance(FrameHandler* handler);

  // Changes how long the loop spins before it sleeps after a call of this connection. From the
  // loop's own thread, also from a handler.
  void SetSpin(uint64_t connection, uint32_t microseconds);

  // Watches one more descriptor (the host's own event loop): Run returns kWoken rather than sleep
  // while it is readable.
  bool Watch(int fd);

  // Whether the peer may stay: see FrameOptions::admission_milliseconds, which begins again with
  // false. From the loop's own thread, also from a handler.
  void Admit(uint64_t connection, bool admitted);
  // Sends a reply to a frame that was answered kLater. kNoRoom when its user holds too much: then a
  // reply of at most kSmall bytes is due instead. A closed connection is not an error.
  enum class Sent { kYes, kTooLong, kNoRoom };
  Sent Send(uint64_t connection, uint32_t call_code, const uint8_t* body, size_t length);
  // What may be answered without the handler, for one connection: see Replays. From the loop's own
  // thread, also from a handler.
  int64_t Learn(uint64_t connection, Replay replay);
  void SuspendReplays(uint64_t connection, const OperationSlot& slot, bool suspended);
  void ForgetReplays(uint64_t connection);
  // Handlers hear of it by Close, from Run.
  void CloseConnection(uint64_t connection);
  // Closes the socket and every connection; the next Run reports them and returns kStopped.
  void Stop();

 private:
  struct Connection;

  FrameLoop() = default;
  bool Listen(std::string* message);
  bool MakeSocket(std::string* message);
  static void LimitToDescriptors(FrameOptions* options);
  bool AdoptSocket(std::string* message);
  bool Arm(int fd, uint32_t events, void* tag);

  static constexpr int kNothingCame = -2;
  RunResult Rounds(FrameHandler* handler, bool glance);
  int Look(epoll_event* events, int capacity);
  int Wait(epoll_event* events, int capacity);
  void TakeCensus(int64_t now);
  void Count(Connection* connection);
  int Gather(epoll_event* events, int capacity);
  int Spin(epoll_event* events, int capacity, int64_t from, int64_t window);
  int SleepTimeout() const;
  bool HasTurn(FrameUser* user);
  void ServeReady();
  void Accept();
  bool MayConnect(const FramePeer& peer, FrameUser* user);
  void MuteListener();
  void Serve(Connection* connection, uint32_t events);
  bool Receive(Connection* connection);
  bool Keep(Connection* connection, const uint8_t* rest, size_t length);
  bool MakeRoom(Connection* connection);
  bool RefuseFrame(Connection* connection, const uint8_t* front, size_t length);
  size_t Skip(Connection* connection, size_t length);
  bool HasRoom(const Connection* connection, size_t more) const;
  bool ReceiveLone();
  bool ServeLane(Connection* connection);
  bool ServeLaneRest(Connection* connection);
  bool ServeLanes();
  void WatchLane(Connection* connection);
  bool LeaveLane(Connection* connection);
  bool LeaveLanes();
  void CheckPlacement(const Connection* connection);
  size_t Consume(Connection* connection, const uint8_t* data, size_t length);
  size_t HandOn(Connection* connection, const uint8_t* data, size_t length);
  bool MayServe(Connection* connection, int budget);
  void Respond(Connection* connection, uint32_t call_code, const uint8_t* body, size_t length, bool more);
  bool ShowUnseen(Connection* connection);
  void Greet(Connection* connection, uint8_t version);
  void Reply(Connection* connection, uint32_t call_code, size_t length, bool more);
  void TransmitBatch(Connection* connection);
  void GreetBack(Connection* connection, uint8_t version);
  void Transmit(Connection* connection, const uint8_t* head, size_t head_length, const uint8_t* body, size_t body_length);
  void Write(Connection* connection, const uint8_t* head, size_t head_length, const uint8_t* body, size_t body_length);
  void Flush(Connection* connection);
  void UpdateInterest(Connection* connection);
  void MarkReady(Connection* connection);
  void StartStallClock(Connection* connection);
  void StartAdmissionClock(Connection* connection, uint32_t milliseconds);
  void DropStalled();
  void Drop(Connection* connection, bool rejected);
  bool ReportClosed();
  void CloseListener();

  FrameOptions options_;
  size_t high_water_ = 0;   // waiting output at which a connection's further frames wait, too
  uint32_t id_ = 0;
  std::shared_ptr<FrameSignal> signal_;
  std::shared_ptr<FrameBuffers> buffers_;
  int epoll_ = -1;
  int listener_ = -1;
  bool listener_muted_ = false;
  bool made_socket_ = false;
  uint64_t socket_device_ = 0;
  uint64_t socket_inode_ = 0;

  FrameHandler* handler_ = nullptr;
  size_t batched_ = 0;      // bytes of replies in the batch; empty between two connections
  bool running_ = false;
  bool stopped_ = false;
  bool failed_ = false;
  bool pending_ = false;
  bool signal_fired_ = false;
  bool watch_fired_ = false;

  uint64_t next_connection_ = 1;
  FrameUsers users_;
  std::unordered_map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> deferred_;  // freed when no event of the current batch can name them
  std::deque<uint64_t> closed_;                         // to be reported to the handler
  // Connections with whole frames already in memory, those that have waited longest first.
  std::vector<uint64_t> ready_;
  std::vector<uint64_t> serving_;
  bool serving_ready_ = false;
  uint64_t round_ = 1;
  Connection* lone_ = nullptr;  // the only one that had anything to read in the last round
  uint64_t lone_rounds_ = 0;    // for how many rounds that has been so
  uint64_t lone_unasked_ = 0;   // how often it was read since the others were polled
  std::vector<Connection*> lanes_;  // those that are polled; null: closed since the last poll
  uint64_t lane_rounds_ = 0;
  uint64_t quiet_rounds_ = 0;   // how often in a row the sockets had nothing while lanes were polled

  uint32_t census_ = 1;         // of callers: who has sent something
  int64_t census_began_ = 0;
  size_t callers_ = 0;          // in this one so far
  size_t callers_before_ = 0;   // in the one before
  bool crowded_ = false;
  bool spin_wanted_ = false;    // by one of the callers since the loop last waited
  uint32_t spin_microseconds_ = 0;  // the longest of these callers
  SpinPolicy spin_policy_;
  CpuPlacement cpu_placement_;
  std::vector<CpuTime> cpu_times_;  // when the others began to be watched

  uint64_t frames_ = 0;
  uint64_t replayed_frames_ = 0;
  uint64_t lane_messages_ = 0;
  uint64_t frames_seen_ = 0;  // by Wait, to tell whether the round before it carried calls
  uint64_t rejected_ = 0;
  uint64_t refused_frames_ = 0;
  int64_t last_busy_ = 0;     // monotonic nanoseconds
  int64_t next_deadline_ = INT64_MAX;
};

}  // namespace dke
