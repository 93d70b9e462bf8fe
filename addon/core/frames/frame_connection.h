// What the files of the frame server share: one connection, and the framing.
#pragma once

#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "frames/frame_bytes.h"
#include "frames/user_table.h"
#include "frames/frame_loop.h"
#include "frames/lane.h"
#include "frames/next_frame.h"

namespace dke {

// After so many rounds with the same single caller, it counts as the only one; it is then read this
// often without asking epoll for others.
constexpr uint64_t kLoneRounds = 16;
constexpr size_t kSmall = FrameHandler::kSmall;
// With so many frames that wait for the handler a connection's further frames wait, too.
constexpr uint32_t kMostAwaited = 1024;

inline int64_t Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline void PutHeader(uint8_t* to, uint32_t call_code, size_t body) {
  PutU32(to, call_code);
  PutU32(to + 4, 0);
  PutU32(to + 8, static_cast<uint32_t>(body));
}

inline std::string Describe(const std::string& what, const std::string& path, int error) {
  char text[128];
  return what + " " + path + ": " + strerror_r(error, text, sizeof text);
}

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
  std::unique_ptr<ReplayCache> replays;  // null until something was learned
  uint32_t interest = EPOLLIN;
  uint32_t spin_microseconds = 0;
  uint32_t awaited = 0;   // frames that the handler answers later
  bool admitted = false;
  int64_t admit_by = INT64_MAX;
  int64_t deadline = INT64_MAX;  // for the next byte of what waits
  const std::shared_ptr<FrameUser> user;
  FrameBytes in;
  FrameBytes out;
  // Frames of a message from the lane whose turn comes later. They are served before those in `in`.
  FrameBytes lane_rest;
  // While a frame is thrown away: how many of its bytes have not come yet, and the answer that is
  // sent when they have.
  size_t skipped = 0;
  std::string refusal;

  explicit Connection(std::shared_ptr<FrameUser> owner) : user(std::move(owner)), in(&user->held), out(&user->held), lane_rest(&user->held) {
    ++user->connections;
  }

  // The peer may be asleep at the lane while something comes to it through the socket.
  void Notify() {
    if (lane != nullptr && lane->joined()) lane->Notify();
  }

  ~Connection() {
    if (fd >= 0) close(fd);
    if (!closed) user->Leave();
  }
};

}  // namespace dke
