// `dke support`: what a person who helps needs to see, without secrets, shown before it is written.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { findConfig, loadConfig } from '../../app/config/config.ts';
import { type BundlePart, collectBundle, collectProviderBundle } from '../../app/host/support-bundle.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { Installer } from '../../contract/provider.ts';
import { readPath } from '../service/api-client.ts';
import { addressOf, type GlobalOptions, openCaller } from '../service/caller.ts';
import { globalsOf } from '../service/context-file.ts';
import { confirm, formatTable } from '../terminal/output.ts';
import { reserveSecretFile } from '../terminal/secret-files.ts';
import { asUser, userOf } from './acting-user.ts';
import { checkApart } from './doctor.ts';
import { loadProvider } from './load-provider.ts';

interface OutOptions {
  readonly out: string;
  readonly show?: true;
  readonly confirm?: string;
}
interface BundleOptions extends OutOptions {
  readonly config?: string;
  readonly log?: string;
}
interface ProviderBundleOptions extends OutOptions {
  readonly conf: string;
  readonly logDirectory?: string;
}

/** The metrics, which the service's own host may read without a token. */
const readMetrics = (globals: GlobalOptions): Promise<string> => readPath(addressOf(globals), '/metrics');

const summaryOf = (parts: readonly BundlePart[]): string =>
  formatTable([
    ['PART', 'BYTES', 'WHAT'],
    ...parts.map(({ name, content }) => {
      const members = Array.isArray(content) ? `${content.length} lines` : Object.keys(content ?? {}).join(', ');
      const { omitted } = (content ?? {}) as { readonly omitted?: string };
      return [
        name,
        String(JSON.stringify(content).length),
        omitted === undefined ? members.slice(0, 100) : `omitted: ${omitted}`,
      ];
    }),
  ]);

const withOut = (command: Command): Command =>
  command
    .requiredOption('--out <file>', 'the new file: JSON text')
    .option('--show', 'show the complete content, not only its parts')
    .option('--confirm <word>', 'skip the question: "write"');

/** Shows what was collected, and writes it after a yes. */
const offer = async (parts: readonly BundlePart[], { out, show, confirm: word }: OutOptions): Promise<void> => {
  const text = `${JSON.stringify(Object.fromEntries(parts.map(({ name, content }) => [name, content])), null, 2)}\n`;
  process.stderr.write(show === true ? text : `${summaryOf(parts)}\n`);
  await confirm(`This is what ${out} will contain; --show shows all of it.`, 'write', word);
  reserveSecretFile(resolve(out), false).write(text);
  process.stdout.write(`${out}\n`);
};

export const addSupport = (program: Command): void => {
  const support = program.command('support');
  withOut(support.command('provider'))
    .description(
      'Collects from a database host: the settings of pkcs11.toml without secrets, the debug trace of the first SET KEY and of the last ten ' +
        "seconds of heartbeat, and the end of the provider's log. Shows what is in it, and writes it after you confirm.",
    )
    .option('--conf <file>', 'pkcs11.toml of the database', '/etc/dke/pkcs11.toml')
    .option(
      '--log-directory <directory>',
      'directory of the logs; default: that of pkcs11.toml, or /var/log/dke-pkcs11',
    )
    .action(async ({ conf, logDirectory, ...options }: ProviderBundleOptions) => {
      const { trace } = await loadProvider<Installer>('install/command');
      const directory = logDirectory === undefined ? undefined : resolve(logDirectory);
      const version = program.version() ?? 'unknown';
      await offer(await collectProviderBundle({ version, read: () => trace(resolve(conf), directory) }), options);
    });
  withOut(support.command('bundle'))
    .description(
      'Collects versions, the configuration without secrets, dke doctor, the end of the log, metrics, the schema and counts of the ' +
        'database, and the state of the service. Shows what is in it, and writes it after you confirm. Run it on the host of the ' +
        'service, as its user, or as root, which then reads with the rights of this user.',
    )
    .option('--config <file>', 'configuration of the service; default: ./dke.toml, or /etc/dke/dke.toml, if it exists')
    .option('--log <file>', 'the log file, if dke.toml does not name it')
    .action(async (options: BundleOptions, command: Command) => {
      const globals = globalsOf(command);
      const offline = () => import('../../app/host/offline.ts');
      const { countTables } = await offline();
      const ask =
        <T>(read: (caller: ReturnType<typeof openCaller>) => Promise<T>) =>
        async (): Promise<T> =>
          read(openCaller(globals));
      const configPath = options.config === undefined ? undefined : resolve(options.config);
      const named = configPath ?? findConfig(process.cwd());
      const user = named === undefined ? undefined : userOf(named);
      const parts = await collectBundle({
        version: program.version() ?? 'unknown',
        config: () => asUser(user, () => loadConfig(configPath, process.cwd())),
        doctor: async () => {
          // What root may do would be told otherwise: a process of its own becomes the user.
          if (named !== undefined && process.getuid?.() === 0 && user?.uid !== 0)
            return checkApart(['--config', named]).flatMap(({ results }) => results);
          return (await import('../../app/host/host-checks.ts')).diagnoseHost({
            configPath,
            workingDirectory: process.cwd(),
          });
        },
        database: (path) => asUser(user, () => countTables(path)),
        logOfService: (read) => asUser(user, read),
        service: {
          status: ask((caller) => caller.call(operations.status.get)),
          quarantine: ask((caller) => caller.call(operations.quarantine.get)),
          root: ask((caller) => caller.call(operations.root.get)),
          nodes: ask((caller) => caller.call(operations.nodes.list)),
          auditSinks: ask((caller) => caller.call(operations.audit.sinks)),
        },
        metrics: () => readMetrics(globals),
        logPath: options.log,
      });
      await offer(parts, options);
    });
};
