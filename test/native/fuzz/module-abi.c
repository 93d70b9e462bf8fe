/*
 * The library as a hostile caller and a hostile agent have it: the first half of the input is a
 * sequence of C_* calls with the arguments that the C interface allows (each pointer is null, or
 * has as much memory behind it as its length says, exactly), the second half are a peer's answers,
 * on the socket and in the lane. AddressSanitizer watches every byte of the caller's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "call/call.h"
#include "message/gen/numbers.h"

enum { CALLS_MAX = 24, BLOCKS_MAX = 4096, DEPTH_MAX = 10, FIRST_HANDLE = 17 };

struct input {
  const uint8_t *at;
  size_t left;
};

static unsigned take(struct input *from) {
  if (from->left == 0) return 0;
  from->left--;
  return *from->at++;
}

static void fill(struct input *from, void *bytes, size_t length) {
  const size_t have = length < from->left ? length : from->left;
  memcpy(bytes, from->at, have);
  memset((uint8_t *)bytes + have, 0xa5, length - have);
  from->at += have;
  from->left -= have;
}

/*
 * --- the peer ------------------------------------------------------------------------------------
 */

static struct input answers;
static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[] = "/tmp/dke-fuzz-XXXXXX";
static int listener;

static bool read_all(int fd, void *bytes, size_t length) {
  uint8_t *to = bytes;
  while (length > 0) {
    const ssize_t got = recv(fd, to, length, 0);
    if (got <= 0) return false;
    to += got;
    length -= (size_t)got;
  }
  return true;
}

static const struct call_row *row_of(uint32_t code) {
  for (int i = 0; i < ROWS; i++)
    if (call_rows[i].code == code) return &call_rows[i];
  return NULL;
}

static void put_noise(struct buffer *reply) {
  uint8_t bytes[256];
  const size_t length = take(&answers);
  fill(&answers, bytes, length);
  buffer_put_raw(reply, bytes, length);
}

/** False: hang up. */
static bool answer(uint32_t code, struct buffer *reply) {
  static const CK_RV values[] = {
      CKR_BUFFER_TOO_SMALL,       CKR_ATTRIBUTE_SENSITIVE,   CKR_OPERATION_ACTIVE, CKR_OPERATION_NOT_INITIALIZED,
      CKR_SESSION_HANDLE_INVALID, CKR_KEY_HANDLE_INVALID,    CKR_OK,               CKR_VENDOR_DEFINED | 1,
      CKR_USER_ALREADY_LOGGED_IN, CKR_USER_NOT_LOGGED_IN,
  };
  const struct call_row *row = row_of(code);
  bool stays = true;

  pthread_mutex_lock(&answers_lock);
  switch (take(&answers) % 16) {
    case 0:
      stays = false;
      break;
    case 1:
      put_noise(reply);
      break;
    case 2:
    case 3:
      buffer_put_u32(reply, 0);
      buffer_put_array(reply, "u", 1);
      buffer_put_u64(reply, values[take(&answers) % (sizeof values / sizeof *values)]);
      break;
    default:
      buffer_put_u32(reply, code);
      buffer_put_array(reply, row == NULL ? "" : row->reply, row == NULL ? 0 : strlen(row->reply));
      /* A handle, mostly: so that calls follow one another. */
      if (row != NULL && strcmp(row->reply, "u") == 0) buffer_put_u64(reply, FIRST_HANDLE + take(&answers) % 4);
      else put_noise(reply);
  }
  pthread_mutex_unlock(&answers_lock);
  return stays;
}

/** PROTOCOL.md, "Lane": offsets in words, and the answer's in bytes. */
enum { LANE_SIZE = 16384, LANE_FETCHED = 3, LANE_LISTENING = 4, LANE_ANSWERED = 16, LANE_LENGTH = 17, LANE_ANSWER = 8192, LANE_ROOM = 8192 };

