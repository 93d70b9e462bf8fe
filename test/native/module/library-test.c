/*
 * The library as a file that hosts load: where it finds its agent and how it starts it, how much
 * stack it needs, what remains after dlclose. The tests load copies of the built libdke_pkcs11.so,
 * with a program of their own in the agent's place.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "../tests.h"
#include "host/process.h"
#include "peer.h"

static char folder[64];
static char built[PATH_MAX]; /* the folder of the built library */
static const char *self;

static const char *in_folder(const char *name) {
  static char paths[4][PATH_MAX];
  static int last;
  char *const path = paths[++last % 4];

  snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return path;
}

static void copy(const char *from, const char *to, mode_t mode) {
  static char bytes[1 << 16];
  const int source = open(from, O_RDONLY | O_CLOEXEC);
  const int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  ssize_t got;

  assert_true(source >= 0 && target >= 0);
  while ((got = read(source, bytes, sizeof bytes)) > 0) assert_int_equal(write(target, bytes, (size_t)got), got);
  assert_int_equal(fchmod(target, mode), 0);
  close(source);
  close(target);
}

static void put(const char *name, const char *text, mode_t mode) {
  const int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  assert_int_equal(fchmod(fd, mode), 0);
  close(fd);
}

/** The text of a file of the folder; empty when there is none. */
static const char *get(const char *name) {
  static char text[1 << 16];
  const int fd = open(in_folder(name), O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

  if (fd >= 0) close(fd);
  text[got < 0 ? 0 : got] = 0;
  return text;
}

static void copy_library(void) {
  char library[PATH_MAX + 32];

  snprintf(library, sizeof library, "%s/libdke_pkcs11.so", built);
  copy(library, in_folder("libdke_pkcs11.so"), 0755);
}

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/dke-library-XXXXXX");
  if (mkdtemp(folder) == NULL || chmod(folder, 0755) != 0) return -1;
  setenv("DKE_PKCS11_SOCKET", in_folder("agent.sock"), 1);
  setenv("DKE_PKCS11_CONF", in_folder("pkcs11.toml"), 1);
  copy_library();
  put("pkcs11.toml", PATIENT, 0644);
  return 0;
}

static int remove_folder(void **state) {
  char command[128];

  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) == 0 ? 0 : -1;
}

static CK_FUNCTION_LIST_PTR load(const char *path, void **library) {
  CK_FUNCTION_LIST_PTR list = NULL;
  CK_C_GetFunctionList get_list;

  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*library == NULL) fail_msg("%s", dlerror());
  *(void **)&get_list = dlsym(*library, "C_GetFunctionList");
  assert_int_equal(get_list(&list), CKR_OK);
  return list;
}

/*
 * --- where the agent is --------------------------------------------------------------------------
 */

/** From here on the kernel is one from before Linux 5.9. */
static void forget_close_range(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};

  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(3);
}

/**
 * Loads the library by this name in a process of its own, then goes to another folder and tries to
 * connect.
 */
