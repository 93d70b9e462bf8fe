/* Descriptors, and forks; see descriptor.h. */
#include "host/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/process.h"

/* SO_COOKIE is of Linux 4.6: newer than the headers that we promise to build with. */
#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

enum {
  /*
   * Microseconds. A thread that has the lock has it for a few system calls; a fork of a large host
   * takes long, but copies descriptors first.
   */
  FORK_WAIT = 100000,
  OPEN_WAIT = 10000,
  KEPT = 128, /* each has a few threads that connect or write a line of the log, for a moment */
  STANDARD = 3, /* numbers of standard files */
  HIGH = 1024 /* three quarters of it, or of a lower limit: where the numbers of sockets begin. The kernel's table has as many rows */
};

/** Taken by a thread that forks, and by one that opens or closes a descriptor. */
static _Atomic uint32_t fork_lock;
static _Atomic pid_t fork_lock_owner;
static unsigned fork_lock_depth; /* a signal handler may fork in the thread that has the lock */

/** What the kernel knows a descriptor by. */
struct identity {
  bool is_socket; /* of which it tells a cookie */
  uint64_t cookie;
  dev_t device;
  ino_t inode;
};

/** A row of the list. 0: it is free; -1: it is being written. */
struct kept {
  _Atomic int descriptor;
  int number;
  struct identity identity;
};
static struct kept kept[KEPT];
/* The serial of a descriptor: its number may have been given twice, its serial is not. */
static atomic_uint serial;

static bool tell_cookie(int number, uint64_t *cookie) {
  socklen_t size = sizeof *cookie;
  return getsockopt(number, SOL_SOCKET, SO_COOKIE, cookie, &size) == 0;
}

static bool identify(int number, struct identity *identity) {
  struct stat status;

  if (fstat(number, &status) != 0) return false;
  *identity = (struct identity){.device = status.st_dev, .inode = status.st_ino};
  identity->is_socket = S_ISSOCK(status.st_mode) && tell_cookie(number, &identity->cookie);
  return true;
}

/** One system call: every use of a descriptor pays for it. */
static bool is_same(int number, const struct identity *known) {
  struct stat status;
  uint64_t cookie;

  if (known->is_socket) return tell_cookie(number, &cookie) && cookie == known->cookie;
  return fstat(number, &status) == 0 && status.st_dev == known->device && status.st_ino == known->inode;
}

static void take_fork_lock(int64_t most) {
  const pid_t self = (pid_t)syscall(SYS_gettid);
  const int saved = errno;

  if (fork_lock_owner == self) {
    fork_lock_depth++;
  } else if (process_lock_until(&fork_lock, process_now() + most)) {
    /*
     * At the deadline it continues without the lock: a child that keeps a descriptor is better than
     * a host that hangs.
     */
    fork_lock_owner = self;
    fork_lock_depth = 1;
  }
  errno = saved;
}

void descriptor_bar_forks(void) { take_fork_lock(OPEN_WAIT); }
void descriptor_before_fork(void) { take_fork_lock(FORK_WAIT); }

void descriptor_allow_forks(void) {
  const int saved = errno;

  if (fork_lock_owner == (pid_t)syscall(SYS_gettid) && --fork_lock_depth == 0) {
    fork_lock_owner = 0;
    process_unlock(&fork_lock);
  }
  errno = saved;
}

/**
 * Moves a new descriptor to a number of at least `least`, or, if there is none, at least 3. Closes
 * it and returns -1 when it cannot.
 */
static int raise_number(int number, int least) {
  int raised;

  if (number < 0 || number >= least) return number;
  raised = fcntl(number, F_DUPFD_CLOEXEC, least);
  if (raised < 0 && number >= STANDARD) return number;
  if (raised < 0) raised = fcntl(number, F_DUPFD_CLOEXEC, STANDARD);
  close(number);
  return raised;
}

static int least_number(int number) {
  struct stat status;
  struct rlimit limit;

  if (fstat(number, &status) != 0 || !S_ISSOCK(status.st_mode) || getrlimit(RLIMIT_NOFILE, &limit) != 0) return STANDARD;
  return (int)(limit.rlim_cur < HIGH ? limit.rlim_cur : HIGH) / 4 * 3;
}

