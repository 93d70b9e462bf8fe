/*
 * One connection, many threads, and more bytes than a socket holds: with the test in the agent's
 * place. The lane: lane-test.c.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../tests.h"
#include "connection/transport.h"
#include "connection/wire.h"
#include "host/descriptor.h"
#include "host/process.h"

enum {
  LARGE = 600 * 1024, /* more than both directions of a socket hold */
  HIGH_WATER = 64 * 1024,
  LONG = 20000000 /* microseconds: a deadline that only a deadlock reaches */
};

/**
 * Answers each frame with the frame itself. While more than HIGH_WATER bytes of answers wait to be
 * sent, it reads nothing: so does the agent.
 */
struct echo {
  int socket;
  int library; /* the library's end; it closes it */
  atomic_bool paused; /* neither reads nor sends */
  pthread_t thread;
};

static size_t frame_length(const struct buffer *input, size_t from) {
  size_t whole;

  if (input->length - from < TRANSPORT_HEADER) return 0;
  whole = TRANSPORT_HEADER + buffer_peek_u32(input->data + from + 8);
  return input->length - from < whole ? 0 : whole;
}

static void drop_front(struct buffer *buffer, size_t length) {
  memmove(buffer->data, buffer->data + length, buffer->length - length);
  buffer->length -= length;
}

