/*
 * Many threads of one process, each at everything at once: session keys of its own and keys that
 * all threads share, whole and in parts, MACs, digests, searches, attributes, random numbers,
 * sessions and keys that come and go. Each answer is compared with the known one. What each call
 * answered is counted and reported; whether that was in order is the test's to say.
 *
 * Usage: host-threads <library> <answers> <threads> <rounds> [handle of the token key] With 0
 * rounds it works until its standard input ends. Standard output: {"whole":N} now and then, N being
 * the least number of rounds without any error that a thread has gone through, and one line
 * {"report":...} at the end.
 */
#include "host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MOST_THREADS = 128, MOST_VALUES = 24, KEEP_KEY = 5 };

/** What is counted, by call and kind of key. */
enum place {
  OPEN_SESSION, CLOSE_SESSION, SESSION_INFO, CREATE_OBJECT, DESTROY_OBJECT, GENERATE_KEY, GET_ATTRIBUTE,
  INIT_SESSION_KEY, CRYPT_SESSION_KEY, PART_SESSION_KEY, INIT_SHARED_KEY, CRYPT_SHARED_KEY, INIT_TOKEN_KEY, CRYPT_TOKEN_KEY, SIGN_INIT, SIGN, VERIFY_INIT, VERIFY,
  DIGEST_INIT, DIGEST, DIGEST_PART, FIND_INIT, FIND, RANDOM, PLACES
};
static const char *const names[PLACES] = {
    "C_OpenSession", "C_CloseSession", "C_GetSessionInfo", "C_CreateObject", "C_DestroyObject", "C_GenerateKey",
    "C_GetAttributeValue", "Init session", "C_Crypt session", "C_CryptUpdate session", "Init shared", "C_Crypt shared", "Init token", "C_Crypt token", "C_SignInit",
    "C_Sign", "C_VerifyInit", "C_Verify", "C_DigestInit", "C_Digest", "C_DigestUpdate", "C_FindObjectsInit", "C_FindObjects",
    "C_GenerateRandom",
};

struct count {
  CK_RV rv;
  long times;
};
struct worker {
  pthread_t thread;
  int number;
  CK_SESSION_HANDLE session;
  CK_OBJECT_HANDLE cipher_key;
  CK_OBJECT_HANDLE mac_key;
  const struct answer *cipher_row; /* whose key it is */
  const struct answer *mac_row;
  CK_BYTE id[5];
  uint32_t serial;
  CK_BYTE last_random[16];
  bool all_ok;
  atomic_long whole;
  long rounds;
  int64_t longest; /* microseconds */
  struct count counts[PLACES][MOST_VALUES];
};

static struct worker workers[MOST_THREADS];
static int threads;
static long wanted;
static atomic_bool stopping;
static _Atomic CK_OBJECT_HANDLE shared_keys[SHARED_KEYS];
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static CK_SESSION_HANDLE main_session;
static CK_OBJECT_HANDLE token_key;
static CK_SLOT_ID slot;
static atomic_int wrong_answers;
static const char *_Atomic first_wrong;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/** Counts the return value of a call. */
static bool note(struct worker *worker, enum place place, int64_t begun, CK_RV rv) {
  const int64_t took = now() - begun;
  struct count *count = worker->counts[place];

  if (took > worker->longest) worker->longest = took;
  while (count->times != 0 && count->rv != rv && count < worker->counts[place] + MOST_VALUES - 1) count++;
  count->rv = rv;
  count->times++;
  if (rv != CKR_OK) worker->all_ok = false;
  /* Lost with its agent: the next round creates another. */
  if (rv == CKR_KEY_HANDLE_INVALID || rv == CKR_OBJECT_HANDLE_INVALID) {
    if (place == INIT_SESSION_KEY || place == GET_ATTRIBUTE) worker->cipher_key = 0;
    if (place == SIGN_INIT || place == VERIFY_INIT) worker->mac_key = 0;
  }
  return rv == CKR_OK;
}
#define CALL(place, call)                \
  ({                                     \
    const int64_t begun = now();         \
    note(worker, place, begun, call);    \
  })
/** CALL for a call whose right answer is `expected` and not CKR_OK. */
#define CALL_EXPECTING(place, call, expected) CALL(place, expect(call, expected))
static CK_RV expect(CK_RV rv, CK_RV expected) { return rv == expected ? CKR_OK : rv == CKR_OK ? CKR_GENERAL_ERROR : rv; }

