/*
 * A small agent in this very process, for tests of the library: listens on a socket in a fresh
 * folder, speaks our dialect, and answers from a thread per connection. It checks the frames it
 * gets; tests script its misbehaviour.
 */
#ifndef DKE_TEST_PEER_H
#define DKE_TEST_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "message/buffer.h"
#include "message/cryptoki.h"

struct peer {
  char folder[64];
  char path[96];
  int listener;
  pthread_t thread;
  atomic_int version;      /* answered to the version byte; -1: hang up on ours, answer 0 to 0 */
  atomic_int connections;  /* greeted so far */
  atomic_int calls;        /* answered so far, without C_Initialize */
  atomic_int received;     /* messages, C_Initialize among them */
  atomic_int silent;       /* call id to leave unanswered */
  atomic_int late;         /* call id to answer once, just before the next message is answered */
  atomic_long closed;      /* the session that C_CloseSession named last */
  atomic_int logged_in;    /* C_Login answers CKR_USER_ALREADY_LOGGED_IN */
  atomic_int opened;       /* C_OpenSession so far: the first handle is 17 */
  atomic_int begun;        /* C_EncryptInit that no C_Encrypt has followed yet */
  atomic_int overtaken;    /* C_Encrypt that came before its C_EncryptInit */
  atomic_int active;       /* C_EncryptInit answers CKR_OPERATION_ACTIVE until C_SessionCancel arrives */
  atomic_int drop;         /* call id at which to close the connection, once */
  atomic_int drop_late;    /* the same, after having counted it as carried out */
  atomic_int lanes;        /* descriptors to send with the version byte: 1 for a lane */
  atomic_int hostile;      /* C_Encrypt answers bytes, whether there is room for them or not */
  atomic_int parts;        /* whether there is C_EncryptUpdate */
  atomic_int carried_out;  /* how often drop_late's call came */
  atomic_int reserved;     /* whether the last C_Initialize bore a reserved string */
  const char *_Atomic explains; /* the line of each error; NULL: none */
  char hello[4096];
  char events[1024];       /* call ids in the order they came, separated by blanks */
  pthread_mutex_t lock;
  struct peer_connection *open; /* under `lock` */
  atomic_int serving;           /* threads */
};

static bool peer_read(int fd, void *bytes, size_t length) {
  unsigned char *to = bytes;
  while (length > 0) {
    ssize_t got = recv(fd, to, length, 0);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      return false;
    }
    to += got;
    length -= (size_t)got;
  }
  return true;
}

static void peer_write(int fd, uint32_t code, struct buffer *body) {
  unsigned char header[12] = {0};
  buffer_poke_u32(header, code);
  buffer_poke_u32(header + 8, (uint32_t)body->length);
  if (send(fd, header, sizeof header, MSG_NOSIGNAL) < 0) return;
  if (body->length > 0 && send(fd, body->data, body->length, MSG_NOSIGNAL) < 0) return;
}

static void peer_open_reply(struct buffer *reply, uint32_t call, const char *signature) {
  buffer_put_u32(reply, call);
  buffer_put_array(reply, signature, strlen(signature));
}

static void peer_error(struct peer *peer, struct buffer *reply, CK_RV rv) {
  const char *const line = peer->explains;

  peer_open_reply(reply, 0, line == NULL ? "u" : "uz");
  buffer_put_u64(reply, rv);
  if (line != NULL) buffer_put_array(reply, line, strlen(line));
}

/**
 * What the tests need of a token: sessions are numbers, encryption is adding one, random bytes
 * count up.
 */
