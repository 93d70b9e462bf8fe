/*
 * Measures one PKCS#11 library from the outside: dlopen, no linking, so that any library can be the
 * peer.
 *
 * One run is one scenario, in so many processes of so many threads. Every thread has a session of
 * its own, waits until all are ready, and repeats the scenario's calls. The output is one JSON
 * line: the median and the 99th percentile of the calls, calls a second of all together, and the
 * same two for the way from dlopen to the first finished call. Nothing here asserts a speed.
 *
 * Usage: pkcs11-driver <library> <scenario> <iterations> <processes> <threads> [pin]
 *        pkcs11-driver <library> new-process <count> 1 1 [pin]
 *        pkcs11-driver floor <iterations>
 *
 * The second form is another run: so many processes one after the other, each of which loads the
 * library, logs in, finds a key of the token, decrypts one block with it and ends; measured from
 * fork to the end of its wait.
 *
 * The third form measures no library but the machine: the round trip of two processes that do
 * nothing else, a hundred bytes through a socket, and a number in shared memory with sched_yield.
 * No library that has its keys in another process can be faster.
 */
#include <dlfcn.h>
#include <pkcs11.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORKERS 512
#define COUNT(array) (sizeof(array) / sizeof *(array))

static CK_FUNCTION_LIST_PTR p11;
static CK_SLOT_ID slot;
static CK_BBOOL yes = CK_TRUE;
static CK_BBOOL no = CK_FALSE;
/* A thread's own. Strict scenarios take the keys in turn: no Init is that of the message before. */
static _Thread_local CK_SESSION_HANDLE session;
static _Thread_local CK_OBJECT_HANDLE keys[2];
static _Thread_local CK_BYTE block[48];
static const char *wanted_label = "bench 500";

static void must(CK_RV rv, const char *what) {
  if (rv != CKR_OK) {
    fprintf(stderr, "%s failed: 0x%lx\n", what, (unsigned long)rv);
    exit(1);
  }
}

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/*
 * --- keys ----------------------------------------------------------------------------------------
 */

static CK_OBJECT_HANDLE generate(const char *label, CK_BBOOL on_token) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_AES;
  CK_ULONG length = 32;
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL_PTR, 0};
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class},        {CKA_KEY_TYPE, &type, sizeof type},
      {CKA_TOKEN, &on_token, sizeof on_token},  {CKA_ENCRYPT, &yes, sizeof yes},
      {CKA_DECRYPT, &yes, sizeof yes},          {CKA_LABEL, (void *)label, strlen(label)},
      {CKA_VALUE_LEN, &length, sizeof length},  {CKA_ID, (void *)label, strlen(label)},
  };
  CK_OBJECT_HANDLE made = 0;
  must(p11->C_GenerateKey(session, &mechanism, template, COUNT(template), &made), "C_GenerateKey");
  return made;
}

static CK_OBJECT_HANDLE make_secret(void) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_GENERIC_SECRET;
  CK_BYTE value[32] = {1};
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}, {CKA_TOKEN, &no, sizeof no},
      {CKA_SIGN, &yes, sizeof yes},      {CKA_VALUE, value, sizeof value},
  };
  CK_OBJECT_HANDLE made = 0;
  must(p11->C_CreateObject(session, template, COUNT(template), &made), "C_CreateObject");
  return made;
}

static CK_OBJECT_HANDLE make_pair(CK_MECHANISM_TYPE type, CK_ATTRIBUTE kind[], CK_ULONG count) {
  CK_MECHANISM mechanism = {type, NULL_PTR, 0};
  CK_ATTRIBUTE public_template[4] = {{CKA_TOKEN, &no, sizeof no}, {CKA_VERIFY, &yes, sizeof yes}};
  CK_ATTRIBUTE private_template[] = {{CKA_TOKEN, &no, sizeof no}, {CKA_SIGN, &yes, sizeof yes}};
  CK_OBJECT_HANDLE public_key = 0, private_key = 0;
  for (CK_ULONG i = 0; i < count; i++) public_template[2 + i] = kind[i];
  must(p11->C_GenerateKeyPair(session, &mechanism, public_template, 2 + count, private_template, COUNT(private_template),
                              &public_key, &private_key),
       "C_GenerateKeyPair");
  return private_key;
}

static void two(CK_OBJECT_HANDLE (*make)(void)) {
  keys[0] = make();
  keys[1] = make();
}

static CK_OBJECT_HANDLE make_aes(void) { return generate("bench", CK_FALSE); }

