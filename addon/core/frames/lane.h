// The lane: memory that a frame server shares with one peer, through which messages pass while
// calls are flowing and both sides poll it. Layout, and the rules that prevent a lost wake-up, in
// provider/PROTOCOL.md ("Lane").
//
// A message is what would have gone through the socket in one piece: whole frames. One waits in
// each direction at most. The peer is not trusted: what it writes is copied before it is parsed,
// and nothing that this side needs to know is read back from there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dke {

class FrameLane {
 public:
  static constexpr size_t kLargestRequest = 4096;
  static constexpr size_t kLargestAnswer = 8192;

  // Null when the system gives no such memory: then there is only the socket.
  static std::unique_ptr<FrameLane> Create();
  ~FrameLane();
  FrameLane(const FrameLane&) = delete;
  FrameLane& operator=(const FrameLane&) = delete;

  // The descriptor to hand to the peer, until CloseDescriptor.
  int fd() const { return fd_; }
  void CloseDescriptor();

  // Whether the peer has the memory and uses it.
  bool joined() const;
  // Whether the peer spins for its answers. A peer that sleeps takes longer to its next call than
  // spinning is worth.
  bool spinning() const;
  // The CPU from which the peer asked last; -1 when it does not tell.
  int cpu() const;
  // Shows the peer whether this side is polling. After false, Take must be called again.
  void Watch(bool watching);
  // Tells the peer whether so many call at once that spinning for an answer only takes the CPU from
  // those who are served before.
  void TellCrowded(bool crowded);
  // Whether a request waits.
  bool waiting() const;
  // Copies the waiting request to `into` (kLargestRequest) and wipes it. Its length; 0 for none, -1
  // when the peer breaks the rules.
  int Take(uint8_t* into);
  // Whether an answer of this length can go this way now.
  bool Fits(size_t length) const;
  // Puts it there. False when the peer has stopped looking: ring.
  bool Put(const uint8_t* head, size_t head_length, const uint8_t* body, size_t body_length);
  // Tells the peer that something has happened, here or at the socket, and wakes it when it sleeps
  // here.
  void Notify();

 private:
  struct Shared;
  FrameLane() = default;
  Shared* shared_ = nullptr;
  int fd_ = -1;
  uint32_t taken_ = 0;
  uint32_t answered_ = 0;
  uint32_t bell_ = 0;
  bool crowded_ = false;
};

}  // namespace dke
