// The lane of the frame server, from the other side: a peer that maps the offered memory and
// follows the layout of provider/PROTOCOL.md ("Lane"), or breaks it. Framing over the socket is
// frames-test's business.
#include "frames/lane.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "frames/frame_loop.h"
#include "../tests.h"

namespace {

constexpr uint8_t kOwn = 0xd1;
constexpr uint32_t kMaxFrame = 1 << 20;
// More than a socket holds.
constexpr uint32_t kLargeAnswer = 300'000;

// Answers with the request and its number among all requests; a request that begins with 'L' with a
// large answer of that letter.
class Counter : public dke::FrameHandler {
 public:
  dke::FrameLoop* loop = nullptr;
  std::atomic<int> frames{0};
  std::atomic<int> closed{0};

  // A frame that begins with this letter keeps the loop until LetGo.
  void Hold(char letter) { held_ = letter; }
  void LetGo() { held_ = '\0'; }

  int64_t Connect(uint64_t, const dke::FramePeer&, uint8_t version) override { return version; }
  int64_t Frame(uint64_t, uint32_t, uint32_t length) override {
    const std::string number = std::to_string(++frames);
    while (length > 0 && loop->request()[0] == static_cast<uint8_t>(held_.load()) && held_ != '\0') sched_yield();
    if (length > 0 && loop->request()[0] == 'L') {
      memset(loop->reply(), 'L', kLargeAnswer);
      return kLargeAnswer;
    }
    const std::string answer = std::string(reinterpret_cast<char*>(loop->request()), length) + number;
    memcpy(loop->reply(), answer.data(), answer.size());
    return static_cast<int64_t>(answer.size());
  }
  int64_t Close(uint64_t) override {
    ++closed;
    return 0;
  }

 private:
  std::atomic<char> held_{'\0'};
};

// What callers are counted by: it stands still, so that all of a test's are counted, until the test
// moves it.
std::atomic<int64_t> census_now{1'000'000'000};

struct Server {
  std::string folder;
  std::string path;
  Counter handler;
  std::unique_ptr<dke::FrameLoop> loop;
  std::thread thread;

  // A second of spinning, for a caller without pauses.
  explicit Server(uint32_t spin = 1'000'000) {
    char name[] = "/tmp/dke-lane-XXXXXX";
    folder = mkdtemp(name);
    path = folder + "/socket";
    dke::FrameOptions options;
    options.path = path;
    options.max_frame = kMaxFrame;
    options.spin_microseconds = spin;
    options.lane_version = kOwn;
    options.clock = [] { return census_now.load(); };
    dke::FrameLoop::Fault fault;
    std::string message;
    loop = dke::FrameLoop::Open(options, &fault, &message);
    if (loop == nullptr) fail_msg("%s", message.c_str());
    handler.loop = loop.get();
    thread = std::thread([this] {
      while (loop->Run(&handler) != dke::FrameLoop::RunResult::kStopped) continue;
    });
  }
  ~Server() {
    dke::FrameSignal::StopById(loop->id());
    thread.join();
    loop.reset();
    rmdir(folder.c_str());
  }
};

using Word = std::atomic<uint32_t>;

struct Peer {
  int fd = -1;
  int lane_fd = -1;
  uint8_t* memory = nullptr;
  uint32_t asked = 0;
  uint32_t fetched = 0;

  Word& At(size_t offset) const { return *reinterpret_cast<Word*>(memory + offset); }
  Word& Joined() const { return At(0); }
  Word& Asked() const { return At(4); }
  Word& AskedLength() const { return At(8); }
  Word& Fetched() const { return At(12); }
  Word& Listening() const { return At(16); }
  Word& Spinning() const { return At(20); }
  Word& Answered() const { return At(64); }
  Word& AnsweredLength() const { return At(68); }
  Word& Taken() const { return At(72); }
  Word& Watching() const { return At(76); }
  Word& Crowded() const { return At(80); }
  Word& Bell() const { return At(84); }
  uint8_t* Request() const { return memory + 4096; }
  uint8_t* Answer() const { return memory + 8192; }

  explicit Peer(const Server& server, uint8_t version = kOwn) {
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, server.path.data(), server.path.size());
    assert_int_equal(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    assert_int_equal(send(fd, &version, 1, MSG_NOSIGNAL), 1);
    uint8_t answer = 0;
    iovec part{&answer, 1};
    alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    assert_int_equal(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), 1);
    assert_int_equal(answer, version);
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    if (rights == nullptr) return;
    memcpy(&lane_fd, CMSG_DATA(rights), sizeof lane_fd);
    void* const mapped = mmap(nullptr, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, lane_fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    memory = static_cast<uint8_t*>(mapped);
    Joined() = 1;
    Spinning() = 1;
  }
  ~Peer() {
    if (memory != nullptr) munmap(memory, 16384);
    if (lane_fd >= 0) close(lane_fd);
    if (fd >= 0) close(fd);
  }

  static void Await(const char* what, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) fail_msg("%s: it did not come to that", what);
      sched_yield();
    }
  }