int descriptor_keep(int number) {
  const int raised = raise_number(number, number < 0 ? 0 : least_number(number));
  const int saved = errno;
  struct identity identity;

  if (raised < 0) return -1;
  for (int i = 0; identify(raised, &identity) && i < KEPT; i++) {
    int unused = 0;
    int made;
    if (!atomic_compare_exchange_strong(&kept[i].descriptor, &unused, -1)) continue;
    kept[i].number = raised;
    kept[i].identity = identity;
    made = (int)(serial++ % (INT_MAX / KEPT - 1) + 1) * KEPT + i;
    kept[i].descriptor = made;
    errno = saved;
    return made;
  }
  close(raised);
  errno = EMFILE;
  return -1;
}

int descriptor_open(const char *path, int flags, mode_t mode) {
  int descriptor;

  descriptor_bar_forks();
  descriptor = descriptor_keep(open(path, flags | O_CLOEXEC, mode));
  descriptor_allow_forks();
  return descriptor;
}

static struct kept *find(int descriptor) {
  struct kept *const row = &kept[descriptor < 0 ? 0 : descriptor % KEPT];
  return descriptor > 0 && row->descriptor == descriptor ? row : NULL;
}

/** Takes a row off the list and closes its descriptor, if it is still that. */
static void drop(struct kept *row) {
  const int number = row->number;
  const bool same = is_same(number, &row->identity);

  row->descriptor = 0;
  if (same) close(number);
}

void descriptor_close(int descriptor) {
  const int saved = errno;
  struct kept *row;

  if (descriptor < 0) return;
  descriptor_bar_forks();
  row = find(descriptor);
  if (row != NULL) drop(row);
  descriptor_allow_forks();
  errno = saved;
}

void descriptor_close_inherited(void) {
  fork_lock = 0;
  fork_lock_owner = 0;
  for (size_t i = 0; i < KEPT; i++) {
    if (kept[i].descriptor > 0) drop(&kept[i]);
    else kept[i].descriptor = 0;
  }
}

int descriptor_number(int descriptor) {
  const int saved = errno;
  const struct kept *row = find(descriptor);
  const bool ours = row != NULL && is_same(row->number, &row->identity);

  errno = ours ? saved : EBADF;
  return ours ? row->number : -1;
}

/* --- uses ------------------------------------------------------------------------------------ */

/* After the proof, which answers -1 for what is not ours: each of these then fails with EBADF. */

ssize_t descriptor_read(int descriptor, void *bytes, size_t length) { return read(descriptor_number(descriptor), bytes, length); }

ssize_t descriptor_write(int descriptor, const void *bytes, size_t length) {
  return write(descriptor_number(descriptor), bytes, length);
}

int descriptor_flock(int descriptor, int operation) { return flock(descriptor_number(descriptor), operation); }

int descriptor_connect(int descriptor, const struct sockaddr *address, socklen_t size) {
  return connect(descriptor_number(descriptor), address, size);
}

bool descriptor_peer(int descriptor, struct ucred *peer) {
  socklen_t size = sizeof *peer;
  return getsockopt(descriptor_number(descriptor), SOL_SOCKET, SO_PEERCRED, peer, &size) == 0;
}

ssize_t descriptor_send(int descriptor, const void *bytes, size_t length) {
  return send(descriptor_number(descriptor), bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t descriptor_send_message(int descriptor, const struct msghdr *message) {
  return sendmsg(descriptor_number(descriptor), message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t descriptor_receive(int descriptor, void *bytes, size_t length) {
  return recv(descriptor_number(descriptor), bytes, length, MSG_DONTWAIT);
}

ssize_t descriptor_receive_message(int descriptor, struct msghdr *message) {
  return recvmsg(descriptor_number(descriptor), message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

short descriptor_poll(int descriptor, short events, int milliseconds) {
  struct pollfd poller = {.fd = descriptor_number(descriptor), .events = events};

  if (poller.fd < 0) return POLLNVAL; /* poll would only wait */
  return poll(&poller, 1, milliseconds) > 0 ? poller.revents : 0;
}

void descriptor_hang_up(int descriptor) { shutdown(descriptor_number(descriptor), SHUT_RDWR); }
