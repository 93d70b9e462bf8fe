// The frame server's loop against real unix sockets: framing, limits, fairness, signals. The
// handler here is a small echo whose behaviour a frame's first byte chooses; what frames mean is
// tested elsewhere.
#include "frames/frame_loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../tests.h"

namespace {

using dke::FrameHandler;
using dke::FrameLoop;
using dke::FrameOptions;
using dke::FramePeer;
using RunResult = FrameLoop::RunResult;

constexpr uint32_t kMaxFrame = 1 << 16;

// First byte of a frame's body: selects what the handler does.
enum : uint8_t { kEcho = 0, kBig = 1, kAnswerLater = 2, kHangUp = 3, kBreak = 4, kFlood = 5, kCloseMe = 6, kStopAll = 7, kGate = 8, kAdmit = 9, kExpel = 10, kCostly = 11 };

// A clock that costly frames move: each takes a millisecond.
std::atomic<int64_t> costs{0};

class Echo : public FrameHandler {
 public:
  FrameLoop* loop = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<FramePeer> peers;
  std::vector<uint8_t> versions;
  std::vector<uint64_t> frames_of;  // connection of each frame, in the order served
  std::vector<uint64_t> closed;
  std::vector<std::pair<uint64_t, uint32_t>> later;
  bool request_was_clean = true;
  int unsent = 0;
  std::vector<uint32_t> refused;  // how much of each frame had come
  std::vector<uint32_t> told;     // users with too many connections

  int64_t Connect(uint64_t, const FramePeer& peer, uint8_t version) override {
    const std::lock_guard<std::mutex> lock(mutex);
    peers.push_back(peer);
    versions.push_back(version);
    changed.notify_all();
    if (version == 0xff) return kClose;
    return version == 0xfe ? kFailed : 1;
  }

  int64_t Frame(uint64_t connection, uint32_t call_code, uint32_t length) override {
    const uint8_t* const body = loop->request();
    const uint8_t what = length > 0 ? body[0] : static_cast<uint8_t>(kEcho);
    {
      std::unique_lock<std::mutex> lock(mutex);
      frames_of.push_back(connection);
      for (uint32_t i = length; i < kMaxFrame; ++i) request_was_clean = request_was_clean && body[i] == 0;
      changed.notify_all();
      if (what == kGate) changed.wait(lock, [this] { return gate_open_; });
      if (what == kAnswerLater) later.emplace_back(connection, call_code);
      changed.notify_all();
    }
    switch (what) {
      case kBig:
        memset(loop->reply(), 'b', kMaxFrame);
        return kMaxFrame;
      case kAnswerLater:
        return kLater;
      case kHangUp:
        return kClose;
      case kBreak:
        return kFailed;
      case kFlood: {
        const std::vector<uint8_t> block(kMaxFrame, 'f');
        for (int i = 0; i < 64; ++i) {
          if (loop->Send(connection, call_code, block.data(), block.size()) == FrameLoop::Sent::kNoRoom) ++unsent;
        }
        return kLater;
      }
      case kCostly:
        costs += 1'000'000;
        return 1;
      case kCloseMe:
        loop->CloseConnection(connection);
        return kLater;
      case kStopAll:
        loop->Stop();
        return kLater;
      case kAdmit:
      case kExpel:
        loop->Admit(connection, what == kAdmit);
        memcpy(loop->reply(), body, length);
        loop->reply()[length] = '!';
        return length + 1;
      default:
        memcpy(loop->reply(), body, length);
        loop->reply()[length] = '!';
        return length + 1;
    }
  }

  int64_t Refuse(uint64_t, uint32_t length) override {
    const std::lock_guard<std::mutex> lock(mutex);
    refused.push_back(length);
    changed.notify_all();
    memcpy(loop->reply(), "no", 2);
    return 2;
  }

  int64_t TooMany(const FramePeer& peer) override {
    const std::lock_guard<std::mutex> lock(mutex);
    told.push_back(peer.uid);
    changed.notify_all();
    return 0;
  }

  int64_t Close(uint64_t connection) override {
    const std::lock_guard<std::mutex> lock(mutex);
    closed.push_back(connection);
    changed.notify_all();
    return 0;
  }

  void OpenGate() {
    const std::lock_guard<std::mutex> lock(mutex);
    gate_open_ = true;
    changed.notify_all();
  }

  void Await(const std::function<bool()>& condition) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(30), condition)) fail_msg("what should have happened did not");
  }

 private:
  bool gate_open_ = false;
};

// A loop in a separate thread, which restarts it after each end until it is stopped.
class Server {
 public:
  std::string folder;
  std::string path;
  Echo handler;
  std::unique_ptr<FrameLoop> loop;
  std::vector<RunResult> results;
  std::function<void(FrameLoop*, RunResult)> after_run;