/**
 * Answers the version byte, and offers a lane with it or something that is none. Null for none that
 * is used.
 */
static _Atomic uint32_t *greet(int fd, uint8_t version) {
  struct iovec part = {&version, 1};
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  void *memory = MAP_FAILED;
  unsigned kind;
  int lane = -1;

  pthread_mutex_lock(&answers_lock);
  kind = take(&answers) % 8;
  pthread_mutex_unlock(&answers_lock);
  if (kind < 5) {
    struct cmsghdr *rights;
    lane = memfd_create("dke-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (lane < 0 || ftruncate(lane, kind == 0 ? 100 : LANE_SIZE) != 0) abort();
    if (kind != 1 && fcntl(lane, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) abort();
    if (kind > 1) memory = mmap(NULL, LANE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, lane, 0);
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof lane);
    memcpy(CMSG_DATA(rights), &lane, sizeof lane);
  }
  if (sendmsg(fd, &message, MSG_NOSIGNAL) != 1) shutdown(fd, SHUT_RDWR);
  if (lane >= 0) close(lane);
  return memory == MAP_FAILED ? NULL : memory;
}

/**
 * Writes an answer into the lane, possibly with an invalid length or count, and rings. False: it
 * goes through the socket.
 */
static bool put_in_lane(int fd, _Atomic uint32_t *lane, const uint8_t *header, const struct buffer *reply) {
  static const uint8_t ring[12];
  uint32_t length = (uint32_t)(12 + reply->length);
  unsigned kind;

  if (lane == NULL || length > LANE_ROOM) return false;
  pthread_mutex_lock(&answers_lock);
  kind = take(&answers) % 16;
  pthread_mutex_unlock(&answers_lock);
  /* Nothing else reads it, and waiting for the deadline finds nothing. */
  if (kind > 8 || lane[LANE_LISTENING] == 0 || lane[LANE_FETCHED] != lane[LANE_ANSWERED]) return false;
  memcpy((uint8_t *)lane + LANE_ANSWER, header, 12);
  if (reply->length > 0) memcpy((uint8_t *)lane + LANE_ANSWER + 12, reply->data, reply->length);
  if (kind == 7) length = 0xffffffff;
  if (kind == 6) length--;
  lane[LANE_LENGTH] = length;
  lane[LANE_ANSWERED] += kind == 8 ? 2 : 1;
  return send(fd, ring, sizeof ring, MSG_NOSIGNAL) == (ssize_t)sizeof ring;
}

static void *serve(void *argument) {
  const int fd = (int)(intptr_t)argument;
  uint8_t header[12];
  uint8_t version;
  _Atomic uint32_t *lane = NULL;
  struct buffer request;
  struct buffer reply;

  buffer_open(&request);
  buffer_open(&reply);
  if (!read_all(fd, &version, 1)) goto end;
  pthread_mutex_lock(&answers_lock);
  switch (take(&answers) % 8) {
    case 0: version = 0; break;
    case 1: version = 2; break;
    default: break;
  }
  pthread_mutex_unlock(&answers_lock);
  lane = greet(fd, version);
  while (read_all(fd, header, sizeof header)) {
    const uint32_t length = buffer_peek_u32(header + 8);
    uint8_t *to;
    uint32_t code;

    buffer_reset(&request);
    buffer_reset(&reply);
    to = buffer_extend(&request, length);
    /* What the library sends must be a frame that it would take itself. */
    if (to == NULL || buffer_peek_u32(header + 4) != 0) abort();
    if (buffer_peek_u32(header) == 0 && length != 0) abort();
    if (!read_all(fd, to, length)) break;
    if (length == 0) continue; /* it rings */
    code = buffer_get_u32(&request);
    if (code == 1) {
      buffer_put_u32(&reply, 1);
      buffer_put_array(&reply, "", 0);
    } else if (!answer(code, &reply)) {
      break;
    }
    buffer_poke_u32(header + 8, (uint32_t)reply.length);
    if (code != 1 && put_in_lane(fd, lane, header, &reply)) continue;
    if (send(fd, header, sizeof header, MSG_NOSIGNAL) < 0) break;
    if (reply.length > 0 && send(fd, reply.data, reply.length, MSG_NOSIGNAL) < 0) break;
  }
end:
  buffer_close(&request);
  buffer_close(&reply);
  if (lane != NULL) munmap((void *)lane, LANE_SIZE);
  close(fd);
  return NULL;
}

static void *accept_all(void *argument) {
  (void)argument;
  for (;;) {
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    pthread_t thread;
    if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0) abort();
    pthread_detach(thread);
  }
}

