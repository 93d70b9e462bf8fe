// The end of a listening socket: what waits in its queue when it is closed is reset, although its
// peer is connected, so none may come between the last turn that takes them and the end.
#pragma once

namespace dke {

// From now on the system does not answer who begins a connection at this listening TCP socket: the
// peer's system asks again a second later, when the socket is closed and refuses. Handshakes that
// have begun still end. False: `descriptor` is not a listening socket, or the system has no
// filters.
bool HoldNewConnections(int descriptor);

}  // namespace dke
