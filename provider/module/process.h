/*
 * The process we are guests in: who it is, its descriptors, its clock. The host owns signals, threads, standard
 * descriptors and forks; these helpers keep us out of their way.
 */
#ifndef DKE_PROCESS_H
#define DKE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/**
 * The number of this process, without a system call where the kernel tells forks apart for us (Linux 4.14): every call of the library
 * asks. A child made by fork or clone gets its own; one made by vfork may call nothing anyway.
 */
pid_t process_id(void);
/** Microseconds on a clock that no administrator sets. */
int64_t process_now(void);
/** Milliseconds until `deadline`, rounded up, never negative: for poll. */
int process_until(int64_t deadline);
void process_sleep(int64_t microseconds);
/** argv[0] without its directories, which is where a database writes a process's role; else the kernel's name for it. */
void process_name(char *name, size_t size);
/** Moves a descriptor above the standard ones, close-on-exec. Closes `fd` and returns -1 when it cannot. */
int process_raise_fd(int fd);
/** stat(2) or lstat(2): 0, or -1 and errno. glibc's own wrappers changed their symbol in 2.33. */
int process_stat(const char *path, struct stat *status, bool follow);
int process_fstat(int fd, struct stat *status);
/** Waits while `*word` is `value`, until woken or `deadline`. May return early. */
void process_wait(_Atomic uint32_t *word, uint32_t value, int64_t deadline);
void process_wake(_Atomic uint32_t *word);
/** The folder of the file that this code was loaded from. False when the loader does not say. */
bool process_library_folder(char *folder, size_t size);

#endif
