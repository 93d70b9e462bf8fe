// The way out of the frame server: the only writer of a connection, and the choice between lane and socket. Rules: provider/PROTOCOL.md,
// "Rules of the connection: the agent's side".
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "frame_connection.h"

namespace dke {
namespace {

// Answers the version byte and hands over the lane's descriptor with it. Nothing was sent on the socket before, so there is room.
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

// The version byte, with the lane's descriptor for a peer that can use one. Without the descriptor when the system refuses to carry
// it: there is the socket.
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

// With `more` to come the reply waits for the next one: a call less for us, and a peer that is not woken in between. Not when the user holds
// too much: then each reply shows whether the peer takes it.
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
  const size_t whole = kHeader + length;
  PutHeader(frame, call_code, length);
  if (batched_ + whole > FrameBuffers::kBatch) TransmitBatch(connection);
  const bool waits = more && HasRoom(connection, batched_);
  if ((waits || batched_ > 0) && whole <= FrameBuffers::kBatch) {
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

// Sends an answer through the lane or the socket. Only the socket is used while bytes wait for it: so no answer overtakes one that is
// partly sent. A ring is written like an answer, so that it cannot fall into the middle of one.
void FrameLoop::Transmit(Connection* connection, const uint8_t* head, size_t head_length, const uint8_t* body,
                         size_t body_length) {
  static constexpr uint8_t kRing[kHeader] = {};
  if (connection->lane == nullptr || !connection->out.empty() || !connection->lane->Fits(head_length + body_length)) {
    Write(connection, head, head_length, body, body_length);
  } else if (!connection->lane->Put(head, head_length, body, body_length)) {
    Write(connection, kRing, sizeof kRing, nullptr, 0);
  }
}

// The only writer of the stream after the greeting: every other function that sends calls it. While `out` holds bytes, it appends to
// them, and Flush sends them first. Otherwise it gives the bytes to the socket and keeps in `out` what the socket does not take.
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
  // Also when nothing was sent: what fills the socket may be rings, which a peer that is asleep at the lane has no other reason to read.
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
      (!connection->in.empty() || (connection->lane != nullptr && connection->lane->waiting()))) {
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