  explicit Server(const std::function<void(FrameOptions*)>& adjust = [](FrameOptions*) {}) {
    char name[] = "/tmp/dke-frames-XXXXXX";
    folder = mkdtemp(name);
    path = folder + "/socket";
    FrameOptions options;
    options.path = path;
    options.max_frame = kMaxFrame;
    options.spin_microseconds = 20;
    adjust(&options);
    FrameLoop::Fault fault;
    std::string message;
    loop = FrameLoop::Open(options, &fault, &message);
    if (loop == nullptr) fail_msg("%s", message.c_str());
    handler.loop = loop.get();
    thread_ = std::thread([this] {
      RunResult result;
      do {
        result = loop->Run(&handler);
        const std::lock_guard<std::mutex> lock(handler.mutex);
        results.push_back(result);
        if (after_run) after_run(loop.get(), result);
        handler.changed.notify_all();
      } while (result != RunResult::kStopped);
    });
  }

  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  ~Server() {
    dke::FrameSignal::StopById(loop->id());
    Join();
    loop.reset();
    rmdir(folder.c_str());
  }

 private:
  std::thread thread_;
};

int Dial(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  assert_int_equal(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

void Write(int fd, const std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t wrote = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (wrote < 0) fail_msg("send: %s", strerror(errno));
    at += static_cast<size_t>(wrote);
  }
}

// Reads exactly `length` bytes; fewer when the other side closes.
std::string Read(int fd, size_t length) {
  std::string bytes(length, '\0');
  size_t at = 0;
  while (at < length) {
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, 30000) != 1) fail_msg("no answer");
    const ssize_t got = recv(fd, bytes.data() + at, length - at, 0);
    if (got <= 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

bool IsClosed(int fd) {
  std::string rest;
  for (;;) {
    rest = Read(fd, 1 << 16);
    if (rest.size() < 1 << 16) return true;
  }
}

std::string U32(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string Frame(uint32_t code, const std::string& body, const std::string& options = "") {
  return U32(code) + U32(static_cast<uint32_t>(options.size())) + U32(static_cast<uint32_t>(body.size())) + options + body;
}

std::string Body(uint8_t what, const std::string& rest = "") { return std::string(1, static_cast<char>(what)) + rest; }

int Greet(const std::string& path, uint8_t version = 0) {
  const int fd = Dial(path);
  Write(fd, std::string(1, static_cast<char>(version)));
  assert_string_equal(Read(fd, 1).c_str(), "\x01");
  return fd;
}

void ExpectReply(int fd, uint32_t code, const std::string& body) {
  const std::string wanted = Frame(code, body);
  const std::string got = Read(fd, wanted.size());
  assert_int_equal(got.size(), wanted.size());
  assert_memory_equal(got.data(), wanted.data(), wanted.size());
}

void ExpectSameText(const std::string& got, const std::string& wanted) {
  assert_int_equal(got.size(), wanted.size());
  assert_memory_equal(got.data(), wanted.data(), wanted.size());
}

TEST(AVersionByteIsAnsweredByOneAndThePeerIsKnown) {
  Server server;
  const int fd = Greet(server.path, 7);
  assert_int_equal(server.handler.versions.at(0), 7);
  assert_int_equal(server.handler.peers.at(0).pid, getpid());
  assert_int_equal(server.handler.peers.at(0).uid, getuid());
  assert_int_equal(server.handler.peers.at(0).gid, getgid());
  close(fd);
}

TEST(ARefusedVersionClosesTheConnectionAndIsNotReportedAsClosed) {
  Server server;
  const int refused = Dial(server.path);
  Write(refused, "\xff");
  assert_true(IsClosed(refused));
  close(refused);
  close(Greet(server.path));
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  assert_int_equal(server.loop->statistics().rejected, 1);
}

TEST(AReplyCarriesTheCallCodeAndOptionsAreSkipped) {
  Server server;
  const int fd = Greet(server.path);
  Write(fd, Frame(0x10, Body(kEcho, "hello"), "module-name"));
  ExpectReply(fd, 0x10, Body(kEcho, "hello!"));
  Write(fd, Frame(0xfffffffe, ""));
  ExpectReply(fd, 0xfffffffe, "!");
  close(fd);
}

TEST(FramesMayArriveByteByByte) {
  Server server;
  const int fd = Dial(server.path);
  const std::string bytes = std::string(1, '\0') + Frame(1, Body(kEcho, "split"), "opt") + Frame(2, Body(kEcho, "again"));
  for (const char byte : bytes) Write(fd, std::string(1, byte));
  assert_int_equal(Read(fd, 1).size(), 1);
  ExpectReply(fd, 1, Body(kEcho, "split!"));
  ExpectReply(fd, 2, Body(kEcho, "again!"));
  close(fd);
}

TEST(ManyFramesInOneWriteAreAnsweredInOrder) {
  Server server;
  const int fd = Dial(server.path);
  std::string bytes(1, '\0');
  constexpr uint32_t kCount = 3000;
  for (uint32_t i = 1; i <= kCount; ++i) bytes += Frame(i, Body(kEcho, std::to_string(i)));
  std::thread writer([&] { Write(fd, bytes); });
  assert_int_equal(Read(fd, 1).size(), 1);
  for (uint32_t i = 1; i <= kCount; ++i) ExpectReply(fd, i, Body(kEcho, std::to_string(i) + "!"));
  writer.join();
  close(fd);
}

TEST(RepliesToFramesThatCameTogetherLeaveTogether) {
  Server server;
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kEcho, "first")) + Frame(2, Body(kGate)) + Frame(3, Body(kEcho, "last")));
  server.handler.Await([&] { return server.handler.frames_of.size() == 2; });
  char byte;
  assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
  server.handler.OpenGate();
  ExpectReply(fd, 1, Body(kEcho, "first!"));
  ExpectReply(fd, 2, Body(kGate, "!"));
  ExpectReply(fd, 3, Body(kEcho, "last!"));
  close(fd);
}