static void wrong(const char *what) {
  const char *none = NULL;
  atomic_fetch_add(&wrong_answers, 1);
  atomic_compare_exchange_strong(&first_wrong, &none, what);
}

static void compare(const CK_BYTE *got, CK_ULONG length, const CK_BYTE *known, CK_ULONG known_length, const char *what) {
  if (length != known_length || memcmp(got, known, known_length) != 0) wrong(what);
}

/*
 * --- the work ------------------------------------------------------------------------------------
 */

static void one_way(struct worker *worker, bool encrypt, CK_OBJECT_HANDLE key, const struct answer *row, const CK_BYTE *from,
                    const CK_BYTE *to, enum place init, enum place crypt) {
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN + 16];
  CK_ULONG length = sizeof out;

  memcpy(in, from, PLAIN);
  if (!CALL(init, host_cipher_init(worker->session, row, key, encrypt))) return;
  if (CALL(crypt, encrypt ? p11->C_Encrypt(worker->session, in, PLAIN, out, &length)
                          : p11->C_Decrypt(worker->session, in, PLAIN, out, &length)))
    compare(out, length, to, PLAIN, names[crypt]);
}

static void both_ways(struct worker *worker, CK_OBJECT_HANDLE key, const struct answer *row, const CK_BYTE *cipher,
                      enum place init, enum place crypt) {
  one_way(worker, true, key, row, row->plain, cipher, init, crypt);
  one_way(worker, false, key, row, cipher, row->plain, init, crypt);
}

static void in_parts(struct worker *worker, CK_OBJECT_HANDLE key, const struct answer *row) {
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN + 32];
  CK_ULONG first = 32;
  CK_ULONG second;
  CK_ULONG last = 0;

  memcpy(in, row->plain, PLAIN);
  if (!CALL(INIT_SESSION_KEY, host_cipher_init(worker->session, row, key, true))) return;
  if (!CALL(PART_SESSION_KEY, p11->C_EncryptUpdate(worker->session, in, 16, out, &first))) return;
  second = sizeof out - first;
  if (!CALL(PART_SESSION_KEY, p11->C_EncryptUpdate(worker->session, in + 16, PLAIN - 16, out + first, &second))) return;
  last = sizeof out - first - second;
  if (CALL(PART_SESSION_KEY, p11->C_EncryptFinal(worker->session, out + first + second, &last)))
    compare(out, first + second + last, row->cipher, PLAIN, "in parts");
}

/** Room that is too small keeps the operation going. */
static void with_little_room(struct worker *worker, CK_OBJECT_HANDLE key, const struct answer *row) {
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN];
  CK_ULONG length = 0;

  memcpy(in, row->plain, PLAIN);
  if (!CALL(INIT_SESSION_KEY, host_cipher_init(worker->session, row, key, true))) return;
  if (!CALL(CRYPT_SESSION_KEY, p11->C_Encrypt(worker->session, in, PLAIN, NULL, &length))) return;
  if (length < PLAIN) wrong("the length that C_Encrypt wants");
  length = 16;
  if (!CALL_EXPECTING(CRYPT_SESSION_KEY, p11->C_Encrypt(worker->session, in, PLAIN, out, &length), CKR_BUFFER_TOO_SMALL)) return;
  length = sizeof out;
  if (CALL(CRYPT_SESSION_KEY, p11->C_Encrypt(worker->session, in, PLAIN, out, &length)))
    compare(out, length, row->cipher, PLAIN, "after little room");
}

static void sign(struct worker *worker) {
  const struct answer *row = worker->mac_row;
  CK_MECHANISM mechanism = {CKM_SHA256_HMAC, NULL, 0};
  CK_BYTE in[PLAIN];
  CK_BYTE mac[32];
  CK_ULONG length = sizeof mac;

  memcpy(in, row->plain, PLAIN);
  if (!CALL(SIGN_INIT, p11->C_SignInit(worker->session, &mechanism, worker->mac_key))) return;
  if (!CALL(SIGN, p11->C_Sign(worker->session, in, PLAIN, mac, &length))) return;
  compare(mac, length, row->mac, sizeof row->mac, "C_Sign");
  memcpy(mac, row->mac, sizeof mac);
  if (!CALL(VERIFY_INIT, p11->C_VerifyInit(worker->session, &mechanism, worker->mac_key))) return;
  if (!CALL(VERIFY, p11->C_Verify(worker->session, in, PLAIN, mac, sizeof mac))) return;
  mac[worker->rounds % 32] ^= 1;
  if (!CALL(VERIFY_INIT, p11->C_VerifyInit(worker->session, &mechanism, worker->mac_key))) return;
  CALL_EXPECTING(VERIFY, p11->C_Verify(worker->session, in, PLAIN, mac, sizeof mac), CKR_SIGNATURE_INVALID);
}

