// The way into the frame server: from bytes to whole frames, to the replays or the handler; and
// what happens to a frame whose user holds too much. And the way out: the only writer of a
// connection, and the choice between lane and socket. Rules: provider/PROTOCOL.md, "Rules of the
// connection: the agent's side".
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "frames/frame_connection.h"

namespace dke {
namespace {

// One connection's share of a round: a peer that sends a thousand frames at once does not keep the
// others waiting.
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

// Keeps what is not a whole frame yet, and whole frames whose turn comes later. False when the
// connection cannot continue.
bool FrameLoop::Keep(Connection* connection, const uint8_t* rest, size_t length) {
  if (length <= kSmall || connection->ready || connection->paused || HasRoom(connection, length)) return connection->in.Append(rest, length);
  return RefuseFrame(connection, rest, length);
}

// Makes room for more of the frame that is in `in`. It grows with what has really come, not with
// what a header promises. False when there is nothing to be read into: the frame is discarded, or
// the connection is closed.
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

// Throws away the frame of which `front` has come. Its peer is answered when the rest has come,
// too.
bool FrameLoop::RefuseFrame(Connection* connection, const uint8_t* front, size_t length) {
  const uint32_t call_code = GetU32(front);
  const size_t options = GetU32(front + 4);
  const size_t whole = kHeader + options + GetU32(front + 8);
  // A whole frame is never refused: what is skipped is what has not come.
  DKE_ASSERT(length >= kHeader && whole >= length && connection->skipped == 0);
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

// Counts off what belongs to a frame that is thrown away. How many of the `length` bytes that have
// come do.
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

// Hands on the whole frames at `data` and says how many bytes they were: none while frames of the
// lane wait that came before.
size_t FrameLoop::Consume(Connection* connection, const uint8_t* data, size_t length) {
  if (!connection->lane_rest.empty()) return 0;
  const size_t used = HandOn(connection, data, length);
  TransmitBatch(connection);
  return used;
}

// Whatever way it came, the first byte that is not handed on begins a frame that is not complete,
// or whose turn comes later.
size_t FrameLoop::HandOn(Connection* connection, const uint8_t* data, size_t length) {
  size_t at = 0;
  if (!connection->greeted) {
    if (length == 0) return 0;
    Greet(connection, data[at++]);
  }
  const auto next_at = [&](size_t from) {
    const size_t most = connection->admitted ? options_.max_frame : std::min(options_.admission_frame, options_.max_frame);
    return ReadFrame(data + from, length - from, most, connection->lane != nullptr);
  };
  for (int budget = kFramesPerRound; !connection->closed; --budget) {
    const NextFrame next = next_at(at);
    if (next.kind == NextFrame::Kind::kIncomplete) return at;
    if (next.kind == NextFrame::Kind::kBroken) {
      TransmitBatch(connection);
      Drop(connection, true);
      return at;
    }
    DKE_ASSERT(next.end >= kHeader && next.end <= length - at);
    if (next.kind == NextFrame::Kind::kFrame) {
      if (!MayServe(connection, budget)) return at;
      const uint8_t* const body = data + at + next.body_at;
      Respond(connection, next.call_code, body, next.body_length, next_at(at + next.end).kind == NextFrame::Kind::kFrame);
    }
    at += next.end;  // after a ring, the lane is polled
  }
  return at;
}

// The limits of the share of a connection, and of its user, for the socket and the lane alike.
// False: the frame waits, until the next round or until the peer has taken its answers.
bool FrameLoop::MayServe(Connection* connection, int budget) {
  if (connection->paused) return false;
  const bool may = budget > 0 && HasTurn(connection->user.get());
  if (!may) MarkReady(connection);
  return may;
}

// Answers one frame, from what was learned or by the handler. The connection may be closed after
// it.
void FrameLoop::Respond(Connection* connection, uint32_t call_code, const uint8_t* body, size_t length, bool more) {
  DKE_ASSERT(length <= options_.max_frame);
  ++frames_;
  if (connection->lane == nullptr || connection->lane->spinning()) spin_wanted_ = true;
  spin_microseconds_ = std::max(spin_microseconds_, connection->spin_microseconds);
  // While the handler still has a message of the connection, it has all that follow: it may not
  // have begun with that one, which may change what an Init reads, and nothing may be answered
  // ahead of it.
  if (connection->replays != nullptr && connection->awaited == 0) {
    const size_t known = connection->replays->Answer(body, length, reply(), options_.max_frame);
    if (known > 0) {
      ++replayed_frames_;
      Reply(connection, call_code, known, more);
      return;
    }
    if (connection->replays->unseen() && !ShowUnseen(connection)) return;
  }
  if (length > 0) memcpy(request(), body, length);
  const int64_t answer = handler_->Frame(connection->id, call_code, static_cast<uint32_t>(length));
  if (length > 0) explicit_bzero(request(), length);
  if (answer == FrameHandler::kFailed) failed_ = true;
  if (connection->closed) return;
  if (answer > 0 && answer <= static_cast<int64_t>(options_.max_frame)) {
    Reply(connection, call_code, static_cast<size_t>(answer), more);
  } else if (answer == FrameHandler::kLater) {
    pending_ = true;
    if (++connection->awaited == kMostAwaited) UpdateInterest(connection);
  } else {
    TransmitBatch(connection);
    Drop(connection, false);
  }
}

// Hands the handler what was front without it; the answers, which were given already, are dropped.
// False when the connection is closed.
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

namespace {

// Answers the version byte and hands over the lane's descriptor with it. Nothing was sent on the
// socket before, so there is room.
bool OfferLane(int socket, int lane, uint8_t version) {
  iovec part{&version, 1};
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &lane, sizeof lane);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

}  // namespace

// The version byte, with the lane's descriptor for a peer that can use one. Without the descriptor
// when the system refuses to carry it: there is the socket.
void FrameLoop::GreetBack(Connection* connection, uint8_t version) {
  if (version == options_.lane_version && version != 0) connection->lane = FrameLane::Create();
  if (connection->lane != nullptr) {
    const bool offered = OfferLane(connection->fd, connection->lane->fd(), version);
    connection->lane->CloseDescriptor();
    if (offered) return;
    connection->lane.reset();
  }
  Write(connection, &version, 1, nullptr, 0);
}

// With `more` to come the reply waits for the next one: a call less for us, and a peer that is not
// woken in between. Not when the user holds too much: then each reply shows whether the peer takes
// it.
void FrameLoop::Reply(Connection* connection, uint32_t call_code, size_t length, bool more) {
  uint8_t* const frame = reply() - kHeader;
  if (length > kSmall && !HasRoom(connection, length)) {
    explicit_bzero(reply(), length);
    ++refused_frames_;
    const int64_t answer = handler_->Refuse(connection->id, 0);
    if (answer == FrameHandler::kFailed) failed_ = true;
    if (connection->closed) return;
    if (answer <= 0 || answer > static_cast<int64_t>(kSmall)) {
      Drop(connection, true);
      return;
    }
    length = static_cast<size_t>(answer);
  }
  DKE_ASSERT(length > 0 && length <= options_.max_frame);
  const size_t whole = kHeader + length;
  PutHeader(frame, call_code, length);
  if (batched_ + whole > FrameBuffers::kBatch) TransmitBatch(connection);
  const bool waits = more && HasRoom(connection, batched_);
  if ((waits || batched_ > 0) && whole <= FrameBuffers::kBatch) {
    DKE_ASSERT(batched_ + whole <= FrameBuffers::kBatch);
    memcpy(buffers_->batch() + batched_, frame, whole);
    batched_ += whole;
    if (!waits) TransmitBatch(connection);
  } else if (!connection->closed) {
    Transmit(connection, frame, whole, nullptr, 0);
  }
  explicit_bzero(frame, whole);
}

void FrameLoop::TransmitBatch(Connection* connection) {
  if (batched_ == 0) return;
  const size_t length = batched_;
  batched_ = 0;
  if (!connection->closed) Transmit(connection, buffers_->batch(), length, nullptr, 0);
  explicit_bzero(buffers_->batch(), length);
}

FrameLoop::Sent FrameLoop::Send(uint64_t connection, uint32_t call_code, const uint8_t* body, size_t length) {
  if (length > options_.max_frame) return Sent::kTooLong;
  const auto found = connections_.find(connection);
  if (found == connections_.end() || !found->second->greeted) return Sent::kYes;
  Connection* const to = found->second.get();
  if (length > kSmall && !HasRoom(to, length)) {
    ++refused_frames_;
    return Sent::kNoRoom;
  }
  const bool was_full = to->awaited >= kMostAwaited;
  if (to->awaited > 0) --to->awaited;
  uint8_t header[kHeader];
  PutHeader(header, call_code, length);
  Transmit(to, header, kHeader, body, length);
  if (was_full && !to->closed) UpdateInterest(to);
  return Sent::kYes;
}

// Sends an answer through the lane or the socket. Only the socket is used while bytes wait for it:
// so no answer overtakes one that is partly sent. A ring is written like an answer, so that it
// cannot fall into the middle of one.
void FrameLoop::Transmit(Connection* connection, const uint8_t* head, size_t head_length, const uint8_t* body,
                         size_t body_length) {
  static constexpr uint8_t kRing[kHeader] = {};
  if (connection->lane == nullptr || !connection->out.empty() || !connection->lane->Fits(head_length + body_length)) {
    Write(connection, head, head_length, body, body_length);
  } else if (!connection->lane->Put(head, head_length, body, body_length)) {
    Write(connection, kRing, sizeof kRing, nullptr, 0);
  }
}

// The only writer of the stream after the greeting: every other function that sends calls it. While
// `out` holds bytes, it appends to them, and Flush sends them first. Otherwise it gives the bytes
// to the socket and keeps in `out` what the socket does not take.
void FrameLoop::Write(Connection* connection, const uint8_t* head, size_t head_length, const uint8_t* body, size_t body_length) {
  size_t sent = 0;
  if (connection->out.empty()) {
    iovec parts[2] = {{const_cast<uint8_t*>(head), head_length}, {const_cast<uint8_t*>(body), body_length}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t wrote = body_length == 0 ? send(connection->fd, head, head_length, MSG_NOSIGNAL)
                                           : sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
      Drop(connection, false);
      return;
    }
    sent = wrote < 0 ? 0 : static_cast<size_t>(wrote);
    if (sent == head_length + body_length) {
      connection->Notify();
      return;
    }
    StartStallClock(connection);
  }
  const size_t head_sent = std::min(sent, head_length);
  if (!connection->out.Append(head + head_sent, head_length - head_sent) ||
      !connection->out.Append(body + (sent - head_sent), body_length - (sent - head_sent))) {
    Drop(connection, true);
    return;
  }
  UpdateInterest(connection);
  // The peer is notified even when nothing was sent: what fills the socket may be rings, which a
  // peer that is asleep at the lane has no other reason to read.
  connection->Notify();
}

// Sends what waits, as far as the socket takes it.
void FrameLoop::Flush(Connection* connection) {
  FrameBytes& out = connection->out;
  while (!out.empty()) {
    const ssize_t wrote = send(connection->fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {
      Drop(connection, false);
      return;
    }
    out.Discard(static_cast<size_t>(wrote));
    connection->Notify();
    StartStallClock(connection);
  }
  if (out.empty()) connection->deadline = INT64_MAX;
  UpdateInterest(connection);
}

void FrameLoop::UpdateInterest(Connection* connection) {
  const bool was_paused = connection->paused;
  connection->paused = connection->out.size() >= high_water_ || connection->awaited >= kMostAwaited ||
                       (!connection->out.empty() && !HasRoom(connection, 0));
  if (was_paused && !connection->paused &&
      (!connection->in.empty() || !connection->lane_rest.empty() || (connection->lane != nullptr && connection->lane->waiting()))) {
    MarkReady(connection);
  }
  const uint32_t interest = (connection->paused ? 0u : EPOLLIN) | (connection->out.empty() ? 0u : EPOLLOUT);
  if (interest == connection->interest) return;
  connection->interest = interest;
  epoll_event event{};
  event.events = interest;
  event.data.ptr = connection;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection->fd, &event);
}

}  // namespace dke