static void remove_files(void) {
  static const char *const names[] = {"/agent.sock", "/agent.sock.lock", "/pkcs11.toml", "/library.log", "/library.log.1"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

static void start_peer(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char path[64];
  pthread_t thread;
  FILE *file;

  if (mkdtemp(folder) == NULL) abort();
  atexit(remove_files);
  snprintf(path, sizeof path, "%s/pkcs11.toml", folder);
  file = fopen(path, "w");
  if (file == NULL || fputs("call_timeout_ms = 2000\nspin_us = 20\n", file) < 0 || fclose(file) != 0) abort();
  setenv("DKE_PKCS11_CONF", path, 1);
  snprintf(path, sizeof path, "%s/agent.sock", folder);
  setenv("DKE_PKCS11_SOCKET", path, 1);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 128) != 0) abort();
  if (pthread_create(&thread, NULL, accept_all, NULL) != 0) abort();
}

/*
 * --- the caller ----------------------------------------------------------------------------------
 */

static struct input calls;
static void *blocks[BLOCKS_MAX];
static size_t blocks_used;

/** Memory of exactly this length, which may be none. */
static void *memory(size_t length) {
  void *block = malloc(length);
  if (block == NULL || blocks_used == BLOCKS_MAX) abort();
  fill(&calls, block, length);
  blocks[blocks_used++] = block;
  return block;
}

static void free_all(void) {
  while (blocks_used > 0) free(blocks[--blocks_used]);
}

static CK_ULONG number(void) {
  static const CK_ULONG numbers[] = {
      0, 1, 2, 7, 8, 15, 16, 17, 18, 19, 20, 24, 32, 128, 255, 256, 4096, 1u << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1ul << 32, ~1ul, ~0ul,
  };
  return numbers[take(&calls) % (sizeof numbers / sizeof *numbers)];
}

static CK_ULONG handle(void) { return take(&calls) % 8 == 0 ? number() : FIRST_HANDLE + take(&calls) % 4; }

struct bytes {
  CK_BYTE_PTR at;
  CK_ULONG length;
};

static struct bytes bytes(void) {
  const unsigned kind = take(&calls);
  struct bytes made = {NULL, kind % 64};

  if (kind >= 250) made.length = number(); /* from nowhere */
  else if (kind >= 240) made.length = 0;
  else made.at = memory(kind >= 235 ? made.length = 2000 : made.length);
  return made;
}

/** Somewhere to write to, perhaps not on its natural boundary, or nowhere. */
static void *out(size_t size) {
  const unsigned kind = take(&calls);
  if (kind % 32 == 0) return NULL;
  return (uint8_t *)memory(size + kind % 2 * 3) + kind % 2 * 3;
}

struct room {
  CK_BYTE_PTR at;
  CK_ULONG_PTR length;
};

static struct room room(size_t size) {
  const struct bytes made = bytes();
  struct room room = {made.at, out(sizeof(CK_ULONG))};
  const CK_ULONG count = made.length / size;

  if (room.length != NULL) memcpy(room.length, made.at == NULL ? &made.length : &count, sizeof count);
  return room;
}

/**
 * Up to seven CK_PRF_DATA_PARAM: the count is correct, so only the memory that they point to
 * varies.
 */