static void *echo(void *data) {
  struct echo *agent = data;
  static unsigned char bytes[32 * 1024];
  struct buffer input;
  struct buffer output;

  buffer_open(&input);
  buffer_open(&output);
  for (;;) {
    struct pollfd poller = {.fd = agent->socket};
    size_t length;
    ssize_t moved;

    if (agent->paused) {
      sched_yield();
      continue;
    }
    while (output.length <= HIGH_WATER && (length = frame_length(&input, 0)) > 0) {
      buffer_put_raw(&output, input.data, length);
      drop_front(&input, length);
    }
    if (output.length <= HIGH_WATER) poller.events |= POLLIN;
    if (output.length > 0) poller.events |= POLLOUT;
    poll(&poller, 1, -1);
    if (agent->paused) continue;
    if ((poller.revents & POLLOUT) != 0) {
      moved = send(agent->socket, output.data, output.length, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (moved > 0) drop_front(&output, (size_t)moved);
    }
    if ((poller.revents & (POLLIN | POLLHUP)) == 0) continue;
    moved = recv(agent->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (moved == 0 || (poller.revents & POLLHUP) != 0) break;
    if (moved > 0) buffer_put_raw(&input, bytes, (size_t)moved);
  }
  buffer_close(&input);
  buffer_close(&output);
  return NULL;
}

static struct echo agent;

static int start(void **state) {
  int pair[2];

  (void)state;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return -1;
  agent = (struct echo){.socket = pair[1]};
  transport_adopt(descriptor_keep(pair[0]), NULL, 20);
  return pthread_create(&agent.thread, NULL, echo, &agent);
}

static int stop(void **state) {
  (void)state;
  agent.paused = false;
  transport_close();
  pthread_join(agent.thread, NULL);
  close(agent.socket);
  return 0;
}

static void put_frame(struct buffer *to, unsigned char filling, size_t length) {
  static const unsigned char header[TRANSPORT_HEADER];
  unsigned char *body;

  buffer_put_raw(to, header, sizeof header);
  buffer_poke_u32(to->data + to->length - 4, (uint32_t)length);
  body = buffer_extend(to, length);
  if (body == NULL) abort();
  memset(body, filling, length);
}

/** Sends so many bytes and expects them back. */
static enum outcome call(unsigned char filling, size_t length, struct transport_ahead *ahead, int64_t limit) {
  struct buffer request;
  struct buffer reply;
  enum outcome outcome;

  buffer_open(&request);
  buffer_open(&reply);
  put_frame(&request, filling, length);
  outcome = transport_exchange(&request, ahead, &reply, transport_epoch(), process_now() + limit, false);
  if (outcome == EXCHANGED &&
      (reply.length != length || memcmp(reply.data, request.data + TRANSPORT_HEADER, length) != 0))
    outcome = LOST;
  buffer_close(&request);
  buffer_close(&reply);
  return outcome;
}

/** A frame whose reply nothing waits for. */
static bool take_large(void *context, struct buffer *frames) {
  (void)context;
  put_frame(frames, 7, LARGE);
  return false;
}

#define WITH(test) TEST_WITH(test, start, stop)

WITH(a_sender_reads_while_no_other_thread_does) {
  struct transport_ahead ahead = {.take = take_large};

  /*
   * The answer to the frame ahead fills the socket and stops the agent while the call itself is
   * still being sent.
   */
  buffer_open(&ahead.frames);
  assert_int_equal(call(1, LARGE, &ahead, LONG), EXCHANGED);
  buffer_close(&ahead.frames);
  assert_int_equal(call(2, LARGE, NULL, LONG), EXCHANGED);
}

/** Two frames, but the memory ends in the header of the second one. */
static bool take_half(void *context, struct buffer *frames) {
  (void)context;
  put_frame(frames, 8, 10);
  buffer_put_u32(frames, 0);
  frames->failed = true;
  return false;
}

WITH(nothing_is_sent_of_what_goes_ahead_when_its_memory_ends_in_the_middle) {
  struct transport_ahead ahead = {.take = take_half};

  buffer_open(&ahead.frames);
  assert_int_equal(call(1, 10, &ahead, LONG), UNSENDABLE);
  buffer_close(&ahead.frames);
  assert_int_equal(call(2, 10, NULL, LONG), EXCHANGED);
}

static void *call_with_large_messages(void *data) {
  const unsigned char filling = (unsigned char)(uintptr_t)data;

  for (int i = 0; i < 25; i++) {
    const enum outcome outcome = call(filling, 400 * 1024 + filling, NULL, LONG);
    if (outcome != EXCHANGED) return (void *)(uintptr_t)(100 + outcome);
  }
  return NULL;
}

WITH(threads_with_large_messages_do_not_block_each_other) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  const uint32_t epoch = transport_epoch();

  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, call_with_large_messages, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_true(transport_is_open());
  assert_int_equal(transport_epoch(), epoch);
}

static atomic_bool writing;

static bool note_writing(void *context, struct buffer *frames) {
  (void)context;
  (void)frames;
  writing = true;
  return false;
}

static void *call_and_fill_the_socket(void *data) {
  struct transport_ahead ahead = {.take = note_writing};

  buffer_open(&ahead.frames);
  *(enum outcome *)data = call(3, LARGE, &ahead, LONG);
  buffer_close(&ahead.frames);
  return NULL;
}

WITH(a_deadline_passes_also_while_another_thread_is_sending) {
  enum outcome outcome = LOST;
  pthread_t thread;

  agent.paused = true;
  assert_int_equal(pthread_create(&thread, NULL, call_and_fill_the_socket, &outcome), 0);
  while (!writing) sched_yield();
  /*
   * The agent continues only after this call has ended, so without its own deadline it would wait
   * for the other one's.
   */
  assert_int_equal(call(4, 10, NULL, 20000), UNSENDABLE);
  agent.paused = false;
  pthread_join(thread, NULL);
  assert_int_equal(outcome, EXCHANGED);
  assert_int_equal(call(5, 10, NULL, LONG), EXCHANGED);
}

static atomic_bool held;
static atomic_bool let_go;

/** Keeps the thread that it interrupts from getting on. */
static void hold(int signal) {
  (void)signal;
  held = true;
  while (!let_go) sched_yield();
}

static void *call_and_lead(void *data) {
  *(enum outcome *)data = call(6, 10, NULL, LONG);
  return NULL;
}

/** Takes both locks when the call leads: a thread that is interrupted then has neither of them. */
static void lock_when_led(struct wire *wire) {
  for (;;) {
    process_lock(&wire->write_lock);
    process_lock(&wire->lock);
    if (wire->led) return;
    process_unlock(&wire->lock);
    process_unlock(&wire->write_lock);
    sched_yield();
  }
}

WITH(a_leader_that_gets_no_cpu_keeps_what_it_reads_with) {
  struct wire *const wire = transport_wire();
  enum outcome outcome = EXCHANGED;
  pthread_t thread;
  int pair[2];
  int adopted;
  int waiting = 0;

  held = let_go = false;
  signal(SIGUSR1, hold);
  agent.paused = true;
  assert_int_equal(pthread_create(&thread, NULL, call_and_lead, &outcome), 0);
  while (waiting == 0) ioctl(agent.socket, FIONREAD, &waiting); /* the call has been sent */
  lock_when_led(wire);
  pthread_kill(thread, SIGUSR1);
  while (!held) sched_yield();
  process_unlock(&wire->lock);
  process_unlock(&wire->write_lock);
  transport_close();
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  adopted = descriptor_keep(pair[0]);
  assert_false(transport_adopt(adopted, NULL, 20));
  let_go = true;
  pthread_join(thread, NULL);
  assert_int_equal(outcome, LOST);
  assert_false(transport_is_open());
  assert_true(transport_adopt(adopted, NULL, 20));
  close(pair[1]);
}

int main(void) { return run_written_tests(NULL, NULL); }
