// `dke verify`: checks everything that a stopped service has stored, or a copy of it.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { loadConfig } from '../config/config.ts';
import { outputOf } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { askFor } from './terminal.ts';

interface VerifyOptions {
  readonly config?: string;
  readonly data?: string;
  readonly passphraseFile?: string;
}

export const addVerify = (program: Command): void => {
  program
    .command('verify')
    .summary('check everything that is stored, offline')
    .description(
      'Checks, while the service is stopped, that every key record opens, every policy row and the audit log are as they ' +
        'were written, and destroyed keys have no material. Changes nothing.',
    )
    .option('--config <file>', "the service's configuration; ./dke.toml when it is there")
    .option('--data <folder>', 'a copy of its data directory, with the root key in it as root.key')
    .option('--passphrase-file <file>', 'with the passphrase that opens the root key (mode 600)')
    .action(async ({ config: path, data, passphraseFile }: VerifyOptions, command: Command) => {
      const declared = loadConfig(path, process.cwd());
      const folder = data === undefined ? undefined : resolve(data);
      const config =
        folder === undefined
          ? declared
          : { ...declared, dataDirectory: folder, root: { ...declared.root, path: resolve(folder, 'root.key') } };
      const { verifyOffline } = await import('../app/offline.ts');
      const { findings, ...counts } = await verifyOffline(config, askFor(passphraseFile, undefined));
      outputOf(command).record({ ...counts, sound: findings.length === 0, findings });
      if (findings.length > 0)
        throw new CommandError(
          'checks-failed',
          `${findings.length} of what is stored is not as it should be: ${findings[0]}`,
          {
            hint: 'keep a copy of these files as they are; put a backup back, or destroy the keys that are named (docs/faults.md)',
          },
        );
    });
};
