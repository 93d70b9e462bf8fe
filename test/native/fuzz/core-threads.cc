// Fuzzes the frame server and its lane with a client of three threads that keeps to the rules of
// provider/PROTOCOL.md: two writers, which share the socket and the lane under one lock, and one
// reader. The input chooses the lengths of requests and answers, which answers come late, and the
// behaviour of the reader: how often it checks the lane, where it sleeps, how much it reads. Every
// request must get its own answer, complete and once, and no thread may wait for an answer that has
// been sent.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "frames/frame_loop.h"

namespace {

constexpr uint8_t kOwn = 0xd1;
constexpr uint32_t kMaxFrame = 1 << 20;
constexpr size_t kHeader = 12;
constexpr size_t kLaneSize = 16384;
constexpr size_t kLargestRequest = 4096;
constexpr size_t kMostRequests = 24;  // of one writer
constexpr int kPatience = 20'000;     // milliseconds without anything to read, after which a wake-up is lost

[[noreturn]] void Give(const char* why) {
  fprintf(stderr, "core-threads: %s\n", why);
  abort();
}

void PutU32(uint8_t* to, uint32_t value) {
  value = __builtin_bswap32(value);
  memcpy(to, &value, sizeof value);
}
uint32_t GetU32(const uint8_t* from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap32(value);
}

// The request in a body: an answer of this length that consists of this byte, immediate or late.
struct Wish {
  uint32_t length;
  uint8_t byte;
  bool late;
};
constexpr size_t kWish = 6;

Wish WishOf(const uint8_t* body) { return {GetU32(body), body[4], body[5] != 0}; }

class Handler : public dke::FrameHandler {
 public:
  dke::FrameLoop* loop = nullptr;

  int64_t Connect(uint64_t, const dke::FramePeer&, uint8_t version) override { return version; }
  int64_t Frame(uint64_t connection, uint32_t call_code, uint32_t length) override {
    if (length < kWish) Give("a frame is shorter than it was");
    const Wish wish = WishOf(loop->request());
    for (size_t at = kWish; at < length; ++at) {
      if (loop->request()[at] != wish.byte) Give("a request came with wrong bytes");
    }
    if (wish.late) {
      late_.push_back({connection, call_code, wish});
      return kLater;
    }
    memset(loop->reply(), wish.byte, wish.length);
    return wish.length;
  }
  int64_t Close(uint64_t) override { return 0; }

  void SendLate() {
    for (const Late& each : late_) {
      const std::vector<uint8_t> answer(each.wish.length, each.wish.byte);
      loop->Send(each.connection, each.call_code, answer.data(), answer.size());
    }
    late_.clear();
  }

 private:
  struct Late {
    uint64_t connection;
    uint32_t call_code;
    Wish wish;
  };
  std::vector<Late> late_;
};

// A loop in a thread of its own, for as long as the process lives.
class Server {
 public:
  Server() {
    char folder[] = "/tmp/dke-fuzz-XXXXXX";
    path_ = std::string(mkdtemp(folder)) + "/socket";
    atexit([] {
      unlink(path_.c_str());
      rmdir(path_.substr(0, path_.rfind('/')).c_str());
    });
    dke::FrameOptions options;
    options.path = path_;
    options.max_frame = kMaxFrame;
    options.lane_version = kOwn;
    options.spin_microseconds = 20;
    dke::FrameLoop::Fault fault;
    std::string message;
    loop_ = dke::FrameLoop::Open(options, &fault, &message);
    if (loop_ == nullptr) Give(message.c_str());
    handler_.loop = loop_.get();
    std::thread([this] {
      for (;;) {
        loop_->Run(&handler_);
        handler_.SendLate();
      }
    }).detach();
  }

  int Connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path_.data(), path_.size());
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Give("no connection");
    return fd;
  }

 private:
  static inline std::string path_;
  Handler handler_;
  std::unique_ptr<dke::FrameLoop> loop_;
};

struct Input {
  const uint8_t* data;
  size_t size;
  size_t at = 0;