static void peer_answer(struct peer *peer, struct buffer *request, uint32_t call, struct buffer *reply) {
  size_t length;
  const unsigned char *bytes;
  uint32_t room;

  switch (call) {
    case 1:
      buffer_get_u8(request);
      buffer_get_array(request, &length);
      peer->reserved = (int)buffer_get_u8(request);
      buffer_get_u8(request);
      bytes = buffer_get_array(request, &length);
      pthread_mutex_lock(&peer->lock);
      snprintf(peer->hello, sizeof peer->hello, "%.*s", (int)length, bytes == NULL ? "" : (const char *)bytes);
      pthread_mutex_unlock(&peer->lock);
      peer->connections++;
      peer_open_reply(reply, call, "");
      break;
    case 10:
      peer_open_reply(reply, call, "u");
      buffer_put_u64(reply, 17 + (CK_ULONG)peer->opened++);
      break;
    case 31: /* C_EncryptUpdate, if a test enables it: complete blocks are returned, a rest is kept */
      if (!peer->parts) {
        peer_error(peer, reply, CKR_FUNCTION_NOT_SUPPORTED);
        break;
      }
      buffer_get_u64(request);
      buffer_get_u8(request);
      bytes = buffer_get_array(request, &length);
      length -= length % 16;
      peer_open_reply(reply, call, "ay");
      buffer_put_u8(reply, buffer_get_u32(request) == 0 ? 0 : 1);
      buffer_put_u32(reply, (uint32_t)length);
      if (reply->data[reply->length - 5] == 1)
        for (size_t i = 0; i < length; i++) buffer_put_u8(reply, bytes[i] + 1u);
      break;
    case 32: /* C_EncryptFinal */
      if (!peer->parts) {
        peer_error(peer, reply, CKR_FUNCTION_NOT_SUPPORTED);
        break;
      }
      buffer_get_u64(request);
      room = buffer_get_u32(request);
      peer_open_reply(reply, call, "ay");
      buffer_put_u8(reply, room == 0 ? 0 : 1);
      buffer_put_u32(reply, 0);
      break;
    case 30: { /* C_Encrypt */
      if (peer->hostile) {
        peer_open_reply(reply, call, "ay");
        buffer_put_u8(reply, 1);
        buffer_put_array(reply, "sixteen of these", 16);
        break;
      }
      if (peer->begun == 0) peer->overtaken++;
      peer->begun = 0;
      buffer_get_u64(request);
      buffer_get_u8(request);
      bytes = buffer_get_array(request, &length);
      room = buffer_get_u32(request);
      peer_open_reply(reply, call, "ay");
      if (room == 0 || room == BUFFER_NULL || room < length) {
        buffer_put_u8(reply, 0);
        buffer_put_u32(reply, (uint32_t)length);
      } else {
        buffer_put_u8(reply, 1);
        buffer_put_u32(reply, (uint32_t)length);
        for (size_t i = 0; i < length; i++) buffer_put_u8(reply, bytes[i] + 1u);
      }
      break;
    }
    case 129: /* C_EncryptMessage: the same four bytes and tag each time, the IV unchanged */
      peer_open_reply(reply, call, "ayg");
      buffer_put_u8(reply, 1);
      buffer_put_array(reply, "seal", 4);
      buffer_put_u32(reply, BUFFER_NULL);
      buffer_put_array(reply, "0123456789abcdef", 16);
      break;
    case 59: /* C_GenerateKeyPair */
      peer_open_reply(reply, call, "uu");
      buffer_put_u64(reply, 101);
      buffer_put_u64(reply, 102);
      break;
    case 58: /* C_GenerateKey */
      peer_open_reply(reply, call, "u");
      buffer_put_u64(reply, 99);
      break;
    case 64: { /* C_GenerateRandom: the low byte of the session, and on from there */
      const CK_ULONG session = buffer_get_u64(request);
      room = buffer_get_u32(request);
      peer_open_reply(reply, call, "ay");
      buffer_put_u8(reply, 1);
      buffer_put_u32(reply, room);
      for (uint32_t i = 0; i < room; i++) buffer_put_u8(reply, (unsigned)(session + i));
      break;
    }
    case 67:
      peer->active = 0;
      peer_open_reply(reply, call, "");
      break;
    case 29:
      peer->begun++;
      if (peer->active) peer_error(peer, reply, CKR_OPERATION_ACTIVE);
      else peer_open_reply(reply, call, "");
      break;
    case 18:
      if (peer->logged_in) peer_error(peer, reply, CKR_USER_ALREADY_LOGGED_IN);
      else peer_open_reply(reply, call, "");
      break;
    case 11:
      peer->closed = (long)buffer_get_u64(request);
      peer_open_reply(reply, call, "");
      break;
    case 2: case 12: case 19: case 33: case 128:
      peer_open_reply(reply, call, "");
      break;
    default:
      peer_error(peer, reply, CKR_FUNCTION_NOT_SUPPORTED);
  }
  if (request->failed) {
    buffer_reset(reply);
    peer_error(peer, reply, CKR_DEVICE_ERROR);
  }
}

enum { PEER_LANES = 2, PEER_LANE_SIZE = 16384 };

