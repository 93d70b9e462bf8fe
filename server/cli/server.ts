// `dke server`: runs the service in this process.

import type { Command } from 'commander';
import { askSecret } from './terminal.ts';

interface ServerOptions {
  readonly config?: string;
  readonly acceptDatabase?: boolean;
  readonly tokenOut?: string;
}

export const addServer = (program: Command): void => {
  program
    .command('server')
    .summary('run the service')
    .description(
      'Runs console, XKS proxy and database API on one HTTPS listener until SIGTERM or SIGINT. SIGHUP reads the\n' +
        'certificate again. The first start makes the root key, a certificate and one administrator token.',
    )
    .option('--config <file>', 'configuration; ./dke.toml when it is there, defaults otherwise')
    .option(
      '--accept-database',
      'take a database that is older than, or not, what the checkpoint beside the root key says: after a restore',
    )
    .option('--token-out <file>', 'write the first administrator token there (new, mode 600) instead of showing it')
    .action(async ({ config, acceptDatabase, tokenOut }: ServerOptions) => {
      const { runServer } = await import('../main.ts');
      process.exitCode = await runServer({
        configPath: config,
        acceptDatabase,
        tokenFile: tokenOut,
        // Somebody who has started it by hand is there to be asked.
        ask: process.stdin.isTTY
          ? ({ name, fresh, declared }) =>
              declared ? Promise.resolve(undefined) : askSecret(`root provider ${name}`, fresh)
          : undefined,
        say: (line) => {
          process.stdout.write(`${line}\n`);
        },
        complain: (line) => {
          process.stderr.write(`dke server: ${line}\n`);
        },
      });
      process.exit();
    });
};
