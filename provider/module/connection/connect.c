/* Finding, starting and greeting the agent; see connect.h. */
#include "connection/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "connection/lane.h"
#include "connection/resumption.h"
#include "connection/transport.h"
#include "host/acting_user.h"
#include "host/descriptor.h"
#include "host/last_cause.h"
#include "host/launch.h"
#include "host/log.h"
#include "host/process.h"
#include "host/temporary_folder.h"

enum {
  OWN_VERSION = 0xd1, /* PROTOCOL.md, "Version byte" */
  /*
   * Microseconds for an agent to start: it takes 0.2 s, and 5 s on a host with twenty times too
   * much to do.
   */
  START_TIMEOUT = 15000000,
  START_PAUSE = 10000000 /* microseconds after an agent that did not come up: until then calls only look for one */
};

static const char system_folder[] = "/run/dke-pkcs11";
static const char handshake[] = "PRIVATE-GNOME-KEYRING-PKCS11-PROTOCOL-V-1";

/**
 * What the peer of the present connection speaks. Written while there are no calls, or under the
 * lock of connecting.
 */
static _Atomic enum dialect dialect;

enum dialect connect_dialect(void) { return dialect; }

/**
 * The descriptor of the lane that the present peer has offered, -1 for none. Under the lock of
 * connecting.
 */
static int offered_lane = -1;

void connect_forget(void) {
  offered_lane = -1;
  dialect = DIALECT_OWN;
}

/*
 * --- which socket --------------------------------------------------------------------------------
 */

static bool is_system_folder_usable(char *path, size_t size) {
  struct stat status;
  struct stat socket_status;

  if (lstat(system_folder, &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if ((status.st_mode & S_IWOTH) != 0) return false;
  snprintf(path, size, "%s/agent.sock", system_folder);
  /*
   * eaccess would report what root may do, which is everything. Who may not connect there is told
   * so.
   */
  if (acting_for_owner()) return status.st_uid == acting_user() || (lstat(path, &socket_status) == 0 && S_ISSOCK(socket_status.st_mode));
  if (lstat(path, &socket_status) == 0) return S_ISSOCK(socket_status.st_mode) && eaccess(path, W_OK) == 0;
  return eaccess(system_folder, W_OK | X_OK) == 0;
}

/** A user's number as a fact of a cause. */
struct uid_text {
  char text[16];
};
static struct uid_text uid_text(uid_t uid) {
  struct uid_text text;
  snprintf(text.text, sizeof text.text, "%u", (unsigned)uid);
  return text;
}

bool connect_socket_path(const struct settings *settings, char *path, size_t size) {
  const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
  char folder[96];

  if (settings->socket[0] != 0) {
    snprintf(path, size, "%s", settings->socket);
    return true;
  }
  if (is_system_folder_usable(path, size)) return true;
  /* XDG_RUNTIME_DIR is inherited through su and sudo: only our own counts. */
  if (runtime != NULL && *runtime == '/' && strlen(runtime) < 70) {
    struct stat status;
    if (stat(runtime, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == acting_user()) {
      snprintf(folder, sizeof folder, "%s/dke-pkcs11", runtime);
      if (temporary_folder_of(folder, acting_user()) == FOLDER_OWN) {
        snprintf(path, size, "%s/agent.sock", folder);
        return true;
      }
    }
  }
  if (!temporary_folder(folder, sizeof folder, acting_user())) {
    log_cause(CAUSE_SOCKET_DIRECTORY, folder, uid_text(acting_user()).text);
    return false;
  }
  snprintf(path, size, "%s/agent.sock", folder);
  return true;
}

static void set_log_folder(const char *path) {
  char folder[108];
  char *slash;

  snprintf(folder, sizeof folder, "%s", path);
  slash = strrchr(folder, '/');
  if (slash == NULL) return;
  *slash = 0;
  log_set_folder(folder);
}

/*
 * --- who sits there ------------------------------------------------------------------------------
 */

static bool is_trusted(int fd, const char *path) {
  struct ucred peer;
  struct stat status;

  if (!descriptor_peer(fd, &peer)) return false;
  if (peer.uid == acting_user() || peer.uid == 0) return true;
  if (strncmp(path, system_folder, strlen(system_folder)) == 0 && path[strlen(system_folder)] == '/' &&
      lstat(system_folder, &status) == 0 && status.st_uid == peer.uid)
    return true;
  log_cause(CAUSE_AGENT_STRANGER, path, uid_text(peer.uid).text);
  return false;
}

/**
 * A connected socket, or -1 and errno: ENOENT or ECONNREFUSED without a listener, EPERM when the
 * wrong user listens.
 */
static int connect_once(const char *path, int64_t deadline) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd;

  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path) + 1);
  descriptor_bar_forks();
  fd = descriptor_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  descriptor_allow_forks();
  if (fd < 0) return -1;
  while (descriptor_connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
    /* EAGAIN: the listener's queue is full. There is nothing to poll for, so ask again. */
    if ((errno == EAGAIN || errno == EINTR) && process_until(deadline) > 0) {
      process_sleep(2000);
    } else {
      if (errno == EAGAIN) errno = ETIMEDOUT;
      descriptor_close(fd);
      return -1;
    }
  }
  if (is_trusted(fd, path)) return fd;
  descriptor_close(fd);
  errno = EPERM;
  return -1;
}

