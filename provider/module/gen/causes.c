/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. The lines of the library’s log. */

#include "causes.h"

const struct cause_row cause_rows[CAUSES] = {
    [CAUSE_AGENT_MISSING] = {"agent-missing",
        "nobody listens at {}, and there is no agent to start: {}: {}; install dke-agent beside the library, executable for this OS user, or start its service",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_START] = {"agent-start",
        "the agent {} does not start ({}); run it by hand as this OS user, with --socket {}: it says why",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_LOST] = {"agent-lost",
        "the agent at {} cannot be reached: {}; look whether it runs, and into its log",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_SLOW] = {"agent-slow",
        "the agent has not answered call {} within {} ms; look into its log, at the load of this host, and at call_timeout_ms in pkcs11.toml",
        0x00000030UL, "CKR_DEVICE_ERROR"},
    [CAUSE_AGENT_INTERRUPTED] = {"agent-interrupted",
        "the agent was lost while call {}, which is not sent twice, was under way; look whether it was done, then try again; the log of the agent may say why it ended",
        0x00000030UL, "CKR_DEVICE_ERROR"},
    [CAUSE_SOCKET_DIRECTORY] = {"socket-directory",
        "{} is not for this OS user alone; make it a directory with owner uid {} and mode 700, or remove it",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_SOCKET_RIGHTS] = {"socket-rights",
        "this OS user (uid {}) may not use the socket {}: {}; give it the right, or name another socket in DKE_PKCS11_SOCKET; an agent's own socket is for its user alone",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_STRANGER] = {"agent-stranger",
        "whoever listens at {} runs as uid {}, which is neither this OS user nor root: it is not trusted; end that process, or name another socket in DKE_PKCS11_SOCKET",
        0x00000032UL, "CKR_DEVICE_REMOVED"},
    [CAUSE_AGENT_REFUSES] = {"agent-refuses",
        "the agent at {} refuses this process with {} ({}); the agent's log has the reason, by the number of this process",
        0x00000030UL, "CKR_DEVICE_ERROR"},
};
