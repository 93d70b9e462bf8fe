/*
 * The process we are guests in: who it is, its clock, its threads. The host owns signals, threads
 * and forks; these helpers keep us out of their way. Descriptors: descriptor.h.
 */
#ifndef DKE_PROCESS_H
#define DKE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * A positive number that a child made by fork or clone does not share with its parent, without a
 * system call where the kernel tells forks apart for us (Linux 4.14): every call of the library
 * asks. It is not the pid, which the first process of a new PID namespace shares with a parent that
 * is the first of another one. A child made by vfork may call nothing anyway.
 */
pid_t process_id(void);
/** Microseconds on a clock that no administrator sets. */
int64_t process_now(void);
/** Milliseconds until `deadline`, rounded up, never negative: for poll. */
int process_until(int64_t deadline);
void process_sleep(int64_t microseconds);
/**
 * argv[0] without its directories, which is where a database writes a process's role; else the
 * kernel's name for it.
 */
void process_name(char *name, size_t size);
/**
 * In a forked child, where the host's fork tells us: closes what it has inherited, and it is
 * another process from here on.
 */
void process_forked(void);
/**
 * Whether a process has come to its end. One whose status is never collected keeps its number, as
 * in a container whose first process does not wait for orphans: so the kernel is asked for its
 * state.
 */
bool process_has_ended(pid_t id);
/** Waits while `*word` is `value`, until woken or `deadline`. May return early. */
void process_wait(_Atomic uint32_t *word, uint32_t value, int64_t deadline);
void process_wake(_Atomic uint32_t *word);
/**
 * A lock with a deadline on a clock that no administrator sets, which pthread_mutex_timedlock does
 * not have. `*word`: 0 at first. False when another thread still has the lock at the deadline; with
 * 0 it does not wait.
 */
bool process_lock_until(_Atomic uint32_t *word, int64_t deadline);
void process_lock(_Atomic uint32_t *word);
void process_unlock(_Atomic uint32_t *word);
/**
 * The folder of the file that this code was loaded from, without symbolic links. NULL when the
 * loader does not say.
 */
const char *process_library_folder(void);

#endif
