/*
 * How the library distinguishes this process from a forked child without a system call; and its
 * descriptors in both.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests.h"
#include "host/descriptor.h"
#include "host/process.h"

TEST(has_a_number_that_stays) {
  const pid_t own = process_id();

  assert_true(own > 0);
  assert_int_equal(process_id(), own);
}

static void check_child(pid_t child) {
  int status = 0;

  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(a_forked_child_has_its_own) {
  const pid_t own = process_id();
  pid_t child;

  child = fork();
  if (child == 0) {
    const pid_t childs = process_id();
    const pid_t grandchild = childs != own ? fork() : -1;
    int status = 1;
    if (grandchild == 0) _exit(process_id() != own && process_id() != childs ? 0 : 1);
    if (grandchild > 0) waitpid(grandchild, &status, 0);
    _exit(status == 0 && process_id() == childs ? 0 : 1);
  }
  check_child(child);
  assert_int_equal(process_id(), own);
}

/* Handlers of pthread_atfork are not called here. */
TEST(so_does_one_made_behind_the_back_of_the_c_library) {
  const pid_t own = process_id();
  pid_t child;

  child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) _exit(process_id() != own ? 0 : 1);
  check_child(child);
}

TEST(a_descriptor_is_kept_above_the_standard_ones_and_not_by_a_child) {
  const int input = dup(0);
  int descriptor;
  int fd;
  pid_t child;

  close(0);
  descriptor = descriptor_open("/dev/zero", O_RDONLY, 0);
  fd = descriptor_number(descriptor);
  dup2(input, 0);
  close(input);
  assert_true(fd > 2);
  child = fork();
  if (child == 0) {
    process_forked();
    _exit(fcntl(fd, F_GETFD) < 0 ? 0 : 1);
  }
  check_child(child);
  descriptor_close(descriptor);
  assert_true(fcntl(fd, F_GETFD) < 0);
}

TEST(what_the_host_opens_under_the_same_number_is_not_closed) {
  const int descriptor = descriptor_open("/dev/zero", O_RDONLY, 0);
  const int fd = descriptor_number(descriptor);
  const int other = open("/dev/null", O_RDONLY);
  pid_t child;

  assert_int_equal(dup2(other, fd), fd); /* as a daemon does that closes all numbers and opens its own files */
  child = fork();
  if (child == 0) {
    process_forked();
    _exit(fcntl(fd, F_GETFD) >= 0 ? 0 : 1);
  }
  check_child(child);
  descriptor_close(descriptor);
  assert_true(fcntl(fd, F_GETFD) >= 0);
  close(fd);
  close(other);
}

TEST(a_process_has_ended_when_nobody_has_collected_its_status) {
  int ends[2];
  siginfo_t about;
  pid_t child;

  assert_int_equal(pipe(ends), 0);
  child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  assert_true(child > 0);
  assert_false(process_has_ended(child));
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(waitid(P_PID, (id_t)child, &about, WEXITED | WNOWAIT), 0);
  assert_true(process_has_ended(child));
  check_child(child);
  assert_true(process_has_ended(child));
  assert_false(process_has_ended(getpid()));
}

static void *bar_forks_and_end(void *argument) {
  (void)argument;
  descriptor_bar_forks();
  return NULL;
}

TEST(a_thread_that_bars_forks_for_ever_only_delays_them) {
  pthread_t thread;
  pid_t child;

  assert_int_equal(pthread_create(&thread, NULL, bar_forks_and_end, NULL), 0);
  pthread_join(thread, NULL);
  alarm(60);
  descriptor_before_fork();
  child = fork();
  if (child == 0) {
    process_forked();
    descriptor_bar_forks();
    descriptor_allow_forks();
    _exit(0);
  }
  descriptor_allow_forks();
  check_child(child);
  descriptor_close_inherited(); /* that thread has ended */
  alarm(0);
}

int main(void) { return run_written_tests(NULL, NULL); }