  static std::string Frame(uint32_t code, const std::string& body) {
    std::string frame(12, '\0');
    frame[3] = static_cast<char>(code);
    for (int i = 0; i < 4; ++i) frame[11 - i] = static_cast<char>(body.size() >> (8 * i));
    return frame + body;
  }

  void Send(const std::string& bytes) const {
    assert_int_equal(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), bytes.size());
  }

  // How long the body of the next answer is.
  size_t LengthOfNext() const {
    uint8_t header[12];
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, 30000) != 1 || recv(fd, header, sizeof header, MSG_PEEK | MSG_WAITALL) != sizeof header) fail_msg("no answer");
    return static_cast<size_t>(header[8]) << 24 | static_cast<size_t>(header[9]) << 16 | static_cast<size_t>(header[10]) << 8 | header[11];
  }

  std::string Receive(size_t length) const {
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

  void Put(const std::string& message) {
    memcpy(Request(), message.data(), message.size());
    AskedLength() = static_cast<uint32_t>(message.size());
    Asked() = ++asked;
    // A loop that was not scheduled for longer than it spins has gone to sleep in the meantime.
    if (Watching() == 0) Ring();
  }
  // A peer that breaks the rules may find the connection closed.
  void Ring() const {
    const std::string ring(12, '\0');
    [[maybe_unused]] const ssize_t sent = send(fd, ring.data(), ring.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Puts a message there while the loop looks, and waits for its answer in the lane. A loop that
  // went to sleep in between, because it was not run for longer than it spins, answers through the
  // socket: then it is done again.
  void PutAndAwait(const std::string& message, int frames) {
    for (bool there = false; !there;) {
      Listening() = 1;
      Put(message);
      Await("an answer", [&] {
        there = Answered() != fetched;
        pollfd socket{fd, POLLIN, 0};
        return there || poll(&socket, 1, 0) == 1;
      });
      if (there) return;
      for (int i = 0; i < frames; ++i) Receive(static_cast<uint8_t>(Receive(12)[11]));
      WarmUp();
    }
  }

  std::string Fetch() {
    Await("an answer", [&] { return Answered() != fetched; });
    const std::string answer(reinterpret_cast<char*>(Answer()), AnsweredLength());
    Fetched() = ++fetched;
    return answer;
  }

  // Calls over the socket until the loop checks the lane.
  void WarmUp() {
    Await("the loop reads the lane", [&] {
      Send(Frame(1, "w"));
      const std::string header = Receive(12);
      assert_int_equal(header.size(), 12);
      Receive(static_cast<uint8_t>(header[11]));
      return Watching() != 0;
    });
  }
};

void ExpectSame(const std::string& got, const std::string& wanted) {
  assert_int_equal(got.size(), wanted.size());
  assert_memory_equal(got.data(), wanted.data(), wanted.size());
}

// Counted, not timed: how many frames were served when the other caller's was.
TEST(AMessageOfManyFramesIsServedInSharesAsFramesFromASocketAre) {
  constexpr int kFlood = 117;
  Server server;
  Peer flooding(server);
  Peer other(server);
  std::string flood;
  for (int i = 0; i < kFlood; ++i) flood += Peer::Frame(7, "f");
  assert_true(flood.size() <= 4096);
  other.Send(Peer::Frame(1, "o"));
  other.Receive(14);
  flooding.WarmUp();
  const int before = server.handler.frames;
  // The loop is in the flood's first frame until the other's is in its socket.
  server.handler.Hold('f');
  flooding.Put(flood);
  Peer::Await("the flood has begun", [&] { return server.handler.frames > before; });
  other.Send(Peer::Frame(2, "o"));
  server.handler.LetGo();
  const std::string answer = other.Receive(12 + other.LengthOfNext());
  const int served = std::stoi(answer.substr(13)) - before;
  if (served > kFlood / 2) fail_msg("the other caller was served after %d frames of the flood", served);
  // The flood continues and is served to its end.
  Peer::Await("the flood has ended", [&] { return server.handler.frames == before + kFlood + 1; });
}

// A peer that does not take its answers is not served, whichever way its frames came.
TEST(FramesOfAMessageWaitWhileAnswersAreNotTaken) {
  Server server;
  Peer peer(server);
  std::string flood;
  for (int i = 0; i < 100; ++i) flood += Peer::Frame(7, "L");
  peer.WarmUp();
  const int before = server.handler.frames;
  peer.Put(flood);
  Peer::Await("the flood has begun", [&] { return server.handler.frames > before; });
  Peer other(server);
  for (int i = 0; i < 50; ++i) {
    other.Send(Peer::Frame(1, "o"));
    other.Receive(12 + other.LengthOfNext());
  }
  // Two fill the socket and what the loop keeps.
  assert_true(server.handler.frames - before - 50 <= 3);
  for (int i = 0; i < 100; ++i) peer.Receive(12 + kLargeAnswer);
}

TEST(ALaneIsOfferedToTheOwnDialectAloneAndCannotShrink) {
  Server server;
  const Peer foreign(server, 0);
  assert_int_equal(foreign.lane_fd, -1);
  const Peer peer(server);
  assert_true(peer.lane_fd >= 0);
  assert_int_not_equal(ftruncate(peer.lane_fd, 0), 0);
  assert_int_equal(peer.Watching(), 0);
}

TEST(WhileCallsFlowACallAndItsAnswerPassThroughTheLaneAndLeaveNothingThere) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  for (int i = 1; i <= 100; ++i) {
    peer.PutAndAwait(Peer::Frame(7, "through the lane") + Peer::Frame(8, "twice"), 2);
    const int frames = server.handler.frames;
    ExpectSame(peer.Fetch(), Peer::Frame(7, "through the lane" + std::to_string(frames - 1)) +
                                 Peer::Frame(8, "twice" + std::to_string(frames)));
    for (size_t at = 0; at < 4096; ++at) assert_int_equal(peer.Request()[at], 0);
  }
  char byte;
  assert_int_equal(recv(peer.fd, &byte, 1, MSG_DONTWAIT), -1);
}

TEST(APeerThatDoesNotListenIsAnsweredThroughTheSocket) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  const int before = server.handler.frames;
  peer.Put(Peer::Frame(7, "x"));
  const std::string wanted = Peer::Frame(7, "x" + std::to_string(before + 1));
  ExpectSame(peer.Receive(wanted.size()), wanted);
  assert_int_equal(peer.Answered(), 0);
}

