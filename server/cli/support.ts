// `dke support`: what a person who helps needs to see, without secrets, shown before it is written.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { operations } from '../client/gen/operations.ts';
import { loadConfig } from '../config/config.ts';
import { diagnoseServerHost } from '../diagnostics/server-host.ts';
import { type BundlePart, collectBundle } from '../diagnostics/support-bundle.ts';
import { addressOf, type GlobalOptions, openCaller } from './caller.ts';
import { readPath } from './client.ts';
import { globalsOf } from './context-file.ts';
import { reserveSecretFile } from './files.ts';
import { confirm, formatTable } from './output.ts';

interface BundleOptions {
  readonly config?: string;
  readonly log?: string;
  readonly out: string;
  readonly show?: true;
  readonly confirm?: string;
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

export const addSupport = (program: Command): void => {
  program
    .command('support')
    .command('bundle')
    .description(
      'Collects versions, the configuration without secrets, dke doctor, the end of the log, metrics, the schema and counts of the ' +
        'database, and the state of the service. Shows what is in it, and writes it after you confirm. Run it on the host of the ' +
        'service, as its user.',
    )
    .requiredOption('--out <file>', 'the new file: JSON text')
    .option('--config <file>', 'configuration of the service; default: ./dke.toml if it exists')
    .option('--log <file>', 'the log file, if dke.toml does not name it')
    .option('--show', 'show the complete content, not only its parts')
    .option('--confirm <word>', 'skip the question: "write"')
    .action(async (options: BundleOptions, command: Command) => {
      const globals = globalsOf(command);
      const offline = () => import('../app/offline.ts');
      const { countTables } = await offline();
      const ask =
        <T>(read: (caller: ReturnType<typeof openCaller>) => Promise<T>) =>
        async (): Promise<T> =>
          read(openCaller(globals));
      const configPath = options.config === undefined ? undefined : resolve(options.config);
      const parts = await collectBundle({
        version: program.version() ?? 'unknown',
        config: () => loadConfig(configPath, process.cwd()),
        doctor: () =>
          diagnoseServerHost({
            configPath,
            workingDirectory: process.cwd(),
            inspectDatabase: async (path) => (await offline()).inspectDatabase(path),
            inspectPackages: async (path) => (await offline()).inspectPackageDirectory(path),
          }),
        database: countTables,
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
      const text = `${JSON.stringify(Object.fromEntries(parts.map(({ name, content }) => [name, content])), null, 2)}\n`;
      process.stderr.write(options.show === true ? text : `${summaryOf(parts)}\n`);
      await confirm(`This is what ${options.out} will contain; --show shows all of it.`, 'write', options.confirm);
      reserveSecretFile(resolve(options.out), false).write(text);
      process.stdout.write(`${options.out}\n`);
    });
};