static void initialize_elsewhere(const char *name, bool old_kernel) {
  const pid_t child = fork();
  int status;

  if (child == 0) {
    void *library;
    if (old_kernel) forget_close_range();
    CK_FUNCTION_LIST_PTR p11;
    if (chdir(folder) != 0) _exit(1);
    p11 = load(name, &library);
    if (chdir("/") != 0) _exit(1);
    _exit(p11->C_Initialize(NULL) == CKR_DEVICE_REMOVED ? 0 : 2);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#define WITH(test) TEST_WITH(test, make_folder, remove_folder)

WITH(the_agent_is_found_beside_the_real_file_of_the_library) {
  static const char *const names[] = {"libdke_pkcs11.so", "./libdke_pkcs11.so", "links/link.so", "linked/libdke_pkcs11.so"};
  char path[PATH_MAX];

  put("dke-agent", "#!/bin/sh\necho \"$0\" >\"${0%/*}/started\"\nexit 3\n", 0755);
  assert_int_equal(mkdir(in_folder("links"), 0755), 0);
  assert_int_equal(symlink("../libdke_pkcs11.so", in_folder("links/link.so")), 0);
  assert_int_equal(symlink(folder, in_folder("linked")), 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, i == 0 ? "%s/%s" : "%.0s%s", folder, names[i]);
    initialize_elsewhere(path, false);
    snprintf(path, sizeof path, "%s/dke-agent\n", folder);
    assert_string_equal(get("started"), path);
    unlink(in_folder("started"));
  }
}

WITH(the_program_that_starts_the_agent_needs_nothing_from_the_path) {
  char agent[PATH_MAX + 32];
  char path[128];
  char *arguments[] = {agent, NULL};
  char *environment[] = {path, NULL};
  pid_t child;
  int status;

  /*
   * Without Node next to it, in its project or on the PATH it ends, after everything else that it
   * does.
   */
  snprintf(agent, sizeof agent, "%s/dke-agent", built);
  copy(agent, in_folder("dke-agent"), 0755);
  snprintf(agent, sizeof agent, "%s/dke-agent", folder);
  snprintf(path, sizeof path, "PATH=%s/bin", folder);
  assert_int_equal(mkdir(in_folder("bin"), 0755), 0);
  put("bin/dirname", "#!/bin/sh\necho dirname >\"${0%/*}/../ran\"\n", 0755);
  child = fork();
  if (child == 0) {
    close(2);
    execve(agent, arguments, environment);
    _exit(99);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 1);
  assert_string_equal(get("ran"), "");
}

/*
 * --- a host with more rights than its caller -----------------------------------------------------
 */

enum { OWNER = 61234, CALLER = 61235, GROUP = 61236 };

static const char tell[] =
    "#!/bin/sh\n"
    "{ echo \"$(id -u) $(id -ru) $(id -g) $(id -rg)\"; pwd; umask; env; } >\"${0%/*}/facts\"\n"
    "ls -l /proc/self/fd >\"${0%/*}/descriptors\"\n"
    "exit 3\n";

/**
 * An empty /run for this process and those that it starts: the agent that this host has for all its
 * users is not found.
 */
static void enter_own_run(void) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", "/run", "tmpfs", 0, "mode=755") != 0)
    _exit(96);
}

/** Another folder in the place of /etc, too. */
static void enter_own_etc(void) {
  enter_own_run();
  if (mount(in_folder("etc"), "/etc", NULL, MS_BIND, NULL) != 0) _exit(96);
}

WITH(a_setuid_host_starts_the_agent_as_its_effective_user_with_nothing_of_its_callers) {
  char *arguments[] = {(char[]){"host"}, (char[]){"initialize"}, NULL, NULL};
  char *environment[] = {(char[]){"PATH=/evil"},          (char[]){"HOME=/evil"},       (char[]){"XDG_RUNTIME_DIR=/evil"},
                         (char[]){"DKE_AGENT_LOG_DIR=/evil"}, (char[]){"LANG=evil"},        (char[]){"DKE_PKCS11_SOCKET=/evil"},
                         (char[]){"DKE_PKCS11_CONF=/evil"},   (char[]){"LD_LIBRARY_PATH=/evil"}, NULL};
  char expected[64];
  struct statvfs file_system;
  const char *facts;
  pid_t child;
  int status;

  if (geteuid() != 0 || statvfs(folder, &file_system) != 0 || (file_system.f_flag & ST_NOSUID) != 0) {
    print_message("skipped: only root can make a setuid program, and /tmp must allow it\n");
    skip();
  }
  put("dke-agent", tell, 0755);
  copy(self, in_folder("host"), 0755);
  assert_int_equal(chown(in_folder("host"), OWNER, GROUP), 0);
  assert_int_equal(chmod(in_folder("host"), 06755), 0);
  assert_int_equal(chown(folder, OWNER, GROUP), 0);
  arguments[2] = strdup(in_folder("libdke_pkcs11.so"));
  child = fork();
  if (child == 0) {
    const gid_t none = CALLER;
    enter_own_run();
    if (setgroups(1, &none) != 0 || setresgid(CALLER, CALLER, CALLER) != 0 || setresuid(CALLER, CALLER, CALLER) != 0) _exit(97);
    umask(0);
    execve(in_folder("host"), arguments, environment);
    _exit(99);
  }
  free(arguments[2]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 0);
  facts = get("facts");
  snprintf(expected, sizeof expected, "%d %d %d %d\n/\n0022\n", OWNER, OWNER, GROUP, GROUP);
  assert_memory_equal(facts, expected, strlen(expected));
  assert_null(strstr(facts, "evil"));
  snprintf(expected, sizeof expected, "DKE_PKCS11_SOCKET=/tmp/dke-pkcs11-%d/agent.sock\n", OWNER);
  assert_non_null(strstr(facts, expected));
  snprintf(expected, sizeof expected, "rm -rf /tmp/dke-pkcs11-%d", OWNER);
  assert_int_equal(system(expected), 0);
}

