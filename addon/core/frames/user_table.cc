#include "frames/user_table.h"

namespace dke {

// There are few users, and they seldom change: those that left are removed when a new one connects.
std::shared_ptr<FrameUser> FrameUsers::Find(uint32_t uid) {
  const auto found = users_.find(uid);
  if (found != users_.end()) {
    if (auto user = found->second.lock()) return user;
  }
  for (auto each = users_.begin(); each != users_.end();) each = each->second.expired() ? users_.erase(each) : std::next(each);
  auto user = std::make_shared<FrameUser>(FrameUser{uid});
  users_[uid] = user;
  return user;
}

size_t FrameUsers::held() const {
  size_t sum = 0;
  for (const auto& [uid, each] : users_) {
    if (const auto user = each.lock()) sum += user->held;
  }
  return sum;
}

}  // namespace dke