static void digest(struct worker *worker, const struct answer *row, bool parts) {
  CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
  CK_BYTE in[PLAIN];
  CK_BYTE out[32];
  CK_ULONG length = sizeof out;

  memcpy(in, row->plain, PLAIN);
  if (!CALL(DIGEST_INIT, p11->C_DigestInit(worker->session, &mechanism))) return;
  if (parts) {
    if (!CALL(DIGEST_PART, p11->C_DigestUpdate(worker->session, in, 7))) return;
    if (!CALL(DIGEST_PART, p11->C_DigestUpdate(worker->session, in + 7, PLAIN - 7))) return;
    if (!CALL(DIGEST_PART, p11->C_DigestFinal(worker->session, out, &length))) return;
  } else if (!CALL(DIGEST, p11->C_Digest(worker->session, in, PLAIN, out, &length))) {
    return;
  }
  compare(out, length, row->digest, sizeof row->digest, "C_Digest");
}

static void find(struct worker *worker) {
  CK_ATTRIBUTE template = {CKA_ID, worker->id, sizeof worker->id};
  CK_OBJECT_HANDLE found[4];
  CK_ULONG count = 0;
  bool whole;
  const CK_OBJECT_HANDLE own = worker->cipher_key;

  if (!CALL(FIND_INIT, p11->C_FindObjectsInit(worker->session, &template, 1))) return;
  whole = CALL(FIND, p11->C_FindObjects(worker->session, found, COUNT(found), &count));
  if (!CALL(FIND, p11->C_FindObjectsFinal(worker->session)) || !whole) return;
  /*
   * Zero objects are right, too: an agent that was restarted in between has lost the key, which the
   * next Init will notice.
   */
  if (count > 1 || (count == 1 && found[0] != own)) wrong("C_FindObjects");
}

static void read_attributes(struct worker *worker) {
  CK_BYTE id[8];
  CK_KEY_TYPE type = 0;
  CK_ATTRIBUTE template[] = {{CKA_ID, id, sizeof id}, {CKA_KEY_TYPE, &type, sizeof type}};

  if (!CALL(GET_ATTRIBUTE, p11->C_GetAttributeValue(worker->session, worker->cipher_key, template, COUNT(template)))) return;
  compare(id, template[0].ulValueLen, worker->id, sizeof worker->id, "C_GetAttributeValue");
  if (type != CKK_AES) wrong("CKA_KEY_TYPE");
}

/** A key that the token generated: only the round trip can be compared. */
static void generate(struct worker *worker, const struct answer *row) {
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
  CK_ULONG size = 32;
  CK_BBOOL yes = CK_TRUE;
  CK_ATTRIBUTE template[] = {
      {CKA_VALUE_LEN, &size, sizeof size}, {CKA_ENCRYPT, &yes, sizeof yes}, {CKA_DECRYPT, &yes, sizeof yes}};
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN];
  CK_ULONG length = sizeof out;
  CK_OBJECT_HANDLE key;

  memcpy(in, row->plain, PLAIN);
  if (!CALL(GENERATE_KEY, p11->C_GenerateKey(worker->session, &mechanism, template, COUNT(template), &key))) return;
  if (CALL(INIT_SESSION_KEY, host_cipher_init(worker->session, row, key, true)) &&
      CALL(CRYPT_SESSION_KEY, p11->C_Encrypt(worker->session, in, PLAIN, out, &length)))
    one_way(worker, false, key, row, out, row->plain, INIT_SESSION_KEY, CRYPT_SESSION_KEY);
  CALL(DESTROY_OBJECT, p11->C_DestroyObject(worker->session, key));
}

static void random_numbers(struct worker *worker) {
  CK_BYTE bytes[16] = {0};
  if (!CALL(RANDOM, p11->C_GenerateRandom(worker->session, bytes, sizeof bytes))) return;
  if (memcmp(bytes, worker->last_random, sizeof bytes) == 0) wrong("C_GenerateRandom repeats itself");
  memcpy(worker->last_random, bytes, sizeof bytes);
}

