// systemd units for the agent: the socket is systemd's, the agent is started by the first call and
// takes the socket over (LISTEN_FDS). One text for a package, whose agent serves every database of
// a host under a user of its own, and for one that `dke provider install --systemd` writes, whose
// agent runs as the database's OS user.

import { basename } from 'node:path';

export const agentSocketUnit = 'dke-agent.socket';
export const agentServiceUnit = 'dke-agent.service';
/** Root's, made by systemd with the socket: the library of another user starts no agent there. */
export const agentSocketFolder = '/run/dke-pkcs11';
export const unitFolder = '/etc/systemd/system';

export interface AgentUnits {
  /** dke-agent, absolute. */
  readonly program: string;
  readonly user: string;
  readonly group: string;
  /** The agent serves processes of other users too, and opens their files with their rights. */
  readonly readsForOthers: boolean;
  readonly logDirectory: string;
}

export const agentSocket =
  (): string => `# Where libdke_pkcs11.so looks first. Everybody may connect: the agent opens a pkcs11.toml with the rights of who names it.
[Unit]
Description=Socket of the DKE agent, for databases that load libdke_pkcs11.so

[Socket]
ListenStream=${agentSocketFolder}/agent.sock
SocketMode=0666
DirectoryMode=0755
# While this unit is stopped, the socket stays: a database waits for it instead of starting an
# agent of its own. The removal removes it.
Backlog=512

[Install]
WantedBy=sockets.target
`;

/**
 * Directives that apply to agent and service. MemoryDenyWriteExecute is not among them: Node
 * compiles as it runs.
 */
export const hardening = `NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service @pkey
SystemCallErrorNumber=EPERM
# Keys are in locked memory, and in no core file.
LimitMEMLOCK=64M
LimitCORE=0
`;

const noOtherUser = 'SystemCallFilter=~setuid setreuid setresuid setgid setregid setresgid\n';

export const agentService = ({ program, user, group, readsForOthers, logDirectory }: AgentUnits): string => `[Unit]
Description=DKE agent, the client of the key service on a database host
Requires=${agentSocketUnit}
After=network-online.target ${agentSocketUnit}
Wants=network-online.target

[Service]
Type=exec
ExecStart=${program}
User=${user}
Group=${group}
Environment=DKE_AGENT_LOG_DIR=${logDirectory}
Restart=on-failure
RestartSec=1
UMask=0077
LimitNOFILE=16384
${
  readsForOthers
    ? '# A thread that opens a file of a user takes the identity of this user for files, and has no other rights.\n' +
      'AmbientCapabilities=CAP_SETUID CAP_SETGID\nCapabilityBoundingSet=CAP_SETUID CAP_SETGID\n'
    : 'CapabilityBoundingSet=\n'
}${
  // The database's own log directory is there already, and made for its user.
  readsForOthers ? `LogsDirectory=${basename(logDirectory)}\nLogsDirectoryMode=0750` : `ReadWritePaths=-${logDirectory}`
}
${hardening}${
  readsForOthers
    ? `# For files only (setfsuid, setfsgid, setgroups): it never becomes another user.\n${noOtherUser}`
    : ''
}
[Install]
Also=${agentSocketUnit}
`;