/**
 * What the copy of this program does there: C_Initialize, with rights that its caller does not
 * have.
 */
static int initialize_as_host(const char *path) {
  void *const library = dlopen(path, RTLD_NOW);
  CK_RV (*initialize)(void *) = NULL;

  if (library == NULL || getauxval(AT_SECURE) == 0) return 98;
  *(void **)&initialize = dlsym(library, "C_Initialize");
  return initialize(NULL) == CKR_DEVICE_REMOVED ? 0 : 1;
}

/** Runs the copy of this program with this DKE_PKCS11_CONF as the caller, who is not its owner. */
static void initialize_with(const char *config) {
  char variable[PATH_MAX + 32];
  char *arguments[] = {(char[]){"host"}, (char[]){"initialize"}, strdup(in_folder("libdke_pkcs11.so")), NULL};
  char *environment[] = {variable, NULL};
  pid_t child;
  int status;

  snprintf(variable, sizeof variable, "DKE_PKCS11_CONF=%s", config);
  child = fork();
  if (child == 0) {
    const gid_t none = CALLER;
    enter_own_etc();
    if (setgroups(1, &none) != 0 || setresgid(CALLER, CALLER, CALLER) != 0 || setresuid(CALLER, CALLER, CALLER) != 0) _exit(97);
    execve(in_folder("host"), arguments, environment);
    _exit(99);
  }
  free(arguments[2]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 0);
}

/** A configuration whose log is its own: what is written there shows which one was used. */
static void put_config(const char *name, uid_t owner, mode_t mode) {
  char log[64];
  char text[2 * PATH_MAX];

  snprintf(log, sizeof log, "log-%s", strrchr(name, '/') + 1);
  snprintf(text, sizeof text, "log_dir = \"%s\"\n" PATIENT, in_folder(log));
  put(name, text, mode);
  assert_int_equal(chown(in_folder(name), owner, GROUP), 0);
  if (mkdir(in_folder(log), 0755) == 0) assert_int_equal(chown(in_folder(log), OWNER, GROUP), 0);
}

static void expect_log(const char *name, const char *text) {
  char log[96];

  snprintf(log, sizeof log, "log-%s/library.log", name);
  if (strstr(get(log), text) == NULL) fail_msg("%s has no \"%s\": %s", log, text, get(log));
  unlink(in_folder(log));
}

/*
 * What `oracle` is on a host with Grid Infrastructure, where two databases have one program and one
 * user.
 */
