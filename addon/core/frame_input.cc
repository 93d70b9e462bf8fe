// The way into the frame server: from bytes to whole frames, to the replays or the handler; and what happens to a frame whose user holds
// too much.
#include <errno.h>
#include <sys/socket.h>

#include <algorithm>

#include "frame_connection.h"

namespace dke {
namespace {

// One connection's share of a round: a peer that sends a thousand frames at once does not keep the others waiting.
constexpr int kFramesPerRound = 16;

}  // namespace

// False when there was nothing to read.
bool FrameLoop::Receive(Connection* connection) {
  FrameBytes& in = connection->in;
  if (!in.empty() && in.space() == 0 && !MakeRoom(connection)) return true;
  const bool fresh = in.empty();
  uint8_t* const into = fresh ? buffers_->scratch() : in.tail();
  // What is left of it is kept: little for a user who holds too much.
  const size_t most = HasRoom(connection, FrameBuffers::kScratch) ? FrameBuffers::kScratch : kSmall;
  const ssize_t got = recv(connection->fd, into, fresh ? most : in.space(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    Drop(connection, false);
    return true;
  }
  const auto length = static_cast<size_t>(got);
  // What the peer put into its lane before it sent this comes before it.
  ServeLane(connection);
  if (fresh) {
    const size_t skipped = Skip(connection, length);
    const size_t used = skipped + Consume(connection, into + skipped, length - skipped);
    const bool kept = connection->closed || Keep(connection, into + used, length - used);
    explicit_bzero(into, length);
    if (!kept) Drop(connection, true);
  } else {
    in.Commit(length);
    in.Discard(Consume(connection, in.data(), in.size()));
  }
  return true;
}

bool FrameLoop::ReceiveLone() {
  if (lone_ == nullptr || lone_->paused || lone_->ready) return false;
  // Every few rounds the others are asked, too.
  if (++lone_unasked_ > kLoneRounds) {
    lone_unasked_ = 0;
    return false;
  }
  return Receive(lone_);
}

bool FrameLoop::HasRoom(const Connection* connection, size_t more) const {
  return options_.user_bytes == 0 || connection->user->held + more <= options_.user_bytes;
}

// Keeps what is not a whole frame yet, and whole frames whose turn comes later. False when the connection cannot continue.
bool FrameLoop::Keep(Connection* connection, const uint8_t* rest, size_t length) {
  if (length <= kSmall || connection->ready || connection->paused || HasRoom(connection, length)) return connection->in.Append(rest, length);
  return RefuseFrame(connection, rest, length);
}

// Makes room for more of the frame that is in `in`. It grows with what has really come, not with what a header promises. False when there
// is nothing to be read into: the frame is discarded, or the connection is closed.
bool FrameLoop::MakeRoom(Connection* connection) {
  FrameBytes& in = connection->in;
  const size_t wanted = std::min(std::max<size_t>(2 * in.size(), kSmall), options_.max_frame + kHeader);
  if (wanted > kSmall && !HasRoom(connection, wanted)) {
    const bool refused = RefuseFrame(connection, in.data(), in.size());
    in.Clear();
    if (!refused) Drop(connection, true);
    return refused && !connection->closed;
  }
  if (in.Reserve(wanted)) return true;
  Drop(connection, true);
  return false;
}

// Throws away the frame of which `front` has come. Its peer is answered when the rest has come, too.
bool FrameLoop::RefuseFrame(Connection* connection, const uint8_t* front, size_t length) {
  const uint32_t call_code = GetU32(front);
  const size_t options = GetU32(front + 4);
  const size_t whole = kHeader + options + GetU32(front + 8);
  const size_t body = std::min(length - std::min(length, kHeader + options), kSmall);
  if (body > 0) memcpy(request(), front + kHeader + options, body);
  const int64_t answer = handler_->Refuse(connection->id, static_cast<uint32_t>(body));
  explicit_bzero(request(), body);
  if (answer == FrameHandler::kFailed) failed_ = true;
  if (connection->closed) return true;
  if (answer <= 0 || answer > static_cast<int64_t>(kSmall)) return false;
  ++refused_frames_;
  connection->skipped = whole - length;
  PutHeader(reply() - kHeader, call_code, static_cast<size_t>(answer));
  connection->refusal.assign(reinterpret_cast<const char*>(reply() - kHeader), kHeader + static_cast<size_t>(answer));
  return true;
}

// Counts off what belongs to a frame that is thrown away. How many of the `length` bytes that have come do.
size_t FrameLoop::Skip(Connection* connection, size_t length) {
  if (connection->skipped == 0) return 0;
  const size_t skipped = std::min(connection->skipped, length);
  connection->skipped -= skipped;
  if (connection->skipped == 0) {
    const std::string refusal = std::move(connection->refusal);
    connection->refusal.clear();
    Transmit(connection, reinterpret_cast<const uint8_t*>(refusal.data()), refusal.size(), nullptr, 0);
  }
  return skipped;
}

// Hands on the whole frames at `data` and says how many bytes they were.
size_t FrameLoop::Consume(Connection* connection, const uint8_t* data, size_t length) {
  const size_t used = HandOn(connection, data, length, false);
  TransmitBatch(connection);
  return used;
}

// A message from a lane is short and has no other place to wait in: it is done at once, whatever it holds.
size_t FrameLoop::HandOn(Connection* connection, const uint8_t* data, size_t length, bool from_lane) {
  // Whether a whole frame follows at `data + at`.
  const auto another = [&](size_t at) {
    return length - at >= kHeader &&
           static_cast<uint64_t>(GetU32(data + at + 4)) + GetU32(data + at + 8) <= length - at - kHeader;
  };
  size_t at = 0;
  if (!connection->greeted) {
    if (length == 0) return 0;
    Greet(connection, data[at++]);
  }
  for (int budget = kFramesPerRound; !connection->closed && length - at >= kHeader; --budget) {
    const uint32_t call_code = GetU32(data + at);
    const uint32_t options = GetU32(data + at + 4);
    const uint32_t body = GetU32(data + at + 8);
    if (call_code == 0 && options == 0 && body == 0 && connection->lane != nullptr) {
      at += kHeader;  // a ring: the lane is polled after this
      continue;
    }
    // Call code 0 means "no frame" to p11-kit's clients, so no reply could carry it.
    const uint32_t most = connection->admitted ? options_.max_frame : std::min(options_.admission_frame, options_.max_frame);
    if (call_code == 0 || static_cast<uint64_t>(options) + body > most) {
      TransmitBatch(connection);
      Drop(connection, true);
      return at;
    }
    const size_t whole = kHeader + options + body;
    if (length - at < whole) return at;
    if (connection->paused && !from_lane) return at;
    if (budget <= 0 && !from_lane) {
      MarkReady(connection);
      return at;
    }
    const uint8_t* const message = data + at + kHeader + options;
    at += whole;
    ++frames_;
    if (connection->lane == nullptr || connection->lane->spinning()) spin_wanted_ = true;
    if (connection->replays != nullptr) {
      const size_t length_of_answer = connection->replays->Answer(message, body, reply(), options_.max_frame);
      if (length_of_answer > 0) {
        ++replayed_frames_;
        Reply(connection, call_code, length_of_answer, another(at));
        continue;
      }
      if (connection->replays->unseen() && !ShowUnseen(connection)) return at;
    }
    if (body > 0) memcpy(request(), message, body);
    const int64_t answer = handler_->Frame(connection->id, call_code, body);
    if (body > 0) explicit_bzero(request(), body);
    if (answer == FrameHandler::kFailed) failed_ = true;
    if (connection->closed) return at;
    if (answer > 0 && answer <= static_cast<int64_t>(options_.max_frame)) {
      Reply(connection, call_code, static_cast<size_t>(answer), another(at));
    } else if (answer == FrameHandler::kLater) {
      pending_ = true;
      if (++connection->awaited == kMostAwaited) UpdateInterest(connection);
    } else {
      TransmitBatch(connection);
      Drop(connection, false);
    }
  }
  return at;
}

// Hands the handler what was front without it; the answers, which were given already, are dropped. False when the connection is closed.
bool FrameLoop::ShowUnseen(Connection* connection) {
  constexpr uint32_t kNobodys = 1;
  while (!connection->closed && connection->replays->unseen()) {
    const size_t length = connection->replays->TakeUnseen(request());
    const int64_t answer = handler_->Frame(connection->id, kNobodys, static_cast<uint32_t>(length));
    explicit_bzero(request(), length);
    if (answer == FrameHandler::kFailed) failed_ = true;
    if (connection->closed) return false;
    if (answer <= 0 || answer > static_cast<int64_t>(options_.max_frame)) {
      TransmitBatch(connection);
      Drop(connection, false);
      return false;
    }
    explicit_bzero(reply(), static_cast<size_t>(answer));
  }
  return !connection->closed;
}

void FrameLoop::Greet(Connection* connection, uint8_t version) {
  const int64_t answer = handler_->Connect(connection->id, connection->peer, version);
  if (answer == FrameHandler::kFailed) failed_ = true;
  if (connection->closed) return;
  if (answer < 0 || answer > 255) {
    Drop(connection, true);
    return;
  }
  connection->greeted = true;
  if (options_.admission_milliseconds == 0) {
    connection->admitted = true;
    connection->admit_by = INT64_MAX;
  }
  GreetBack(connection, static_cast<uint8_t>(answer));
}

}  // namespace dke
