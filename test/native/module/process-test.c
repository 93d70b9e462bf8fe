/* Who this process is, as the library knows it without asking the system: a forked child is somebody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

static void knows_its_own_number(void **state) {
  (void)state;
  assert_int_equal(process_id(), getpid());
  assert_int_equal(process_id(), getpid());
}

static void check_child(pid_t child) {
  int status = 0;

  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_forked_child_has_its_own(void **state) {
  pid_t child;

  (void)state;
  assert_int_equal(process_id(), getpid());
  child = fork();
  if (child == 0) {
    const pid_t grandchild = process_id() == getpid() ? fork() : -1;
    int status = 1;
    if (grandchild == 0) _exit(process_id() == getpid() && process_id() != getppid() ? 0 : 1);
    if (grandchild > 0) waitpid(grandchild, &status, 0);
    _exit(status == 0 ? 0 : 1);
  }
  check_child(child);
  assert_int_equal(process_id(), getpid());
}

/* Handlers of pthread_atfork are not called here. */
static void so_does_one_made_behind_the_back_of_the_c_library(void **state) {
  pid_t child;

  (void)state;
  assert_int_equal(process_id(), getpid());
  child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) _exit(process_id() == (pid_t)syscall(SYS_getpid) ? 0 : 1);
  check_child(child);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(knows_its_own_number),
      cmocka_unit_test(a_forked_child_has_its_own),
      cmocka_unit_test(so_does_one_made_behind_the_back_of_the_c_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