WITH(the_caller_of_a_setuid_and_setgid_host_chooses_among_the_owners_files_below_the_administrators_folders) {
  static const struct {
    const char *config;
    const char *why;
  } refused[] = {
      {"/etc/dke/open.toml", "its mode is not 600"},
      {"/etc/dke/root.toml", "it does not belong to the user as whom this program runs"},
      {"/etc/dke/none.toml", "there is no such file that this program can reach"},
      {"/etc/dke/link.toml", "nor below a directory that /etc/dke/config-folders names"},
      {"/etc/other/own.toml", "nor below a directory that /etc/dke/config-folders names"},
      {"/etc/dke/shared/moved.toml", "others can write to one on the way"},
      {"/etc/dke", "it is not a regular file"},
  };
  struct statvfs file_system;

  if (geteuid() != 0 || statvfs(folder, &file_system) != 0 || (file_system.f_flag & ST_NOSUID) != 0) {
    print_message("skipped: only root can make a setuid program, and /tmp must allow it\n");
    skip();
  }
  put("dke-agent", "#!/bin/sh\nexit 3\n", 0755);
  copy(self, in_folder("host"), 0755);
  assert_int_equal(chown(in_folder("host"), OWNER, GROUP), 0);
  assert_int_equal(chmod(in_folder("host"), 06751), 0);
  assert_int_equal(mkdir(in_folder("etc"), 0755), 0);
  assert_int_equal(mkdir(in_folder("etc/dke"), 0755), 0);
  assert_int_equal(mkdir(in_folder("etc/dke/shared"), 0755), 0);
  assert_int_equal(chmod(in_folder("etc/dke/shared"), 0777), 0);
  assert_int_equal(mkdir(in_folder("etc/other"), 0755), 0);
  assert_int_equal(mkdir(in_folder("etc/listed"), 0755), 0);
  put_config("etc/dke/pkcs11.toml", OWNER, 0600);
  put_config("etc/dke/one.toml", OWNER, 0600);
  put_config("etc/dke/two.toml", OWNER, 0400);
  put_config("etc/listed/three.toml", OWNER, 0600);
  put_config("etc/dke/open.toml", OWNER, 0640);
  put_config("etc/dke/root.toml", 0, 0600);
  put_config("etc/other/own.toml", OWNER, 0600);
  put_config("etc/dke/shared/moved.toml", OWNER, 0600);
  assert_int_equal(symlink("../other/own.toml", in_folder("etc/dke/link.toml")), 0);
  put("etc/dke/config-folders", "/nonexistent\n/etc/listed\n", 0644);

  initialize_with("/etc/dke/one.toml");
  expect_log("one.toml", "has chosen /etc/dke/one.toml by DKE_PKCS11_CONF");
  initialize_with("/etc/dke/two.toml");
  expect_log("two.toml", "has chosen /etc/dke/two.toml by DKE_PKCS11_CONF");
  initialize_with("/etc/listed/three.toml");
  expect_log("three.toml", "has chosen /etc/listed/three.toml by DKE_PKCS11_CONF");
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    initialize_with(refused[i].config);
    expect_log("pkcs11.toml", refused[i].why);
  }
  /* The line that is cut in a list that is too long names nothing. */
  {
    char list[16 * 1024 + 64];
    memset(list, '\n', sizeof list);
    strcpy(list + 16 * 1024 - sizeof "/etc/listed" + 1, "/etc/listed/but/not/all/of/it");
    put("etc/dke/config-folders", list, 0644);
  }
  initialize_with("/etc/listed/three.toml");
  expect_log("pkcs11.toml", "nor below a directory that /etc/dke/config-folders names");
  put("etc/dke/config-folders", "/etc/listed\n", 0644);
  initialize_with("/etc/listed/three.toml");
  expect_log("three.toml", "has chosen /etc/listed/three.toml by DKE_PKCS11_CONF");
  /* A list that others can write names nothing. */
  assert_int_equal(chmod(in_folder("etc/dke/config-folders"), 0666), 0);
  initialize_with("/etc/listed/three.toml");
  expect_log("pkcs11.toml", "nor below a directory that /etc/dke/config-folders names");
  assert_string_equal(get("log-own.toml/library.log"), "");
  {
    char command[96];
    snprintf(command, sizeof command, "rm -rf /tmp/dke-pkcs11-%d", OWNER);
    assert_int_equal(system(command), 0);
  }
}

WITH(the_agent_inherits_no_descriptor) {
  const int fd = open("/dev/zero", O_RDONLY);

  assert_true(fd >= 0);
  put("dke-agent", tell, 0755);
  for (int old_kernel = 0; old_kernel <= 1; old_kernel++) {
    initialize_elsewhere(in_folder("libdke_pkcs11.so"), old_kernel);
    assert_non_null(strstr(get("descriptors"), "/dev/null"));
    assert_null(strstr(get("descriptors"), "/dev/zero"));
    unlink(in_folder("descriptors"));
  }
  close(fd);
}

/*
 * --- what the agent does not inherit -------------------------------------------------------------
 */

static void limit_to(int resource, rlim_t soft, rlim_t hard) {
  const struct rlimit limit = {soft, hard};
  if (setrlimit((__rlimit_resource_t)resource, &limit) != 0) _exit(95);
}

static void put_text(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) _exit(94);
  close(fd);
}