TEST(RepliesThatWaitForOthersAreSentBeforeTheConnectionIsClosed) {
  Server server;
  for (const std::string& last : {Frame(0, Body(kEcho)), Frame(3, Body(kHangUp)), U32(3) + U32(kMaxFrame) + U32(1)}) {
    const int fd = Greet(server.path);
    Write(fd, Frame(1, Body(kEcho, "one")) + Frame(2, Body(kEcho, "two")) + last);
    ExpectReply(fd, 1, Body(kEcho, "one!"));
    ExpectReply(fd, 2, Body(kEcho, "two!"));
    assert_true(IsClosed(fd));
    close(fd);
  }
}

TEST(LargeRepliesToFramesThatCameTogetherAllArrive) {
  Server server;
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kEcho, "small")) + Frame(2, Body(kBig)) + Frame(3, Body(kEcho, "small")) + Frame(4, Body(kBig)));
  ExpectReply(fd, 1, Body(kEcho, "small!"));
  ExpectReply(fd, 2, std::string(kMaxFrame, 'b'));
  ExpectReply(fd, 3, Body(kEcho, "small!"));
  ExpectReply(fd, 4, std::string(kMaxFrame, 'b'));
  close(fd);
}

TEST(APeerThatCallsWithoutPauseDoesNotKeepANewOneWaiting) {
  Server server;
  std::atomic<bool> enough{false};
  std::thread caller([&] {
    const int fd = Greet(server.path);
    for (uint32_t i = 1; !enough; ++i) {
      Write(fd, Frame(i, Body(kEcho)));
      ExpectReply(fd, i, Body(kEcho, "!"));
    }
    close(fd);
  });
  server.handler.Await([&] { return server.handler.frames_of.size() > 100; });
  for (int i = 0; i < 20; ++i) {
    const int fd = Greet(server.path);
    Write(fd, Frame(1, Body(kEcho, "new")));
    ExpectReply(fd, 1, Body(kEcho, "new!"));
    close(fd);
  }
  enough = true;
  caller.join();
}

TEST(TheLargestFrameFitsAndOneByteMoreClosesTheConnection) {
  Server server;
  const int fd = Greet(server.path);
  std::string largest = Body(kEcho, std::string(kMaxFrame - 2, 'x'));
  Write(fd, Frame(5, largest));
  ExpectReply(fd, 5, largest + "!");
  // The sum counts, so that neither length can hide behind the other.
  Write(fd, U32(6) + U32(kMaxFrame) + U32(1));
  assert_true(IsClosed(fd));
  close(fd);
  const int wrap = Greet(server.path);
  Write(wrap, U32(6) + U32(0xffffffff) + U32(2));
  assert_true(IsClosed(wrap));
  close(wrap);
  const int zero = Greet(server.path);
  Write(zero, Frame(0, Body(kEcho)));
  assert_true(IsClosed(zero));
  close(zero);
  server.handler.Await([&] { return server.handler.closed.size() == 3; });
  assert_int_equal(server.loop->statistics().rejected, 3);
}

TEST(ARequestIsWipedBeforeTheNextOneComes) {
  Server server;
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kEcho, std::string(5000, 's'))) + Frame(2, Body(kEcho, "short")));
  ExpectReply(fd, 1, Body(kEcho, std::string(5000, 's') + "!"));
  ExpectReply(fd, 2, Body(kEcho, "short!"));
  close(fd);
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  assert_true(server.handler.request_was_clean);
}

TEST(ABusyPeerDoesNotKeepTheOthersWaiting) {
  Server server;
  const int busy = Greet(server.path);
  const int quiet = Greet(server.path);
  // The handler holds the loop until both peers' frames are in their sockets.
  std::string flood = Frame(1, Body(kGate));
  for (uint32_t i = 2; i <= 400; ++i) flood += Frame(i, Body(kEcho));
  Write(busy, flood);
  Write(quiet, Frame(1, Body(kEcho)));
  server.handler.OpenGate();
  ExpectReply(quiet, 1, Body(kEcho, "!"));
  ExpectReply(busy, 1, Body(kGate, "!"));
  for (uint32_t i = 2; i <= 400; ++i) ExpectReply(busy, i, Body(kEcho, "!"));
  const auto& order = server.handler.frames_of;
  const uint64_t busy_number = order.front();
  const auto result = std::find_if(order.begin(), order.end(), [&](uint64_t number) { return number != busy_number; });
  assert_true(result != order.end());
  assert_true(result - order.begin() <= 32);
  close(busy);
  close(quiet);
}

