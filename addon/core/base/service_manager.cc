#include "service_manager.h"

#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dke {

bool TellServiceManager(const std::string& socket, const std::string& state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path) return false;
  memcpy(address.sun_path, socket.data(), socket.size());
  // "@" stands for the zero byte of an abstract name, which has no end of its own.
  if (socket[0] == '@') address.sun_path[0] = 0;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size() + (socket[0] == '@' ? 0 : 1));
  const int sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (sender < 0) return false;
  const ssize_t sent = sendto(sender, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
  close(sender);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace dke