/** Everything that a process hands on to those that it starts. */
static void become_peculiar(void) {
  cpu_set_t one;

  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0 || nice(5) < 0) _exit(93);
  put_text("/proc/self/oom_score_adj", "300");
  umask(077);
  limit_to(RLIMIT_CPU, 1000, 100000);
  limit_to(RLIMIT_NOFILE, 300, 2000);
  limit_to(RLIMIT_FSIZE, 1 << 20, (rlim_t)1 << 30);
  limit_to(RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY);
  setenv("ORACLE_HOME", "/secret", 1);
  setenv("LD_DEBUG_OUTPUT", "/secret", 1);
  setenv("NODE_OPTIONS", "/secret", 1);
  setenv("DKE_AGENT_ANYTHING", "/secret", 1);
  setenv("DKE_AGENT_LOG_DIR", "/passed", 1);
}

static void initialize_in_vain_as(void (*become)(void)) {
  const pid_t child = fork();
  int status;

  if (child == 0) {
    void *library;
    become();
    if (chdir(folder) != 0) _exit(1);
    _exit(load(in_folder("libdke_pkcs11.so"), &library)->C_Initialize(NULL) == CKR_DEVICE_REMOVED ? 0 : 2);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void expect_fact(const char *facts, const char *fact) {
  if (strstr(facts, fact) == NULL) fail_msg("not \"%s\": %s", fact, facts);
}

WITH(the_agent_is_an_ordinary_process_whoever_needs_it_first) {
  char cpus[64];
  const char *facts;

  if (geteuid() != 0) {
    print_message("skipped: only root can lower a nice value again\n");
    skip();
  }
  put("dke-agent",
      "#!/bin/sh\n"
      "{ echo \"directory $(pwd -P)\"; echo \"umask $(umask)\"; echo \"oom $(cat /proc/self/oom_score_adj)\"\n"
      "  echo \"nice $(nice)\"; echo \"cpus $(nproc)\"; echo \"core $(ulimit -Sc) $(ulimit -Hc)\"; echo \"files $(ulimit -Sn)\"\n"
      "  echo \"cpu $(ulimit -St)\"; echo \"size $(ulimit -Sf)\"; env; } >\"${0%/*}/facts\"\n"
      "exit 3\n",
      0755);
  initialize_in_vain_as(become_peculiar);
  facts = get("facts");
  snprintf(cpus, sizeof cpus, "cpus %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
  expect_fact(facts, "directory /\n");
  expect_fact(facts, "umask 0022\n");
  expect_fact(facts, "oom 0\n");
  expect_fact(facts, "nice 0\n");
  expect_fact(facts, cpus);
  expect_fact(facts, "core 0 0\n");
  expect_fact(facts, "files 2000\n");
  expect_fact(facts, "cpu 100000\n");
  expect_fact(facts, "size 2097152\n"); /* of 512 bytes */
  expect_fact(facts, "DKE_AGENT_LOG_DIR=/passed\n");
  assert_null(strstr(facts, "/secret"));
}

static void become_a_batch_job(void) { limit_to(RLIMIT_CPU, 30, 30); }

WITH(an_agent_that_would_not_live_long_is_not_started) {
  char text[PATH_MAX];

  put("dke-agent", "#!/bin/sh\n: >\"${0%/*}/started\"\nexit 3\n", 0755);
  snprintf(text, sizeof text, "log_dir = \"%s\"\n", folder);
  put("pkcs11.toml", text, 0644);
  initialize_in_vain_as(become_a_batch_job);
  assert_int_equal(access(in_folder("started"), F_OK), -1);
  expect_fact(get("library.log"), "hard limit of 30 for CPU time in seconds (ulimit -t), and the agent needs 600");
}

/*
 * --- stack ---------------------------------------------------------------------------------------
 */

/** The sanitizers use additional stack, and keep their data about a library that was unloaded. */
static void need_own_memory_only(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  print_message("skipped: a sanitizer uses memory of its own\n");
  skip();
#endif
}

enum { STACK = 256 * 1024, PAINT = 0xa5, MOST_STACK = 8 * 1024 };

struct measured {
  void (*body)(void);
  const char *what;
  unsigned char *stack;
  size_t depth;
};

static void *measure(void *data) {
  struct measured *const measured = data;
  const unsigned char *const here = __builtin_frame_address(0);
  const unsigned char *lowest = measured->stack;

  measured->body();
  while (*lowest == PAINT) lowest++;
  measured->depth = (size_t)(here - lowest);
  return NULL;
}

static void needs_little_stack(const char *what, void (*body)(void)) {
  struct measured measured = {.body = body, .what = what};
  pthread_attr_t attributes;
  pthread_t thread;

  measured.stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(measured.stack != MAP_FAILED);
  memset(measured.stack, PAINT, STACK);
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstack(&attributes, measured.stack, STACK), 0);
  assert_int_equal(pthread_create(&thread, &attributes, measure, &measured), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  munmap(measured.stack, STACK);
  print_message("%6zu bytes of stack: %s\n", measured.depth, what);
  if (measured.depth > MOST_STACK) fail_msg("%s: %zu bytes of stack", what, measured.depth);
}

static CK_FUNCTION_LIST_PTR p11;
static struct peer peer;
static CK_SESSION_HANDLE session;

static void initialize_in_vain(void) { assert_int_equal(p11->C_Initialize(NULL), CKR_DEVICE_REMOVED); }
static void initialize(void) { assert_int_equal(p11->C_Initialize(NULL), CKR_OK); }
static void finalize(void) { assert_int_equal(p11->C_Finalize(NULL), CKR_OK); }

static void call_once(void) {
  static CK_BYTE data[100000];
  CK_BYTE iv[16] = {0};
  CK_MECHANISM mechanism = {CKM_AES_CBC, iv, sizeof iv};
  CK_ULONG length = sizeof data;
  CK_SLOT_ID slots[4];
  CK_ULONG count = 4;
  CK_TOKEN_INFO info;

  assert_int_equal(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session), CKR_OK);
  p11->C_GetSlotList(CK_TRUE, slots, &count);
  p11->C_GetTokenInfo(0, &info);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(p11->C_EncryptInit(session, &mechanism, ~0u), CKR_OK);
    assert_int_equal(p11->C_Encrypt(session, data, sizeof data, data, &length), CKR_OK);
  }
  assert_int_equal(p11->C_EncryptInit(session, &mechanism, ~0u), CKR_OK);
}

static void call_with_nested_templates(void) {
  CK_ATTRIBUTE nested[8];
  CK_OBJECT_HANDLE object;

  for (size_t i = 0; i < 8; i++) nested[i] = (CK_ATTRIBUTE){CKA_WRAP_TEMPLATE, i + 1 < 8 ? &nested[i + 1] : NULL, i + 1 < 8 ? sizeof *nested : 0};
  p11->C_CreateObject(session, nested, 1, &object);
  p11->C_GetAttributeValue(session, 1, nested, 1);
  p11->C_FindObjectsInit(session, nested, 1);
}

static void call_while_the_agent_is_lost(void) {
  CK_BYTE data[16] = {0};
  CK_ULONG length = sizeof data;

  peer.drop = 30;
  assert_int_equal(p11->C_Encrypt(session, data, sizeof data, data, &length), CKR_OK);
}

static void call_without_an_answer(void) {
  CK_BYTE random[4];

  peer.silent = 64;
  assert_int_equal(p11->C_GenerateRandom(session, random, sizeof random), CKR_DEVICE_ERROR);
  peer.silent = 0;
}

static void call_that_is_refused_here(void) { assert_int_equal(p11->C_Encrypt(session, NULL, 1, NULL, NULL), CKR_ARGUMENTS_BAD); }

static void open_a_session_too_late(void) {
  CK_SESSION_HANDLE late;
  CK_BYTE random[4];

  peer.late = 10;
  assert_int_equal(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &late), CKR_DEVICE_ERROR);
  assert_int_equal(p11->C_GenerateRandom(session, random, sizeof random), CKR_OK);
}

