// `dke store`: where a stopped service keeps what it knows.

import type { Command } from 'commander';
import { loadConfig } from '../config/config.ts';
import { outputOf } from './caller.ts';
import { askFor } from './terminal.ts';

interface MigrateOptions {
  readonly config?: string;
  readonly to: string;
  readonly passphraseFile?: string;
}

export const addStore = (program: Command): void => {
  program
    .command('store')
    .summary('where the service keeps what it knows')
    .command('migrate')
    .description(
      'Copies everything, while the service is stopped, from the embedded database to PostgreSQL or back: from the store of --config ' +
        'to that of --to, which is empty. All of it is there afterwards, verified, or nothing. The source stays as it is.',
    )
    .requiredOption('--to <file>', 'the configuration that the service is to have: the same but for [store]')
    .option('--config <file>', "the service's configuration; ./dke.toml when it is there")
    .option('--passphrase-file <file>', 'with the passphrase that opens the root key (mode 600)')
    .action(async ({ config, to, passphraseFile }: MigrateOptions, command: Command) => {
      const { migrateStore } = await import('../app/offline.ts');
      const report = await migrateStore(
        loadConfig(config, process.cwd()),
        loadConfig(to, process.cwd()),
        askFor(passphraseFile, undefined),
      );
      outputOf(command).record({ ...report });
    });
};
