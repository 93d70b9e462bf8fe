/*
 * The library's own descriptors, in a process whose other code may close any number and open
 * something else under it: daemons close all that they do not know. A descriptor here is not the
 * system's number but a place on a list, which says by what the kernel knows it: the cookie of a
 * socket, which no other socket ever has, device and inode of anything else (and of a socket before
 * Linux 4.6). Every use of a descriptor goes through this file, where that is compared first. What
 * the host has under the number is never read, written, waited for, shut down or closed: all of
 * these fail with EBADF then.
 *
 * Another thread of the host can still replace a number between the comparison and the use, as it
 * can with any number of its own. So sockets, which live long, have high numbers, and what a host
 * opens gets the lowest ones.
 *
 * Only descriptor_poll waits for the other side, for as long as it is told.
 */
#ifndef DKE_DESCRIPTOR_H
#define DKE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * A forked child closes the descriptors of its parent, so each is on the list from the moment at
 * which it exists:
 *
 *   descriptor_bar_forks();
 *   descriptor = descriptor_keep(socket(...));
 *   descriptor_allow_forks();
 *
 * Between the two, other threads that fork wait, and so do others that come here. They wait 100 ms
 * and 10 ms at most, because a lock of the host may be in between. So nothing here may take long.
 * All of these keep errno.
 */
void descriptor_bar_forks(void);
void descriptor_allow_forks(void);
/**
 * Puts a new descriptor, given by its number, on the list. -1 for -1; and, closing it, when the
 * list is full, or every number above those of the standard files is taken.
 */
int descriptor_keep(int number);
/** open(2), close-on-exec, and on that list. */
int descriptor_open(const char *path, int flags, mode_t mode);
/** Closes a descriptor that is still ours. -1 does nothing. */
void descriptor_close(int descriptor);
/** Before a fork; descriptor_allow_forks is called after it. */
void descriptor_before_fork(void);
/** In a forked child: closes what it has inherited. */
void descriptor_close_inherited(void);

/** Its number, if that is still ours, for system calls that are not among these; -1 otherwise. */
int descriptor_number(int descriptor);

/* Files. */
ssize_t descriptor_read(int descriptor, void *bytes, size_t length);
ssize_t descriptor_write(int descriptor, const void *bytes, size_t length);
int descriptor_flock(int descriptor, int operation);

/* Sockets. */
int descriptor_connect(int descriptor, const struct sockaddr *address, socklen_t size);
/** The credentials of the process that listens, or listened. */
bool descriptor_peer(int descriptor, struct ucred *peer);
ssize_t descriptor_send(int descriptor, const void *bytes, size_t length);
ssize_t descriptor_send_message(int descriptor, const struct msghdr *message);
ssize_t descriptor_receive(int descriptor, void *bytes, size_t length);
ssize_t descriptor_receive_message(int descriptor, struct msghdr *message);
/**
 * Waits for these events. What happened, 0 when nothing did in time; POLLNVAL for a descriptor that
 * is not ours.
 */
short descriptor_poll(int descriptor, short events, int milliseconds);
/** Makes everyone who uses the socket see its end. */
void descriptor_hang_up(int descriptor);

#endif