  bool empty() const { return at >= size; }
  uint8_t Take() { return at < size ? data[at++] : 0; }
  // Mostly short, at times longer than a lane or than a socket takes.
  uint32_t Length(uint32_t most) {
    static constexpr uint32_t kLengths[] = {1, 20, 100, 1000, 3000, 4084, 4085, 8180, 8181, 30'000, 65'000, 300'000};
    const uint8_t choice = Take();
    return std::min(kLengths[choice % (sizeof kLengths / sizeof *kLengths)] + choice / 64, most);
  }
};

class Client {
 public:
  using Word = std::atomic<uint32_t>;

  explicit Client(int fd) : fd_(fd) {
    uint8_t version = kOwn;
    if (send(fd, &version, 1, MSG_NOSIGNAL) != 1) Give("no greeting");
    iovec part{&version, 1};
    alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    // The fuzzer's clock interrupts calls.
    ssize_t got;
    do {
      got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got != 1 || CMSG_FIRSTHDR(&message) == nullptr) Give("no lane");
    int lane;
    memcpy(&lane, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof lane);
    void* const mapped = mmap(nullptr, kLaneSize, PROT_READ | PROT_WRITE, MAP_SHARED, lane, 0);
    close(lane);
    if (mapped == MAP_FAILED) Give("no memory");
    lane_ = static_cast<uint8_t*>(mapped);
    At(0) = 1;
    At(20) = 1;
  }
  ~Client() {
    munmap(lane_, kLaneSize);
    close(fd_);
  }

  struct Request {
    Wish wish;
    uint32_t length;
  };

  void Write(const Request& request) {
    std::vector<uint8_t> frame(kHeader + kWish + request.length, request.wish.byte);
    const std::lock_guard<std::mutex> writing(write_lock_);
    bool alone;
    {
      const std::lock_guard<std::mutex> lock(lock_);
      alone = pending_.empty();
      PutU32(frame.data(), ++last_code_);
      pending_[last_code_] = request.wish;
    }
    PutU32(frame.data() + 4, 0);
    PutU32(frame.data() + 8, static_cast<uint32_t>(frame.size() - kHeader));
    PutU32(frame.data() + kHeader, request.wish.length);
    frame[kHeader + 5] = request.wish.late;
    // A message in the lane must not overtake a message in the socket.
    if (!alone || frame.size() > kLargestRequest || At(76) == 0 || At(72) != asked_) {
      Send(frame.data(), frame.size());
      return;
    }
    memcpy(lane_ + 4096, frame.data(), frame.size());
    At(8) = static_cast<uint32_t>(frame.size());
    At(4) = ++asked_;
    static constexpr uint8_t kRing[kHeader] = {};
    if (At(76) == 0) Send(kRing, sizeof kRing);
  }

  // Runs the script until so many answers have arrived. Repeats it if it is too short.
  void Read(size_t answers, const std::vector<uint8_t>& script) {
    waited_ = answers;
    for (size_t step = 0; waited_ > 0; ++step) {
      const uint8_t what = script.empty() ? 0x3f : script[step % script.size()];
      const size_t chunk = size_t{1} << (6 + what % 11);
      const uint32_t bell = At(84);
      At(16) = 1;
      for (int looks = what / 32; looks > 0 && waited_ > 0; --looks) {
        Look();
        if (looks % 3 == 0) Receive(chunk, MSG_DONTWAIT);
      }
      const bool asleep = what % 4 == 3;
      At(16) = asleep ? 2 : 0;
      Look();
      if (waited_ == 0) break;
      if (asleep) {
        const timespec nap{0, 50'000'000};
        if (!Receive(chunk, MSG_DONTWAIT)) syscall(SYS_futex, &At(84), FUTEX_WAIT, bell, &nap, nullptr, 0);
        Look();
        Receive(chunk, MSG_DONTWAIT);
        continue;
      }
      pollfd poller{fd_, POLLIN, 0};
      const int ready = poll(&poller, 1, kPatience);
      if (ready < 0) continue;
      if (ready == 0) Give("an answer does not come, and the bell does not ring");
      Receive(chunk, 0);
    }
    At(16) = 0;
  }

