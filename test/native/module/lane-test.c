/*
 * The library's side of the lane, with the test in the agent's place: what is accepted as a lane,
 * who uses it when, and what a peer may not do. The agent's side is test/native/core/lane-test.cc.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests.h"
#include "connection/lane.h"
#include "connection/spinning.h"
#include "connection/transport.h"
#include "host/descriptor.h"
#include "host/process.h"

enum { SIZE = 16384 };

static int fd = -1; /* kept by the test; the library gets a copy */
static unsigned char *memory;

static _Atomic uint32_t *word(size_t offset) { return (_Atomic uint32_t *)(memory + offset); }
#define ASKED word(4)
#define ASKED_LENGTH word(8)
#define FETCHED word(12)
#define LISTENING word(16)
#define SPINNING word(20)
#define CPU word(24)
#define ANSWERED word(64)
#define ANSWERED_LENGTH word(68)
#define TAKEN word(72)
#define WATCHING word(76)
#define CROWDED word(80)
#define BELL word(84)

static int make(void **state) {
  (void)state;
  fd = memfd_create("lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, SIZE) != 0) return -1;
  memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? -1 : 0;
}

static int make_sealed(void **state) {
  if (make(state) != 0) return -1;
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
}

static int drop(void **state) {
  (void)state;
  munmap(memory, SIZE);
  close(fd);
  return 0;
}

static struct lane *join(void) { return lane_join(descriptor_keep(fcntl(fd, F_DUPFD_CLOEXEC, 3))); }

static void answer(const char *text, uint32_t length, uint32_t number) {
  if (length <= LANE_LARGEST_ANSWER) memcpy(memory + 8192, text, length);
  *ANSWERED_LENGTH = length;
  *ANSWERED = number;
}

static void chime(void) {
  ++*BELL;
  if (*LISTENING == LANE_ASLEEP) syscall(SYS_futex, BELL, FUTEX_WAKE, 1, NULL, NULL, 0);
}

#define WITH(test) TEST_WITH(test, make_sealed, drop)

TEST_WITH(memory_that_may_shrink_is_refused, make, drop) {
  assert_null(join());
  assert_null(lane_join(-1));
}

WITH(memory_of_another_size_is_refused) {
  assert_int_equal(ftruncate(fd, SIZE + 4096), 0);
  assert_null(join());
}

WITH(a_request_goes_in_only_while_the_agent_looks_and_has_taken_the_last) {
  struct lane *lane = join();
  struct buffer request;

  assert_non_null(lane);
  buffer_open(&request);
  buffer_put_text(&request, "hello");
  assert_false(lane_free(lane, 5));
  *WATCHING = 1;
  assert_true(lane_free(lane, LANE_LARGEST_REQUEST));
  assert_false(lane_free(lane, LANE_LARGEST_REQUEST + 1));
  assert_true(lane_ask(lane, &request, &request));
  assert_int_equal(*ASKED, 1);
  assert_int_equal(*ASKED_LENGTH, 10);
  assert_memory_equal(memory + 4096, "hellohello", 10);
  assert_false(lane_free(lane, 5));
  *TAKEN = 1;
  assert_true(lane_free(lane, 5));
  *WATCHING = 0;
  assert_false(lane_ask(lane, NULL, &request));
  buffer_close(&request);
  lane_leave(lane);
}

WITH(a_request_tells_from_which_cpu_it_comes) {
  struct lane *lane = join();
  struct buffer request;
  cpu_set_t before;

  buffer_open(&request);
  buffer_put_text(&request, "hello");
  assert_int_equal(*CPU, 0);
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    cpu_set_t one;
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    lane_ask(lane, NULL, &request);
    assert_int_equal(*CPU, cpu + 1);
  }
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  buffer_close(&request);
  lane_leave(lane);
}

