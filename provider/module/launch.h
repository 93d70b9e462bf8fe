/* Starting the agent that is installed beside the library. */
#ifndef DKE_LAUNCH_H
#define DKE_LAUNCH_H

#include "cryptoki.h"

/**
 * Runs `dke-agent --detach --socket <path>` from the library's own folder and waits until that has handed over to the
 * agent proper, which is then nobody's child. When there is no such program, or it failed at once, that is told in the log.
 * The agent gets its own session, /dev/null as standard files, no other descriptor, and an environment of few names.
 */
CK_RV launch_agent(const char *socket_path);

#endif
