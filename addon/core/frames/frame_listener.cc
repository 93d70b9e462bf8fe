// The socket that a frame server listens on: made or adopted, and who may connect.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>

// SO_PEERGROUPS is defined only by newer headers.
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

#include "frames/frame_connection.h"

namespace dke {
namespace {

constexpr int kAcceptsPerRound = 32;
constexpr int64_t kMuteNanoseconds = 100'000'000;
// How often the handler hears that a user has too many connections, in nanoseconds.
constexpr int64_t kTellAgain = 10'000'000'000;

// The other groups of the peer, as they were when it connected.
std::vector<uint32_t> GroupsOf(int fd) {
  std::vector<uint32_t> groups(32);
  for (;;) {
    socklen_t length = static_cast<socklen_t>(groups.size() * sizeof groups[0]);
    const bool found = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0;
    const size_t count = length / sizeof groups[0];
    if (!found && (errno != ERANGE || count <= groups.size())) return {};
    groups.resize(count);
    if (found) return groups;
  }
}

}  // namespace

bool FrameLoop::Listen(std::string* message) {
  return options_.fd >= 0 ? AdoptSocket(message) : MakeSocket(message);
}

bool FrameLoop::AdoptSocket(std::string* message) {
  const std::string name = "descriptor " + std::to_string(options_.fd);
  int domain = 0;
  int type = 0;
  int listening = 0;
  socklen_t length = sizeof(int);
  if (getsockopt(options_.fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
      getsockopt(options_.fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
      getsockopt(options_.fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || domain != AF_UNIX ||
      type != SOCK_STREAM || listening == 0) {
    *message = name + " is not a listening unix stream socket: check what the service manager passes";
    return false;
  }
  const int flags = fcntl(options_.fd, F_GETFL);
  if (flags < 0 || fcntl(options_.fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(options_.fd, F_SETFD, FD_CLOEXEC) != 0) {
    *message = Describe("cannot use", name, errno);
    return false;
  }
  listener_ = options_.fd;
  return true;
}

bool FrameLoop::MakeSocket(std::string* message) {
  const std::string& path = options_.path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path || path.find('\0') != std::string::npos) {
    *message = "the socket path is longer than the 107 bytes that unix sockets allow: " + path;
    return false;
  }
  memcpy(address.sun_path, path.data(), path.size());
  const auto* name = reinterpret_cast<const sockaddr*>(&address);

  struct stat found;
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      *message = path + " exists and is not a socket: move it away or name another path";
      return false;
    }
    // A socket without a listener was left behind by an owner that died.
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int failure = probe < 0 ? errno : connect(probe, name, sizeof address) == 0 ? 0 : errno;
    if (probe >= 0) close(probe);
    if (failure != ECONNREFUSED) {
      *message = failure == 0 || failure == EAGAIN ? "another process serves " + path + " already"
                                                   : Describe("cannot replace", path, failure);
      return false;
    }
    if (found.st_uid != geteuid() && geteuid() != 0) {
      *message = path + " belongs to another user: remove it or name another path";
      return false;
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      *message = Describe("cannot replace", path, errno);
      return false;
    }
  }

  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The mode goes onto the socket before it gets its name, so that the name never has a wider one.
  if (listener_ < 0 || fchmod(listener_, options_.mode) != 0 || bind(listener_, name, sizeof address) != 0) {
    *message = Describe("cannot listen on", path, errno);
    return false;
  }
  if (lstat(path.c_str(), &found) != 0) {
    *message = Describe("cannot find again", path, errno);
    return false;
  }
  made_socket_ = true;
  socket_device_ = found.st_dev;
  socket_inode_ = found.st_ino;
  // The umask may have taken bits away.
  if ((found.st_mode & 07777) != options_.mode && chmod(path.c_str(), options_.mode) != 0) {
    *message = Describe("cannot set the mode of", path, errno);
    return false;
  }
  if (listen(listener_, SOMAXCONN) != 0) {
    *message = Describe("cannot listen on", path, errno);
    return false;
  }
  return true;
}

void FrameLoop::CloseListener() {
  if (listener_ < 0) return;
  struct stat found;
  // Only our own: a successor may have put its socket there in the meantime.
  if (made_socket_ && lstat(options_.path.c_str(), &found) == 0 && found.st_dev == socket_device_ &&
      found.st_ino == socket_inode_) {
    unlink(options_.path.c_str());
  }
  close(listener_);
  listener_ = -1;
}

void FrameLoop::Accept() {
  for (int i = 0; i < kAcceptsPerRound && listener_ >= 0; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory: the peer keeps its place in the queue, and the loop does not
      // turn idle circles.
      if (errno != EAGAIN) MuteListener();
      return;
    }
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
      ++rejected_;
      close(fd);
      continue;
    }
    const FramePeer peer{credentials.pid, credentials.uid, credentials.gid};
    auto user = users_.Find(peer.uid);
    if (!MayConnect(peer, user.get())) {
      ++rejected_;
      close(fd);
      continue;
    }
    auto connection = std::make_unique<Connection>(std::move(user));
    connection->fd = fd;
    connection->id = next_connection_;
    connection->peer = peer;
    connection->peer.groups = GroupsOf(fd);
    connection->spin_microseconds = options_.spin_microseconds;
    if (!Arm(fd, EPOLLIN, connection.get())) {
      ++rejected_;
      continue;
    }
    StartAdmissionClock(connection.get(),
                        options_.admission_milliseconds > 0 ? options_.admission_milliseconds : options_.stall_milliseconds);
    connections_.emplace(next_connection_++, std::move(connection));
  }
}

bool FrameLoop::MayConnect(const FramePeer& peer, FrameUser* user) {
  if (options_.user_connections > 0 && user->connections >= options_.user_connections) {
    const int64_t now = Now();
    if (user->told == INT64_MIN || now - user->told >= kTellAgain) {
      user->told = now;
      if (handler_->TooMany(peer) == FrameHandler::kFailed) failed_ = true;
    }
    return false;
  }
  return connections_.size() < options_.max_connections;
}

void FrameLoop::MuteListener() {
  epoll_event event{};
  event.data.ptr = &listener_;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_, &event);
  listener_muted_ = true;
  next_deadline_ = std::min(next_deadline_, Now() + kMuteNanoseconds);
}

// Never more connections than descriptors, and never so many for one user that none are left for
// the others.
void FrameLoop::LimitToDescriptors(FrameOptions* options) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // That the process needs for other things, connections to services among them.
    const rlim_t others = std::max<rlim_t>(limit.rlim_cur / 8, 128);
    const rlim_t most = std::max<rlim_t>(limit.rlim_cur, 2 * others) - others;
    options->max_connections = static_cast<uint32_t>(std::min<rlim_t>(options->max_connections, most));
  }
  if (options->user_connections > 0) {
    options->user_connections = std::min(options->user_connections, std::max(options->max_connections / 2, 1u));
  }
}

}  // namespace dke