TEST(AnAnswerThatWasNotFetchedIsNotOverwritten) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  peer.PutAndAwait(Peer::Frame(7, "x"), 1);
  const int before = server.handler.frames;
  peer.Put(Peer::Frame(8, "y"));
  const std::string second = Peer::Frame(8, "y" + std::to_string(before + 1));
  ExpectSame(peer.Receive(second.size()), second);
  ExpectSame(peer.Fetch(), Peer::Frame(7, "x" + std::to_string(before)));
}

TEST(WhatIsPutThereAsTheLoopGoesToSleepIsServedWhenItIsRung) {
  Server server(1);  // sleeps after a microsecond
  Peer peer(server);
  const int before = server.handler.frames;
  for (int i = 1; i <= 200; ++i) {
    peer.Put(Peer::Frame(7, "x"));
    const std::string wanted = Peer::Frame(7, "x" + std::to_string(before + i));
    ExpectSame(peer.Receive(wanted.size()), wanted);
  }
}

TEST(WhatWasPutThereBeforeSomethingWasSentIsServedBeforeIt) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  for (int i = 0; i < 200; ++i) {
    const int before = server.handler.frames;
    peer.Put(Peer::Frame(7, "x"));
    peer.Send(Peer::Frame(8, "y"));
    const std::string first = Peer::Frame(7, "x" + std::to_string(before + 1));
    const std::string second = Peer::Frame(8, "y" + std::to_string(before + 2));
    ExpectSame(peer.Receive(first.size()), first);
    ExpectSame(peer.Receive(second.size()), second);
  }
}

