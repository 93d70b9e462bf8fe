/*
 * The differential stress test: the threads of one process use the library at random, and each
 * result is compared with what OpenSSL computes from the same data and key in this process
 * (reference.h).
 *
 * Usage: stress <library> <seed> <threads> <largest message in bytes>
 *
 * Commands on standard input, a byte each: 's' (storm) before the test disturbs the agent, 'c'
 * (calm) when the agent works again; the end of the input ends the process. In calm weather each
 * call must return exactly what the standard says. In a storm a call may also fail with what the
 * library documents for a lost agent. A wrong byte is a finding in any weather.
 *
 * Standard output: {"jobs":N,"least":M,"seen":B,"mechanisms":K} now and then: N jobs in all, at
 * least M attempts by each thread, B when every thread has seen the last command, K mechanisms
 * used; and one line {"report":...} at the end.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

CK_FUNCTION_LIST_3_0 *p11;
CK_SLOT_ID slot;
CK_ULONG largest;
static struct worker workers[MOST_THREADS];
static int threads;
static atomic_bool stopping;
static atomic_uint command; /* counts commands; odd: storm */

/**
 * How often each job is done, of the sum of all. Making an RSA pair takes half a second of a CPU.
 */
static const struct job {
  bool (*run)(struct worker *);
  unsigned weight;
} jobs[] = {
    {ciphers_job, 240},   {messages_job, 40},    {dual_job, 40},       {digests_job, 70},        {macs_job, 100}, {random_job, 30},
    {sessions_job, 30},   {objects_job, 30},     {generation_job, 60}, {hkdf_job, 40},           {counter_kdf_job, 40}, {encryption_kdf_job, 30},
    {wrapping_job, 60},   {curves_job, 100},     {curve_pair_job, 20}, {rsa_job, 80},            {rsa_pair_job, 3},     {token_key_job, 10},
};

/* Library and agent spin, and so use the lane, as long as calls are short. */
static const struct job short_jobs[] = {{ciphers_job, 4}, {digests_job, 2}, {macs_job, 2}, {random_job, 1}, {sessions_job, 1}};

static bool run_one_of(struct worker *w, const struct job *list, size_t count) {
  CK_ULONG sum = 0;
  CK_ULONG chosen;
  size_t i;

  for (i = 0; i < count; i++) sum += list[i].weight;
  chosen = below(w, sum);
  for (i = 0; chosen >= list[i].weight; i++) chosen -= list[i].weight;
  return list[i].run(w);
}
static bool run_job(struct worker *w) {
  if (weather_now() == FEW) return run_one_of(w, short_jobs, COUNT(short_jobs));
  return run_one_of(w, jobs, COUNT(jobs));
}

/** A fresh session without state from earlier failures. */
static bool renew(struct worker *w) {
  const CK_SESSION_HANDLE old = w->session;

  w->job = "renewal";
  w->size = 0;
  forget_keys(w);
  w->session = 0;
  if (old != 0) TRY(C_CloseSession, old);
  TRY(C_OpenSession, slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &w->session);
  return true;
}

static void *work(void *argument) {
  struct worker *w = argument;
  bool well = false;

  while (!stopping) {
    const unsigned latest = command;
    if (latest != w->command) {
      /* The calls that clear up after a storm may still meet the agent's end. */
      w->storm = true;
      well = renew(w);
      if (!well) well = renew(w);
      w->storm = latest % 2 != 0;
      w->command = latest;
    }
    if (weather_now() == FEW && w - workers >= few_threads()) {
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
      continue;
    }
    if (!well) well = renew(w);
    if (well) well = run_job(w);
    if (well) atomic_fetch_add(&w->jobs, 1);
    if (well && once_in(w, 200)) well = renew(w);
    atomic_fetch_add(&w->attempts, 1);
  }
  return NULL;
}

/**
 * Answers that came through the lane: the agent counts them in the memory that it shares with this
 * process (provider/PROTOCOL.md, "Lane").
 */
static unsigned long lane_answers(void) {
  enum { ANSWERED = 64 };
  static unsigned long sum;
  static uintptr_t mapped;
  static uint32_t counted;
  char line[512];
  unsigned long long start = 0;
  uint32_t answered = 0;
  struct iovec here = {&answered, sizeof answered};
  struct iovec there;
  FILE *maps = fopen("/proc/self/maps", "re");

  while (maps != NULL && fgets(line, sizeof line, maps) != NULL && start == 0)
    if (strstr(line, "/memfd:dke-lane") == NULL || sscanf(line, "%llx-", &start) != 1) start = 0;
  if (maps != NULL) fclose(maps);
  there = (struct iovec){(void *)(uintptr_t)(start + ANSWERED), sizeof answered};
  /* A system call reads it, because another thread may give the memory back in the meantime. */
  if (start == 0 || process_vm_readv(getpid(), &here, 1, &there, 1, 0) != sizeof answered) return sum;
  if (start != mapped || answered < counted) counted = 0;
  sum += answered - counted;
  mapped = (uintptr_t)start;
  counted = answered;
  return sum;
}