TEST(ALateReplyEndsTheTurnAndLeavesBySend) {
  Server server;
  server.after_run = [&](FrameLoop* loop, RunResult result) {
    if (result != RunResult::kPending) return;
    for (const auto& [connection, code] : server.handler.later) {
      loop->Send(connection, code, reinterpret_cast<const uint8_t*>("late"), 4);
    }
    server.handler.later.clear();
  };
  const int fd = Greet(server.path);
  Write(fd, Frame(9, Body(kAnswerLater)));
  ExpectReply(fd, 9, "late");
  close(fd);
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
}

TEST(AReplyToAConnectionThatHasGoneIsDropped) {
  Server server;
  bool sent = false;
  server.after_run = [&](FrameLoop* loop, RunResult result) {
    if (result != RunResult::kWoken || server.handler.later.empty()) return;
    sent = loop->Send(server.handler.later[0].first, 1, reinterpret_cast<const uint8_t*>("late"), 4) == FrameLoop::Sent::kYes;
    assert_true(loop->Send(1, 1, nullptr, kMaxFrame + 1) == FrameLoop::Sent::kTooLong);
  };
  const int fd = Greet(server.path);
  Write(fd, Frame(9, Body(kAnswerLater)));
  server.handler.Await([&] { return !server.handler.later.empty(); });
  close(fd);
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  dke::FrameSignal::WakeById(server.loop->id());
  server.handler.Await([&] { return sent; });
}

TEST(AHandlerMayCloseAConnectionInEveryWay) {
  Server server;
  for (const uint8_t what : {kHangUp, kCloseMe, kBreak}) {
    const int fd = Greet(server.path);
    Write(fd, Frame(1, Body(what)) + Frame(2, Body(kEcho)));
    assert_true(IsClosed(fd));
    close(fd);
  }
  const int failed = Dial(server.path);
  Write(failed, "\xfe");
  assert_true(IsClosed(failed));
  close(failed);
  // The loop continues, and each connection that was accepted is reported closed once.
  close(Greet(server.path));
  server.handler.Await([&] { return server.handler.closed.size() == 4; });
  const std::lock_guard<std::mutex> lock(server.handler.mutex);
  assert_int_equal(std::count(server.results.begin(), server.results.end(), RunResult::kFailed), 2);
  assert_int_equal(server.handler.frames_of.size(), 3);
}

TEST(APeerThatDoesNotReadIsHeldBackAndThenDropped) {
  Server server([](FrameOptions* options) { options->stall_milliseconds = 50; });
  const int fd = Greet(server.path);
  const int good = Greet(server.path);
  for (uint32_t i = 1; i <= 200; ++i) Write(fd, Frame(i, Body(kBig)));
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  // Held back: the agent does not compute and keep 200 answers of 64 KiB for it.
  {
    const std::lock_guard<std::mutex> lock(server.handler.mutex);
    assert_true(server.handler.frames_of.size() < 100);
  }
  Write(good, Frame(1, Body(kEcho)));
  ExpectReply(good, 1, Body(kEcho, "!"));
  close(good);
  close(fd);
}

TEST(APeerThatReadsLateGetsEveryReply) {
  Server server;
  const int fd = Greet(server.path);
  std::string bytes;
  for (uint32_t i = 1; i <= 100; ++i) bytes += Frame(i, Body(kBig));
  Write(fd, bytes);
  const std::string big(kMaxFrame, 'b');
  for (uint32_t i = 1; i <= 100; ++i) ExpectReply(fd, i, big);
  Write(fd, Frame(101, Body(kEcho)));
  ExpectReply(fd, 101, Body(kEcho, "!"));
  close(fd);
}

// Threads that ask at once may all be answered at once.
TEST(LateRepliesWaitUntilThePeerReadsThem) {
  Server server;
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kFlood)));
  for (int i = 0; i < 64; ++i) ExpectReply(fd, 1, std::string(kMaxFrame, 'f'));
  assert_int_equal(server.handler.unsent, 0);
  close(fd);
}

constexpr uint32_t kUserBytes = 256 * 1024;

TEST(LateRepliesThatTheirUserHasNoRoomForAreNotKept) {
  Server server([](FrameOptions* options) { options->user_bytes = kUserBytes; });
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kFlood)));
  Write(fd, Frame(2, Body(kEcho)));
  server.handler.Await([&] { return server.handler.unsent > 0; });
  for (int i = 0; i < 64 - server.handler.unsent; ++i) ExpectReply(fd, 1, std::string(kMaxFrame, 'f'));
  ExpectReply(fd, 2, Body(kEcho, "!"));
  assert_true(server.handler.unsent < 64);
  // The last reply may be here before the thread that sent it has counted it.
  while (server.loop->statistics().held_bytes != 0) std::this_thread::yield();
  close(fd);
}

