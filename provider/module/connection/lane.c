/* Memory shared with the agent; see lane.h. */
#include "connection/lane.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/descriptor.h"

/* Seals are of Linux 3.17 and 4.4: newer than the headers that we promise to build with. */
#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#ifndef F_SEAL_SHRINK
#define F_SEAL_SHRINK 0x0002
#endif

/** Each line is written by one side only. */
struct shared {
  struct {
    alignas(64) _Atomic uint32_t joined;
    _Atomic uint32_t asked;
    _Atomic uint32_t asked_length;
    _Atomic uint32_t fetched;
    _Atomic uint32_t listening;
    _Atomic uint32_t spinning;
    _Atomic uint32_t cpu;
  } own;
  struct {
    alignas(64) _Atomic uint32_t answered;
    _Atomic uint32_t answered_length;
    _Atomic uint32_t taken;
    _Atomic uint32_t watching;
    _Atomic uint32_t crowded;
    _Atomic uint32_t bell;
  } agent;
  alignas(4096) unsigned char request[LANE_LARGEST_REQUEST];
  unsigned char answer[LANE_LARGEST_ANSWER];
};
_Static_assert(sizeof(struct shared) == 16384 && offsetof(struct shared, agent) == 64 && offsetof(struct shared, request) == 4096,
               "as in PROTOCOL.md");

struct lane {
  struct shared *shared;
  uint32_t asked;   /* never read back from where the other side could write */
  uint32_t fetched;
  unsigned char answer[LANE_LARGEST_ANSWER];
};

/** Memory that no forked child has: it has nothing to do there. */
static void *map(int number) {
  void *memory;

  descriptor_bar_forks();
  memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  if (memory != MAP_FAILED && madvise(memory, sizeof(struct shared), MADV_DONTFORK) != 0) {
    munmap(memory, sizeof(struct shared));
    memory = MAP_FAILED;
  }
  descriptor_allow_forks();
  return memory;
}

struct lane *lane_join(int fd) {
  struct lane *lane = NULL;
  struct stat status;
  void *memory = MAP_FAILED;
  int number;
  int seals;

  if (fd < 0) return NULL;
  number = descriptor_number(fd);
  seals = fcntl(number, F_GET_SEALS);
  /* Without the seal the memory could vanish under our hands, and with it the host. */
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(number, &status) == 0 &&
      status.st_size == (off_t)sizeof(struct shared))
    memory = map(number);
  descriptor_close(fd);
  if (memory == MAP_FAILED) return NULL;
  lane = calloc(1, sizeof *lane);
  if (lane == NULL) {
    munmap(memory, sizeof(struct shared));
    return NULL;
  }
  /* Messages do not belong in a core dump. */
  madvise(memory, sizeof(struct shared), MADV_DONTDUMP);
  lane->shared = memory;
  atomic_store(&lane->shared->own.spinning, 1);
  atomic_store(&lane->shared->own.joined, 1);
  return lane;
}

void lane_leave(struct lane *lane) {
  if (lane == NULL) return;
  buffer_wipe(lane->shared->request, LANE_LARGEST_REQUEST);
  buffer_wipe(lane->shared->answer, LANE_LARGEST_ANSWER);
  munmap(lane->shared, sizeof(struct shared));
  buffer_wipe(lane->answer, sizeof lane->answer);
  free(lane);
}

bool lane_free(const struct lane *lane, size_t length) {
  return length <= LANE_LARGEST_REQUEST && atomic_load_explicit(&lane->shared->agent.watching, memory_order_relaxed) != 0 &&
         atomic_load_explicit(&lane->shared->agent.taken, memory_order_acquire) == lane->asked;
}

bool lane_ask(struct lane *lane, const struct buffer *ahead, const struct buffer *request) {
  const size_t first = ahead == NULL ? 0 : ahead->length;
  const int cpu = sched_getcpu();

  if (first > 0) memcpy(lane->shared->request, ahead->data, first);
  memcpy(lane->shared->request + first, request->data, request->length);
  atomic_store_explicit(&lane->shared->own.asked_length, (uint32_t)(first + request->length), memory_order_relaxed);
  atomic_store_explicit(&lane->shared->own.cpu, cpu < 0 ? 0 : (uint32_t)cpu + 1, memory_order_relaxed);
  /*
   * Told first, then looked: the agent, when it stops looking, says so first and looks after that.
   * One of us sees the other.
   */
  atomic_store(&lane->shared->own.asked, ++lane->asked);
  return atomic_load(&lane->shared->agent.watching) != 0;
}

bool lane_crowded(const struct lane *lane) {
  return atomic_load_explicit(&lane->shared->agent.crowded, memory_order_relaxed) != 0;
}

void lane_listen(struct lane *lane, enum lane_listening listening) { atomic_store(&lane->shared->own.listening, listening); }

uint32_t lane_bell(const struct lane *lane) { return atomic_load(&lane->shared->agent.bell); }

void lane_sleep(struct lane *lane, uint32_t bell, int64_t microseconds) {
  const struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
  syscall(SYS_futex, &lane->shared->agent.bell, FUTEX_WAIT, bell, &time, NULL, 0);
}

void lane_rouse(struct lane *lane) { syscall(SYS_futex, &lane->shared->agent.bell, FUTEX_WAKE, 1, NULL, NULL, 0); }

void lane_spin(struct lane *lane, bool spinning) {
  atomic_store_explicit(&lane->shared->own.spinning, spinning, memory_order_relaxed);
}

bool lane_answered(const struct lane *lane) { return atomic_load(&lane->shared->agent.answered) != lane->fetched; }

const unsigned char *lane_fetch(struct lane *lane, size_t *length, bool *broken) {
  const uint32_t answered = atomic_load(&lane->shared->agent.answered);
  uint32_t told;

  if (answered == lane->fetched) return NULL;
  told = atomic_load_explicit(&lane->shared->agent.answered_length, memory_order_relaxed);
  if (answered != lane->fetched + 1 || told == 0 || told > LANE_LARGEST_ANSWER) {
    *broken = true;
    return NULL;
  }
  memcpy(lane->answer, lane->shared->answer, told);
  buffer_wipe(lane->shared->answer, told);
  lane->fetched = answered;
  atomic_store_explicit(&lane->shared->own.fetched, answered, memory_order_release);
  *length = told;
  return lane->answer;
}