static void progress(void) {
  long all = 0;
  long least = workers[0].attempts;
  bool seen = true;

  for (int i = 0; i < threads; i++) {
    const long attempts = workers[i].attempts;
    all += workers[i].jobs;
    if (attempts < least) least = attempts;
    if (workers[i].command != command) seen = false;
  }
  printf("{\"jobs\":%ld,\"least\":%ld,\"seen\":%s,\"mechanisms\":%u}\n", all, least, seen ? "true" : "false", covered_in_all());
  fflush(stdout);
}

/** The lists of all threads, one after the other: the reader adds up duplicate names. */
static void report(void) {
  const char *comma = "";
  long done = 0;

  for (int i = 0; i < threads; i++) done += workers[i].jobs;
  printf("{\"report\":{\"jobs\":%ld,\"bytes\":%lu,\"wrongResults\":%ld,\"firstWrongResult\":\"%s\",\"wrongReturns\":%ld,\"firstWrongReturn\":\"%s\","
         "\"lostKeys\":%ld,\"laneAnswers\":%lu,\"calls\":[",
         done, (unsigned long)bytes_compared, findings.wrong_results, findings.first_wrong_result, findings.wrong_returns,
         findings.first_wrong_return, findings.lost_keys, lane_answers());
  for (int i = 0; i < threads; i++)
    for (const struct count *count = workers[i].counts; count < workers[i].counts + MOST_COUNTS && count->times != 0; count++) {
      printf("%s[\"%s\",%lu,%s,%ld]", comma, count->call, count->rv, count->storm ? "true" : "false", count->times);
      comma = ",";
    }
  printf("],\"mechanisms\":[");
  comma = "";
  for (int i = 0; i < threads; i++)
    for (const struct mechanism_count *count = workers[i].mechanisms; count < workers[i].mechanisms + MOST_MECHANISMS && count->times != 0; count++) {
      printf("%s[%lu,%ld]", comma, count->type, count->times);
      comma = ",";
    }
  printf("]}}\n");
}

static void fail(const char *what, CK_RV rv) {
  fprintf(stderr, "%s: 0x%lx\n", what, rv);
  _exit(1);
}

int main(int argc, char **argv) {
  CK_RV (*get_interface)(CK_UTF8CHAR_PTR, CK_VERSION_PTR, CK_INTERFACE_PTR_PTR, CK_FLAGS);
  CK_VERSION version = {3, 0};
  CK_INTERFACE_PTR interface;
  CK_ULONG count = 1;
  CK_SESSION_HANDLE first = 0;
  CK_RV rv;
  void *symbol;
  void *loaded;

  if (argc != 5) return 2;
  threads = atoi(argv[3]);
  largest = strtoul(argv[4], NULL, 10);
  if (threads < 1 || threads > MOST_THREADS || largest < 1024) return 2;
  loaded = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  symbol = loaded == NULL ? NULL : dlsym(loaded, "C_GetInterface");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  memcpy(&get_interface, &symbol, sizeof get_interface);
  if ((rv = get_interface((CK_UTF8CHAR_PTR) "PKCS 11", &version, &interface, 0)) != CKR_OK) fail("C_GetInterface", rv);
  p11 = interface->pFunctionList;
  prepare_pairs();
  if ((rv = p11->C_Initialize(&(CK_C_INITIALIZE_ARGS){.flags = CKF_OS_LOCKING_OK})) != CKR_OK) fail("C_Initialize", rv);
  if ((rv = p11->C_GetSlotList(CK_TRUE, &slot, &count)) != CKR_OK) fail("C_GetSlotList", rv);
  if ((rv = p11->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &first)) != CKR_OK) fail("C_OpenSession", rv);
  if ((rv = p11->C_Login(first, CKU_USER, (CK_UTF8CHAR_PTR) "", 0)) != CKR_OK) fail("C_Login", rv);

  for (int i = 0; i < threads; i++) {
    struct worker *w = &workers[i];
    w->random[0] = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    w->random[1] = (uint64_t)i * 0xbf58476d1ce4e5b9u + 1;
    for (int j = 0; j < 16; j++) draw(w);
    w->plain = malloc(largest + OVERHEAD + GUARD);
    w->expected = malloc(largest + OVERHEAD + GUARD);
    w->got = malloc(largest + OVERHEAD + GUARD);
    if (w->plain == NULL || w->expected == NULL || w->got == NULL) fail("memory", 0);
    if (pthread_create(&w->thread, NULL, work, w) != 0) fail("a thread", 0);
  }
  while (!stopping) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    char byte;
    progress();
    lane_answers();
    if (poll(&input, 1, 200) <= 0) continue;
    if (read(0, &byte, 1) <= 0) stopping = true;
    else if ((byte == 's') != (command % 2 != 0)) command++;
  }
  for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
  lane_answers();
  rv = p11->C_Finalize(NULL);
  if (rv != CKR_OK && rv != CKR_DEVICE_REMOVED) fail("C_Finalize", rv);
  report();
  return 0;
}