TEST(APeerThatBreaksTheRulesIsDroppedAndTheOthersAreServed) {
  Server server;
  Peer good(server);
  const std::function<void(Peer&)> crimes[] = {
      [](Peer& peer) { peer.AskedLength() = 0; peer.Asked() = 1; },
      [](Peer& peer) { peer.AskedLength() = 4097; peer.Asked() = 1; },
      [](Peer& peer) { peer.AskedLength() = UINT32_MAX; peer.Asked() = 1; },
      [](Peer& peer) { peer.AskedLength() = 13; peer.Asked() = 2; },
      [](Peer& peer) { peer.AskedLength() = 13; peer.Asked() = UINT32_MAX; },
      [](Peer& peer) { peer.Put(Peer::Frame(7, "x").substr(0, 12)); },
      [](Peer& peer) { peer.Put(Peer::Frame(7, "x") + "rest"); },
      [](Peer& peer) { peer.Put(std::string(11, '\0')); },
      [](Peer& peer) { peer.Put(Peer::Frame(0, "no code")); },
  };
  for (const auto& commit : crimes) {
    const int before = server.handler.closed;
    Peer bad(server);
    bad.WarmUp();
    commit(bad);
    Peer::Await("the peer is dropped", [&] {
      // The loop may be asleep: it looks when it is rung.
      bad.Ring();
      return server.handler.closed == before + 1;
    });
    good.WarmUp();
  }
}

TEST(ForAPeerThatSleepsTheLoopDoesNotSpin) {
  Server server;
  Peer peer(server);
  peer.Spinning() = 0;
  for (int i = 0; i < 200; ++i) {
    peer.Send(Peer::Frame(7, "x"));
    const std::string header = peer.Receive(12);
    peer.Receive(static_cast<uint8_t>(header[11]));
    // The loop may read the lane while it is awake, but not for the second that it would spin.
    Peer::Await("the loop sleeps", [&] { return peer.Watching() == 0; });
  }
  assert_int_equal(server.loop->statistics().lane_messages, 0);
}

// Makes the peer stop listening at the one moment when the loop has decided for the lane and writes
// the answer into it: the page of answers in the loop's own mapping is read-only until the first
// write, whose fault is handled by writing 0 into `listening`; if the peer `reads`, after it has
// read the socket.
class Deafener {
 public:
  explicit Deafener(const Peer& peer, bool reads) {
    listening_ = &peer.Listening();
    fd_ = reads ? peer.fd : -1;
    read_ = 0;
    hits_ = 0;
    answer_ = nullptr;
    // Two mappings of the lane are in this process: the peer's, and the loop's.
    const auto own = reinterpret_cast<uintptr_t>(peer.memory);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const uintptr_t begin = std::stoull(line, nullptr, 16);
      if (line.find("memfd:dke-lane") != std::string::npos && begin != own) answer_ = reinterpret_cast<void*>(begin + 8192);
    }
    assert_non_null(answer_);
    struct sigaction action {};
    action.sa_sigaction = Deafen;
    action.sa_flags = SA_SIGINFO;
    assert_int_equal(sigaction(SIGSEGV, &action, &before_), 0);
    assert_int_equal(mprotect(answer_, kAnswerBytes, PROT_READ), 0);
  }
  ~Deafener() {
    mprotect(answer_, kAnswerBytes, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  static int hits() { return hits_; }
  // What was read from the socket in the meantime.
  static std::string Bytes() { return std::string(bytes_, read_); }

 private:
  static constexpr size_t kAnswerBytes = 8192;
  static void Deafen(int, siginfo_t* info, void*) {
    auto* const at = static_cast<uint8_t*>(info->si_addr);
    auto* const answer = static_cast<uint8_t*>(answer_);
    if (at < answer || at >= answer + kAnswerBytes) {
      signal(SIGSEGV, SIG_DFL);
      return;
    }
    for (ssize_t got = fd_ < 0 ? 0 : 1; got > 0;) {
      got = recv(fd_, bytes_ + read_, sizeof bytes_ - read_, MSG_DONTWAIT);
      if (got > 0) read_ += static_cast<size_t>(got);
    }
    *listening_ = 0;
    ++hits_;
    mprotect(answer_, kAnswerBytes, PROT_READ | PROT_WRITE);
  }

  static inline Word* listening_ = nullptr;
  static inline void* answer_ = nullptr;
  static inline int fd_ = -1;
  static inline char bytes_[1 << 20];
  static inline size_t read_ = 0;
  static inline std::atomic<int> hits_{0};
  struct sigaction before_ {};
};

const std::string kRing(12, '\0');

TEST(WhoStopsListeningWhileAnAnswerIsPutThereIsRung) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  const int before = server.handler.frames;
  const Deafener deafener(peer, false);
  peer.Listening() = 1;
  peer.Put(Peer::Frame(7, "x"));
  ExpectSame(peer.Receive(kRing.size()), kRing);
  assert_int_equal(Deafener::hits(), 1);
  ExpectSame(peer.Fetch(), Peer::Frame(7, "x" + std::to_string(before + 1)));
}

