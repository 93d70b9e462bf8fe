// What a service tells systemd (service_manager.h): on a path, under an abstract name, and when
// nothing listens.
#include "base/service_manager.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support.h"

namespace dke {
namespace {

std::string ToldAt(const std::string& name) {
  const int receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = 0;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1));
  assert_int_equal(bind(receiver, reinterpret_cast<const sockaddr*>(&address), length), 0);
  assert_true(TellServiceManager(name, "READY=1\nSTATUS=serves"));
  char text[64];
  const ssize_t size = recv(receiver, text, sizeof text, 0);
  close(receiver);
  if (name[0] != '@') unlink(name.c_str());
  return {text, static_cast<size_t>(size)};
}

TEST(IsReceivedAtAPathAndUnderAnAbstractName) {
  const std::string own = "dke-notify-" + std::to_string(getpid());
  assert_string_equal(ToldAt("/tmp/" + own).c_str(), "READY=1\nSTATUS=serves");
  assert_string_equal(ToldAt("@" + own).c_str(), "READY=1\nSTATUS=serves");
}

TEST(IsNotSentWhereNothingListens) {
  assert_false(TellServiceManager("", "READY=1"));
  assert_false(TellServiceManager("/tmp/dke-nothing-listens-here", "READY=1"));
  assert_false(TellServiceManager("/" + std::string(200, 'a'), "READY=1"));
}

}  // namespace
}  // namespace dke

int main() { return run_written_tests(nullptr, nullptr); }