// Peers that begin large frames and do not end them.
TEST(AFrameThatItsUserHasNoRoomForIsThrownAwayAndAnswered) {
  Server server([](FrameOptions* options) { options->user_bytes = kUserBytes; });
  const std::string largest = Frame(7, Body(kEcho, std::string(kMaxFrame - 2, 'x')));
  std::vector<int> fds;
  for (int i = 0; i < 40; ++i) {
    fds.push_back(Greet(server.path));
    Write(fds.back(), largest.substr(0, largest.size() - 1));
  }
  server.handler.Await([&] { return server.handler.refused.size() >= 30; });
  assert_true(server.loop->statistics().held_bytes <= kUserBytes + 40 * FrameHandler::kSmall);
  // Small frames of the same user are served, and the large ones are answered when they are there.
  const int small = Greet(server.path);
  Write(small, Frame(1, Body(kEcho, "small")));
  ExpectReply(small, 1, Body(kEcho, "small!"));
  size_t served = 0;
  for (const int fd : fds) {
    Write(fd, largest.substr(largest.size() - 1) + Frame(8, Body(kEcho, "next")));
    const std::string header = Read(fd, 12);
    const bool refused = header == Frame(7, "no").substr(0, 12);
    if (refused) ExpectSameText(Read(fd, 2), "no");
    else assert_int_equal(Read(fd, kMaxFrame).size(), kMaxFrame);
    served += refused ? 0 : 1;
    ExpectReply(fd, 8, Body(kEcho, "next!"));
    close(fd);
  }
  assert_true(served >= 1);
  assert_int_equal(served + server.handler.refused.size(), 40);
  close(small);
}

// Peers that ask for large answers and do not read them.
TEST(AnAnswerThatItsUserHasNoRoomForIsReplaced) {
  Server server([](FrameOptions* options) { options->user_bytes = kUserBytes; });
  std::vector<int> fds;
  for (int i = 0; i < 20; ++i) {
    fds.push_back(Greet(server.path));
    for (uint32_t code = 1; code <= 10; ++code) Write(fds.back(), Frame(code, Body(kBig)));
  }
  server.handler.Await([&] { return !server.handler.refused.empty(); });
  assert_true(server.loop->statistics().held_bytes <= kUserBytes + 20 * 2 * FrameHandler::kSmall);
  for (const int fd : fds) {
    for (uint32_t code = 1; code <= 10; ++code) {
      const std::string header = Read(fd, 12);
      if (header == Frame(code, "no").substr(0, 12)) ExpectSameText(Read(fd, 2), "no");
      else ExpectSameText(Read(fd, kMaxFrame), std::string(kMaxFrame, 'b'));
    }
    close(fd);
  }
}

TEST(AUserWithTooManyConnectionsIsRefusedAndReportedOnce) {
  Server server([](FrameOptions* options) { options->user_connections = 3; });
  std::vector<int> fds;
  for (int i = 0; i < 3; ++i) fds.push_back(Greet(server.path));
  for (int i = 0; i < 5; ++i) {
    const int extra = Dial(server.path);
    assert_true(IsClosed(extra));
    close(extra);
  }
  assert_int_equal(server.handler.told.size(), 1);
  assert_int_equal(server.handler.told.at(0), getuid());
  close(fds.back());
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  fds.back() = Greet(server.path);
  for (const int fd : fds) close(fd);
}