static struct bytes prf_data_rows(void) {
  CK_ULONG rows[7][3];
  const unsigned kind = take(&calls);
  struct bytes made = {NULL, kind % 8};

  if (kind >= 240) { /* from nowhere */
    made.length = number();
    return made;
  }
  for (CK_ULONG i = 0; i < made.length; i++) {
    const struct bytes value = bytes();
    rows[i][0] = take(&calls) % 6;
    rows[i][1] = (CK_ULONG)value.at;
    rows[i][2] = value.length;
  }
  made.at = memory(made.length * sizeof *rows);
  memcpy(made.at, rows, made.length * sizeof *rows);
  return made;
}

/**
 * A parameter in words: u a number, p a pointer and its length, q a length and its pointer, d a
 * count and its rows, i sixteen bytes.
 */
static CK_ULONG structure(const char *words, void **to) {
  CK_ULONG made[12];
  size_t used = 0;

  for (; *words != 0; words++) {
    if (*words == 'u') {
      made[used++] = number();
    } else if (*words == 'd') {
      const struct bytes rows = prf_data_rows();
      made[used++] = rows.length;
      made[used++] = (CK_ULONG)rows.at;
    } else if (*words == 'i') {
      fill(&calls, &made[used], 16);
      used += 2;
    } else {
      const struct bytes inner = bytes();
      made[used + (*words == 'q')] = (CK_ULONG)inner.at;
      made[used + (*words == 'p')] = inner.length;
      used += 2;
    }
  }
  *to = memory(used * sizeof *made);
  memcpy(*to, made, used * sizeof *made);
  return used * sizeof *made;
}

static CK_MECHANISM_TYPE mechanism_type(void) {
  static const CK_MECHANISM_TYPE types[] = {
      CKM_AES_CBC, CKM_AES_ECB, CKM_AES_CBC_PAD, CKM_AES_CTR, CKM_AES_GCM, CKM_AES_CCM, CKM_AES_CMAC_GENERAL, CKM_AES_KEY_WRAP,
      CKM_AES_KEY_GEN, CKM_RSA_PKCS_PSS, CKM_RSA_PKCS_OAEP, CKM_RSA_PKCS_KEY_PAIR_GEN, CKM_ECDH1_DERIVE, CKM_ECDSA, CKM_SHA256,
      CKM_SHA256_HMAC_GENERAL, CKM_AES_CBC_ENCRYPT_DATA, CKM_AES_ECB_ENCRYPT_DATA, 0x402a /* HKDF */, 0x3ac /* SP800_108_COUNTER_KDF */, 0x3ad /* SP800_108_FEEDBACK_KDF */, 0x1057 /* EDDSA */,
  };
  const unsigned kind = take(&calls);
  return kind >= 250 ? number() : types[kind % (sizeof types / sizeof *types)];
}

static CK_MECHANISM_PTR mechanism(void) {
  static const char *const words[] = {
      [FORM_CTR] = "ui",      [FORM_GCM] = "pupu", [FORM_PSS] = "uuu", [FORM_OAEP] = "uuup", [FORM_ECDH1] = "uqq",
      [FORM_HKDF] = "uuupup", [FORM_CCM] = "uppu", [FORM_EDDSA] = "uq", [FORM_DATA] = "p",   [FORM_IVDATA] = "ip", [FORM_SP800] = "udqq",
  };
  CK_MECHANISM made = {mechanism_type(), NULL, 0};
  const unsigned form = made.mechanism < UINT32_MAX ? codec_parameter_form(made.mechanism) : FORM_BYTES;
  const unsigned kind = take(&calls);
  CK_MECHANISM_PTR to = out(sizeof made);

  if (to == NULL) return NULL;
  if (form < sizeof words / sizeof *words && words[form] != NULL) {
    const char *shape = words[form];
    if (form == FORM_GCM && kind < 32) shape = "ppu";
    if (made.mechanism == 0x3ac) shape = "udq";
    if (kind < 192) made.ulParameterLen = structure(shape, &made.pParameter);
    else made.pParameter = memory(made.ulParameterLen = kind % 8); /* of no structure's length */
  } else {
    const struct bytes flat = bytes();
    made.pParameter = flat.at;
    made.ulParameterLen = flat.length;
  }
  memcpy(to, &made, sizeof made);
  return to;
}