 private:
  Word& At(size_t offset) const { return *reinterpret_cast<Word*>(lane_ + offset); }

  void Send(const uint8_t* bytes, size_t length) const {
    while (length > 0) {
      const ssize_t sent = send(fd_, bytes, length, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) Give("the agent has hung up");
      bytes += sent;
      length -= static_cast<size_t>(sent);
    }
  }

  bool Receive(size_t most, int flags) {
    const size_t before = stream_.size();
    stream_.resize(before + most);
    const ssize_t got = recv(fd_, stream_.data() + before, most, flags);
    stream_.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got == 0) Give("the agent has hung up");
    if (got < 0) return false;
    stream_.erase(stream_.begin(), stream_.begin() + static_cast<ptrdiff_t>(TakeFrames(stream_.data(), stream_.size(), true)));
    return true;
  }

  void Look() {
    const uint32_t answered = At(64);
    if (answered == fetched_) return;
    const uint32_t length = At(68);
    if (answered != fetched_ + 1 || length > 8192) Give("the lane is out of step");
    const std::vector<uint8_t> message(lane_ + 8192, lane_ + 8192 + length);
    At(12) = ++fetched_;
    if (TakeFrames(message.data(), message.size(), false) != length) Give("half a frame is in the lane");
  }

  // Checks off the complete frames at `bytes`, and returns their length.
  size_t TakeFrames(const uint8_t* bytes, size_t length, bool may_ring) {
    size_t at = 0;
    while (length - at >= kHeader) {
      const uint8_t* const frame = bytes + at;
      const uint32_t code = GetU32(frame);
      const uint32_t body = GetU32(frame + 8);
      if (GetU32(frame + 4) != 0 || body > kMaxFrame) Give("no frame begins where one should");
      if (length - at - kHeader < body) return at;
      at += kHeader + body;
      if (may_ring && code == 0 && body == 0) continue;
      Wish wish;
      {
        const std::lock_guard<std::mutex> lock(lock_);
        const auto found = pending_.find(code);
        if (found == pending_.end()) Give("an answer that is not waited for");
        wish = found->second;
        pending_.erase(found);
      }
      if (body != wish.length) Give("an answer of another length");
      for (size_t i = 0; i < body; ++i) {
        if (frame[kHeader + i] != wish.byte) Give("an answer with wrong bytes");
      }
      --waited_;
    }
    return at;
  }

  const int fd_;
  uint8_t* lane_;
  std::mutex write_lock_;
  uint32_t asked_ = 0;  // under write_lock_
  std::mutex lock_;
  uint32_t last_code_ = 0;            // under lock_
  std::map<uint32_t, Wish> pending_;  // under lock_
  // The reader's.
  uint32_t fetched_ = 0;
  size_t waited_ = 0;
  std::vector<uint8_t> stream_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const server = new Server;
  Input input{data, size};
  std::vector<Client::Request> requests[2];
  std::vector<uint8_t> pauses[2];
  const size_t counts[2] = {input.Take() % kMostRequests, input.Take() % kMostRequests};
  for (int writer = 0; writer < 2; ++writer) {
    for (size_t i = 0; i < counts[writer]; ++i) {
      const uint8_t what = input.Take();
      const Wish wish{input.Length(300'000), static_cast<uint8_t>(1 + what), what % 8 == 7};
      requests[writer].push_back({wish, input.Length(what % 4 == 0 ? 65'000 : 200)});
      pauses[writer].push_back(what / 8 % 4);
    }
  }
  std::vector<uint8_t> script;
  while (!input.empty()) script.push_back(input.Take());

  Client client(server->Connect());
  const auto write = [&](int writer) {
    for (size_t i = 0; i < requests[writer].size(); ++i) {
      client.Write(requests[writer][i]);
      for (int pause = pauses[writer][i]; pause > 0; --pause) sched_yield();
    }
  };
  std::thread first(write, 0);
  std::thread second(write, 1);
  client.Read(counts[0] + counts[1], script);
  first.join();
  second.join();
  return 0;
}