// The limits are each user's own. Only root can become another user.
TEST(AnotherUserIsNotAffected) {
  if (geteuid() != 0) {
    print_message("skipped: only root can connect as another user\n");
    skip();
  }
  Server server([](FrameOptions* options) {
    options->mode = 0666;
    options->user_connections = 3;
    options->user_bytes = kUserBytes;
  });
  chmod(server.folder.c_str(), 0755);
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Three connections, each with a frame that does not end.
    if (setuid(65534) != 0) _exit(1);
    for (int i = 0; i < 3; ++i) {
      const int fd = Dial(server.path);
      const std::string begun = std::string(1, '\0') + Frame(1, std::string(kMaxFrame, 'x')).substr(0, 40'000);
      if (send(fd, begun.data(), begun.size(), MSG_NOSIGNAL) < 0) _exit(2);
    }
    const int extra = Dial(server.path);
    char byte;
    if (recv(extra, &byte, 1, 0) > 0) _exit(3);
    if (write(ready[1], "x", 1) != 1) _exit(4);
    pause();
    _exit(0);
  }
  close(ready[1]);
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  std::vector<int> fds;
  for (int i = 0; i < 3; ++i) {
    fds.push_back(Greet(server.path));
    Write(fds.back(), Frame(1, Body(kEcho, std::string(50'000, 'm'))));
    ExpectReply(fds.back(), 1, Body(kEcho, std::string(50'000, 'm') + "!"));
    close(fds.back());
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
}

// However many connections the other one has, and however many costly frames wait on each.
TEST(AUserWaitsForOneTurnOfAnotherOne) {
  if (geteuid() != 0) {
    print_message("skipped: only root can connect as another user\n");
    skip();
  }
  constexpr size_t kConnections = 100;
  constexpr size_t kEach = 40;
  Server server([](FrameOptions* options) {
    options->mode = 0666;
    options->clock = [] { return costs.load(); };
  });
  chmod(server.folder.c_str(), 0755);
  const int gate = Greet(server.path);
  // The credentials of a peer are those at connect(2).
  assert_int_equal(seteuid(65534), 0);
  const int other = Greet(server.path);
  assert_int_equal(seteuid(0), 0);
  std::vector<int> fds;
  for (size_t i = 0; i < kConnections; ++i) fds.push_back(Greet(server.path));
  Write(gate, Frame(1, Body(kGate)));
  server.handler.Await([&] { return server.handler.frames_of.size() == 1; });
  std::string many;
  for (size_t i = 0; i < kEach; ++i) many += Frame(1, Body(kCostly));
  for (const int fd : fds) Write(fd, many);
  Write(other, Frame(1, Body(kEcho)));
  server.handler.OpenGate();
  ExpectReply(other, 1, Body(kEcho, "!"));
  const size_t frames = 1 + kConnections * kEach + 1;
  for (const int fd : fds)
    for (size_t i = 0; i < kEach; ++i) assert_int_equal(Read(fd, 13).size(), 13);
  server.handler.Await([&] { return server.handler.frames_of.size() == frames; });
  // The gate is connection 1, the other user's is 2.
  const std::vector<uint64_t>& order = server.handler.frames_of;
  assert_in_range(static_cast<uint64_t>(std::find(order.begin(), order.end(), 2) - order.begin()), 1, 6);
  // One user's connections take turns, too: none of them is left behind for the others.
  std::vector<size_t> early(kConnections + 3);
  for (size_t i = 1; i <= 5 * kConnections; ++i) ++early.at(order.at(i));
  for (size_t i = 3; i < early.size(); ++i) assert_in_range(early.at(i), 2, 16);
  for (const int fd : fds) close(fd);
  close(other);
  close(gate);
}

TEST(APeerThatIsNotAdmittedInTimeIsDropped) {
  Server server([](FrameOptions* options) {
    options->admission_milliseconds = 100;
    options->admission_frame = 1000;
  });
  // Silent, greeted, and calling without end.
  const int silent = Dial(server.path);
  const int greeted = Greet(server.path);
  const int calling = Greet(server.path);
  std::thread caller([&] {
    const std::string frame = Frame(1, Body(kEcho));
    while (send(calling, frame.data(), frame.size(), MSG_NOSIGNAL) > 0) {
      char answer[64];
      if (recv(calling, answer, sizeof answer, 0) <= 0) break;
    }
  });
  assert_true(IsClosed(silent));
  assert_true(IsClosed(greeted));
  caller.join();
  for (const int fd : {silent, greeted, calling}) close(fd);
}

TEST(APeerThatIsAdmittedStaysAndMaySendLargeFrames) {
  Server server([](FrameOptions* options) {
    options->admission_milliseconds = 100;
    options->admission_frame = 1000;
  });
  const std::string large = Body(kEcho, std::string(30'000, 'x'));
  const int refused = Greet(server.path);
  Write(refused, Frame(1, large));
  assert_true(IsClosed(refused));
  close(refused);
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kAdmit)));
  ExpectReply(fd, 1, Body(kAdmit, "!"));
  const int other = Greet(server.path);
  assert_true(IsClosed(other));
  close(other);
  Write(fd, Frame(2, large));
  ExpectReply(fd, 2, large + "!");
  // Until it is admitted no longer.
  Write(fd, Frame(3, Body(kExpel)));
  ExpectReply(fd, 3, Body(kExpel, "!"));
  assert_true(IsClosed(fd));
  close(fd);
}

TEST(APeerThatSaysNothingIsDropped) {
  Server server([](FrameOptions* options) { options->stall_milliseconds = 50; });
  const int greeted = Greet(server.path);
  const int silent = Dial(server.path);
  assert_true(IsClosed(silent));
  // One that has greeted may be silent forever.
  Write(greeted, Frame(1, Body(kEcho)));
  ExpectReply(greeted, 1, Body(kEcho, "!"));
  close(silent);
  close(greeted);
}

TEST(APeerThatGoesInTheMiddleOfAFrameIsReportedClosed) {
  Server server;
  for (size_t cut = 1; cut < 24; ++cut) {
    const int fd = Greet(server.path);
    Write(fd, Frame(1, Body(kEcho, std::string(20, 'm'))).substr(0, cut));
    close(fd);
    server.handler.Await([&] { return server.handler.closed.size() == cut; });
  }
  assert_int_equal(server.handler.frames_of.size(), 0);
}

// What epoll watches, by the kernel's word.
int Watched() {
  int watched = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = readdir(folder)) {
    char target[64] = "";
    const std::string number = entry->d_name;
    if (readlink(("/proc/self/fd/" + number).c_str(), target, sizeof target - 1) < 0 || strstr(target, "eventpoll") == nullptr) continue;
    std::ifstream info("/proc/self/fdinfo/" + number);
    for (std::string line; std::getline(info, line);) watched += line.rfind("tfd:", 0) == 0 ? 1 : 0;
  }
  closedir(folder);
  return watched;
}

// A process that is forked has every descriptor until it execs: a socket that the loop closes in
// that time lives on.
TEST(AConnectionThatAForkedProcessStillHasIsForgotten) {
  Server server;
  const int before = Watched();
  const int fd = Greet(server.path);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Write(fd, Frame(1, Body(kHangUp)));
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  const int after = Watched();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  assert_int_equal(after, before);
  close(fd);
}

TEST(MoreConnectionsThanAllowedAreRefused) {
  Server server([](FrameOptions* options) { options->max_connections = 3; });
  std::vector<int> fds;
  for (int i = 0; i < 3; ++i) fds.push_back(Greet(server.path));
  const int extra = Dial(server.path);
  assert_true(IsClosed(extra));
  close(extra);
  close(fds.back());
  server.handler.Await([&] { return server.handler.closed.size() == 1; });
  fds.back() = Greet(server.path);
  for (const int fd : fds) close(fd);
}

TEST(SixHundredConnectionsAreServedTogether) {
  Server server;
  std::vector<int> fds;
  for (int i = 0; i < 600; ++i) {
    fds.push_back(Dial(server.path));
    Write(fds.back(), std::string(1, '\0') + Frame(static_cast<uint32_t>(i + 1), Body(kEcho, std::to_string(i))));
  }
  for (int i = 0; i < 600; ++i) {
    assert_int_equal(Read(fds[static_cast<size_t>(i)], 1).size(), 1);
    ExpectReply(fds[static_cast<size_t>(i)], static_cast<uint32_t>(i + 1), Body(kEcho, std::to_string(i) + "!"));
  }
  for (const int fd : fds) close(fd);
  server.handler.Await([&] { return server.handler.closed.size() == 600; });
}

TEST(ThreadsWithTheirOwnConnectionsGetTheirOwnAnswers) {
  Server server;
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < 8; ++number) {
    threads.emplace_back([&server, number] {
      const int fd = Greet(server.path);
      for (uint32_t i = 1; i <= 200; ++i) {
        const std::string text = std::to_string(number) + "/" + std::to_string(i);
        Write(fd, Frame(i, Body(kEcho, text)));
        ExpectReply(fd, i, Body(kEcho, text + "!"));
        if (i % 50 == 0) dke::FrameSignal::WakeById(server.loop->id());
      }
      close(fd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  server.handler.Await([&] { return server.handler.closed.size() == 8; });
}

// A host with pending work must not sleep, and must not delay others, however often it is woken.
TEST(AGlanceServesWhatIsThereAndDoesNotSleep) {
  FrameOptions options;
  char name[] = "/tmp/dke-frames-XXXXXX";
  const std::string folder = mkdtemp(name);
  options.path = folder + "/socket";
  FrameLoop::Fault fault;
  std::string message;
  auto loop = FrameLoop::Open(options, &fault, &message);
  assert_non_null(loop.get());
  Echo handler;
  handler.loop = loop.get();
  assert_true(loop->Glance(&handler) == RunResult::kWoken);
  const int client = Dial(options.path);
  const uint8_t version = 0xd1;
  assert_int_equal(write(client, &version, 1), 1);
  for (int round = 0; round < 4; ++round) {
    dke::FrameSignal::WakeById(loop->id());
    assert_true(loop->Glance(&handler) == RunResult::kWoken);
  }
  uint8_t answer = 0;
  assert_int_equal(recv(client, &answer, 1, MSG_DONTWAIT), 1);
  dke::FrameSignal::StopById(loop->id());
  assert_true(loop->Glance(&handler) == RunResult::kStopped);
  close(client);
  loop.reset();
  rmdir(folder.c_str());
}

TEST(AWakeBeforeTheTurnEndsItAtOnce) {
  FrameOptions options;
  char name[] = "/tmp/dke-frames-XXXXXX";
  const std::string folder = mkdtemp(name);
  options.path = folder + "/socket";
  FrameLoop::Fault fault;
  std::string message;
  auto loop = FrameLoop::Open(options, &fault, &message);
  assert_non_null(loop.get());
  Echo handler;
  handler.loop = loop.get();
  const uint32_t id = loop->id();
  for (int i = 0; i < 3; ++i) {
    dke::FrameSignal::WakeById(id);
    dke::FrameSignal::WakeById(id);
    assert_true(loop->Run(&handler) == RunResult::kWoken);
  }
  int pipe_ends[2];
  assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
  assert_true(loop->Watch(pipe_ends[0]));
  assert_int_equal(write(pipe_ends[1], "x", 1), 1);
  assert_true(loop->Run(&handler) == RunResult::kWoken);
  // The loop does not sleep while its host has pending work.
  assert_true(loop->Run(&handler) == RunResult::kWoken);
  char byte;
  assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
  std::thread stopper([id] { dke::FrameSignal::StopById(id); });
  assert_true(loop->Run(&handler) == RunResult::kStopped);
  stopper.join();
  assert_true(loop->Run(&handler) == RunResult::kStopped);
  assert_int_not_equal(access(options.path.c_str(), F_OK), 0);
  loop.reset();
  dke::FrameSignal::WakeById(id);
  dke::FrameSignal::StopById(id);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  rmdir(folder.c_str());
}

TEST(AStopClosesEveryConnectionAndReportsIt) {
  Server server;
  std::vector<int> fds;
  for (int i = 0; i < 5; ++i) fds.push_back(Greet(server.path));
  dke::FrameSignal::StopById(server.loop->id());
  server.Join();
  for (const int fd : fds) {
    assert_true(IsClosed(fd));
    close(fd);
  }
  assert_int_equal(server.handler.closed.size(), 5);
}

TEST(AHandlerMayStopTheLoop) {
  Server server;
  const int other = Greet(server.path);
  const int fd = Greet(server.path);
  Write(fd, Frame(1, Body(kStopAll)));
  server.Join();
  assert_true(server.results.back() == RunResult::kStopped);
  assert_int_equal(server.handler.closed.size(), 2);
  close(fd);
  close(other);
}

TEST(TheSocketHasItsModeFromTheStart) {
  const mode_t before = umask(0077);
  {
    Server server([](FrameOptions* options) { options->mode = 0666; });
    struct stat found;
    assert_int_equal(lstat(server.path.c_str(), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0666);
  }
  umask(0);
  {
    Server server;
    struct stat found;
    assert_int_equal(lstat(server.path.c_str(), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
  }
  umask(before);
}

std::string OpenFails(const FrameOptions& options, FrameLoop::Fault wanted) {
  FrameLoop::Fault fault;
  std::string message;
  const auto loop = FrameLoop::Open(options, &fault, &message);
  assert_null(loop.get());
  assert_true(fault == wanted);
  return message;
}

TEST(ASocketPathIsTakenOverOnlyFromTheDead) {
  char name[] = "/tmp/dke-frames-XXXXXX";
  const std::string folder = mkdtemp(name);
  FrameOptions options;
  options.path = folder + "/socket";
  // A file that is not a socket stays.
  close(open(options.path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  assert_non_null(strstr(OpenFails(options, FrameLoop::Fault::kIo).c_str(), "is not a socket"));
  unlink(options.path.c_str());
  // A dead owner's socket is replaced.
  const int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, options.path.data(), options.path.size());
  assert_int_equal(bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(dead);
  FrameLoop::Fault fault;
  std::string message;
  auto first = FrameLoop::Open(options, &fault, &message);
  assert_non_null(first.get());
  // A live one's is not.
  assert_non_null(strstr(OpenFails(options, FrameLoop::Fault::kIo).c_str(), "serves"));
  // A successor's socket outlives the loop that had the path before.
  unlink(options.path.c_str());
  auto second = FrameLoop::Open(options, &fault, &message);
  assert_non_null(second.get());
  first.reset();
  assert_int_equal(access(options.path.c_str(), F_OK), 0);
  second.reset();
  assert_int_not_equal(access(options.path.c_str(), F_OK), 0);
  rmdir(folder.c_str());
}

TEST(BadOptionsAreRefusedWithTheReason) {
  FrameOptions options;
  OpenFails(options, FrameLoop::Fault::kArgument);
  options.path = "/tmp/x";
  options.fd = 0;
  OpenFails(options, FrameLoop::Fault::kArgument);
  options.fd = -1;
  options.max_frame = 0;
  OpenFails(options, FrameLoop::Fault::kArgument);
  options.max_frame = 100;
  options.max_connections = 0;
  OpenFails(options, FrameLoop::Fault::kArgument);
  options.max_connections = 1;
  options.path = "/tmp/" + std::string(120, 'p');
  assert_non_null(strstr(OpenFails(options, FrameLoop::Fault::kIo).c_str(), "107"));
  options.path = "/tmp/no-such-folder-for-dke/socket";
  OpenFails(options, FrameLoop::Fault::kIo);
  options.path.clear();
  options.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  OpenFails(options, FrameLoop::Fault::kIo);
  close(options.fd);
}

TEST(AListeningDescriptorMayBeHandedIn) {
  char name[] = "/tmp/dke-frames-XXXXXX";
  const std::string folder = mkdtemp(name);
  const std::string path = folder + "/socket";
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  assert_int_equal(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  assert_int_equal(listen(listener, 5), 0);
  {
    Server server([&](FrameOptions* options) {
      options->path.clear();
      options->fd = listener;
    });
    const int fd = Greet(path);
    Write(fd, Frame(1, Body(kEcho)));
    ExpectReply(fd, 1, Body(kEcho, "!"));
    close(fd);
  }
  // The user who created the path keeps it.
  assert_int_equal(access(path.c_str(), F_OK), 0);
  unlink(path.c_str());
  rmdir(folder.c_str());
}

TEST(EveryDescriptorIsClosedOnExec) {
  Server server;
  const int fd = Greet(server.path);
  DIR* const folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (const dirent* const entry = readdir(folder)) {
    const int number = atoi(entry->d_name);
    if (number <= 2 || number == dirfd(folder)) continue;
    char target[256] = "";
    const std::string link = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    const bool ours = strstr(target, "socket:") != nullptr || strstr(target, "anon_inode:") != nullptr;
    if (ours) assert_true((fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
  }
  closedir(folder);
  close(fd);
}

}  // namespace

int main() { return run_written_tests(nullptr, nullptr); }