WITH(an_answer_is_fetched_once_and_wiped) {
  struct lane *lane = join();
  const unsigned char *got;
  size_t length = 0;
  bool broken = false;

  assert_null(lane_fetch(lane, &length, &broken));
  answer("answer", 6, 1);
  got = lane_fetch(lane, &length, &broken);
  assert_non_null(got);
  assert_int_equal(length, 6);
  assert_memory_equal(got, "answer", 6);
  for (size_t i = 0; i < 6; i++) assert_int_equal(memory[8192 + i], 0);
  assert_null(lane_fetch(lane, &length, &broken));
  assert_false(broken);
  lane_leave(lane);
}

WITH(an_answer_that_breaks_the_rules_is_not_read) {
  static const struct {
    uint32_t length, number;
  } bad[] = {{0, 1}, {LANE_LARGEST_ANSWER + 1, 1}, {UINT32_MAX, 1}, {5, 2}, {5, UINT32_MAX}};

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct lane *lane;
    size_t length = 0;
    bool broken = false;

    *ANSWERED = 0;
    lane = join();
    answer("xxxxx", bad[i].length, bad[i].number);
    assert_null(lane_fetch(lane, &length, &broken));
    assert_true(broken);
    lane_leave(lane);
  }
}

WITH(a_forked_child_does_not_have_it) {
  struct lane *lane = join();
  int status = 0;
  pid_t child;

  child = fork();
  if (child == 0) {
    bool broken;
    size_t length;
    signal(SIGSEGV, SIG_DFL);
    lane_fetch(lane, &length, &broken);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  lane_leave(lane);
}

/*
 * --- the transport -------------------------------------------------------------------------------
 */

struct agent {
  int socket;
  atomic_int through_lane;
  atomic_int through_socket;
  bool break_rules;
  bool when_asleep; /* answers only once the caller sleeps at the lane */
  bool by_socket;   /* even if the caller reads the lane */
  bool hang_up;     /* instead of answering */
};

/** Echoes each request on the path on which it arrived, until the other side closes. */
static void *serve(void *data) {
  struct agent *agent = data;
  unsigned char frame[256];

  for (;;) {
    ssize_t got = recv(agent->socket, frame, sizeof frame, MSG_DONTWAIT);
    if (got == 0) return NULL;
    if (got > 0) {
      agent->through_socket++;
      if (send(agent->socket, frame, (size_t)got, MSG_NOSIGNAL) != got) return NULL;
    } else if (*ASKED != *TAKEN) {
      agent->through_lane++;
      memcpy(frame, memory + 4096, *ASKED_LENGTH);
      got = (ssize_t)*ASKED_LENGTH;
      *TAKEN = *ASKED;
      while (agent->when_asleep && *LISTENING != LANE_ASLEEP) sched_yield();
      if (agent->hang_up) {
        shutdown(agent->socket, SHUT_RDWR);
        return NULL;
      }
      if (agent->break_rules) answer("", 0, *ANSWERED + 7);
      else if (*LISTENING && !agent->by_socket) answer((const char *)frame, (uint32_t)got, *ANSWERED + 1);
      else if (send(agent->socket, frame, (size_t)got, MSG_NOSIGNAL) != got) return NULL;
      chime();
    } else {
      sched_yield();
    }
  }
}

static enum outcome exchange(const char *text, struct buffer *reply) {
  static const unsigned char header[TRANSPORT_HEADER];
  struct buffer request;
  enum outcome outcome;

  buffer_open(&request);
  buffer_put_raw(&request, header, sizeof header);
  buffer_put_text(&request, text);
  outcome = transport_exchange(&request, NULL, reply, transport_epoch(), process_now() + 10000000, false);
  buffer_close(&request);
  return outcome;
}

static void run(struct agent *agent, void (*body)(struct agent *)) {
  pthread_t thread;
  int pair[2];

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  agent->socket = pair[1];
  assert_int_equal(pthread_create(&thread, NULL, serve, agent), 0);
  transport_adopt(descriptor_keep(pair[0]), join(), 1000000);
  body(agent);
  transport_close();
  pthread_join(thread, NULL);
  close(pair[1]);
}

static void call_both_ways(struct agent *agent) {
  struct buffer reply;

  buffer_open(&reply);
  for (int i = 0; i < 100; i++) {
    *WATCHING = i % 2;
    assert_int_equal(exchange("text", &reply), EXCHANGED);
    assert_int_equal(reply.length, 4);
    assert_memory_equal(reply.data, "text", 4);
    buffer_reset(&reply);
  }
  assert_int_equal(agent->through_lane, 50);
  assert_int_equal(agent->through_socket, 50);
  assert_int_equal(*LISTENING, 0);
  buffer_close(&reply);
}

WITH(a_call_takes_the_lane_while_the_agent_looks_and_the_socket_otherwise) {
  struct agent agent = {0};
  run(&agent, call_both_ways);
}

static unsigned taken;

/** Two frames, one at a time. */
static bool take_two(void *context, struct buffer *frames) {
  static const unsigned char frame[TRANSPORT_HEADER];

  (void)context;
  buffer_put_raw(frames, frame, sizeof frame);
  return ++taken == 1;
}

static void call_behind_others(struct agent *agent) {
  static const unsigned char header[TRANSPORT_HEADER];
  struct transport_ahead ahead = {.take = take_two};
  struct buffer request;
  struct buffer reply;

  taken = 0;
  *WATCHING = 1;
  buffer_open(&request);
  buffer_open(&reply);
  buffer_open(&ahead.frames);
  buffer_put_raw(&request, header, sizeof header);
  assert_int_equal(transport_exchange(&request, &ahead, &reply, transport_epoch(), process_now() + 10000000, false), EXCHANGED);
  assert_int_equal(taken, 2);
  assert_int_equal(agent->through_lane, 0);
  /* Its answer shows that the agent has read everything in the socket. */
  assert_int_equal(exchange("text", &reply), EXCHANGED);
  assert_int_equal(agent->through_lane, 1);
  buffer_close(&ahead.frames);
  buffer_close(&request);
  buffer_close(&reply);
}

WITH(a_call_does_not_overtake_what_went_ahead_of_it_through_the_socket) {
  struct agent agent = {0};
  run(&agent, call_behind_others);
}

static void call_until_sleeping_was_tried(struct agent *agent) {
  enum { PHASE = SPINNING_FIRST + SPINNING_CALLS };
  struct buffer reply;

  (void)agent;
  buffer_open(&reply);
  *WATCHING = 1;
  for (int calls = 0; calls < SPINNING_PHASES * PHASE; calls++) {
    assert_int_equal(*SPINNING, calls / PHASE % 2 == 0);
    assert_int_equal(exchange("text", &reply), EXCHANGED);
  }
  /* The faster way is kept, and then spinning is tried first again. */
  for (int calls = 0; calls < SPINNING_KEPT; calls++) assert_int_equal(exchange("text", &reply), EXCHANGED);
  assert_int_equal(*SPINNING, 1);
  buffer_close(&reply);
}

WITH(spinning_and_sleeping_are_tried_in_turn) {
  struct agent agent = {0};
  run(&agent, call_until_sleeping_was_tried);
}

static void call_among_many(struct agent *agent) {
  struct buffer reply;

  buffer_open(&reply);
  *WATCHING = *CROWDED = 1;
  for (int i = 0; i < 100; i++) {
    assert_int_equal(exchange("text", &reply), EXCHANGED);
    assert_int_equal(reply.length, 4);
    assert_int_equal(*LISTENING, LANE_DEAF);
  }
  assert_int_equal(agent->through_lane, 100);
  buffer_close(&reply);
}

WITH(among_many_callers_one_sleeps_at_the_lane_and_is_woken_there) {
  struct agent agent = {.when_asleep = true};
  run(&agent, call_among_many);
}

WITH(who_sleeps_at_the_lane_is_woken_by_what_comes_through_the_socket) {
  struct agent agent = {.when_asleep = true, .by_socket = true};
  run(&agent, call_among_many);
}

static void call_and_be_left(struct agent *agent) {
  struct buffer reply;

  (void)agent;
  buffer_open(&reply);
  *WATCHING = *CROWDED = 1;
  assert_int_equal(exchange("text", &reply), LOST);
  assert_false(transport_is_open());
  buffer_close(&reply);
}

WITH(who_sleeps_at_the_lane_notices_an_agent_that_goes_without_a_word) {
  struct agent agent = {.when_asleep = true, .hang_up = true};
  run(&agent, call_and_be_left);
}

/**
 * The agent of two callers: the first one's request waits until the second one asks, and is
 * answered through the socket just before that one's; from then on the second one is answered
 * through the lane, as fast as it asks.
 */
struct crossed {
  int socket;
  _Atomic bool over;
  unsigned overtaken; /* answers that the leader fetched from the lane while its own was in the socket */
};

static bool unread(const struct crossed *agent) {
  int bytes = 0;
  return ioctl(agent->socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

static void *serve_crossed(void *data) {
  struct crossed *agent = data;
  unsigned char first[256];
  unsigned char frame[256];
  uint32_t length;
  ssize_t got;

  while (*ASKED == *TAKEN) sched_yield();
  length = *ASKED_LENGTH;
  memcpy(first, memory + 4096, length);
  *TAKEN = *ASKED;
  while (*LISTENING != LANE_ASLEEP) sched_yield();
  while ((got = recv(agent->socket, frame, sizeof frame, 0)) > 0) {
    if (length > 0) {
      if (send(agent->socket, first, length, MSG_NOSIGNAL) != (ssize_t)length) return NULL;
      length = 0;
      ++*BELL; /* and the lane's answer wakes for both */
    }
    if (*LISTENING && *FETCHED == *ANSWERED) {
      answer((const char *)frame, (uint32_t)got, *ANSWERED + 1);
      chime();
      while (*FETCHED != *ANSWERED && !agent->over) sched_yield();
      if (unread(agent)) agent->overtaken++;
    } else if (send(agent->socket, frame, (size_t)got, MSG_NOSIGNAL) != got) {
      return NULL;
    }
  }
  return NULL;
}

static void *ask_again_and_again(void *data) {
  struct crossed *agent = data;
  struct buffer reply;
  enum outcome outcome = EXCHANGED;

  /* After the call that waits in the lane, so it goes through the socket and does not lead. */
  while (*TAKEN == 0) sched_yield();
  buffer_open(&reply);
  while (!agent->over && outcome == EXCHANGED) outcome = exchange("again", &reply);
  buffer_close(&reply);
  return outcome == EXCHANGED ? NULL : data;
}

WITH(who_sleeps_at_the_lane_hears_the_socket_however_fast_others_are_answered) {
  struct crossed agent = {.socket = -1};
  pthread_t server;
  pthread_t other;
  struct buffer reply;
  void *failed;
  int pair[2];

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  agent.socket = pair[1];
  transport_adopt(descriptor_keep(pair[0]), join(), 1000000);
  *WATCHING = *CROWDED = 1;
  assert_int_equal(pthread_create(&server, NULL, serve_crossed, &agent), 0);
  assert_int_equal(pthread_create(&other, NULL, ask_again_and_again, &agent), 0);
  buffer_open(&reply);
  assert_int_equal(exchange("first", &reply), EXCHANGED);
  agent.over = true;
  assert_memory_equal(reply.data, "first", 5);
  pthread_join(other, &failed);
  assert_null(failed);
  transport_close();
  pthread_join(server, NULL);
  close(pair[1]);
  buffer_close(&reply);
  assert_in_range(agent.overtaken, 0, 16);
}

static void call_and_be_cheated(struct agent *agent) {
  struct buffer reply;

  (void)agent;
  buffer_open(&reply);
  *WATCHING = 1;
  assert_int_equal(exchange("text", &reply), LOST);
  assert_false(transport_is_open());
  buffer_close(&reply);
}

WITH(a_broken_lane_is_a_lost_connection) {
  struct agent agent = {.break_rules = true};
  run(&agent, call_and_be_cheated);
}

int main(void) { return run_written_tests(NULL, NULL); }