/**
 * The only descriptor that came with a message, or -1. More than one is against the protocol: then
 * none is kept.
 */
static int take_descriptor(struct msghdr *message) {
  int first = -1;
  unsigned count = 0;

  for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control != NULL; control = CMSG_NXTHDR(message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; CMSG_LEN(at + sizeof first) <= control->cmsg_len; at += sizeof first, count++) {
      int number;
      memcpy(&number, CMSG_DATA(control) + at, sizeof number);
      number = descriptor_keep(number);
      if (count == 0) first = number;
      else descriptor_close(number);
    }
  }
  if (count < 2) return first;
  descriptor_close(first);
  return -1;
}

/**
 * Offers a version byte and reads the answer; -1 and errno when the peer hangs up or keeps silent.
 * `*lane`: a descriptor, or -1.
 */
static int offer(int fd, unsigned version, int *lane, int64_t deadline) {
  unsigned char byte = (unsigned char)version;
  union {
    struct cmsghdr alignment;
    unsigned char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  ssize_t got;

  *lane = -1;
  if (descriptor_send(fd, &byte, 1) != 1) return -1;
  for (;;) {
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    descriptor_bar_forks();
    got = descriptor_receive_message(fd, &message);
    if (got == 1) *lane = take_descriptor(&message);
    descriptor_allow_forks();
    if (got == 1) return byte;
    if (got == 0) errno = ECONNRESET;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return -1;
    if (process_until(deadline) == 0) {
      errno = ETIMEDOUT;
      return -1;
    }
    descriptor_poll(fd, POLLIN, process_until(deadline));
  }
}

/** When the last start ended without an agent, 0 for never. Under the lock of connecting. */
static int64_t start_failed_at;

/**
 * Each call would wait as long for the agent as the last one did. So for a while calls only check
 * whether there is one.
 */
static bool is_start_paused(void) { return start_failed_at != 0 && process_now() - start_failed_at < START_PAUSE; }

/**
 * Whether the process that listens is the host's first: systemd, which may have to start the agent,
 * and no other process waits for it.
 */
static bool is_activated(int fd) {
  struct ucred peer;

  return descriptor_peer(fd, &peer) && peer.pid == 1;
}

/**
 * Connects and agrees on a version. Our own first; a peer that refuses it is asked again for
 * p11-kit's.
 */
static int connect_and_agree(const char *path, int64_t deadline) {
  static const unsigned offers[] = {OWN_VERSION, 0};
  bool starts = false;

  for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
    int fd = connect_once(path, deadline);
    int answer;

    if (fd < 0) return -1;
    starts = starts || (is_activated(fd) && !is_start_paused());
    if (i == 0 && starts && deadline < process_now() + START_TIMEOUT) deadline = process_now() + START_TIMEOUT;
    answer = offer(fd, offers[i], &offered_lane, deadline);
    if (answer >= 0) {
      dialect = answer == OWN_VERSION ? DIALECT_OWN : answer >= 2 ? DIALECT_P11KIT_26 : DIALECT_P11KIT_24;
      return fd;
    }
    descriptor_close(fd);
    if (process_until(deadline) == 0) break;
  }
  if (starts && process_until(deadline) == 0) start_failed_at = process_now();
  /* Hung up on, twice: it knows us and wants us not. */
  if (errno != ECONNRESET && errno != EPIPE) errno = ETIMEDOUT;
  return -1;
}

/*
 * --- starting ------------------------------------------------------------------------------------
 */

static bool does_nobody_listen(void) { return errno == ENOENT || errno == ECONNREFUSED; }

/**
 * Waits for an agent that is starting, until it has ended. `agent` is its process, 0 when that is
 * not known.
 */
