#include "new_connections.h"

#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace dke {

bool HoldNewConnections(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return false;
  // A filter of a TCP socket reads from the header of TCP on; its 14th byte has the flags (RFC
  // 9293, 3.1). Accepted connections inherit it: none of their segments has SYN.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, TH_SYN, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

}  // namespace dke
