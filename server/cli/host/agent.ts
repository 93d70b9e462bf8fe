// `dke agent`: runs the process that libdke_pkcs11.so talks to, in this process, so that a socket
// from systemd stays its own.

import type { Command } from 'commander';
import { loadProvider } from './load-provider.ts';

interface AgentFlags {
  readonly socket?: string;
  readonly idleSeconds?: string;
  readonly userLimits?: string;
}

export const addAgent = (program: Command): void => {
  program
    .command('agent')
    .description(
      'Serves libdke_pkcs11.so on a unix socket until SIGTERM. The library starts an agent if none is running.',
    )
    .option('--socket <path>', 'where to listen; default: DKE_PKCS11_SOCKET. A socket from systemd has priority')
    .option('--idle-seconds <n>', 'stop after this many seconds without a connection; 0: never')
    .option(
      '--user-limits <list>',
      'limits for all processes of one user together, for example connections=4096,sessions=16384,objects=65536,memory=128 (MiB); ' +
        'default: DKE_AGENT_USER_LIMITS',
    )
    .action(async (options: AgentFlags) => {
      const agent = await loadProvider<{ readonly main: (argv: readonly string[]) => Promise<number> }>(
        'agent/threads/main',
      );
      process.exitCode = await agent.main([
        ...(options.socket === undefined ? [] : ['--socket', options.socket]),
        ...(options.idleSeconds === undefined ? [] : ['--idle-seconds', options.idleSeconds]),
        ...(options.userLimits === undefined ? [] : ['--user-limits', options.userLimits]),
      ]);
    });
};