static CK_OBJECT_HANDLE make_rsa(void) {
  CK_ULONG bits = 2048;
  CK_BYTE exponent[] = {1, 0, 1};
  CK_ATTRIBUTE kind[] = {{CKA_MODULUS_BITS, &bits, sizeof bits}, {CKA_PUBLIC_EXPONENT, exponent, sizeof exponent}};
  return make_pair(CKM_RSA_PKCS_KEY_PAIR_GEN, kind, COUNT(kind));
}

static CK_OBJECT_HANDLE make_ec(void) {
  CK_BYTE p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
  CK_ATTRIBUTE kind[] = {{CKA_EC_PARAMS, p256, sizeof p256}};
  return make_pair(CKM_EC_KEY_PAIR_GEN, kind, COUNT(kind));
}

static void prepare_aes(void) { two(make_aes); }
static void prepare_secret(void) { two(make_secret); }
static void prepare_rsa(void) { two(make_rsa); }
static void prepare_ec(void) { two(make_ec); }

static void prepare_many(int count) {
  char label[32];
  for (int i = 0; i < count; i++) {
    snprintf(label, sizeof label, "bench %d", i);
    keys[0] = generate(label, CK_FALSE);
  }
}

static void prepare_thousand(void) { prepare_many(1000); }
static void prepare_ten_thousand(void) { prepare_many(10000); }

static CK_ULONG find(CK_ATTRIBUTE template[], CK_ULONG count, CK_OBJECT_HANDLE *found, CK_ULONG capacity) {
  CK_ULONG got = 0;
  must(p11->C_FindObjectsInit(session, template, count), "C_FindObjectsInit");
  must(p11->C_FindObjects(session, found, capacity, &got), "C_FindObjects");
  must(p11->C_FindObjectsFinal(session), "C_FindObjectsFinal");
  return got;
}

static void prepare_token(void) {
  CK_ATTRIBUTE template[] = {{CKA_LABEL, (void *)wanted_label, strlen(wanted_label)}, {CKA_TOKEN, &yes, sizeof yes}};
  if (find(template, COUNT(template), &keys[0], 1) == 0) keys[0] = generate(wanted_label, CK_TRUE);
  keys[1] = keys[0];
}

/* What a database holds: so many keys, or metadata objects. */
static CK_OBJECT_HANDLE held[1200];
static CK_ULONG held_count;

static CK_OBJECT_HANDLE make_metadata(const char *label) {
  CK_OBJECT_CLASS class = CKO_DATA;
  CK_BYTE value[128] = {1};
  CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class},
                             {CKA_TOKEN, &yes, sizeof yes},
                             {CKA_LABEL, (void *)label, strlen(label)},
                             {CKA_VALUE, value, sizeof value}};
  CK_OBJECT_HANDLE made = 0;
  must(p11->C_CreateObject(session, template, COUNT(template), &made), "C_CreateObject");
  return made;
}

/* Made in the first round, found by their labels in each. */
static void hold(CK_ULONG count, CK_OBJECT_CLASS class, const char *form) {
  char label[48];
  for (held_count = 0; held_count < count; held_count++) {
    snprintf(label, sizeof label, form, (int)held_count);
    CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_LABEL, label, strlen(label)}};
    if (find(template, COUNT(template), &held[held_count], 1) != 1)
      held[held_count] = class == CKO_DATA ? make_metadata(label) : generate(label, CK_TRUE);
  }
}
static void prepare_heartbeat(void) { hold(300, CKO_SECRET_KEY, "heartbeat %d"); }
static void prepare_large_heartbeat(void) { hold(1000, CKO_SECRET_KEY, "heartbeat %d"); }
static void prepare_values(void) { hold(1200, CKO_DATA, "metadata %d"); }

/*
 * --- the measurements ----------------------------------------------------------------------------
 */

static void encrypt_with(CK_MECHANISM_TYPE type, void *parameter, CK_ULONG size, CK_OBJECT_HANDLE key) {
  CK_BYTE out[64];
  CK_ULONG length = sizeof out;
  CK_MECHANISM mechanism = {type, parameter, size};
  must(p11->C_EncryptInit(session, &mechanism, key), "C_EncryptInit");
  must(p11->C_Encrypt(session, block, sizeof block, out, &length), "C_Encrypt");
}

