// What a service tells systemd: a datagram to the socket that the variable NOTIFY_SOCKET names
// (sd_notify(3)). Node has no unix datagrams.
#pragma once

#include <string>

namespace dke {

// `state` is lines of NAME=value. False: nothing has received it. Never waits.
bool TellServiceManager(const std::string& socket, const std::string& state);

}  // namespace dke