static void another_session(struct worker *worker) {
  CK_SESSION_HANDLE session;
  CK_SESSION_INFO info;

  if (!CALL(OPEN_SESSION, p11->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session))) return;
  if (CALL(SESSION_INFO, p11->C_GetSessionInfo(session, &info)) && info.state != CKS_RO_USER_FUNCTIONS)
    wrong("the state of a read-only session");
  CALL(CLOSE_SESSION, p11->C_CloseSession(session));
}

/*
 * --- keys that may go with their agent -----------------------------------------------------------
 */

static void renew(struct worker *worker, CK_OBJECT_HANDLE *key, const struct answer **row, CK_KEY_TYPE type, long number) {
  const bool cipher = type == CKK_AES;

  if (*key != 0) {
    CK_OBJECT_HANDLE old = *key;
    *key = 0;
    CALL(DESTROY_OBJECT, p11->C_DestroyObject(worker->session, old));
  }
  *row = &answers[(worker->number + number) % ANSWERS];
  /* A fresh name for each: one whose making was not answered in time may be there all the same. */
  if (cipher) {
    worker->serial++;
    memcpy(worker->id + 1, &worker->serial, sizeof worker->serial);
  }
  if (!CALL(CREATE_OBJECT, host_create_key(worker->session, (*row)->key, type, cipher ? worker->id : NULL, key))) *key = 0;
}

/**
 * The keys that all threads use belong to a session of the main thread. A thread that finds a key
 * missing creates it again.
 */
static void renew_shared(struct worker *worker, int at) {
  CK_OBJECT_HANDLE key = 0;

  pthread_mutex_lock(&shared_lock);
  if (shared_keys[at] == 0 &&
      CALL(CREATE_OBJECT, host_create_key(main_session, answers[at].key, CKK_AES, NULL, &key)))
    shared_keys[at] = key;
  pthread_mutex_unlock(&shared_lock);
}

static void use_shared(struct worker *worker, int at, const struct answer *row) {
  CK_OBJECT_HANDLE key = shared_keys[at];
  CK_BYTE in[PLAIN];
  CK_BYTE out[PLAIN];
  CK_ULONG length = sizeof out;
  CK_RV rv;

  if (key == 0) {
    renew_shared(worker, at);
    return;
  }
  memcpy(in, row->plain, PLAIN);
  if (!CALL(INIT_SHARED_KEY, (rv = host_cipher_init(worker->session, row, key, true)))) {
    if (rv == CKR_KEY_HANDLE_INVALID) atomic_compare_exchange_strong(&shared_keys[at], &key, 0);
    return;
  }
  if (CALL(CRYPT_SHARED_KEY, p11->C_Encrypt(worker->session, in, PLAIN, out, &length)))
    compare(out, length, row->shared[at], PLAIN, "a shared key");
}

static void *work(void *argument) {
  struct worker *worker = argument;

  while (worker->session == 0 && !stopping)
    if (!CALL(OPEN_SESSION, p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &worker->session)))
      worker->session = 0;
  while (!stopping && (wanted == 0 || worker->rounds < wanted)) {
    const struct answer *row = &answers[(worker->number * 5 + worker->rounds) % ANSWERS];

    worker->all_ok = true;
    if (worker->cipher_key == 0 || worker->rounds % KEEP_KEY == 0)
      renew(worker, &worker->cipher_key, &worker->cipher_row, CKK_AES, worker->rounds);
    if (worker->mac_key == 0 || worker->rounds % KEEP_KEY == 2)
      renew(worker, &worker->mac_key, &worker->mac_row, CKK_GENERIC_SECRET, worker->rounds + 1);
    if (worker->cipher_key != 0) {
      for (int i = 0; i < 3; i++)
        both_ways(worker, worker->cipher_key, worker->cipher_row, worker->cipher_row->cipher, INIT_SESSION_KEY, CRYPT_SESSION_KEY);
      in_parts(worker, worker->cipher_key, worker->cipher_row);
      with_little_room(worker, worker->cipher_key, worker->cipher_row);
      find(worker);
      read_attributes(worker);
    }
    if (worker->mac_key != 0) sign(worker);
    digest(worker, row, worker->rounds % 2 == 0);
    use_shared(worker, (int)((worker->number + worker->rounds) % SHARED_KEYS), row);
    if (token_key != 0 && worker->rounds % 4 == 0)
      both_ways(worker, token_key, row, row->token, INIT_TOKEN_KEY, CRYPT_TOKEN_KEY);
    random_numbers(worker);
    if (worker->rounds % 3 == 0) generate(worker, row);
    if (worker->rounds % 4 == 1) another_session(worker);
    worker->rounds++;
    if (worker->all_ok) atomic_fetch_add(&worker->whole, 1);
  }
  return NULL;
}

