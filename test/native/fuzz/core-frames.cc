// Fuzzes the frame server with complete connections: the input is the data of one peer, split into
// two writes at a place that its first byte chooses. The handler answers by the frame's length and
// contents, and checks that it is shown no more than came.
#include "frame-fixture.h"

namespace {

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = [] {
    dke::FrameOptions options;
    options.lane_version = 1;
    return new FrameFixture<Handler>(options);
  }();
  if (size == 0 || size > 32768) return 0;
  const int fd = fixture->Connect();

  const size_t cut = size * data[0] / 255;
  fixture->handler.sent = size;
  // The first byte is also the version. The rest follows after two rounds, to accept and to read.
  if (send(fd, data, cut, MSG_NOSIGNAL) == static_cast<ssize_t>(cut)) {
    fixture->Turn();
    fixture->Turn();
  }
  [[maybe_unused]] const ssize_t rest = send(fd, data + cut, size - cut, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(fd);
  fixture->Drain();
  return 0;
}