// Between the decision for the lane and the ring, the socket gets room again, and the rest of a
// large answer still waits for it.
TEST(NothingComesBetweenTheBytesOfAnAnswerThatIsPartlySent) {
  Server server;
  Peer peer(server);
  for (int i = 0; i < 20; ++i) {
    peer.Listening() = 0;
    peer.WarmUp();
    peer.Send(Peer::Frame(9, "L"));
    Peer::Await("the large answer is begun", [&] {
      int held = 0;
      return ioctl(peer.fd, FIONREAD, &held) == 0 && held > 0;
    });
    const int before = server.handler.frames;
    const Deafener deafener(peer, true);
    peer.Listening() = 1;
    peer.Put(Peer::Frame(7, "x"));
    Peer::Await("the request is taken", [&] { return peer.Taken() == peer.asked; });
    // A further request is served only when the answer to the first is on its way.
    peer.Put(Peer::Frame(8, "y"));
    Peer::Await("both are served", [&] { return server.handler.frames == before + 2; });
    const std::string large = Peer::Frame(9, std::string(kLargeAnswer, 'L'));
    const std::string begun = Deafener::Bytes();
    ExpectSame(begun + peer.Receive(large.size() - begun.size()), large);
    // Answers that wait for the socket keep their order.
    const std::string small = Peer::Frame(7, "x" + std::to_string(before + 1)) + Peer::Frame(8, "y" + std::to_string(before + 2));
    ExpectSame(peer.Receive(small.size()), small);
    assert_int_equal(peer.Answered(), peer.fetched);
  }
}

// The loop's end of the only connection: this process has it, too.
int LoopsEnd(const Server& server) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_un address{};
    socklen_t length = sizeof address;
    int listening = 0;
    socklen_t size = sizeof listening;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 && server.path == address.sun_path &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening == 0) {
      return fd;
    }
  }
  fail_msg("the loop has no connection");
  return -1;
}

TEST(ARingThatTheSocketDoesNotTakeIsSentLater) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  const int end = LoopsEnd(server);
  const auto in_flight = [end] {
    int bytes = 0;
    assert_int_equal(ioctl(end, TIOCOUTQ, &bytes), 0);
    return bytes;
  };
  const int small = 4096;
  assert_int_equal(setsockopt(end, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  int room = 0;
  socklen_t size = sizeof room;
  assert_int_equal(getsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, &size), 0);
  // Answers so short that the socket accepts each one completely or not at all, so that it is full
  // and nothing is pending.
  std::string wanted;
  while (in_flight() < room) {
    const std::string answer = Peer::Frame(7, std::string(500, 'x') + std::to_string(server.handler.frames + 1));
    wanted += answer;
    peer.Put(Peer::Frame(7, std::string(500, 'x')));
    Peer::Await("the answer is in the socket", [&] {
      int held = 0;
      return ioctl(peer.fd, FIONREAD, &held) == 0 && static_cast<size_t>(held) == wanted.size();
    });
  }
  const Deafener deafener(peer, false);
  peer.Listening() = 1;
  peer.Put(Peer::Frame(8, "y"));
  const std::string last = Peer::Frame(8, "y" + std::to_string(server.handler.frames + 1));
  Peer::Await("the answer is in the lane", [&] { return peer.Answered() != peer.fetched; });
  ExpectSame(peer.Receive(wanted.size()), wanted);
  ExpectSame(peer.Receive(kRing.size()), kRing);
  ExpectSame(peer.Fetch(), last);
  assert_int_equal(Deafener::hits(), 1);
}

TEST(ARingFromWhoHasNoLaneIsABrokenFrame) {
  Server server;
  const Peer foreign(server, 0);
  foreign.Send(std::string(12, '\0'));
  assert_int_equal(foreign.Receive(1).size(), 0);
}

// Sleeps until the bell is another one than `heard`. False when the bell did not ring.
bool SleepAtLane(const Peer& peer, uint32_t heard) {
  const timespec most{30, 0};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (peer.Bell() == heard && std::chrono::steady_clock::now() < end) {
    syscall(SYS_futex, &peer.Bell(), FUTEX_WAIT, heard, &most, nullptr, 0);
  }
  return peer.Bell() != heard;
}

