/* The agent as a process of its own; see launch.h. */
#include "host/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/acting_user.h"
#include "host/descriptor.h"
#include "host/log.h"
#include "host/process.h"

/* close_range is of Linux 5.9: newer than the headers that we promise to build with. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
  DETACH_TIMEOUT = 3000000,
  SIGNAL_SET = 8,          /* bytes of the kernel's set of signals */
  MOST_DESCRIPTORS = 1 << 20 /* to close one by one */
};

extern char **environ;

/*
 * --- the environment -----------------------------------------------------------------------------
 */

/**
 * Names that the agent needs; the host's others (ORACLE_HOME, LD_PRELOAD, secrets) are none of its
 * business.
 */
static bool is_passed(const char *variable) {
  static const char *const names[] = {
      "HOME=", "XDG_RUNTIME_DIR=", "PATH=", "TZ=", "LANG=", "DKE_AGENT_LOG_DIR=", "DKE_AGENT_USER_LIMITS="};
  enum { OF_USER = 2 };

  /* Root's folders are not those of the user for whom it acts. */
  for (size_t i = acting_for_owner() ? OF_USER : 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
  return false;
}

/**
 * A program that runs with more rights than its caller has (AT_SECURE) passes nothing of what the
 * caller has set.
 */
static char **make_environment(char *socket_variable) {
  static char default_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  char **const given = getauxval(AT_SECURE) != 0 ? NULL : environ;
  size_t count = 0;
  char **passed;
  bool path = false;

  while (given != NULL && given[count] != NULL) count++;
  passed = calloc(count + 3, sizeof *passed);
  if (passed == NULL) return NULL;
  count = 0;
  for (char **each = given; each != NULL && *each != NULL; each++) {
    if (!is_passed(*each)) continue;
    path = path || strncmp(*each, "PATH=", 5) == 0;
    passed[count++] = *each;
  }
  if (!path) passed[count++] = default_path;
  passed[count] = socket_variable;
  return passed;
}

/* --- limits --------------------------------------------------------------------------------- */

/**
 * Below these the agent, which other processes of the user will share, does not live long, or not
 * at all.
 */
static const struct {
  int resource;
  const char *name;
  rlim_t least;
} floors[] = {
    {RLIMIT_CPU, "CPU time in seconds (ulimit -t)", 600},
    {RLIMIT_AS, "address space in bytes (ulimit -v)", (rlim_t)4 << 30},
    {RLIMIT_DATA, "data segments in bytes (ulimit -d)", (rlim_t)1 << 30},
    {RLIMIT_FSIZE, "file size in bytes (ulimit -f)", (rlim_t)16 << 20},
    {RLIMIT_NOFILE, "open files (ulimit -n)", 256},
};

/**
 * What is wrong with the hard limits of this process, which the agent would keep; false for
 * nothing.
 */
static bool is_below_a_floor(char *reason, size_t size) {
  struct rlimit limit;

  for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
    if (getrlimit((__rlimit_resource_t)floors[i].resource, &limit) != 0 || limit.rlim_max >= floors[i].least) continue;
    snprintf(reason, size, "this process has a hard limit of %llu for %s, and the agent needs %llu", (unsigned long long)limit.rlim_max,
             floors[i].name, (unsigned long long)floors[i].least);
    return true;
  }
  return false;
}

/*
 * --- the new process -----------------------------------------------------------------------------
 */

struct start {
  char *program;
  char **arguments;
  char **environment;
  /*
   * The effective user and group, when they are not the real ones: without them the agent would run
   * as the caller of the host.
   */
  bool changes_user;
  bool drops_rights; /* root, on behalf of another user */
  uid_t user;
  gid_t group;
  int output; /* what the program prints goes here; -1: nowhere */
  int error; /* of what failed before the program ran; 0 when it runs */
};

/**
 * The kernel's own names: the C library's would change the user of every thread of the host, whose
 * memory this process shares.
 */
