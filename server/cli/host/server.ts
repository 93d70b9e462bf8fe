// `dke server`: runs the service in this process.

import type { Command } from 'commander';
import { loadConfig, loadHostConfig } from '../../app/config/config.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type GlobalOptions, showSecret } from '../service/caller.ts';
import { nounOf, passphraseFlag, secretFlags } from '../service/command-rows.ts';
import { askFor, askSecret } from '../terminal/ask-secret.ts';
import { CommandError } from '../terminal/exit-codes.ts';

interface ServerOptions {
  readonly config?: string;
  readonly acceptDatabase?: boolean;
  readonly tokenOut?: string;
}

/** How long the service may take to answer. */
const ownHealthSeconds = 30;

export const addServer = (program: Command): void => {
  const server = program.command('server');
  server
    .description(
      'Runs console, XKS proxy and database API on one HTTPS listener until SIGTERM or SIGINT. SIGHUP reloads the ' +
        'certificate and reopens the log file. The first start creates the root key, a certificate and one administrator token.',
    )
    .option(
      '--config <file>',
      'configuration; default: ./dke.toml, or /etc/dke/dke.toml, if it exists, otherwise the default settings',
    )
    .option(
      '--accept-database',
      'after a restore: accept a database that is older than the checkpoint next to the root key, or differs from it',
    )
    .option('--token-out <file>', 'write the first administrator token there (new, mode 600) instead of showing it')
    .action(async ({ config, acceptDatabase, tokenOut }: ServerOptions) => {
      const { runServer } = await import('../../app/process.ts');
      process.exitCode = await runServer({
        configPath: config,
        acceptDatabase,
        tokenFile: tokenOut,
        // A person who has started it by hand can be asked.
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

  const noun = nounOf(server);
  const health = noun.local(
    'health',
    'Checks the health of the running service on this host. Exit code 0: healthy or degraded; 8: otherwise. Use it as the health ' +
      'check of a container. Needs no token.',
    {},
    async (output) => {
      const { askOwnHealth } = await import('../../app/host/own-health.ts');
      const loaded = loadConfig(server.opts<ServerOptions>().config, process.cwd());
      // Not those of a context: it says where another service is.
      const { timeout = ownHealthSeconds } = health.optsWithGlobals<Pick<GlobalOptions, 'timeout'>>();
      const { statusCode, status } = await askOwnHealth(loaded, timeout * 1000).catch(
        (error: NodeJS.ErrnoException) => {
          throw new CommandError(
            'unreachable',
            `the service does not answer on port ${loaded.server.port} (${error.code ?? error.message})`,
            { hint: 'read its log; dke doctor --config FILE checks the requirements of a start' },
          );
        },
      );
      if (statusCode !== 200)
        throw new CommandError('unreachable', `the service is ${status || `not healthy: status ${statusCode}`}`, {
          hint: 'dke status names the failed check; dke node list says whether the node is drained',
        });
      output.record({ status });
    },
  );
  noun.local(
    'renew-certificate',
    'Creates the next self-signed certificate, next to the current one. Add it to the ca_file of all clients. Then --activate replaces the current certificate, ' +
      'and SIGHUP makes the service use it.',
    { '--activate': 'replace the current certificate by the next one' },
    async (output, { activate }) => {
      const { activateNextCertificate, createNextCertificate } = await import('../../app/host/next-certificate.ts');
      const loaded = loadHostConfig(server.opts<ServerOptions>().config, process.cwd());
      output.record(activate === true ? activateNextCertificate(loaded) : createNextCertificate(loaded));
    },
  );
  noun.local(
    'new-administrator',
    'For when no administrator can sign in: creates an administrator token for 24 hours, on the host of the stopped service. ' +
      'Needs the root key, and is recorded in the audit log.',
    { ...secretFlags, ...passphraseFlag },
    async (output, { passphraseFile, ...target }) => {
      const { recoverAdministrator } = await import('../../app/host/offline.ts');
      await showSecret(output, target, {
        ask: () =>
          recoverAdministrator(
            loadHostConfig(server.opts<ServerOptions>().config, process.cwd()),
            askFor(passphraseFile, undefined),
          ),
        read: ({ token, expiresAt }) => ({
          shown: { expiresAt: toRfc3339(expiresAt) },
          secret: { token },
          file: `${token}\n`,
        }),
      });
    },
  );
};
