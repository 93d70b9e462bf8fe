// `dke agent`: runs the process that libdke_pkcs11.so talks to, in this process, so that a socket from systemd stays its own.

import type { Command } from 'commander';
import { loadProvider } from './load-provider.ts';

export const addAgent = (program: Command): void => {
  program
    .command('agent')
    .summary('run the agent of a database host')
    .description(
      'Serves libdke_pkcs11.so on a unix socket until SIGTERM. The library starts one itself when none runs.',
    )
    .option('--socket <path>', 'where to listen; DKE_PKCS11_SOCKET otherwise, a socket from systemd goes first')
    .option('--idle-seconds <n>', 'stop after so long without a connection; 0 = never')
    .action(async (options: { readonly socket?: string; readonly idleSeconds?: string }) => {
      const agent = await loadProvider<{ readonly main: (argv: readonly string[]) => Promise<number> }>('client/main');
      process.exitCode = await agent.main([
        ...(options.socket === undefined ? [] : ['--socket', options.socket]),
        ...(options.idleSeconds === undefined ? [] : ['--idle-seconds', options.idleSeconds]),
      ]);
    });
};
