/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. The lines of the library’s log. */

#include "message/gen/causes.h"

const struct cause_row cause_rows[CAUSES] = {
    [CAUSE_AGENT_MISSING] = {"agent-missing",
        "no agent listens at {}, and there is none to start: {}: {}; install dke-agent next to the library, executable for this OS user, or start its service",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_START] = {"agent-start",
        "the agent {} does not start ({}); run it by hand as this OS user, with --socket {}: it prints the reason",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_LOST] = {"agent-lost",
        "the agent at {} cannot be reached: {}; check that it is running, and read its log",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_SLOW] = {"agent-slow",
        "the agent has not answered call {} within {} ms; check its log, the load of this host, and call_timeout_ms in pkcs11.toml",
        0x00000030UL, "CKR_DEVICE_ERROR"},
    [CAUSE_AGENT_INTERRUPTED] = {"agent-interrupted",
        "the agent ended during call {}, which is not sent twice; check whether the call took effect, then try again; the log of the agent may say why it ended",
        0x00000030UL, "CKR_DEVICE_ERROR"},
    [CAUSE_SOCKET_DIRECTORY] = {"socket-directory",
        "{} can be changed by other OS users; change it to a directory with owner uid {} and mode 700, or remove it",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_SOCKET_RIGHTS] = {"socket-rights",
        "this OS user (uid {}) has no permission to use the socket {}: {}; grant the permission, or set another socket in DKE_PKCS11_SOCKET; only its own user can use an agent's own socket",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_STRANGER] = {"agent-stranger",
        "the process that listens at {} runs as uid {}, which is neither this OS user nor root: it is not trusted; end that process, or set another socket in DKE_PKCS11_SOCKET",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_REFUSES] = {"agent-refuses",
        "the agent at {} refuses this process with {} ({}); search the agent's log for the number of this process: it has the reason",
        0x00000030UL, "CKR_DEVICE_ERROR"},
};