TEST(WhoSleepsAtTheLaneIsWokenByAnAnswerThereAndByOneThroughTheSocket) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  for (int i = 0; i < 100; ++i) {
    uint32_t heard = peer.Bell();
    peer.Listening() = 2;
    peer.Put(Peer::Frame(7, "x"));
    assert_true(SleepAtLane(peer, heard));
    // The bell for the answer before this one rings after that answer was sent, and so perhaps only
    // now.
    if (peer.Answered() == peer.fetched) assert_true(SleepAtLane(peer, heard + 1));
    assert_int_equal(peer.Answered(), peer.fetched + 1);
    // The next one finds its slot in use.
    heard = peer.Bell();
    peer.Put(Peer::Frame(8, "y"));
    assert_true(SleepAtLane(peer, heard));
    const std::string header = peer.Receive(12);
    assert_int_equal(peer.Receive(static_cast<uint8_t>(header[11])).front(), 'y');
    peer.Fetch();
  }
}

TEST(WhoSleepsAtTheLaneIsWokenWhenItIsDropped) {
  Server server;
  Peer peer(server);
  peer.WarmUp();
  const uint32_t heard = peer.Bell();
  peer.Listening() = 2;
  peer.Put("no frame");
  assert_true(SleepAtLane(peer, heard));
  assert_int_equal(peer.Receive(1).size(), 0);
}

TEST(ManyCallersAreToldThatTheyAreManyAndALoneOneThatItIsAlone) {
  Server server(20);
  Peer lone(server);
  const auto call = [&lone] {
    lone.Send(Peer::Frame(1, "w"));
    lone.Receive(static_cast<uint8_t>(lone.Receive(12)[11]));
  };
  call();
  assert_int_equal(lone.Crowded(), 0);
  std::vector<std::thread> threads;
  std::atomic<int> told{0};
  std::atomic<bool> stop{false};
  for (int i = 0; i < 60; ++i) {
    threads.emplace_back([&] {
      Peer peer(server);
      bool knows = false;
      while (!stop) {
        const uint32_t heard = peer.Bell();
        peer.Listening() = 2;
        const std::string frame = Peer::Frame(7, "x");
        if (peer.Watching() != 0 && peer.Taken() == peer.asked) {
          peer.Put(frame);
          if (peer.Watching() == 0) peer.Send(std::string(12, '\0'));
        } else {
          peer.Send(frame);
        }
        assert_true(SleepAtLane(peer, heard));
        if (peer.Answered() != peer.fetched) {
          peer.Fetch();
        } else {
          peer.Receive(static_cast<uint8_t>(peer.Receive(12)[11]));
        }
        if (!knows && peer.Crowded() != 0) {
          knows = true;
          ++told;
        }
      }
    });
  }
  Peer::Await("most of them know", [&] { return told > 50; });
  stop = true;
  for (auto& thread : threads) thread.join();
  call();
  assert_int_not_equal(lone.Crowded(), 0);
  census_now += 1'000'000'000;
  Peer::Await("the lone one is told", [&] {
    call();
    return lone.Crowded() == 0;
  });
}

TEST(ThePeersCpuIsWhatItTells) {
  const std::unique_ptr<dke::FrameLane> lane = dke::FrameLane::Create();
  assert_non_null(lane.get());
  void* const mapped = mmap(nullptr, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, lane->fd(), 0);
  assert_true(mapped != MAP_FAILED);
  Word& told = *reinterpret_cast<Word*>(static_cast<uint8_t*>(mapped) + 24);
  assert_int_equal(lane->cpu(), -1);
  told = 1;
  assert_int_equal(lane->cpu(), 0);
  told = 32;
  assert_int_equal(lane->cpu(), 31);
  munmap(mapped, 16384);
}

TEST(ManyPeersAreAllServedWhicheverWayTheyAsk) {
  Server server(20);
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int i = 0; i < 100; ++i) {
    threads.emplace_back([&] {
      Peer peer(server);
      for (int call = 0; call < 50; ++call) {
        const std::string frame = Peer::Frame(7, "x");
        if (peer.Watching() != 0 && peer.Taken() == peer.asked) {
          peer.Put(frame);
          if (peer.Watching() == 0) peer.Send(std::string(12, '\0'));
        } else {
          peer.Send(frame);
        }
        const std::string header = peer.Receive(12);
        if (header.size() == 12 && peer.Receive(static_cast<uint8_t>(header[11])).substr(0, 1) == "x") ++answered;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  assert_int_equal(answered, 5000);
}

}  // namespace

int main() { return run_written_tests(nullptr, nullptr); }