/** `wanted`: for C_GetAttributeValue, which may be given lengths from nowhere. */
static CK_ATTRIBUTE_PTR attributes(CK_ULONG *count, bool wanted, int depth) {
  static const CK_ATTRIBUTE_TYPE types[] = {
      CKA_CLASS, CKA_TOKEN, CKA_LABEL, CKA_VALUE, CKA_VALUE_LEN, CKA_START_DATE, CKA_ALLOWED_MECHANISMS, CKA_ID, CKA_MODULUS_BITS,
      CKA_WRAP_TEMPLATE, CKA_UNWRAP_TEMPLATE, CKA_EC_POINT,
  };
  CK_ATTRIBUTE made[8];

  *count = take(&calls) % 9;
  if (depth == 0 && *count == 8) {
    const unsigned kind = take(&calls);
    *count = kind % 2 == 0 ? 0 : number();
    if (kind % 4 < 2 || *count == 0) return NULL;
    *count = ~0ul;
    return memory(1);
  }
  *count %= 8;
  for (CK_ULONG i = 0; i < *count; i++) {
    const unsigned kind = take(&calls);
    made[i].type = kind >= 250 ? number() : types[kind % (sizeof types / sizeof *types)];
    if ((made[i].type & CKF_ARRAY_ATTRIBUTE) != 0 && made[i].type != CKA_ALLOWED_MECHANISMS && kind < 200 && depth < DEPTH_MAX) {
      CK_ULONG inner = 0;
      made[i].pValue = attributes(&inner, wanted, depth + 1);
      made[i].ulValueLen = inner * sizeof *made;
    } else {
      struct bytes value = bytes();
      /* A template's memory must contain attributes: if it does not, its length must be 0. */
      if ((made[i].type & CKF_ARRAY_ATTRIBUTE) != 0 && value.at != NULL && value.length % sizeof *made == 0) value.length = 0;
      made[i].pValue = value.at;
      made[i].ulValueLen = value.length;
    }
  }
  CK_ATTRIBUTE_PTR to = memory(*count * sizeof *made);
  memcpy(to, made, *count * sizeof *made);
  return to;
}

typedef CK_RV (*of_session)(CK_SESSION_HANDLE);
typedef CK_RV (*of_init)(CK_SESSION_HANDLE, CK_MECHANISM_PTR, CK_OBJECT_HANDLE);
typedef CK_RV (*of_data)(CK_SESSION_HANDLE, CK_BYTE_PTR, CK_ULONG, CK_BYTE_PTR, CK_ULONG_PTR);
typedef CK_RV (*of_part)(CK_SESSION_HANDLE, CK_BYTE_PTR, CK_ULONG);
typedef CK_RV (*of_last)(CK_SESSION_HANDLE, CK_BYTE_PTR, CK_ULONG_PTR);
typedef CK_RV (*of_object)(CK_SESSION_HANDLE, CK_OBJECT_HANDLE);
typedef CK_RV (*of_template)(CK_SESSION_HANDLE, CK_OBJECT_HANDLE, CK_ATTRIBUTE_PTR, CK_ULONG);
typedef CK_RV (*of_message)(CK_SESSION_HANDLE, CK_VOID_PTR, CK_ULONG, CK_BYTE_PTR, CK_ULONG, CK_BYTE_PTR, CK_ULONG, CK_BYTE_PTR, CK_ULONG_PTR);
#define PICK(list) list[take(&calls) % (sizeof list / sizeof *list)]

