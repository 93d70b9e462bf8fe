// `dke backup`: the whole service on the embedded database, on its host. The recovery key is opened here, in this process's addon.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { OpenBackupKey } from '../app/service-backup.ts';
import { defaultConfig, loadConfig } from '../config/config.ts';
import { openBackupKey } from '../snapshots/backup-file.ts';
import { outputOf } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { readyCore } from './recovery-key.ts';
import { openRecoveryKeyFile } from './recovery-key-file.ts';
import { askFor, readPassphrase } from './terminal.ts';

interface OpenOptions {
  readonly config?: string;
  readonly recoveryKey: string;
  readonly recoveryPassphraseFile?: string;
  readonly rootBackup?: string;
  readonly passphraseFile?: string;
  readonly newPassphraseFile?: string;
}

/** The recovery key's file is opened once, also where the backup is read twice. */
const keyOpener = ({ recoveryKey, recoveryPassphraseFile }: OpenOptions): OpenBackupKey => {
  let recovery: ReturnType<typeof openRecoveryKeyFile> | undefined;
  return async (core, preface) => {
    recovery ??= openRecoveryKeyFile(readyCore(), recoveryKey, () => readPassphrase(recoveryPassphraseFile));
    const { id, key } = await recovery;
    return openBackupKey(core, preface, id, key);
  };
};

const openOptions = (command: Command): Command =>
  command
    .requiredOption('--recovery-key <file>', 'file of a recovery key that was registered when the backup was made')
    .option(
      '--recovery-passphrase-file <file>',
      'with the passphrase of the recovery key (mode 600); asked for when absent',
    )
    .option('--root-backup <file>', 'file that dke root backup wrote')
    .option('--passphrase-file <file>', 'with the passphrase of the root key or of its backup (mode 600)');

const requireSound = (findings: readonly string[]): void => {
  if (findings.length > 0)
    throw new CommandError(
      'checks-failed',
      `${findings.length} of what is stored is not as it should be: ${findings[0]}`,
      {
        hint: 'compare with another backup; what is damaged was damaged when the backup was made (docs/faults.md)',
      },
    );
};

export const addBackup = (program: Command): void => {
  const noun = program.command('backup').summary('back up and restore the whole service (SQLite)');

  noun
    .command('create')
    .description(
      'Writes the whole service into a new file that the registered recovery keys open: tenants, keys, users, tokens, the audit ' +
        'log and the configuration, without the root key (dke root backup) and the files of the configuration. The service may run. Run ' +
        'it on the host, as the user of the service.',
    )
    .requiredOption('--out <file>', 'the new file')
    .option('--config <file>', "the service's configuration; ./dke.toml when it is there")
    .action(async ({ config, out }: { readonly config?: string; readonly out: string }, command: Command) => {
      const { createBackup } = await import('../app/service-backup.ts');
      const version = program.version() ?? 'unknown';
      const report = await createBackup(loadConfig(config, process.cwd()), version, resolve(out));
      outputOf(command).record(report);
      if (report.rootKeyBackup !== 'current')
        process.stderr.write(
          `dke: ${report.rootKeyBackup === 'none' ? 'there is no backup of the root key' : 'the backup of the root key is of another epoch'}: ` +
            'without one this backup opens nothing: dke root backup --out <file>\n',
        );
    });

  openOptions(noun.command('verify <backup>'))
    .description(
      'Opens a backup completely, anywhere: every byte and its database. With --root-backup also every key, as dke verify does. ' +
        'It is opened into a folder under TMPDIR, which is removed afterwards.',
    )
    .action(async (backup: string, options: OpenOptions, command: Command) => {
      const { verifyBackup } = await import('../app/service-backup.ts');
      const report = await verifyBackup(defaultConfig(process.cwd()), resolve(backup), keyOpener(options), {
        rootBackup: options.rootBackup,
        ask: askFor(options.passphraseFile, undefined),
      });
      outputOf(command).record({ ...report, sound: report.findings.length === 0 });
      requireSound(report.findings);
    });

  openOptions(noun.command('restore <backup>'))
    .description(
      'Restores the whole service into the data directory of the configuration, which is empty. A configuration that does not ' +
        'exist is written from the backup. The service starts in quarantine: dke quarantine show lists what is missing since.',
    )
    .option('--config <file>', "the service's configuration; ./dke.toml when it is there")
    .option('--new-passphrase-file <file>', 'with the passphrase of a root provider that dke.toml declares (mode 600)')
    .action(async (backup: string, options: OpenOptions, command: Command) => {
      const { restoreBackup } = await import('../app/service-backup.ts');
      const restored = await restoreBackup(resolve(backup), {
        configPath: options.config === undefined ? undefined : resolve(options.config),
        workingDirectory: process.cwd(),
        rootBackup: options.rootBackup,
        openKey: keyOpener(options),
        ask: askFor(options.passphraseFile, options.newPassphraseFile),
      });
      const output = outputOf(command);
      output.record({ ...restored, sound: restored.findings.length === 0 });
      output.say(
        'Next: dke doctor --config <file> names the files that are missing; start the service, and confirm the quarantine.',
      );
      requireSound(restored.findings);
    });
};