static void sign_with(CK_MECHANISM_TYPE type, void *parameter, CK_ULONG size, CK_OBJECT_HANDLE key, CK_ULONG input) {
  CK_BYTE out[256];
  CK_ULONG length = sizeof out;
  CK_MECHANISM mechanism = {type, parameter, size};
  must(p11->C_SignInit(session, &mechanism, key), "C_SignInit");
  must(p11->C_Sign(session, block, input, out, &length), "C_Sign");
}

static void run_ecb(CK_OBJECT_HANDLE key) { encrypt_with(CKM_AES_ECB, NULL_PTR, 0, key); }

static void run_cbc(CK_OBJECT_HANDLE key) {
  CK_BYTE iv[16] = {0};
  encrypt_with(CKM_AES_CBC, iv, sizeof iv, key);
}

/* A message in parts, as Java's SunPKCS11 sends every record. */
static void run_parts(CK_OBJECT_HANDLE key) {
  CK_BYTE iv[16] = {0};
  CK_MECHANISM mechanism = {CKM_AES_CBC, iv, sizeof iv};
  CK_BYTE out[sizeof block];
  CK_BYTE rest[16];
  CK_ULONG length = sizeof out;
  CK_ULONG last = sizeof rest;
  must(p11->C_EncryptInit(session, &mechanism, key), "C_EncryptInit");
  must(p11->C_EncryptUpdate(session, block, sizeof block, out, &length), "C_EncryptUpdate");
  must(p11->C_EncryptFinal(session, rest, &last), "C_EncryptFinal");
}

/* A token refuses an IV that it has seen under the same key. */
static void run_gcm(CK_OBJECT_HANDLE key) {
  static _Thread_local unsigned long long count;
  CK_BYTE iv[12] = {0};
  CK_GCM_PARAMS parameters = {.pIv = iv, .ulIvLen = sizeof iv, .ulIvBits = 8 * sizeof iv, .ulTagBits = 128};
  count++;
  memcpy(iv, &count, sizeof count);
  encrypt_with(CKM_AES_GCM, &parameters, sizeof parameters, key);
}

static void run_hmac(CK_OBJECT_HANDLE key) { sign_with(CKM_SHA256_HMAC, NULL_PTR, 0, key, sizeof block); }
static void run_ecdsa(CK_OBJECT_HANDLE key) { sign_with(CKM_ECDSA, NULL_PTR, 0, key, 32); }

/* The plain one: Debian's p11-kit does not carry the parameters of PSS with a hash. */
static void run_pss(CK_OBJECT_HANDLE key) {
  CK_RSA_PKCS_PSS_PARAMS parameters = {.hashAlg = CKM_SHA256, .mgf = CKG_MGF1_SHA256, .sLen = 32};
  sign_with(CKM_RSA_PKCS_PSS, &parameters, sizeof parameters, key, 32);
}

static void run_random(CK_OBJECT_HANDLE key) {
  CK_BYTE out[32];
  (void)key;
  must(p11->C_GenerateRandom(session, out, sizeof out), "C_GenerateRandom");
}

static void run_attribute(CK_OBJECT_HANDLE key) {
  CK_BYTE label[64];
  CK_ATTRIBUTE template[] = {{CKA_LABEL, label, sizeof label}};
  must(p11->C_GetAttributeValue(session, key, template, COUNT(template)), "C_GetAttributeValue");
}

static void find_one(CK_ATTRIBUTE template[], CK_ULONG count) {
  CK_OBJECT_HANDLE found[4];
  const CK_ULONG got = find(template, count, found, COUNT(found));
  if (got != 1) {
    fprintf(stderr, "found %lu objects instead of 1\n", (unsigned long)got);
    exit(1);
  }
}

static void run_find(CK_OBJECT_HANDLE key) {
  CK_ATTRIBUTE template[] = {{CKA_LABEL, (void *)wanted_label, strlen(wanted_label)}};
  (void)key;
  find_one(template, COUNT(template));
}

/* A search of a client whose keys are session objects. */
static void run_find_session(CK_OBJECT_HANDLE key) {
  CK_ATTRIBUTE template[] = {{CKA_LABEL, (void *)wanted_label, strlen(wanted_label)}, {CKA_TOKEN, &no, sizeof no}};
  (void)key;
  find_one(template, COUNT(template));
}

static void run_find_id(CK_OBJECT_HANDLE key) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class}, {CKA_ID, (void *)wanted_label, strlen(wanted_label)}, {CKA_TOKEN, &no, sizeof no}};
  (void)key;
  find_one(template, COUNT(template));
}