/** CK_GCM_MESSAGE_PARAMS, whose IV and tag are written to. */
static struct bytes message_parameter(void) {
  CK_GCM_MESSAGE_PARAMS gcm = {0};
  struct bytes iv = bytes();
  struct bytes made = bytes();

  if (made.length % 4 == 0 || made.length == sizeof gcm) {
    gcm.ulIvLen = iv.length;
    gcm.pIv = iv.at;
    gcm.ulIvFixedBits = number();
    gcm.ivGenerator = take(&calls) % 6;
    gcm.ulTagBits = number();
    gcm.pTag = gcm.ulTagBits > 256 ? NULL : memory((gcm.ulTagBits + 7) / 8);
    made.at = memory(made.length = sizeof gcm);
    memcpy(made.at, &gcm, sizeof gcm);
  }
  return made;
}

static void call_once(void) {
  static const of_session sessions[] = {
      C_CloseSession, C_Logout, C_FindObjectsFinal, C_GetFunctionStatus, C_CancelFunction, C_MessageEncryptFinal, C_MessageDecryptFinal};
  static const of_init inits[] = {C_EncryptInit,    C_DecryptInit,       C_SignInit, C_VerifyInit, C_SignRecoverInit,
                                  C_VerifyRecoverInit, C_MessageEncryptInit, C_MessageDecryptInit};
  static const of_data data[] = {C_Encrypt,       C_Decrypt,     C_EncryptUpdate, C_DecryptUpdate,       C_Digest,
                                 C_Sign,          C_SignRecover, C_VerifyRecover, C_DigestEncryptUpdate, C_DecryptDigestUpdate,
                                 C_SignEncryptUpdate, C_DecryptVerifyUpdate};
  static const of_part parts[] = {C_DigestUpdate, C_SignUpdate, C_VerifyUpdate, C_VerifyFinal, C_SeedRandom, C_GenerateRandom, C_InitPIN};
  static const of_last lasts[] = {C_EncryptFinal, C_DecryptFinal, C_DigestFinal, C_SignFinal, C_GetOperationState};
  static const of_object objects[] = {C_DestroyObject, C_DigestKey};
  static const of_template templates[] = {C_SetAttributeValue, C_GetAttributeValue};
  static const of_message messages[] = {C_EncryptMessage, C_DecryptMessage};
  const CK_SESSION_HANDLE session = handle();
  struct bytes one;
  struct bytes two;
  struct room to;
  CK_ULONG count;
  CK_ULONG more;
  CK_ATTRIBUTE_PTR template;

  switch (take(&calls) % 30) {
    case 0: PICK(sessions)(session); break;
    case 1:
    case 2: PICK(inits)(session, mechanism(), handle()); break;
    case 3:
    case 4:
      one = bytes();
      to = room(1);
      PICK(data)(session, one.at, one.length, to.at, to.length);
      break;
    case 5:
      one = bytes();
      PICK(parts)(session, one.at, one.length);
      break;
    case 6:
      to = room(1);
      PICK(lasts)(session, to.at, to.length);
      break;
    case 7: PICK(objects)(session, handle()); break;
    case 8:
    case 9:
      template = attributes(&count, true, 0);
      PICK(templates)(session, handle(), template, count);
      break;
    case 10: {
      const of_message call = PICK(messages);
      const struct bytes parameter = message_parameter();
      one = bytes();
      two = bytes();
      to = room(1);
      call(session, parameter.at, parameter.length, one.at, one.length, two.at, two.length, to.at, to.length);
      break;
    }
    case 11: C_OpenSession(number(), take(&calls), NULL, NULL, out(sizeof(CK_ULONG))); break;
    case 12: C_GetSessionInfo(session, out(sizeof(CK_SESSION_INFO))); break;
    case 13: C_GetTokenInfo(number(), out(sizeof(CK_TOKEN_INFO))); break;
    case 14: C_GetSlotInfo(number(), out(sizeof(CK_SLOT_INFO))); break;
    case 15: C_GetMechanismInfo(number(), mechanism_type(), out(sizeof(CK_MECHANISM_INFO))); break;
    case 16:
      to = room(sizeof(CK_ULONG));
      C_GetSlotList((CK_BBOOL)take(&calls), (CK_ULONG_PTR)(void *)to.at, to.length);
      break;
    case 17:
      to = room(sizeof(CK_ULONG));
      C_GetMechanismList(number(), (CK_ULONG_PTR)(void *)to.at, to.length);
      break;
    case 18:
      template = attributes(&count, false, 0);
      C_CreateObject(session, template, count, out(sizeof(CK_ULONG)));
      break;
    case 19:
      template = attributes(&count, false, 0);
      C_CopyObject(session, handle(), template, count, out(sizeof(CK_ULONG)));
      break;
    case 20:
      template = attributes(&count, false, 0);
      C_FindObjectsInit(session, template, count);
      break;
    case 21:
      one = bytes();
      C_FindObjects(session, (CK_ULONG_PTR)(void *)one.at, one.at == NULL ? one.length : one.length / sizeof(CK_ULONG), out(sizeof(CK_ULONG)));
      break;
    case 22:
      template = attributes(&count, false, 0);
      C_GenerateKey(session, mechanism(), template, count, out(sizeof(CK_ULONG)));
      break;
    case 23: {
      CK_ATTRIBUTE_PTR private;
      template = attributes(&count, false, 0);
      private = attributes(&more, false, 0);
      C_GenerateKeyPair(session, mechanism(), template, count, private, more, out(sizeof(CK_ULONG)), out(sizeof(CK_ULONG)));
      break;
    }
    case 24:
      to = room(1);
      C_WrapKey(session, mechanism(), handle(), handle(), to.at, to.length);
      break;
    case 25:
      one = bytes();
      template = attributes(&count, false, 0);
      C_UnwrapKey(session, mechanism(), handle(), one.at, one.length, template, count, out(sizeof(CK_ULONG)));
      break;
    case 26:
      template = attributes(&count, false, 0);
      C_DeriveKey(session, mechanism(), handle(), template, count, out(sizeof(CK_ULONG)));
      break;
    case 27:
      one = bytes();
      two = bytes();
      if (take(&calls) % 2 == 0) C_LoginUser(session, take(&calls) % 4, one.at, one.length, two.at, two.length);
      else C_Login(session, take(&calls) % 4, one.at, one.length);
      break;
    case 28:
      one = bytes();
      two = bytes();
      C_Verify(session, one.at, one.length, two.at, two.length);
      break;
    default:
      switch (take(&calls) % 8) {
        case 0: C_CloseAllSessions(number()); break;
        case 1: C_SessionCancel(session, number()); break;
        case 2: C_GetInfo(out(sizeof(CK_INFO))); break;
        case 3: C_GetObjectSize(session, handle(), out(sizeof(CK_ULONG))); break;
        case 4: C_DigestInit(session, mechanism()); break;
        case 5: C_WaitForSlotEvent(take(&calls), out(sizeof(CK_ULONG)), NULL); break;
        case 6:
          one = bytes();
          C_SetOperationState(session, one.at, one.length, handle(), handle());
          break;
        default:
          one = bytes();
          two = bytes();
          C_SetPIN(session, one.at, one.length, two.at, two.length);
      }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool started;

  if (!started) start_peer();
  started = true;
  calls = (struct input){data, size / 2};
  pthread_mutex_lock(&answers_lock);
  answers = (struct input){data + size / 2, size - size / 2};
  pthread_mutex_unlock(&answers_lock);
  C_Initialize(NULL);
  for (int i = 0; i < CALLS_MAX && calls.left > 0; i++) {
    call_once();
    free_all();
  }
  C_Finalize(NULL);
  return 0;
}
