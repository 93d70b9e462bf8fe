/*
 * Measures one PKCS#11 library from the outside: dlopen, no linking, so that any library can be the peer.
 *
 * One run is one scenario: every process opens a session of its own, waits until all are ready, repeats the scenario's
 * calls and reports the median and the total. The output is one JSON line. Nothing here asserts a speed.
 *
 * Usage: pkcs11-driver <library> <scenario> <iterations> <processes> [pin] [label]
 */
#include <dlfcn.h>
#include <pkcs11.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 512
#define COUNT(array) (sizeof(array) / sizeof *(array))

static CK_FUNCTION_LIST_PTR p11;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;
static CK_BYTE block[48];
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

static CK_OBJECT_HANDLE generate(const char *label, CK_BBOOL on_token) {
  CK_BBOOL yes = CK_TRUE;
  CK_OBJECT_CLASS class = CKO_SECRET_KEY;
  CK_KEY_TYPE type = CKK_AES;
  CK_ULONG length = 32;
  CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL_PTR, 0};
  CK_ATTRIBUTE template[] = {
      {CKA_CLASS, &class, sizeof class},        {CKA_KEY_TYPE, &type, sizeof type},
      {CKA_TOKEN, &on_token, sizeof on_token},  {CKA_ENCRYPT, &yes, sizeof yes},
      {CKA_DECRYPT, &yes, sizeof yes},          {CKA_LABEL, (void *)label, strlen(label)},
      {CKA_VALUE_LEN, &length, sizeof length},
  };
  CK_OBJECT_HANDLE made = 0;
  must(p11->C_GenerateKey(session, &mechanism, template, COUNT(template), &made), "C_GenerateKey");
  return made;
}

static CK_ULONG find(CK_OBJECT_HANDLE *found, CK_ULONG capacity) {
  CK_ATTRIBUTE template[] = {{CKA_LABEL, (void *)wanted_label, strlen(wanted_label)}};
  CK_ULONG count = 0;
  must(p11->C_FindObjectsInit(session, template, COUNT(template)), "C_FindObjectsInit");
  must(p11->C_FindObjects(session, found, capacity, &count), "C_FindObjects");
  must(p11->C_FindObjectsFinal(session), "C_FindObjectsFinal");
  return count;
}

static void encrypt_with(CK_MECHANISM_TYPE type) {
  CK_BYTE iv[16] = {0}, out[64];
  CK_ULONG length = sizeof out;
  int bare = type == CKM_AES_ECB;
  CK_MECHANISM mechanism = {type, bare ? NULL_PTR : iv, bare ? 0 : sizeof iv};
  must(p11->C_EncryptInit(session, &mechanism, key), "C_EncryptInit");
  must(p11->C_Encrypt(session, block, sizeof block, out, &length), "C_Encrypt");
}

static void run_ecb(void) { encrypt_with(CKM_AES_ECB); }
static void run_cbc(void) { encrypt_with(CKM_AES_CBC); }

static void run_random(void) {
  CK_BYTE out[32];
  must(p11->C_GenerateRandom(session, out, sizeof out), "C_GenerateRandom");
}

static void run_attribute(void) {
  CK_BYTE label[64];
  CK_ATTRIBUTE template[] = {{CKA_LABEL, label, sizeof label}};
  must(p11->C_GetAttributeValue(session, key, template, COUNT(template)), "C_GetAttributeValue");
}

static void run_find(void) {
  CK_OBJECT_HANDLE found[4];
  CK_ULONG count = find(found, COUNT(found));
  if (count != 1) {
    fprintf(stderr, "found %lu objects instead of 1\n", (unsigned long)count);
    exit(1);
  }
}

static void run_generate(void) { must(p11->C_DestroyObject(session, generate("one of many", CK_FALSE)), "C_DestroyObject"); }

static void prepare_key(void) { key = generate("bench", CK_FALSE); }

