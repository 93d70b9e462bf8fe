/* Starts the agent that is installed next to the library. */
#ifndef DKE_LAUNCH_H
#define DKE_LAUNCH_H

#include <sys/types.h>

#include "message/cryptoki.h"

/**
 * Runs `dke-agent --detach --socket <path>` from the folder in which the library really is, and
 * waits until that has handed over to the agent proper, which is then no child of this process.
 * `*agent` is the agent's process, which the program prints, or 0 when it prints none. When there
 * is no such program, or it failed at once, that is told in the log.
 *
 * The agent gets its own session, no descriptor but /dev/null as standard files, and an environment
 * of few names. It has the hard limits of the host as its soft ones, and nothing else of the host:
 * nice 0, every CPU, no preference of the memory killer, the directory / and umask 022. Where a
 * hard limit is below what it needs, that is told, and it is not started. It runs as the effective
 * user of the host, and where the host has more rights than its caller (setuid), with nothing of
 * the caller's environment.
 */
CK_RV launch_agent(const char *socket_path, pid_t *agent);

#endif
