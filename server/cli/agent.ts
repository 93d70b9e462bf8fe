// `dke agent`: runs the process that libdke_pkcs11.so talks to. The agent is a program of its own: it is found by its place
// in the installation and given the arguments as they are, in this process, so that a socket from systemd stays its own.

import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { CommandError } from './exit-codes.ts';

const places = ['../../provider/client/main.js', '../../provider/client/main.ts'];

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
      const place = places.map((each) => new URL(each, import.meta.url)).find((url) => existsSync(url));
      if (place === undefined)
        throw new CommandError('config', 'the agent is not installed beside this command', {
          hint: 'run npm run build:code',
        });
      const agent = (await import(place.href)) as { readonly main: (argv: readonly string[]) => Promise<number> };
      process.exitCode = await agent.main([
        ...(options.socket === undefined ? [] : ['--socket', options.socket]),
        ...(options.idleSeconds === undefined ? [] : ['--idle-seconds', options.idleSeconds]),
      ]);
    });
};