static void run_generate(CK_OBJECT_HANDLE key) {
  (void)key;
  must(p11->C_DestroyObject(session, generate("one of many", CK_FALSE)), "C_DestroyObject");
}

/*
 * The heartbeat of a database with many pluggable databases: an Init of each key, and no operation.
 */
static void run_heartbeat(CK_OBJECT_HANDLE key) {
  CK_BYTE iv[16] = {0};
  CK_MECHANISM mechanism = {CKM_AES_CBC, iv, sizeof iv};
  (void)key;
  for (CK_ULONG i = 0; i < held_count; i++) {
    CK_SESSION_HANDLE own = 0;
    must(p11->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL_PTR, NULL_PTR, &own), "C_OpenSession");
    must(p11->C_EncryptInit(own, &mechanism, held[i]), "C_EncryptInit");
    must(p11->C_CloseSession(own), "C_CloseSession");
  }
}

static void run_values(CK_OBJECT_HANDLE key) {
  (void)key;
  for (CK_ULONG i = 0; i < held_count; i++) {
    CK_BYTE value[256];
    CK_ATTRIBUTE template[] = {{CKA_VALUE, value, sizeof value}};
    must(p11->C_GetAttributeValue(session, held[i], template, COUNT(template)), "C_GetAttributeValue");
  }
}

/* A part of a heartbeat's period: nothing that was said before counts. */
static void wait_for_period(void) {
  const struct timespec pause = {.tv_sec = 1, .tv_nsec = 100000000};
  nanosleep(&pause, NULL);
}

static const struct scenario {
  const char *name;
  void (*prepare)(void);
  void (*run)(CK_OBJECT_HANDLE key);
  /* Before each call, and not measured. */
  void (*rest)(void);
} scenarios[] = {
    {"heartbeat-300", prepare_heartbeat, run_heartbeat, wait_for_period},
    {"heartbeat-1000", prepare_large_heartbeat, run_heartbeat, wait_for_period},
    {"values-1200", prepare_values, run_values, wait_for_period},
    {"ecb", prepare_aes, run_ecb},
    {"cbc", prepare_aes, run_cbc},
    {"cbc-parts", prepare_aes, run_parts},
    {"gcm", prepare_aes, run_gcm},
    {"hmac", prepare_secret, run_hmac},
    {"pss", prepare_rsa, run_pss},
    {"ecdsa", prepare_ec, run_ecdsa},
    {"random", prepare_aes, run_random},
    {"attribute", prepare_aes, run_attribute},
    {"generate", prepare_aes, run_generate},
    {"find", prepare_thousand, run_find},
    {"find-10000", prepare_ten_thousand, run_find},
    {"find-session-1000", prepare_thousand, run_find_session},
    {"find-session-10000", prepare_ten_thousand, run_find_session},
    {"find-id-1000", prepare_thousand, run_find_id},
    {"find-id-10000", prepare_ten_thousand, run_find_id},
    {"token-cbc", prepare_token, run_cbc},
};

/*
 * --- the run -------------------------------------------------------------------------------------
 */

struct result {
  long long connect;
  long long start;
  long long end;
};

/* What all workers share: results, and the time of every call. */
static struct result *results;
static unsigned *samples;
static const struct scenario *scenario;
static bool strict;
static int iterations;
static int ready[2], go[2];

static int by_value(const void *a, const void *b) {
  const unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
  return (left > right) - (left < right);
}

static void open_session(const char *pin) {
  CK_RV rv;
  must(p11->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL_PTR, NULL_PTR, &session), "C_OpenSession");
  rv = p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR)pin, strlen(pin));
  if (rv != CKR_USER_ALREADY_LOGGED_IN) must(rv, "C_Login");
}

static void open_library(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  CK_C_GetFunctionList get_list;
  void *symbol = dlsym(handle, "C_GetFunctionList");
  memcpy(&get_list, &symbol, sizeof get_list);
  must(get_list(&p11), "C_GetFunctionList");
  CK_C_INITIALIZE_ARGS arguments = {0};
  arguments.flags = CKF_OS_LOCKING_OK;
  must(p11->C_Initialize(&arguments), "C_Initialize");
  CK_SLOT_ID slots[16];
  CK_ULONG count = COUNT(slots);
  must(p11->C_GetSlotList(CK_TRUE, slots, &count), "C_GetSlotList");
  slot = slots[0];
}

