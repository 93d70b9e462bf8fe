// `dke provider`: lays the PKCS#11 library and its agent where a database looks for them, checks,
// upgrades, takes back, removes. The work is the provider's own (provider/install), found by its
// place in the installation.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { InstallAction, Installer, InstallReport, ProviderOptions } from '../../contract/provider.ts';
import { CommandError, type ExitClass, exitCodes } from '../terminal/exit-codes.ts';
import { type OutputFormat, standardOutput } from '../terminal/output.ts';
import { conclude } from './doctor.ts';
import { loadProvider } from './load-provider.ts';

const defaultConf = '/etc/dke/pkcs11.toml';

/** Errors of the provider have the class of their exit code. */
const withClasses = async <T>(run: () => T | Promise<T>): Promise<T> => {
  try {
    return await run();
  } catch (error) {
    const { class: name, hint } = error as { readonly class?: unknown; readonly hint?: string };
    if (error instanceof Error && error.name === 'InstallError' && typeof name === 'string' && name in exitCodes)
      throw new CommandError(name as ExitClass, error.message, { hint });
    throw error;
  }
};

const show = (report: InstallReport, format: OutputFormat): void => {
  const output = standardOutput(format);
  if (output.raw) {
    output.record(report);
    return;
  }
  const { action, changed, dryRun, library, version, build, previous, owner, mode, steps, remarks } = report;
  for (const step of steps) output.say(dryRun ? `would ${step}` : step);
  if (steps.length > 0) output.say('');
  const done = { install: 'installed', upgrade: 'upgraded', rollback: 'went back', uninstall: 'uninstalled' }[action];
  output.record({
    [dryRun ? `${action} (dry run)` : changed ? done : action]: library,
    ...(build === null ? {} : { version: `${version ?? 'unknown'} (build ${build})`, owner: `${owner}, mode ${mode}` }),
    ...(previous === null ? {} : { 'available for rollback': `build ${previous}` }),
  });
  if (remarks.length > 0) output.say('');
  for (const remark of remarks) output.say(remark);
};

const withPlace = (command: Command): Command =>
  command
    .option('--base <directory>', "the databases' shared directory", '/opt/oracle/extapi/64')
    .addOption(
      new Option(
        '--layout <name>',
        'hsm: <base>/hsm/dke/1.0; pkcs11: <base>/pkcs11/dke/1.0, for PKCS11_LIBRARY_LOCATION',
      )
        .choices(['hsm', 'pkcs11'])
        .default('hsm'),
    )
    .option('--owner <user:group>', 'OS user and group of the database; default: those of the current installation');

const withChanges = (command: Command): Command =>
  withPlace(command)
    .option(
      '--log-directory <directory>',
      'log directory of library and agent, unless pkcs11.toml sets another one',
      '/var/log/dke-pkcs11',
    )
    .option('-n, --dry-run', 'show what would be done, and change nothing')
    .addOption(
      new Option('--unit-directory <directory>', 'folder of the systemd units').default('/etc/systemd/system'),
    );

const act =
  (action: InstallAction) =>
  async (_: object, command: Command): Promise<void> => {
    const options = command.optsWithGlobals<ProviderOptions & { readonly output: OutputFormat }>();
    const installer = await loadProvider<Installer>('install/command');
    show(await withClasses(() => installer.run(action, options)), options.output);
  };

const force = '--force';
const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  resolve(value),
];

export const addProvider = (program: Command): void => {
  const provider = program
    .command('provider')
    .description(
      'Installs libdke_pkcs11.so and its agent where a database searches for them. Installation is atomic: a ' +
        'run that was interrupted is completed by the next one.',
    );
  withChanges(provider.command('install'))
    .description(
      'Installs the library and its agent, with their own copy of Node. Safe to rerun: repairs a damaged installation.',
    )
    .option('--systemd', 'also write systemd units: systemd then starts the agent as the OS user of the database')
    .action(act('install'));
  withChanges(provider.command('upgrade'))
    .description('Installs the build of this command, and keeps the current one for a rollback. Needs downtime.')
    .option('--systemd', 'also write systemd units: systemd then starts the agent as the OS user of the database')
    .option(force, 'continue although processes have loaded the library')
    .action(act('upgrade'));
  withChanges(provider.command('rollback'))
    .description('Restores the build before the last upgrade. Needs downtime.')
    .option(force, 'continue although processes have loaded the library')
    .action(act('rollback'));
  withChanges(provider.command('uninstall'))
    .description(
      'Removes library and agent. pkcs11.toml and the logs stay, unless --purge is set. Keys stay in the service.',
    )
    .option(force, 'continue although processes have loaded the library')
    .option('--purge', 'also remove pkcs11.toml and the log directory')
    .option('--conf <file>', `pkcs11.toml that --purge removes; default: ${defaultConf}`, collect)
    .action(act('uninstall'));
  withPlace(provider.command('check'))
    .description(
      'Checks the files, loads the library, and connects to the service as the database would, as the OS user of the database. With several ' +
        '--conf, it checks each database, and which of them share an access_guid or an application: a key that is destroyed for one of these is ' +
        'destroyed for all.',
    )
    .option(
      '--conf <file>',
      `pkcs11.toml of a database, repeatable; default: DKE_PKCS11_CONF, or ${defaultConf} if it exists`,
      collect,
    )
    .option(
      '--distinct',
      'fail unless each of several databases has an application of its own: use this before a destructive test',
    )
    .option('--program <file>', 'program of the database: checks which configuration each kind of its processes uses')
    .option('--oracle-home <folder>', 'the same for bin/oracle in this folder')
    .option('--socket <path>', 'socket of the agent, if the library does not find it automatically')
    .action(async (_: object, command: Command) => {
      const options = command.optsWithGlobals<ProviderOptions & { readonly output: OutputFormat }>();
      const named = options.conf ?? [process.env.DKE_PKCS11_CONF ?? defaultConf].filter((path) => existsSync(path));
      const installer = await loadProvider<Installer>('install/command');
      conclude(await withClasses(() => installer.check({ ...options, conf: named })), options.output);
    });
};