static int await_agent(const char *path, pid_t agent, int64_t deadline) {
  int64_t pause = 2000;

  for (;;) {
    const bool has_ended = agent > 0 && process_has_ended(agent);
    const int fd = connect_and_agree(path, deadline);
    if (fd >= 0 || !does_nobody_listen() || has_ended || process_until(deadline) == 0) return fd;
    process_sleep(pause);
    if (pause < 20000) pause *= 2;
  }
}

/** An agent that ends before it listens is started again, a few times. */
static CK_RV start_and_await(const char *path, int64_t deadline, int *fd) {
  enum { MOST_STARTS = 3 };

  for (int starts = 1;; starts++) {
    pid_t agent = 0;
    const CK_RV rv = launch_agent(path, &agent);
    if (rv != CKR_OK) return rv;
    *fd = await_agent(path, agent, deadline);
    if (*fd >= 0 || !does_nobody_listen()) return CKR_OK;
    if (process_until(deadline) > 0 && starts < MOST_STARTS) continue;
    start_failed_at = process_now();
    return log_cause(CAUSE_AGENT_START, "dke-agent",
                     process_until(deadline) == 0 ? "it did not listen within 15 s" : "it ended before it listened", path);
  }
}

/** What keeps us from the socket, told. EPERM: is_trusted has told. */
static CK_RV tell_unreachable(const char *path) {
  switch (errno) {
    case EPERM:
      return CKR_DEVICE_REMOVED;
    case EACCES:
    case ECONNRESET:
    case EPIPE:
      return log_cause(CAUSE_SOCKET_RIGHTS, uid_text(acting_user()).text, path,
                       errno == EACCES ? strerror(errno) : "the agent closed the connection");
    default:
      return log_cause(CAUSE_AGENT_LOST, path, strerror(errno));
  }
}

/**
 * Starts the agent: when several processes find none, the one that gets the lock starts it, and the
 * others wait for it.
 */
static CK_RV start_agent(const char *path, int *fd) {
  const int64_t deadline = process_now() + START_TIMEOUT;
  char lock_path[128];
  CK_RV rv = CKR_OK;
  int lock;

  if (is_start_paused()) return tell_unreachable(path);
  snprintf(lock_path, sizeof lock_path, "%s.lock", path);
  lock = descriptor_open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (lock < 0) return tell_unreachable(lock_path);
  for (;;) {
    if (descriptor_flock(lock, LOCK_EX | LOCK_NB) == 0) {
      /* Perhaps the last holder has just succeeded. */
      *fd = connect_and_agree(path, process_now() + 200000);
      if (*fd < 0 && does_nobody_listen()) rv = start_and_await(path, deadline, fd);
      break;
    }
    *fd = connect_and_agree(path, deadline);
    if (*fd >= 0 || !does_nobody_listen() || process_until(deadline) == 0) break;
    process_sleep(10000);
  }
  if (*fd < 0 && rv == CKR_OK) rv = tell_unreachable(path);
  /*
   * Closing is not enough: a child that was made past the C library has the descriptor, too, and
   * would keep the lock.
   */
  descriptor_flock(lock, LOCK_UN);
  descriptor_close(lock);
  if (*fd >= 0) start_failed_at = 0;
  else if (process_until(deadline) == 0) start_failed_at = process_now();
  return rv;
}

/*
 * --- greeting ------------------------------------------------------------------------------------
 */

/** JSON text of any bytes: what JSON or UTF-8 could stumble over is escaped byte by byte. */
static void put_json(struct buffer *buffer, const char *text) {
  buffer_put_u8(buffer, '"');
  for (; *text != 0; text++) {
    const unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\') {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", byte);
      buffer_put_text(buffer, escape);
    } else {
      buffer_put_u8(buffer, byte);
    }
  }
  buffer_put_u8(buffer, '"');
}

static void put_hello(struct buffer *buffer, const struct settings *settings, int wait) {
  char name[256];
  char text[96];

  process_name(name, sizeof name);
  buffer_put_text(buffer, "{\"config\":");
  put_json(buffer, settings->config);
  snprintf(text, sizeof text, ",\"library\":\"%d.%d\",\"connection\":%lu,\"pid\":%ld,\"process\":", DKE_VERSION_MAJOR,
           DKE_VERSION_MINOR, (unsigned long)transport_epoch(), (long)getpid());
  buffer_put_text(buffer, text);
  put_json(buffer, name);
  snprintf(text, sizeof text, ",\"wait\":%d,", wait);
  buffer_put_text(buffer, text);
  sessions_put_hello(buffer);
  buffer_put_text(buffer, "}");
  buffer_put_u8(buffer, 0);
}