static void call_after_the_agent_has_gone(void) {
  CK_BYTE random[4];
  assert_int_equal(p11->C_GenerateRandom(session, random, sizeof random), CKR_DEVICE_REMOVED);
}

WITH(no_entry_point_needs_more_than_8_kib_of_stack) {
  void *library;

  need_own_memory_only();
  p11 = load(in_folder("libdke_pkcs11.so"), &library);
  put("pkcs11.toml", "log_dir = \"/nonexistent/log\"\n", 0644);
  needs_little_stack("C_Initialize without the agent's program", initialize_in_vain);
  dlclose(library);
  p11 = load(in_folder("libdke_pkcs11.so"), &library);
  put("dke-agent", "#!/bin/sh\nexit 3\n", 0755);
  needs_little_stack("C_Initialize when the agent ends at once", initialize_in_vain);
  dlclose(library);
  p11 = load(in_folder("libdke_pkcs11.so"), &library);
  setenv("DKE_PKCS11_SOCKET", "/nonexistent/agent.sock", 1);
  needs_little_stack("C_Initialize without the folder of the socket", initialize_in_vain);

  peer_start(&peer);
  peer_configure(&peer, "log_dir = \"/nonexistent/log\"\n" HASTY);
  needs_little_stack("C_Initialize", initialize);
  needs_little_stack("sessions, an Init, operations", call_once);
  needs_little_stack("a call when the agent is lost", call_while_the_agent_is_lost);
  needs_little_stack("nested templates", call_with_nested_templates);
  needs_little_stack("a call without an answer", call_without_an_answer);
  needs_little_stack("a call that the library refuses", call_that_is_refused_here);
  needs_little_stack("a session that is opened too late", open_a_session_too_late);
  peer.drop = 64;
  peer_stop(&peer);
  needs_little_stack("a call after the agent has gone", call_after_the_agent_has_gone);
  needs_little_stack("C_Finalize", finalize);
  dlclose(library);
}

