/* posix_spawn of the agent; see launch.h. */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "process.h"

#ifndef POSIX_SPAWN_SETSID
#define POSIX_SPAWN_SETSID 0x80 /* glibc 2.26; an older one refuses the flag and the agent stays in the host's session */
#endif

enum { DETACH_TIMEOUT = 3000000 };

extern char **environ;

/** Names that the agent needs; the host's others (ORACLE_HOME, LD_PRELOAD, secrets) are none of its business. */
static bool is_passed(const char *variable) {
  static const char *const names[] = {"HOME=", "PATH=", "XDG_RUNTIME_DIR=", "TZ=", "LANG="};

  if (strncmp(variable, "DKE_AGENT_", 10) == 0) return true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
  return false;
}

static char **make_environment(char *socket_variable) {
  static char default_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  size_t count = 0;
  char **passed;
  bool path = false;

  while (environ != NULL && environ[count] != NULL) count++;
  passed = calloc(count + 3, sizeof *passed);
  if (passed == NULL) return NULL;
  count = 0;
  for (char **each = environ; each != NULL && *each != NULL; each++) {
    if (!is_passed(*each)) continue;
    path = path || strncmp(*each, "PATH=", 5) == 0;
    passed[count++] = *each;
  }
  if (!path) passed[count++] = default_path;
  passed[count] = socket_variable;
  return passed;
}

/** Closes in the child what the host has open and not marked close-on-exec. One that vanishes meanwhile does no harm. */
static void close_inherited(posix_spawn_file_actions_t *actions) {
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;

  if (folder == NULL) return;
  while ((entry = readdir(folder)) != NULL) {
    const int fd = atoi(entry->d_name);
    if (fd > 2 && fd != dirfd(folder)) posix_spawn_file_actions_addclose(actions, fd);
  }
  closedir(folder);
}

/** The program detaches at once, so this is a short wait; the host may reap the child before we do. 0, or its status. */
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

CK_RV launch_agent(const char *socket_path) {
  char program[PATH_MAX];
  char folder[PATH_MAX - 16];
  char socket_variable[160];
  char socket_argument[128];
  char *arguments[] = {program, (char[]){"--detach"}, (char[]){"--socket"}, socket_argument, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  char **environment;
  sigset_t signals;
  char reason[48];
  pid_t child;
  int status;
  int error;

  if (!process_library_folder(folder, sizeof folder))
    return log_cause(CAUSE_AGENT_MISSING, socket_path, "dke-agent", "the loader does not say where the library lies");
  snprintf(program, sizeof program, "%s/dke-agent", folder);
  if (access(program, X_OK) != 0) return log_cause(CAUSE_AGENT_MISSING, socket_path, program, strerror(errno));
  snprintf(socket_argument, sizeof socket_argument, "%s", socket_path);
  snprintf(socket_variable, sizeof socket_variable, "DKE_PKCS11_SOCKET=%s", socket_path);
  environment = make_environment(socket_variable);
  if (environment == NULL) return CKR_HOST_MEMORY;

  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  close_inherited(&actions);
  posix_spawnattr_init(&attributes);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  if (posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) != 0)
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  error = posix_spawn(&child, program, &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  free(environment);
  if (error != 0) return log_cause(CAUSE_AGENT_START, program, strerror(error), socket_path);
  status = await_exit(child);
  if (status == 0) return CKR_OK;
  if (WIFEXITED(status)) snprintf(reason, sizeof reason, "exit code %d", WEXITSTATUS(status));
  else snprintf(reason, sizeof reason, "signal %d", WTERMSIG(status));
  return log_cause(CAUSE_AGENT_START, program, reason, socket_path);
}
