// Fuzzes the frame server with a peer that shares a lane with it and keeps to none of its rules:
// the input is a list of what the peer does to the shared memory and to the socket, with a turn of
// the loop after each. What the handler is shown must be frames within the limits, and the server's
// own counts must stay its own.
#include "frame-fixture.h"

#include <sys/mman.h>

#include <algorithm>

namespace {

constexpr uint8_t kOwn = 0xd1;
constexpr size_t kLaneSize = 16384;
constexpr size_t kRequest = 4096;
constexpr int kMostSteps = 64;

class Handler : public dke::FrameHandler {
 public:
  dke::FrameLoop* loop = nullptr;

  int64_t Connect(uint64_t, const dke::FramePeer&, uint8_t version) override { return version; }

  int64_t Frame(uint64_t connection, uint32_t call_code, uint32_t length) override {
    if (length > kMaxFrame || call_code == 0) abort();
    switch (length == 0 ? 0 : loop->request()[0] % 8) {
      case 1:
        return kLater;
      case 2:
        return kClose;
      case 3:
        loop->Send(connection, call_code, loop->request(), length);
        return kLater;
      case 4:
        memset(loop->reply(), 'r', kMaxFrame);
        return kMaxFrame;
      default:
        memcpy(loop->reply(), loop->request(), length);
        return length == 0 ? 1 : length;
    }
  }

  int64_t Close(uint64_t) override { return 0; }
};

struct Input {
  const uint8_t* data;
  size_t size;
  size_t at = 0;

  uint8_t Take() { return at < size ? data[at++] : 0; }
  uint32_t Number() {
    static constexpr uint32_t kNumbers[] = {0, 1, 2, 11, 12, 13, 4095, 4096, 4097, 8192, 0x7fffffff, 0x80000000, 0xffffffff};
    return kNumbers[Take() % (sizeof kNumbers / sizeof *kNumbers)];
  }
  // Takes a length of at most `most` from the next two bytes, then so many bytes; what the input
  // does not have is zero.
  std::string Bytes(size_t most) {
    const size_t wanted = (Take() | static_cast<size_t>(Take()) << 8) % (most + 1);
    std::string bytes(wanted, 0);
    const size_t have = std::min(wanted, size - at);
    memcpy(bytes.data(), data + at, have);
    at += have;
    return bytes;
  }
};

uint32_t BigEndian(uint32_t value) { return __builtin_bswap32(value); }

std::string Framed(uint32_t code, const std::string& body) {
  const uint32_t header[] = {BigEndian(code), 0, BigEndian(static_cast<uint32_t>(body.size()))};
  return std::string(reinterpret_cast<const char*>(header), sizeof header) + body;
}

// The version byte's answer, with the lane.
uint8_t* Join(int fd, int* lane_fd) {
  uint8_t version;
  iovec part{&version, 1};
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) return nullptr;
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr) return nullptr;
  memcpy(lane_fd, CMSG_DATA(rights), sizeof *lane_fd);
  void* const memory = mmap(nullptr, kLaneSize, PROT_READ | PROT_WRITE, MAP_SHARED, *lane_fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

class Peer {
 public:
  Peer(int fd, uint8_t* lane) : fd_(fd), lane_(lane) {}

  void Step(Input* input) {
    switch (input->Take() % 8) {
      case 0:
        Ask(input->Bytes(kRequest));
        break;
      case 1:
        Ask(Framed(1 + input->Take(), input->Bytes(kRequest - 12)));
        break;
      case 2:
        // A count or a length that is none. The agent's own words, too: it must not believe them.
        Word(input->Take() % 20) = input->Number();
        break;
      case 3:
        Send(input->Bytes(600));
        break;
      case 4:
        Send(std::string(12, 0));
        break;
      case 5:
        Send(Framed(1 + input->Take(), input->Bytes(600)));
        break;
      case 6:
        Word(3) = Word(16);
        Word(4) = 1;
        break;
      default:
        memset(lane_ + 64, input->Take(), kLaneSize - 64);
    }
    uint8_t dropped[8192];
    while (recv(fd_, dropped, sizeof dropped, MSG_DONTWAIT) > 0) continue;
  }

 private:
  volatile uint32_t& Word(size_t at) { return reinterpret_cast<uint32_t*>(lane_)[at]; }

  void Ask(const std::string& message) {
    memcpy(lane_ + kRequest, message.data(), message.size());
    Word(2) = static_cast<uint32_t>(message.size());
    Word(1) = Word(1) + 1;
  }
  void Send(const std::string& bytes) { [[maybe_unused]] const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); }

  int fd_;
  uint8_t* lane_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = [] {
    dke::FrameOptions options;
    options.lane_version = kOwn;
    options.spin_microseconds = 20;
    return new FrameFixture<Handler>(options);
  }();
  Input input{data, size};
  const int fd = fixture->Connect();
  const std::string hello = std::string(1, static_cast<char>(kOwn)) + Framed(1, "first");
  if (send(fd, hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) abort();
  fixture->Turn();
  fixture->Turn();

  int lane_fd = -1;
  uint8_t* const lane = Join(fd, &lane_fd);
  if (lane == nullptr) abort();
  reinterpret_cast<volatile uint32_t*>(lane)[0] = 1;
  Peer peer(fd, lane);
  for (int i = 0; i < kMostSteps && input.at < size; i++) {
    peer.Step(&input);
    fixture->Turn();
  }
  munmap(lane, kLaneSize);
  close(lane_fd);
  close(fd);
  fixture->Drain();
  return 0;
}