/*
 * --- the report ----------------------------------------------------------------------------------
 */

static long least_whole(void) {
  long least = workers[0].whole;
  for (int i = 1; i < threads; i++)
    if (workers[i].whole < least) least = workers[i].whole;
  return least;
}

/**
 * Reports its progress until its input ends or, with a number of rounds, all threads have finished.
 */
static void report_progress(void) {
  long said = -1;

  while (!stopping) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    const long whole = least_whole();
    char byte;

    if (whole != said) {
      printf("{\"whole\":%ld}\n", whole);
      fflush(stdout);
      said = whole;
    }
    if (poll(&input, 1, 50) > 0 && read(0, &byte, 1) <= 0) stopping = true;
  }
}

static void report(CK_ULONG sessions_left) {
  int64_t longest = 0;
  long rounds = 0;
  const char *comma = "";

  for (int i = 0; i < threads; i++) {
    if (workers[i].longest > longest) longest = workers[i].longest;
    rounds += workers[i].rounds;
  }
  printf("{\"report\":{\"rounds\":%ld,\"whole\":%ld,\"longest\":%ld,\"wrong\":%d,\"firstWrong\":\"%s\",\"sessionsLeft\":%lu,\"calls\":{",
         rounds, least_whole(), (long)(longest / 1000), (int)wrong_answers, first_wrong == NULL ? "" : first_wrong, sessions_left);
  for (int place = 0; place < PLACES; place++) {
    struct count all[MOST_VALUES] = {{0, 0}};
    const char *inner = "";

    for (int i = 0; i < threads; i++)
      for (const struct count *count = workers[i].counts[place]; count->times != 0; count++) {
        struct count *sum = all;
        while (sum->times != 0 && sum->rv != count->rv) sum++;
        sum->rv = count->rv;
        sum->times += count->times;
      }
    if (all[0].times == 0) continue;
    printf("%s\"%s\":{", comma, names[place]);
    for (const struct count *count = all; count->times != 0; count++) {
      printf("%s\"%lu\":%ld", inner, count->rv, count->times);
      inner = ",";
    }
    printf("}");
    comma = ",";
  }
  printf("}}}\n");
}

int main(int argc, char **argv) {
  CK_TOKEN_INFO info;

  if (argc < 5) return 2;
  threads = atoi(argv[3]);
  wanted = atol(argv[4]);
  if (argc > 5) token_key = strtoul(argv[5], NULL, 10);
  if (threads < 1 || threads > MOST_THREADS) return 2;
  host_read_answers(argv[2]);
  host_load(argv[1]);
  host_must(p11->C_Initialize(&(CK_C_INITIALIZE_ARGS){.flags = CKF_OS_LOCKING_OK}), "C_Initialize");
  slot = host_slot();
  main_session = host_open();
  host_login(main_session);
  for (int i = 0; i < SHARED_KEYS; i++) {
    CK_OBJECT_HANDLE key;
    host_must(host_create_key(main_session, answers[i].key, CKK_AES, NULL, &key), "C_CreateObject");
    shared_keys[i] = key;
  }
  for (int i = 0; i < threads; i++) {
    workers[i].number = i;
    workers[i].id[0] = (CK_BYTE)i;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) host_fail("pthread_create", (unsigned long)errno);
  }
  if (wanted == 0) report_progress();
  for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < threads; i++)
    if (workers[i].session != 0 && wanted != 0) host_must(p11->C_CloseSession(workers[i].session), "C_CloseSession");
  host_must(p11->C_GetTokenInfo(slot, &info), "C_GetTokenInfo");
  if (wanted == 0) info.ulSessionCount -= (CK_ULONG)threads;
  host_must(p11->C_Finalize(NULL), "C_Finalize");
  report(info.ulSessionCount - 1);
  return 0;
}