static bool become_effective_user(const struct start *start) {
  /*
   * The groups of the host's caller are not the agent's. Only root may drop them, and must where it
   * starts the agent of another user.
   */
  if (syscall(SYS_setgroups, 1, &start->group) != 0 && start->drops_rights) return false;
  return syscall(SYS_setresgid, start->group, start->group, start->group) == 0 &&
         syscall(SYS_setresuid, start->user, start->user, start->user) == 0;
}

/**
 * The agent serves all processes of a user, so it keeps nothing of the one that needed it first:
 * neither limits nor its priority, its CPUs, its directory or its umask. What the kernel does not
 * grant stays as it is: an ordinary user cannot lower a nice value.
 */
static void become_ordinary(void) {
  enum { RESOURCES = 16, STACK = 8 << 20, PRIO_PROCESS_WHO = 0, ORDINARY = 0 /* SCHED_OTHER, PER_LINUX */, IOPRIO_PROCESS = 1 };
  static const unsigned long all[128] = {[0 ... 127] = ~0ul};
  static const int priority; /* of struct sched_param */
  long file;

  for (int resource = 0; resource < RESOURCES; resource++) {
    struct rlimit limit;
    if (syscall(SYS_prlimit64, 0, resource, NULL, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    /*
     * The C library makes the stacks of other threads as large as this limit, so it stays small. A
     * core file would contain keys.
     */
    if (resource == RLIMIT_STACK && limit.rlim_cur > STACK) limit.rlim_cur = STACK;
    if (resource == RLIMIT_CORE) limit.rlim_cur = limit.rlim_max = 0;
    syscall(SYS_prlimit64, 0, resource, &limit, NULL);
  }
  syscall(SYS_sched_setscheduler, 0, ORDINARY, &priority);
  syscall(SYS_setpriority, PRIO_PROCESS_WHO, 0, 0);
  syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, 0);
  syscall(SYS_sched_setaffinity, 0, sizeof all, all);
  syscall(SYS_personality, ORDINARY);
  syscall(SYS_chdir, "/");
  syscall(SYS_umask, 022);
  file = syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0);
  if (file < 0) return;
  syscall(SYS_write, file, "0", 1);
  syscall(SYS_close, file);
}

static bool set_standard_files(const struct start *start) {
  const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);

  for (long fd = 0; null >= 0 && fd <= 2; fd++)
    if (fd != null && syscall(SYS_dup3, null, fd, 0) < 0) return false;
  /*
   * May fail: under the thread sanitizer vfork is a fork, and the library's fork handler has closed
   * the pipe in the child. The output then
   *      goes to /dev/null, and the library waits for the agent without knowing its process.
   */
  if (start->output >= 0) syscall(SYS_dup3, start->output, 1, 0);
  return null >= 0;
}

/** What the host has open and not marked close-on-exec. */
static void close_inherited(void) {
  struct rlimit limit = {.rlim_cur = MOST_DESCRIPTORS};

  if (syscall(SYS_close_range, 3, ~0u, 0) == 0) return;
  syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
  for (rlim_t fd = 3; fd < limit.rlim_cur && fd < MOST_DESCRIPTORS; fd++) syscall(SYS_close, (int)fd);
}

/**
 * Runs in the new process, which shares the host's memory until it executes the program, while the
 * thread that started it waits: nothing but system calls.
 */
__attribute__((noinline, noreturn)) static void become_agent(struct start *start) {
  static const unsigned char by_default[32]; /* the kernel's struct sigaction */
  static const uint64_t none;

  /* What the host ignores would stay ignored. */
  for (int signal = 1; signal <= 64; signal++) syscall(SYS_rt_sigaction, signal, by_default, NULL, SIGNAL_SET);
  syscall(SYS_setsid);
  become_ordinary(); /* with the rights of the host, which may be root's */
  if ((!start->changes_user || become_effective_user(start)) && set_standard_files(start)) {
    close_inherited();
    syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, NULL, SIGNAL_SET);
    syscall(SYS_execve, start->program, start->arguments, start->environment);
  }
  start->error = errno;
  for (;;) syscall(SYS_exit_group, 127);
}

/**
 * Not posix_spawn, which can neither become the effective user nor close all descriptors; and not
 * fork, which would copy the tables of a large host. The child's number, or -1 and errno.
 */
