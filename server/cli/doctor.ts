// `dke doctor`: runs the diagnostics of a database host, of the service's host, or of both, and shows the first failing layer
// first. The database host's checks belong to the agent's program, which is found by its place in the installation.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { CheckResult } from '../base/checks.ts';
import { diagnoseServerHost } from '../diagnostics/server-host.ts';
import { CommandError } from './exit-codes.ts';
import { formatTable, type OutputFormat } from './output.ts';
import { loadProvider } from './provider.ts';

interface DoctorOptions {
  readonly conf?: string;
  readonly label?: string;
  readonly library?: string;
  readonly socket?: string;
  readonly config?: string;
  readonly output: OutputFormat;
}

interface Diagnosis {
  readonly what: string;
  readonly results: readonly CheckResult[];
}

const defaultConf = '/etc/dke/pkcs11.toml';
const marks = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: 'skipped' } as const;

const databaseHost = async (conf: string, options: DoctorOptions): Promise<Diagnosis> => {
  const { diagnose } = await loadProvider<{
    readonly diagnose: (options: object) => Promise<readonly CheckResult[]>;
  }>('diagnose');
  const { label, library, socket } = options;
  return {
    what: 'this database host',
    results: await diagnose({
      configPath: resolve(conf),
      label,
      library: library === undefined ? undefined : resolve(library),
      socket,
    }),
  };
};

const show = ({ what, results }: Diagnosis): string => {
  const first = results.find(({ state }) => state === 'failed');
  const summary = first === undefined ? `${what} is in order` : `${what}: ${first.layer} fails: ${first.evidence}`;
  const rows = results.map(({ state, layer, title, evidence, fix }) => [
    marks[state],
    layer,
    title,
    fix === undefined ? evidence : `${evidence}; ${fix}`,
  ]);
  return `${summary}\n${first?.fix === undefined ? '' : `  ${first.fix}\n`}\n${formatTable(rows)}\n`;
};

export const addDoctor = (program: Command): void => {
  program
    .command('doctor')
    .summary('check a database host or the host of the service')
    .description(
      'Checks configuration, files, socket, the way to the service and a key. Run it as the OS user of the database (or of\n' +
        'the service): what is checked is what that user meets. Changes nothing.',
    )
    .option('--conf <file>', `pkcs11.toml of a database; DKE_PKCS11_CONF or ${defaultConf} when there`)
    .option('--label <label>', 'a key that must be found')
    .option('--library <file>', 'the installed libdke_pkcs11.so')
    .option('--socket <path>', "the agent's socket, if not where the library looks by itself")
    .option('--config <file>', 'dke.toml of the service; ./dke.toml when there')
    .action(async (_: object, command: Command) => {
      const options = command.optsWithGlobals<DoctorOptions>();
      const conf = options.conf ?? process.env.DKE_PKCS11_CONF ?? (existsSync(defaultConf) ? defaultConf : undefined);
      const config = options.config ?? (existsSync('dke.toml') ? 'dke.toml' : undefined);
      if (conf === undefined && config === undefined)
        throw new CommandError('config', 'there is nothing to check here', {
          hint: 'give --conf pkcs11.toml on a database host, or --config dke.toml on the host of the service',
        });
      const diagnoses: Diagnosis[] = [];
      if (conf !== undefined) diagnoses.push(await databaseHost(conf, options));
      if (config !== undefined)
        diagnoses.push({
          what: 'the host of the service',
          results: await diagnoseServerHost({ configPath: resolve(config), workingDirectory: process.cwd() }),
        });
      process.stdout.write(
        options.output === 'json' ? `${JSON.stringify(diagnoses, null, 2)}\n` : diagnoses.map(show).join('\n'),
      );
      const failures = diagnoses.flatMap(({ results }) => results).filter(({ state }) => state === 'failed').length;
      if (failures > 0) throw new CommandError('checks-failed', `${failures} of the checks failed`);
    });
};