static void measure(int worker, long long connecting) {
  struct result *result = &results[worker];
  unsigned *own = samples + (size_t)worker * (size_t)iterations;
  scenario->prepare();
  scenario->run(keys[0]);
  result->connect = now_ns() - connecting;
  for (int i = 0; i < iterations / 10; i++) scenario->run(keys[strict ? i & 1 : 0]);
  char byte = 'r';
  if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) exit(1);
  result->start = now_ns();
  long long before = result->start;
  for (int i = 0; i < iterations; i++) {
    if (scenario->rest != NULL) {
      scenario->rest();
      before = now_ns();
    }
    scenario->run(keys[strict ? i & 1 : 0]);
    const long long after = now_ns();
    own[i] = after - before > 0xffffffffLL ? 0xffffffffu : (unsigned)(after - before);
    before = after;
  }
  result->end = before;
}

struct thread {
  pthread_t thread;
  int worker;
  const char *pin;
  long long connecting;
};

static void *run_thread(void *argument) {
  const struct thread *self = argument;
  open_session(self->pin);
  measure(self->worker, self->connecting);
  return NULL;
}

static volatile sig_atomic_t finished;

/* A process that fails before it is ready would leave the parent waiting for its byte. */
static void child_died(int signal_number) {
  (void)signal_number;
  int status = 0;
  while (waitpid(-1, &status, WNOHANG) > 0) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) _exit(1);
    finished++;
  }
}

static void run_process(const char *library, const char *pin, int first, int count) {
  struct thread threads[MAX_WORKERS];
  const long long connecting = now_ns();
  open_library(library);
  for (int i = 0; i < count; i++) {
    threads[i] = (struct thread){.worker = first + i, .pin = pin, .connecting = connecting};
    if (i > 0 && pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]) != 0) exit(1);
  }
  run_thread(&threads[0]);
  for (int i = 1; i < count; i++) pthread_join(threads[i].thread, NULL);
  p11->C_Finalize(NULL_PTR);
}

static unsigned percentile(unsigned *values, size_t count, unsigned percent) {
  qsort(values, count, sizeof *values, by_value);
  return values[count * percent / 100 < count ? count * percent / 100 : count - 1];
}

static void report(int workers) {
  const size_t total = (size_t)workers * (size_t)iterations;
  static unsigned connects[MAX_WORKERS];
  long long start = results[0].start, end = results[0].end;
  for (int i = 0; i < workers; i++) {
    if (results[i].start < start) start = results[i].start;
    if (results[i].end > end) end = results[i].end;
    connects[i] = (unsigned)(results[i].connect / 1000);
  }
  const unsigned median = percentile(samples, total, 50), late = percentile(samples, total, 99);
  printf("{\"medianNs\":%u,\"p99Ns\":%u,\"perSecond\":%.0f,\"connectMedianUs\":%u,\"connectP99Us\":%u}\n", median, late,
         (double)total * 1e9 / (double)(end - start), percentile(connects, (size_t)workers, 50),
         percentile(connects, (size_t)workers, 99));
}

static void *shared(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) exit(1);
  return memory;
}

/*
 * --- short processes -----------------------------------------------------------------------------
 */

static const char *short_label = "bench of short processes";

static CK_OBJECT_HANDLE find_short(void) {
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_LABEL, (void *)short_label, strlen(short_label)}};
  CK_OBJECT_HANDLE found = 0;
  return find(template, COUNT(template), &found, 1) == 1 ? found : 0;
}

/* ECB, because a peer carries nothing else. */
static void decrypt_block(CK_OBJECT_HANDLE key) {
  CK_MECHANISM mechanism = {CKM_AES_ECB, NULL_PTR, 0};
  CK_BYTE out[sizeof block];
  CK_ULONG length = sizeof out;
  must(p11->C_DecryptInit(session, &mechanism, key), "C_DecryptInit");
  must(p11->C_Decrypt(session, block, sizeof block, out, &length), "C_Decrypt");
}

/* A successful child; the library was never loaded in the parent. */
static void in_child(const char *library, const char *pin, void (*work)(void)) {
  const pid_t pid = fork();
  int status = 0;
  if (pid == 0) {
    open_library(library);
    open_session(pin);
    work();
    p11->C_Finalize(NULL_PTR);
    exit(0);
  }
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) exit(1);
}

static void make_short(void) {
  if (find_short() == 0) generate(short_label, CK_TRUE);
}

static void use_short(void) { decrypt_block(find_short()); }