static pid_t run(struct start *start) {
  static const uint64_t all = UINT64_MAX;
  uint64_t before;
  pid_t child;

  /* A handler of the host's must not run in a process that shares its memory. */
  syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &before, SIGNAL_SET);
  child = vfork();
  if (child == 0) become_agent(start);
  syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before, NULL, SIGNAL_SET);
  return child;
}

/**
 * The program detaches at once, so this is a short wait; the host may reap the child before we do.
 * 0, or its status.
 */
static int await_exit(pid_t child) {
  const int64_t deadline = process_now() + DETACH_TIMEOUT;
  int status;

  for (;;) {
    const pid_t got = waitpid(child, &status, WNOHANG);
    if (got == child) return status;
    if (got < 0 && errno != EINTR) return 0;
    if (process_now() >= deadline) return 0;
    process_sleep(1000);
  }
}

/** A pipe of the library's; {-1, -1} when there is none to be had. */
static void open_pipe(int ends[2]) {
  descriptor_bar_forks();
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    ends[0] = descriptor_keep(ends[0]);
    ends[1] = descriptor_keep(ends[1]);
  } else {
    ends[0] = ends[1] = -1;
  }
  descriptor_allow_forks();
}

/** The number of a process that was printed into a pipe, 0 when none was. */
static pid_t read_process(int fd) {
  char text[16];
  const ssize_t length = descriptor_read(fd, text, sizeof text - 1);

  if (length <= 0) return 0;
  text[length] = 0;
  return (pid_t)strtol(text, NULL, 10);
}

static CK_RV launch(char *program, const char *socket_path, pid_t *agent) {
  char socket_variable[160];
  char socket_argument[128];
  char *arguments[] = {program, (char[]){"--detach"}, (char[]){"--socket"}, socket_argument, NULL};
  struct start start = {
      .program = program,
      .arguments = arguments,
      .changes_user = acting_for_owner() || getuid() != geteuid() || getgid() != getegid(),
      .drops_rights = acting_for_owner(),
      .user = acting_user(),
      .group = acting_group(),
      .output = -1,
  };
  int printed[2];
  char reason[192];
  pid_t child;
  int status;

  if (eaccess(program, X_OK) != 0) return log_cause(CAUSE_AGENT_MISSING, socket_path, program, strerror(errno));
  if (is_below_a_floor(reason, sizeof reason)) return log_cause(CAUSE_AGENT_START, program, reason, socket_path);
  snprintf(socket_argument, sizeof socket_argument, "%s", socket_path);
  snprintf(socket_variable, sizeof socket_variable, "DKE_PKCS11_SOCKET=%s", socket_path);
  start.environment = make_environment(socket_variable);
  if (start.environment == NULL) return CKR_HOST_MEMORY;
  open_pipe(printed);
  start.output = descriptor_number(printed[1]);
  child = run(&start);
  if (child < 0) start.error = errno;
  free(start.environment);
  status = child < 0 ? 0 : await_exit(child);
  *agent = read_process(printed[0]);
  descriptor_close(printed[0]);
  descriptor_close(printed[1]);
  if (start.error != 0) return log_cause(CAUSE_AGENT_START, program, strerror(start.error), socket_path);
  if (status == 0) return CKR_OK;
  if (WIFEXITED(status)) snprintf(reason, sizeof reason, "exit code %d", WEXITSTATUS(status));
  else snprintf(reason, sizeof reason, "signal %d", WTERMSIG(status));
  return log_cause(CAUSE_AGENT_START, program, reason, socket_path);
}

CK_RV launch_agent(const char *socket_path, pid_t *agent) {
  enum { NAME = sizeof "/dke-agent" };
  const char *const folder = process_library_folder();
  char *program;
  CK_RV rv;

  if (folder == NULL)
    return log_cause(CAUSE_AGENT_MISSING, socket_path, "dke-agent", "the loader does not report the path of the library");
  program = malloc(strlen(folder) + NAME);
  if (program == NULL) return CKR_HOST_MEMORY;
  snprintf(program, strlen(folder) + NAME, "%s/dke-agent", folder);
  rv = launch(program, socket_path, agent);
  free(program);
  return rv;
}