/*
 * --- what is left --------------------------------------------------------------------------------
 */

/** Lines of a file of the kernel's about this process: mappings, or descriptors. */
static size_t count(const char *path) {
  static char text[1 << 20];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  size_t lines = 0;
  ssize_t got;

  if (fd < 0) _exit(90);
  while (length < sizeof text && (got = read(fd, text + length, sizeof text - length)) > 0) length += (size_t)got;
  close(fd);
  for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
  return lines;
}

static size_t open_files(void) {
  size_t files = 0;
  for (int fd = 0; fd < 1024; fd++) files += fcntl(fd, F_GETFD) >= 0;
  return files;
}

/** Pages of address space. */
static unsigned long pages(void) {
  char text[128] = "";
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) _exit(91);
  close(fd);
  return strtoul(text, NULL, 10);
}

/** A host's wrapper that unloads the library when its context ends. */
static int load_and_unload(bool initializes) {
  enum { CYCLES = 3000, WARM = 20 };
  unsigned long before = 0;
  size_t mappings = 0;
  size_t files = 0;

  for (int i = 0; i < CYCLES; i++) {
    void *library;
    CK_FUNCTION_LIST_PTR list;

    if (i == WARM) {
      before = pages();
      mappings = count("/proc/self/maps");
      files = open_files();
    }
    list = load(in_folder("libdke_pkcs11.so"), &library);
    if (initializes) {
      CK_SESSION_HANDLE opened;
      if (list->C_Initialize(NULL) != CKR_OK || list->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &opened) != CKR_OK) return 2;
    }
    if (dlclose(library) != 0) return 3;
  }
  if (count("/proc/self/maps") != mappings) return 4;
  if (open_files() != files) return 5;
  /* A cycle that leaves a page would leave 2,980 of them. */
  return pages() > before + 64 ? 6 : 0;
}

