// The local users of a frame server, and what each of them has there: so that one user's processes
// never use up what others need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/assert.h"

namespace dke {

struct FrameUser {
  uint32_t uid;
  uint32_t connections = 0;
  size_t held = 0;          // bytes in the FrameBytes of all connections
  int64_t told = INT64_MIN; // when the handler last heard that there are too many connections
  // Its turn: the round of the loop in which it last had one, and when that one ends.
  uint64_t round = 0;
  int64_t turn_ends = 0;
  // The last round in which the turn was over before all of its connections were served.
  uint64_t behind = 0;

  // A connection is counted when it begins, and once when it ends.
  void Leave() {
    DKE_ASSERT(connections > 0);
    --connections;
  }
  // What was counted in has been counted out when the last connection goes.
  ~FrameUser() { DKE_ASSERT(connections == 0 && held == 0); }
};

class FrameUsers {
 public:
  // The user, which is remembered as long as the returned reference exists.
  std::shared_ptr<FrameUser> Find(uint32_t uid);
  size_t held() const;
  // Whether there may be more than one.
  bool several() const { return users_.size() > 1; }

 private:
  std::unordered_map<uint32_t, std::weak_ptr<FrameUser>> users_;
};

}  // namespace dke
