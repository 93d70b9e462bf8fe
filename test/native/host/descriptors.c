/*
 * A host that does with descriptors what it likes: closes all that it does not know, as daemons do,
 * and opens its own under the same numbers. The library never touches what is there, and finds its
 * way back to the agent.
 *
 * Usage: host-descriptors <library> <answers> <rule>
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

enum { MOST = 64, THREADS = 8, TIMES = 20 };

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;

/*
 * --- what the host puts there --------------------------------------------------------------------
 */

/** A connection of the host's: what it has under the library's number, and the other end. */
struct foreign {
  int number;
  int other;
  struct stat status;
};

static int find_sockets(int *numbers) {
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;
  int count = 0;

  if (folder == NULL) host_fail("/proc/self/fd", 0);
  while ((entry = readdir(folder)) != NULL) {
    char target[16] = {0};
    if (atoi(entry->d_name) > 2 && readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0 &&
        strncmp(target, "socket:", 7) == 0 && count < MOST)
      numbers[count++] = atoi(entry->d_name);
  }
  closedir(folder);
  return count;
}

static void connect_tcp(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);

  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
      connect(ends[0], (struct sockaddr *)&address, sizeof address) != 0 || (ends[1] = accept(listener, NULL, NULL)) < 0)
    host_fail("a TCP connection", (unsigned long)errno);
  close(listener);
}

static void connect_unix(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) host_fail("socketpair", (unsigned long)errno);
}

static void open_pipe(int ends[2]) {
  if (pipe(ends) != 0) host_fail("pipe", (unsigned long)errno);
}

/** From where the library would write. */
static void open_pipe_to_write(int ends[2]) {
  int pair[2];
  open_pipe(pair);
  ends[0] = pair[1];
  ends[1] = pair[0];
}

/** Closes the library's sockets and puts a descriptor of the host's under each number. */
static int replace(void (*open_ends)(int ends[2]), struct foreign *foreign) {
  int numbers[MOST];
  const int count = find_sockets(numbers);

  if (count == 0) host_fail("the library has no socket", 0);
  for (int i = 0; i < count; i++) {
    int ends[2];
    open_ends(ends);
    if (dup2(ends[0], numbers[i]) < 0 || fstat(ends[0], &foreign[i].status) != 0) host_fail("dup2", (unsigned long)errno);
    close(ends[0]);
    foreign[i].number = numbers[i];
    foreign[i].other = ends[1];
  }
  return count;
}

/** Nothing has come out of it, nothing was taken from it, and it is open in both directions. */
static void check_untouched(const struct foreign *foreign, bool writes_only) {
  struct pollfd poller = {.fd = foreign->other, .events = POLLIN};
  struct stat status;

  if (fstat(foreign->number, &status) != 0 || status.st_ino != foreign->status.st_ino || status.st_dev != foreign->status.st_dev)
    host_fail("the host's descriptor was closed", (unsigned long)foreign->number);
  if (poll(&poller, 1, 0) != 0) host_fail("the library wrote to the host's descriptor, or ended it", (unsigned long)poller.revents);
  if (writes_only) return;
  poller = (struct pollfd){.fd = foreign->number, .events = POLLIN};
  if (poll(&poller, 1, 0) != 1 || poller.revents != POLLIN) host_fail("the library read from the host's descriptor", 0);
}

/**
 * The library works, with the session and the login that it had; keys of the session have gone with
 * the connection.
 */
static void go_on(void) {
  CK_BYTE bytes[16];

  host_must(p11->C_GenerateRandom(session, bytes, sizeof bytes), "C_GenerateRandom");
  if (p11->C_Login(session, CKU_USER, (CK_UTF8CHAR_PTR) "", 0) != CKR_USER_ALREADY_LOGGED_IN) host_fail("the login", 0);
  host_must(host_create_key(session, answers[0].key, CKK_AES, NULL, &key), "C_CreateObject");
  host_prove(session, &answers[0], key);
}

static void replaced_by(void (*open_ends)(int ends[2]), bool writes_only, bool finalizes) {
  static const char text[] = "of the host";
  struct foreign foreign[MOST];
  int count;

  session = host_begin(&answers[0], &key);
  count = replace(open_ends, foreign);
  for (int i = 0; i < count && !writes_only; i++)
    if (write(foreign[i].other, text, sizeof text) != sizeof text) host_fail("write", (unsigned long)errno);
  if (finalizes) {
    p11->C_Finalize(NULL);
    for (int i = 0; i < count; i++) check_untouched(&foreign[i], writes_only);
    session = host_begin(&answers[0], &key);
  }
  go_on();
  for (int i = 0; i < count; i++) check_untouched(&foreign[i], writes_only);
  host_must(p11->C_Finalize(NULL), "C_Finalize");
  for (int i = 0; i < count; i++) check_untouched(&foreign[i], writes_only);
}