static void measure_short_processes(const char *library, const char *pin, int count) {
  unsigned *lives = shared(sizeof *lives * (size_t)count);
  long long all = 0;
  in_child(library, pin, make_short);
  for (int i = 0; i < count; i++) {
    const long long before = now_ns();
    in_child(library, pin, use_short);
    const long long life = now_ns() - before;
    all += life;
    lives[i] = life > 0xffffffffLL ? 0xffffffffu : (unsigned)life;
  }
  const unsigned median = percentile(lives, (size_t)count, 50), late = percentile(lives, (size_t)count, 99);
  printf("{\"medianNs\":%u,\"p99Ns\":%u,\"perSecond\":%.0f,\"connectMedianUs\":%u,\"connectP99Us\":%u}\n", median, late,
         (double)count * 1e9 / (double)all, median / 1000, late / 1000);
}

/*
 * --- the floor -----------------------------------------------------------------------------------
 */

static unsigned median_of_round_trips(int count, void (*ask)(int), void (*answer)(int)) {
  unsigned *times = shared(sizeof *times * (size_t)count);
  const pid_t other = fork();
  if (other < 0) exit(1);
  if (other == 0) {
    for (int i = 1; i <= count; i++) answer(i);
    _exit(0);
  }
  for (int i = 1; i <= count; i++) {
    const long long before = now_ns();
    ask(i);
    times[i - 1] = (unsigned)(now_ns() - before);
  }
  waitpid(other, NULL, 0);
  return percentile(times, (size_t)count, 50);
}

static int pair[2];
static _Atomic int *asked, *answered;

static void pass(int fd, bool first) {
  char bytes[100] = {0};
  if (first && write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) exit(1);
  if (read(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) exit(1);
  if (!first && write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) exit(1);
}
static void ask_socket(int i) { (void)i, pass(pair[0], true); }
static void answer_socket(int i) { (void)i, pass(pair[1], false); }
static void ask_memory(int i) {
  *asked = i;
  while (*answered != i) sched_yield();
}
static void answer_memory(int i) {
  while (*asked != i) sched_yield();
  *answered = i;
}

static int report_floor(int count) {
  asked = shared(4096);
  answered = asked + 64;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  const unsigned through_socket = median_of_round_trips(count, ask_socket, answer_socket);
  const unsigned through_memory = median_of_round_trips(count, ask_memory, answer_memory);
  printf("{\"socketNs\":%u,\"memoryNs\":%u}\n", through_socket, through_memory);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "floor") == 0 && atoi(argv[2]) > 0) return report_floor(atoi(argv[2]));
  if (argc < 6) {
    fprintf(stderr, "usage: pkcs11-driver <library> <scenario>[-strict] <iterations> <processes> <threads> [pin]\n");
    return 2;
  }
  char name[64];
  snprintf(name, sizeof name, "%s", argv[2]);
  char *suffix = strstr(name, "-strict");
  strict = suffix != NULL;
  if (strict) *suffix = 0;
  for (size_t i = 0; i < COUNT(scenarios); i++)
    if (strcmp(scenarios[i].name, name) == 0) scenario = &scenarios[i];
  iterations = atoi(argv[3]);
  if (strcmp(name, "new-process") == 0 && iterations > 0) {
    measure_short_processes(argv[1], argc > 6 ? argv[6] : "1234", iterations);
    return 0;
  }
  const int processes = atoi(argv[4]), threads = atoi(argv[5]);
  if (scenario == NULL || iterations < 1 || processes < 1 || threads < 1 || processes > MAX_WORKERS || threads > MAX_WORKERS ||
      processes * threads > MAX_WORKERS) {
    fprintf(stderr, "unknown scenario or a count out of range\n");
    return 2;
  }
  results = shared(sizeof *results * MAX_WORKERS);
  samples = shared(sizeof *samples * (size_t)iterations * (size_t)(processes * threads));
  if (pipe(ready) != 0 || pipe(go) != 0) return 1;
  struct sigaction action = {.sa_handler = child_died, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);

  /* One after the other until ready: some peers fail when several processes log in at once. */
  for (int i = 0; i < processes; i++) {
    pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      run_process(argv[1], argc > 6 ? argv[6] : "1234", i * threads, threads);
      _exit(0);
    }
    for (int j = 0; j < threads; j++) {
      char byte;
      if (read(ready[0], &byte, 1) != 1) return 1;
    }
  }
  for (int i = 0; i < processes * threads; i++)
    if (write(go[1], "g", 1) != 1) return 1;

  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  while (finished < processes) sigsuspend(&before);
  report(processes * threads);
  return 0;
}