WITH(nothing_is_left_after_dlclose_with_or_without_a_connection) {
  need_own_memory_only();
  peer_start(&peer);
  peer.lanes = 1;
  for (int initializes = 0; initializes <= 1; initializes++) {
    const pid_t child = fork();
    int status;
    if (child == 0) _exit(load_and_unload(initializes));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
  peer_stop(&peer);
}

WITH(descriptors_that_the_agent_should_not_send_are_closed) {
  peer_start(&peer);
  for (int lanes = 0; lanes <= PEER_LANES; lanes++) {
    const pid_t child = fork();
    int status;
    peer.lanes = lanes;
    if (child == 0) {
      void *library;
      size_t before;
      p11 = load(in_folder("libdke_pkcs11.so"), &library);
      before = open_files();
      if (p11->C_Initialize(NULL) != CKR_OK) _exit(1);
      _exit(open_files() == before + 1 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
  peer_stop(&peer);
}

/** In the first process of a PID namespace, as systemd is: listens, and never starts an agent. */
static int use_what_the_first_process_listens_for(void) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  pid_t host;
  int status;

  snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder("first.sock"));
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 128) != 0) return 1;
  setenv("DKE_PKCS11_SOCKET", address.sun_path, 1);
  put("pkcs11.toml", "connect_timeout_ms = 10\n", 0644);
  host = fork();
  if (host == 0) {
    alarm(60);
    p11 = load(in_folder("libdke_pkcs11.so"), &(void *){NULL});
    /*
     * Three of them would take 45 s if each waited for the agent to start; so many would take
     * longer than the alarm.
     */
    for (int i = 0; i < 100; i++)
      if (p11->C_Initialize(NULL) != CKR_DEVICE_REMOVED) _exit(2);
    _exit(0);
  }
  if (waitpid(host, &status, 0) != host) return 3;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

static pid_t start_host_of_a_first_process(void) {
  const pid_t child = fork();

  if (child == 0) {
    pid_t first;
    int status;
    if (unshare(CLONE_NEWPID) != 0) _exit(77);
    first = fork();
    if (first == 0) _exit(use_what_the_first_process_listens_for());
    if (waitpid(first, &status, 0) != first) _exit(5);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 6);
  }
  return child;
}

WITH(an_agent_that_does_not_come_up_is_waited_for_once) {
  const pid_t host = start_host_of_a_first_process(); /* at the same time: each waits for 15 s */
  int status;
  put("dke-agent", "#!/bin/sh\necho started >>\"${0%/*}/starts\"\n", 0755);
  p11 = load(in_folder("libdke_pkcs11.so"), &(void *){NULL});
  for (int i = 0; i < 3; i++) initialize_in_vain();
  assert_string_equal(get("starts"), "started\n");
  /* One that was started by other means is found at once. */
  peer_start(&peer);
  initialize();
  finalize();
  peer_stop(&peer);
  assert_int_equal(waitpid(host, &status, 0), host);
  if (WEXITSTATUS(status) == 77) print_message("systemd's part is skipped: only root can make a PID namespace here\n");
  else assert_int_equal(status, 0);
}

/** Stands in for the agent's program: prints the process of an agent that has ended. */
#define ENDS_AT_ONCE "echo started >>\"${0%/*}/starts\"\n: &\necho \"$!\"\nwait\n"

WITH(an_agent_that_ends_before_it_listens_is_started_again) {
  char program[PATH_MAX + 256];
  peer_start(&peer);
  setenv("DKE_PKCS11_SOCKET", in_folder("agent.sock"), 1);
  snprintf(program, sizeof program, "#!/bin/sh\n[ ! -e \"${0%%/*}/starts\" ] || ln -s '%s' \"${0%%/*}/agent.sock\"\n%s", peer.path, ENDS_AT_ONCE);
  put("dke-agent", program, 0755);
  p11 = load(in_folder("libdke_pkcs11.so"), &(void *){NULL});
  initialize();
  assert_string_equal(get("starts"), "started\nstarted\n");
  finalize();
  peer_stop(&peer);
}

WITH(an_agent_that_always_ends_before_it_listens_is_given_up) {
  char settings[PATH_MAX];
  snprintf(settings, sizeof settings, "log_dir = \"%s\"\n", folder);
  put("pkcs11.toml", settings, 0600);
  put("dke-agent", "#!/bin/sh\n" ENDS_AT_ONCE, 0755);
  p11 = load(in_folder("libdke_pkcs11.so"), &(void *){NULL});
  for (int i = 0; i < 3; i++) initialize_in_vain();
  assert_string_equal(get("starts"), "started\nstarted\nstarted\n");
  assert_non_null(strstr(get("library.log"), "it ended before it listened"));
}

int main(int argc, char **argv) {
  char *slash;

  /*
   * Not by returning: the address sanitizer would look for leaks, which it cannot in a setuid
   * program.
   */
  if (argc == 3 && strcmp(argv[1], "initialize") == 0) _exit(initialize_as_host(argv[2]));
  self = "/proc/self/exe";
  if (realpath(self, built) == NULL) return 2;
  slash = strrchr(built, '/');
  strcpy(slash, "/provider/1.0");
  return run_written_tests(NULL, NULL);
}