/** The version byte, with as many lanes. */
static bool peer_send_version(int fd, unsigned char version, int lanes) {
  union {
    struct cmsghdr header;
    unsigned char bytes[CMSG_SPACE(PEER_LANES * sizeof(int))];
  } control = {0};
  struct iovec part = {&version, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  const size_t size = (size_t)lanes * sizeof(int);
  int files[PEER_LANES];
  ssize_t sent;

  for (int i = 0; i < lanes; i++) {
    files[i] = memfd_create("lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (files[i] < 0 || ftruncate(files[i], PEER_LANE_SIZE) != 0 || fcntl(files[i], F_ADD_SEALS, F_SEAL_SHRINK) != 0) abort();
  }
  if (lanes > 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(size);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(&control.header), files, size);
  }
  sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  for (int i = 0; i < lanes; i++) close(files[i]);
  return sent == 1;
}

struct peer_connection {
  struct peer *peer;
  int fd;
  struct peer_connection *next;
};

static void peer_end(struct peer_connection *connection) {
  struct peer *peer = connection->peer;
  struct peer_connection **at = &peer->open;

  pthread_mutex_lock(&peer->lock);
  while (*at != connection) at = &(*at)->next;
  *at = connection->next;
  pthread_mutex_unlock(&peer->lock);
  close(connection->fd);
  free(connection);
  peer->serving--;
}

static void *peer_serve(void *data) {
  struct peer_connection *connection = data;
  struct peer *peer = connection->peer;
  const int fd = connection->fd;
  unsigned char header[12];
  unsigned char version;
  uint32_t kept_code = 0;
  struct buffer request;
  struct buffer reply;
  struct buffer kept;

  buffer_open(&request);
  buffer_open(&reply);
  buffer_open(&kept);
  if (!peer_read(fd, &version, 1)) goto end;
  if (peer->version >= 0) version = (unsigned char)peer->version;
  else if (version != 0) goto end;
  if (!peer_send_version(fd, version, peer->lanes)) goto end;
  while (peer_read(fd, header, sizeof header)) {
    const uint32_t body = buffer_peek_u32(header + 8);
    unsigned char *to;
    uint32_t call;
    size_t length;

    buffer_reset(&request);
    buffer_reset(&reply);
    to = buffer_extend(&request, body);
    if (to == NULL || !peer_read(fd, to, body)) break;
    call = buffer_get_u32(&request);
    buffer_get_array(&request, &length);
    pthread_mutex_lock(&peer->lock);
    length = strlen(peer->events);
    snprintf(peer->events + length, sizeof peer->events - length, "%u ", call);
    pthread_mutex_unlock(&peer->lock);
    peer->received++;
    if ((int)call == peer->drop) {
      peer->drop = 0;
      break;
    }
    if ((int)call == peer->drop_late) {
      peer->carried_out++;
      peer->drop_late = 0;
      break;
    }
    if ((int)call == peer->silent) continue;
    peer_answer(peer, &request, call, &reply);
    if (call != 1) peer->calls++;
    if ((int)call == peer->late) {
      peer->late = 0;
      kept_code = buffer_peek_u32(header);
      buffer_put_raw(&kept, reply.data, reply.length);
      continue;
    }
    if (kept_code != 0) peer_write(fd, kept_code, &kept);
    kept_code = 0;
    buffer_reset(&kept);
    peer_write(fd, buffer_peek_u32(header), &reply);
  }
end:
  buffer_close(&request);
  buffer_close(&reply);
  buffer_close(&kept);
  peer_end(connection);
  return NULL;
}

static void *peer_listen(void *data) {
  struct peer *peer = data;

  for (;;) {
    const int fd = accept(peer->listener, NULL, NULL);
    struct peer_connection *connection;
    pthread_t thread;

    if (fd < 0) return NULL;
    connection = malloc(sizeof *connection);
    pthread_mutex_lock(&peer->lock);
    *connection = (struct peer_connection){peer, fd, peer->open};
    peer->open = connection;
    pthread_mutex_unlock(&peer->lock);
    peer->serving++;
    if (pthread_create(&thread, NULL, peer_serve, connection) != 0) abort();
    pthread_detach(thread);
  }
}

static void peer_start(struct peer *peer) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};

  memset(peer, 0, sizeof *peer);
  pthread_mutex_init(&peer->lock, NULL);
  peer->version = 0xd1;
  strcpy(peer->folder, "/tmp/dke-peer-XXXXXX");
  if (mkdtemp(peer->folder) == NULL) abort();
  snprintf(peer->path, sizeof peer->path, "%s/agent.sock", peer->folder);
  memcpy(address.sun_path, peer->path, strlen(peer->path) + 1);
  peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(peer->listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(peer->listener, 128) != 0) abort();
  if (pthread_create(&peer->thread, NULL, peer_listen, peer) != 0) abort();
  setenv("DKE_PKCS11_SOCKET", peer->path, 1);
}

static void peer_stop(struct peer *peer) {
  char path[128];

  shutdown(peer->listener, SHUT_RDWR);
  pthread_join(peer->thread, NULL);
  close(peer->listener);
  pthread_mutex_lock(&peer->lock);
  for (struct peer_connection *each = peer->open; each != NULL; each = each->next) shutdown(each->fd, SHUT_RDWR);
  pthread_mutex_unlock(&peer->lock);
  while (peer->serving > 0) sched_yield();
  unlink(peer->path);
  snprintf(path, sizeof path, "%s.lock", peer->path);
  unlink(path);
  snprintf(path, sizeof path, "%s/library.log", peer->folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/pkcs11.toml", peer->folder);
  unlink(path);
  rmdir(peer->folder);
}

/**
 * Timeouts of a pkcs11.toml, long enough for a busy machine. If no answer is expected, the call
 * must time out, and all timeouts are short.
 */
#define PATIENT "connect_timeout_ms = 20000\ncall_timeout_ms = 20000\n"
#define HASTY "connect_timeout_ms = 20000\ncall_timeout_ms = 1500\n"

/** Writes a pkcs11.toml into the peer's folder and makes it the configuration. */
static void peer_configure(struct peer *peer, const char *text) {
  char path[128];
  FILE *file;

  snprintf(path, sizeof path, "%s/pkcs11.toml", peer->folder);
  file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) abort();
  setenv("DKE_PKCS11_CONF", path, 1);
}

#endif