static void tcp(void) { replaced_by(connect_tcp, false, false); }
static void blocking_socket(void) { replaced_by(connect_unix, false, false); }
static void pipe_to_read(void) { replaced_by(open_pipe, false, false); }
static void pipe_to_write(void) { replaced_by(open_pipe_to_write, true, false); }
static void finalize(void) { replaced_by(connect_tcp, false, true); }

/**
 * Something else of the host's still has the library's socket, so the agent sees no end and answers
 * in shared memory. A call that cannot be repeated does not begin on such a connection: a read of
 * the socket would end it in the middle.
 */
static void kept_elsewhere(void) {
  for (int i = 0; i < TIMES; i++) {
    int numbers[MOST];
    int copy;
    int ends[2];

    session = host_begin(&answers[0], &key);
    host_await_connections(1);
    if (find_sockets(numbers) != 1) host_fail("sockets of the library", 0);
    copy = dup(numbers[0]);
    connect_unix(ends);
    if (copy < 0 || dup2(ends[0], numbers[0]) < 0) host_fail("dup", (unsigned long)errno);
    host_must(host_create_key(session, answers[0].key, CKK_AES, NULL, &key), "C_CreateObject");
    if (host_connections() != 2) host_fail("a connection that is not the library's any more was used", (unsigned long)i);
    host_prove(session, &answers[0], key);
    host_must(p11->C_Finalize(NULL), "C_Finalize");
    close(copy);
    close(numbers[0]);
    close(ends[0]);
    close(ends[1]);
  }
}

/** exit and dlclose end the connection, but not what the host has there. */
static void unloaded(void) {
  struct foreign foreign[MOST];
  int count;

  session = host_begin(&answers[0], &key);
  count = replace(connect_unix, foreign);
  for (int i = 0; i < count; i++)
    if (write(foreign[i].other, "x", 1) != 1) host_fail("write", (unsigned long)errno);
  if (dlclose(library) != 0) host_fail("dlclose", 0);
  for (int i = 0; i < count; i++) check_untouched(&foreign[i], false);
}

static void forked(void) {
  struct foreign foreign[MOST];
  int count;
  pid_t child;

  session = host_begin(&answers[0], &key);
  count = replace(connect_unix, foreign);
  for (int i = 0; i < count; i++)
    if (write(foreign[i].other, "x", 1) != 1) host_fail("write", (unsigned long)errno);
  child = fork();
  if (child == 0) {
    for (int i = 0; i < count; i++) check_untouched(&foreign[i], false);
    exit(0);
  }
  host_reap(child, "the child");
  go_on();
}

/*
 * --- while threads are in calls ------------------------------------------------------------------
 */

static atomic_bool stopping;
static atomic_int answered;

static void *ask(void *argument) {
  (void)argument;
  while (!stopping) {
    CK_BYTE bytes[16];
    const CK_RV rv = p11->C_GenerateRandom(session, bytes, sizeof bytes);
    if (rv != CKR_OK) host_fail("C_GenerateRandom of a thread", rv);
    answered++;
  }
  return NULL;
}

/**
 * Closes every number, then has connections of its own, under the lowest ones: none of them is ever
 * the library's.
 */
static void closed_under_threads(void) {
  pthread_t threads[THREADS];

  session = host_begin(&answers[0], &key);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, ask, NULL) != 0) host_fail("pthread_create", 0);
  for (int i = 0; i < TIMES; i++) {
    const int before = answered;
    struct foreign foreign = {0};
    int ends[2];

    for (int number = 3; number < 1024; number++) close(number);
    connect_unix(ends);
    foreign = (struct foreign){.number = ends[0], .other = ends[1]};
    if (fstat(ends[0], &foreign.status) != 0 || write(ends[1], "x", 1) != 1) host_fail("write", (unsigned long)errno);
    while (answered < before + 100) host_pause(1);
    check_untouched(&foreign, false);
    close(ends[0]);
    close(ends[1]);
  }
  stopping = true;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  go_on();
}

static const struct {
  const char *name;
  void (*run)(void);
} rules[] = {
    {"tcp", tcp},
    {"blocking-socket", blocking_socket},
    {"pipe-to-read", pipe_to_read},
    {"pipe-to-write", pipe_to_write},
    {"finalize", finalize},
    {"kept-elsewhere", kept_elsewhere},
    {"dlclose", unloaded},
    {"fork", forked},
    {"closed-under-threads", closed_under_threads},
};

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  host_read_answers(argv[2]);
  host_load(argv[1]);
  for (size_t i = 0; i < COUNT(rules); i++) {
    if (strcmp(rules[i].name, argv[3]) != 0) continue;
    rules[i].run();
    return 0;
  }
  return 2;
}