static void prepare_thousand(void) {
  char label[32];
  for (int i = 0; i < 1000; i++) {
    snprintf(label, sizeof label, "bench %d", i);
    key = generate(label, CK_FALSE);
  }
}

static void prepare_token(void) {
  if (find(&key, 1) == 0) key = generate(wanted_label, CK_TRUE);
}

static const struct scenario {
  const char *name;
  void (*prepare)(void);
  void (*run)(void);
} scenarios[] = {
    {"ecb", prepare_key, run_ecb},        {"cbc", prepare_key, run_cbc},
    {"random", prepare_key, run_random},  {"attribute", prepare_key, run_attribute},
    {"find", prepare_thousand, run_find}, {"generate", prepare_key, run_generate},
    {"token-cbc", prepare_token, run_cbc},
};

struct result {
  long long median;
  long long start;
  long long end;
};

static int by_value(const void *a, const void *b) {
  long long left = *(const long long *)a, right = *(const long long *)b;
  return (left > right) - (left < right);
}

static void open_session(const char *library, const char *pin) {
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
  must(p11->C_OpenSession(slots[0], CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL_PTR, NULL_PTR, &session), "C_OpenSession");
  must(p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR)pin, strlen(pin)), "C_Login");
}

static void measure(const struct scenario *scenario, int iterations, int ready, int go, struct result *result) {
  scenario->prepare();
  for (int i = 0; i < iterations / 10 + 1; i++) scenario->run();
  long long *samples = calloc((size_t)iterations, sizeof *samples);
  char byte = 'r';
  if (samples == NULL || write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1) exit(1);
  result->start = now_ns();
  long long before = result->start;
  for (int i = 0; i < iterations; i++) {
    scenario->run();
    long long after = now_ns();
    samples[i] = after - before;
    before = after;
  }
  result->end = before;
  qsort(samples, (size_t)iterations, sizeof *samples, by_value);
  result->median = samples[iterations / 2];
  free(samples);
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

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: pkcs11-driver <library> <scenario> <iterations> <processes> [pin] [label]\n");
    return 2;
  }
  const struct scenario *scenario = NULL;
  for (size_t i = 0; i < COUNT(scenarios); i++)
    if (strcmp(scenarios[i].name, argv[2]) == 0) scenario = &scenarios[i];
  int iterations = atoi(argv[3]), processes = atoi(argv[4]);
  if (scenario == NULL || iterations < 1 || processes < 1 || processes > MAX_PROCESSES) {
    fprintf(stderr, "unknown scenario or a count out of range\n");
    return 2;
  }
  if (argc > 6) wanted_label = argv[6];
  struct result *results = mmap(NULL, sizeof *results * (size_t)processes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ready[2], go[2];
  if (results == MAP_FAILED || pipe(ready) != 0 || pipe(go) != 0) return 1;
  struct sigaction action = {.sa_handler = child_died, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);

  /* One after the other until ready: some peers fail when several processes log in at once. */
  for (int i = 0; i < processes; i++) {
    pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      open_session(argv[1], argc > 5 ? argv[5] : "1234");
      measure(scenario, iterations, ready[1], go[0], &results[i]);
      p11->C_Finalize(NULL_PTR);
      _exit(0);
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1) return 1;
  }
  for (int i = 0; i < processes; i++)
    if (write(go[1], "g", 1) != 1) return 1;

  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  while (finished < processes) sigsuspend(&before);

  long long start = results[0].start, end = results[0].end, medians[MAX_PROCESSES];
  for (int i = 0; i < processes; i++) {
    if (results[i].start < start) start = results[i].start;
    if (results[i].end > end) end = results[i].end;
    medians[i] = results[i].median;
  }
  qsort(medians, (size_t)processes, sizeof *medians, by_value);
  printf("{\"medianNs\":%lld,\"perSecond\":%.0f}\n", medians[processes / 2],
         (double)iterations * processes * 1e9 / (double)(end - start));
  return 0;
}