static void put_initialize(struct buffer *request, const struct settings *settings, int wait) {
  static const unsigned char header[TRANSPORT_HEADER];
  size_t length_at;

  buffer_put_raw(request, header, sizeof header);
  buffer_put_u32(request, 1);
  buffer_put_array(request, "ayyay", 5);
  buffer_put_u8(request, 1);
  buffer_put_array(request, handshake, strlen(handshake));
  if (dialect != DIALECT_OWN) {
    /* A foreign peer hands the string to its own module, which would refuse it. */
    buffer_put_u8(request, 0);
    buffer_put_u8(request, 1);
    buffer_put_array(request, "", 1);
    return;
  }
  buffer_put_u8(request, 1);
  buffer_put_u8(request, 1);
  length_at = request->length;
  buffer_put_u32(request, 0);
  put_hello(request, settings, wait);
  if (!request->failed) buffer_poke_u32(request->data + length_at, (uint32_t)(request->length - length_at - 4));
}

static CK_RV greet(int fd, const char *path, const struct settings *settings, bool starts) {
  const int wait = starts ? settings->wait_seconds : 0;
  const int64_t limit_ms = settings->call_timeout_ms + wait * 1000LL;
  struct buffer request;
  struct buffer reply;
  CK_RV rv = CKR_DEVICE_ERROR;
  char text[24];
  const unsigned char *signature;
  uint32_t call;
  size_t length;

  buffer_open(&request);
  buffer_open(&reply);
  put_initialize(&request, settings, wait);
  if (request.failed) {
    rv = CKR_HOST_MEMORY;
  } else if (transport_exchange_alone(fd, &request, &reply, process_now() + limit_ms * 1000LL) == EXCHANGED) {
    call = buffer_get_u32(&reply);
    signature = buffer_get_array(&reply, &length);
    if (call == 1 && !reply.failed) rv = CKR_OK;
    else if (call == 0) rv = buffer_get_u64(&reply);
    if (reply.failed || (call == 0 && rv == CKR_OK)) rv = CKR_DEVICE_ERROR;
    snprintf(text, sizeof text, "0x%08lx", rv);
    if (rv != CKR_OK) log_cause(CAUSE_AGENT_REFUSES, path, settings->config, text);
    /* The agent's own words say more than that it refuses. */
    if (rv != CKR_OK && !reply.failed) last_cause_take(&reply, signature, length);
  } else {
    snprintf(text, sizeof text, "%lld", (long long)limit_ms);
    log_cause(CAUSE_AGENT_SLOW, "C_Initialize", text);
  }
  buffer_close(&request);
  buffer_close(&reply);
  return rv;
}

/** What came of a choice that the caller of a program with more rights has made. */
static void tell_choice(const struct settings *settings) {
  char name[64];

  process_name(name, sizeof name);
  if (settings->refusal == NULL) log_line("%s: uid %u has chosen %s by DKE_PKCS11_CONF", name, (unsigned)getuid(), settings->config);
  else
    log_line("%s: DKE_PKCS11_CONF of uid %u is ignored: this program has more rights than its caller, and of the file, %s. %s is used",
             name, (unsigned)getuid(), settings->refusal, settings->config);
}

/** With the rights of the user for whom it acts. */
static CK_RV connect_and_greet(const struct settings *settings, bool starts) {
  char path[108];
  CK_RV rv;
  int fd;

  log_set_wanted(settings->log_folder);
  if (!connect_socket_path(settings, path, sizeof path)) return CKR_DEVICE_REMOVED;
  set_log_folder(path);
  if (starts && settings->is_secure) tell_choice(settings);
  fd = connect_and_agree(path, process_now() + settings->connect_timeout_ms * 1000LL);
  if (fd < 0) {
    rv = does_nobody_listen() ? start_agent(path, &fd) : tell_unreachable(path);
    if (rv != CKR_OK) return rv;
  }
  rv = greet(fd, path, settings, starts);
  if (rv == CKR_OK) {
    /* A thread that does not spin never polls a lane. */
    const int offered = offered_lane;
    struct lane *lane = NULL;

    offered_lane = -1;
    /* Memory that another user's process can write to at any time is not root's to read. */
    if (settings->spin_us > 0 && !acting_for_owner()) lane = lane_join(offered);
    else descriptor_close(offered);
    if (transport_adopt(fd, lane, settings->spin_us)) return CKR_OK;
    lane_leave(lane);
    rv = CKR_FUNCTION_FAILED;
  }
  descriptor_close(offered_lane);
  offered_lane = -1;
  descriptor_close(fd);
  return rv;
}

CK_RV connect_agent(const struct settings *settings, bool starts) {
  CK_RV rv;

  acting_begin();
  rv = connect_and_greet(settings, starts);
  acting_end();
  return rv;
}
