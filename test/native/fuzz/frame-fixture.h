// Shared by the fuzzers of the frame server: a loop on a socket in its own folder, which is removed
// when the process ends, and a peer's connection to it.
#ifndef DKE_TEST_FUZZ_FRAME_FIXTURE_H
#define DKE_TEST_FUZZ_FRAME_FIXTURE_H
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "frames/frame_loop.h"

constexpr uint32_t kMaxFrame = 4096;

template <typename Handler>
class FrameFixture {
 public:
  Handler handler;

  // `options`: without path and frame size, which are given here.
  explicit FrameFixture(dke::FrameOptions options) {
    char folder[] = "/tmp/dke-fuzz-XXXXXX";
    path_ = std::string(mkdtemp(folder)) + "/socket";
    atexit(RemoveFolder);
    options.path = path_;
    options.max_frame = kMaxFrame;
    dke::FrameLoop::Fault fault;
    std::string message;
    loop_ = dke::FrameLoop::Open(options, &fault, &message);
    // A descriptor that is always readable keeps the loop from sleeping: every turn is one round.
    if (loop_ == nullptr || !loop_->Watch(eventfd(1, EFD_CLOEXEC))) abort();
    handler.loop = loop_.get();
  }

  int Connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path_.data(), path_.size());
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) abort();
    return fd;
  }

  void Turn() { loop_->Run(&handler); }

  // Until the loop has seen the end of every peer.
  void Drain() {
    do {
      Turn();
    } while (loop_->statistics().connections > 0);
  }

 private:
  // One fixture a process: its folder.
  static inline std::string path_;
  static void RemoveFolder() {
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }

  std::unique_ptr<dke::FrameLoop> loop_;
};

#endif
