#include "frames/replay_cache.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/bytes.h"

namespace dke {
namespace {

bool StartsWith(const uint8_t* message, size_t length, const std::vector<uint8_t>& start) {
  return !start.empty() && length >= start.size() && memcmp(message, start.data(), start.size()) == 0;
}

// Whether the message is the Init of this replay, whatever its IV.
bool IsInit(const Replay& replay, const uint8_t* message, size_t length) {
  const std::vector<uint8_t>& init = replay.init;
  const size_t after = replay.iv_at + replay.iv_length;
  return length == init.size() && memcmp(message, init.data(), replay.iv_at) == 0 &&
         memcmp(message + after, init.data() + after, length - after) == 0;
}

size_t ResultLength(const Replay& replay, size_t length) {
  return replay.is_mac ? replay.mac_length : CipherLength(replay.direction, replay.cipher, length);
}

constexpr size_t kMostMac = 64;

// The result into `output`, which has room for it. False when it fails: why, the handler will find
// out.
bool Run(const Replay& replay, const uint8_t* data, size_t length, uint8_t* output, size_t result) {
  if (!replay.is_mac) {
    const Result<size_t> written = CipherMessage(replay.key, replay.direction, replay.cipher, data, length, output, result);
    return written.ok() && written.value() == result;
  }
  uint8_t whole[kMostMac];
  DKE_ASSERT(result <= sizeof whole);
  const bool done = MacMessage(replay.key, replay.mac, data, length, whole, sizeof whole).ok();
  if (done) memcpy(output, whole, result);
  explicit_bzero(whole, sizeof whole);
  return done;
}

std::vector<KeyIdentity> IdentitiesOf(const Replay& replay) {
  std::vector<KeyIdentity> identities;
  for (const std::vector<uint8_t>& each : replay.identities) identities.push_back({each.data(), each.size()});
  return identities;
}

// Around the data of an operation and around its result: whether it is there, and its length.
constexpr size_t kArrayHead = 5;
constexpr size_t kRoom = 4;
constexpr uint32_t kNoRoom = 0xffffffff;

size_t PutArrayHead(uint8_t* to, size_t length) {
  to[0] = 1;
  PutU32(to + 1, static_cast<uint32_t>(length));
  return kArrayHead;
}

// What follows `start` in a message with data, run, into `reply` behind `answer_start`. The reply's
// length, or 0 when the handler has to.
size_t Carry(const Replay& replay, const std::vector<uint8_t>& start, const std::vector<uint8_t>& answer_start, const uint8_t* message,
             size_t length, uint8_t* reply, size_t capacity) {
  const uint8_t* at = message + start.size();
  const size_t left = length - start.size();
  if (left < kArrayHead + kRoom || at[0] == 0) return 0;
  const uint32_t data_length = GetU32(at + 1);
  if (data_length == 0 || data_length != left - kArrayHead - kRoom || data_length % replay.unit != 0) return 0;
  const uint8_t* const data = at + kArrayHead;
  const uint32_t room = GetU32(data + data_length);
  const size_t result = ResultLength(replay, data_length);
  const size_t head = answer_start.size();
  if (room == kNoRoom || room < result || head + kArrayHead + result > capacity) return 0;
  if (!Run(replay, data, data_length, reply + head + kArrayHead, result)) {
    explicit_bzero(reply + head + kArrayHead, result);
    return 0;
  }
  memcpy(reply, answer_start.data(), head);
  return head + PutArrayHead(reply + head, result) + result;
}

// How many more operations in parts under one replay may have gone to the handler after all than
// ended here.
constexpr int64_t kPartsLoss = 16;
constexpr int64_t kPartsMostGain = 1'000;
// After such a loss, this many Updates go straight to the handler; twice as many after each trial
// that ends the same way.
constexpr uint32_t kPartsFirstRest = 64;
constexpr uint32_t kPartsLongestRest = 1 << 16;

}  // namespace

void ReplayCache::Known::DropPart() {
  if (!part.empty()) explicit_bzero(part.data(), part.size());
  part.clear();
}

void ReplayCache::Known::LosePart() {
  DropPart();
  if (--parts_gain >= -kPartsLoss) return;
  // The count restarts because the losses may belong to a phase: a database that is starting reads
  // and writes in turn.
  parts_gain = 0;
  parts_rest = std::max(parts_next_rest, kPartsFirstRest);
  parts_next_rest = std::min(2 * parts_rest, kPartsLongestRest);
}

size_t ReplayCache::Answer(const uint8_t* message, size_t length, uint8_t* reply, size_t capacity) {
  for (size_t i = 0; i < running_.size(); ++i) {
    const Replay& replay = running_[i]->replay;
    Known* const known = running_[i];
    if (StartsWith(message, length, replay.operation)) return Finish(known, message, length, reply, capacity);
    if (StartsWith(message, length, replay.update)) return Update(known, message, length, reply, capacity);
    if (StartsWith(message, length, replay.last)) return Last(known, message, length, reply, capacity);
  }
  return Begin(message, length, reply, capacity);
}

size_t ReplayCache::Begin(const uint8_t* message, size_t length, uint8_t* reply, size_t capacity) {
  for (const std::unique_ptr<Known>& known : known_) {
    Replay& replay = known->replay;
    if (!IsInit(replay, message, length)) continue;
    if (known->suspended || replay.init_answer.size() > capacity || IsRunning(replay.slot)) return 0;
    if (!replay.identities.empty() && !MayStart(replay, message + replay.iv_at)) return 0;
    if (replay.iv_length != 0) {
      memcpy(replay.cipher.iv, message + replay.iv_at, replay.iv_length);
      memcpy(replay.init.data() + replay.iv_at, message + replay.iv_at, replay.iv_length);
    }
    DKE_ASSERT(known->part.empty());
    known->init_seen = false;
    running_.push_back(known.get());
    memcpy(reply, replay.init_answer.data(), replay.init_answer.size());
    return replay.init_answer.size();
  }
  return 0;
}

size_t ReplayCache::Finish(Known* known, const uint8_t* message, size_t length, uint8_t* reply, size_t capacity) {
  const Replay& replay = known->replay;
  if (!known->part.empty()) return 0;
  const size_t answered = Carry(replay, replay.operation, replay.operation_answer, message, length, reply, capacity);
  if (answered == 0) return 0;
  // The IV cannot have been used since the Init: what the handler does comes after what was started
  // here.
  if (!replay.identities.empty() && !ClaimIv(replay.iv_owner, IdentitiesOf(replay), replay.cipher.iv, replay.cipher.iv_length)) {
    explicit_bzero(reply, answered);
    return 0;
  }
  End(known);
  return answered;
}

// The first part, which is all of the data when no second comes.
size_t ReplayCache::Update(Known* known, const uint8_t* message, size_t length, uint8_t* reply, size_t capacity) {
  const Replay& replay = known->replay;
  if (!known->part.empty() || length > kLongestPart) return 0;
  if (known->parts_rest > 0) {
    --known->parts_rest;
    return 0;
  }
  const size_t answered = Carry(replay, replay.update, replay.update_answer, message, length, reply, capacity);
  if (answered != 0) known->part.assign(message, message + length);
  return answered;
}

// No output remains, so the answer is only success.
size_t ReplayCache::Last(Known* known, const uint8_t* message, size_t length, uint8_t* reply, size_t capacity) {
  const Replay& replay = known->replay;
  const size_t head = replay.last_answer.size();
  const size_t start = replay.last.size();
  if (known->part.empty() || length != start + kRoom || GetU32(message + start) == kNoRoom || head + kArrayHead > capacity) return 0;
  memcpy(reply, replay.last_answer.data(), head);
  known->parts_gain = std::min(known->parts_gain + 1, kPartsMostGain);
  if (known->parts_gain > 0) known->parts_next_rest = kPartsFirstRest;
  End(known);
  return head + PutArrayHead(reply + head, 0);
}

void ReplayCache::End(Known* known) {
  const auto running = std::find(running_.begin(), running_.end(), known);
  DKE_ASSERT(running != running_.end());
  running_.erase(running);
  known->DropPart();
  ++known->uses;
  known->last_use = ++clock_;
}

bool ReplayCache::IsRunning(const OperationSlot& slot) const {
  return std::any_of(running_.begin(), running_.end(), [&](const Known* known) { return known->replay.slot == slot; });
}

// The IV is fresh, and no running one will use it first: keys of several objects may be the same.
bool ReplayCache::MayStart(const Replay& replay, const uint8_t* iv) const {
  const size_t length = replay.iv_length;
  const bool is_taken = std::any_of(running_.begin(), running_.end(), [&](const Known* known) {
    const Replay& other = known->replay;
    return !other.identities.empty() && other.iv_length == length && memcmp(other.cipher.iv, iv, length) == 0;
  });
  return !is_taken && !IvUsed(replay.iv_owner, IdentitiesOf(replay), iv, length);
}

size_t ReplayCache::TakeUnseen(uint8_t* into) {
  DKE_ASSERT(!running_.empty());
  Known* const known = running_.front();
  const std::vector<uint8_t>& message = known->init_seen ? known->part : known->replay.init;
  const size_t length = message.size();
  DKE_ASSERT(length > 0);
  memcpy(into, message.data(), length);
  if (!known->init_seen && !known->part.empty()) {
    known->init_seen = true;
    return length;
  }
  if (!known->part.empty()) known->LosePart();
  running_.erase(running_.begin());
  return length;
}

int64_t ReplayCache::Learn(Replay replay) {
  DKE_ASSERT(replay.iv_at <= replay.init.size() && replay.iv_length <= replay.init.size() - replay.iv_at);
  DKE_ASSERT(replay.iv_length <= sizeof replay.cipher.iv && (!replay.is_mac || replay.mac_length <= kMostMac) && replay.unit > 0);
  const OperationSlot slot = replay.slot;
  bool known_already = false;
  for (const std::unique_ptr<Known>& known : known_) {
    if (!(known->replay.slot == slot)) continue;
    known->suspended = false;
    if (known_already || !IsInit(known->replay, replay.init.data(), replay.init.size())) continue;
    known_already = true;
    // Carried out in one piece until now, and in parts this time, or the other way round.
    if (known->replay.operation.empty()) {
      known->replay.operation = std::move(replay.operation);
      known->replay.operation_answer = std::move(replay.operation_answer);
    }
    if (known->replay.update.empty()) {
      known->replay.update = std::move(replay.update);
      known->replay.update_answer = std::move(replay.update_answer);
      known->replay.last = std::move(replay.last);
      known->replay.last_answer = std::move(replay.last_answer);
    }
  }
  if (known_already) return -1;
  int64_t uses = -1;
  // One that is running stays: its Init has been answered.
  const auto idle = [this](const std::unique_ptr<Known>& known) {
    return std::find(running_.begin(), running_.end(), known.get()) == running_.end();
  };
  if (known_.size() >= kMost) {
    auto oldest = known_.end();
    for (auto each = known_.begin(); each != known_.end(); ++each) {
      if (idle(*each) && (oldest == known_.end() || (*each)->last_use < (*oldest)->last_use)) oldest = each;
    }
    if (oldest == known_.end()) return 0;
    uses = static_cast<int64_t>((*oldest)->uses);
    known_.erase(oldest);
  }
  auto fresh = std::make_unique<Known>();
  fresh->replay = std::move(replay);
  fresh->last_use = ++clock_;
  known_.push_back(std::move(fresh));
  return uses;
}

void ReplayCache::Suspend(const OperationSlot& slot, bool suspended) {
  for (const std::unique_ptr<Known>& known : known_) {
    if (known->replay.slot == slot) known->suspended = suspended;
  }
}

// Nothing runs here while the handler has a message (FrameLoop::Respond), and only the handler says
// this.
void ReplayCache::Forget() {
  DKE_ASSERT(running_.empty());
  known_.clear();
}

}  // namespace dke
