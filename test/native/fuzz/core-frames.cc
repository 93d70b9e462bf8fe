// Fuzzes the frame server with whole connections: the input is what one peer sends, cut into two writes at a place that its
// first byte chooses. The handler answers by the frame's length and contents, and checks that it is shown no more than came.
#include "frames.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace {

constexpr uint32_t kMaxFrame = 4096;

class Handler : public dke::FrameHandler {
 public:
  dke::FrameLoop* loop = nullptr;
  size_t sent = 0;

  int64_t Connect(uint64_t, const dke::FramePeer&, uint8_t) override { return 1; }

  int64_t Frame(uint64_t connection, uint32_t call_code, uint32_t length) override {
    if (length > kMaxFrame || length > sent || call_code == 0) abort();
    switch (length == 0 ? 0 : loop->request()[0] % 8) {
      case 1:
        return kLater;
      case 2:
        return kClose;
      case 3:
        loop->Send(connection, call_code, loop->request(), length);
        return kLater;
      case 4:
        loop->CloseConnection(connection);
        return kLater;
      case 5:
        return kFailed;
      case 6:
        memset(loop->reply(), 'r', kMaxFrame);
        return kMaxFrame;
      default:
        memcpy(loop->reply(), loop->request(), length);
        return length == 0 ? 1 : length;
    }
  }

  int64_t Close(uint64_t) override { return 0; }
};

// The folder of the one socket that there is.
std::string path;
void RemoveFolder() {
  unlink(path.c_str());
  rmdir(path.substr(0, path.rfind('/')).c_str());
}

struct Fixture {
  std::unique_ptr<dke::FrameLoop> loop;
  Handler handler;

  Fixture() {
    char folder[] = "/tmp/dke-fuzz-XXXXXX";
    path = std::string(mkdtemp(folder)) + "/socket";
    atexit(RemoveFolder);
    dke::FrameOptions options;
    options.path = path;
    options.max_frame = kMaxFrame;
    options.lane_version = 1;
    dke::FrameLoop::Fault fault;
    std::string message;
    loop = dke::FrameLoop::Open(options, &fault, &message);
    // A descriptor that is always readable keeps the loop from sleeping: every turn is one round.
    if (loop == nullptr || !loop->Watch(eventfd(1, EFD_CLOEXEC))) abort();
    handler.loop = loop.get();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = new Fixture;
  if (size == 0 || size > 32768) return 0;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) abort();

  const size_t cut = size * data[0] / 255;
  fixture->handler.sent = size;
  // The first byte is the version, too. Two rounds, to accept and to read, and the rest comes.
  if (send(fd, data, cut, MSG_NOSIGNAL) == static_cast<ssize_t>(cut)) {
    fixture->loop->Run(&fixture->handler);
    fixture->loop->Run(&fixture->handler);
  }
  [[maybe_unused]] const ssize_t rest = send(fd, data + cut, size - cut, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(fd);
  do {
    fixture->loop->Run(&fixture->handler);
  } while (fixture->loop->statistics().connections > 0);
  return 0;
}
