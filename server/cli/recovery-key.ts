// `dke recovery-key`: what opens snapshots. Made and kept apart from the service, which knows the public half.

import type { Command } from 'commander';
import { core } from '../../addon/core.ts';
import { parseRecoveryKey } from '../base/recovery-key.ts';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type GlobalOptions } from './caller.ts';
import { openOutput } from './output.ts';
import { choosePassphrase } from './passphrase.ts';
import { createRecoveryKeyFile, describeRecoveryKeyFile } from './recovery-key-file.ts';

const routes = apiRoutes.recoveryKeys;

/** Locked memory where the system gives it: this is a short-lived process. */
export const readyCore = (): typeof core => {
  core.initialize({ allowUnlocked: true });
  return core;
};

export const addRecoveryKey = (program: Command): void => {
  const noun = program.command('recovery-key').summary('keys that open snapshots, kept apart from the service');

  noun
    .command('create')
    .description(
      'Makes a recovery key in a new file (mode 600). Needs no service: do it on a machine apart, and keep copies.',
    )
    .requiredOption('--out <file>', 'the new file')
    .option('--passphrase', 'protect it with a passphrase, asked for at the terminal')
    .option('--passphrase-file <file>', 'protect it with the passphrase in this file (mode 600); - for standard input')
    .action(
      async (
        {
          out,
          passphrase,
          passphraseFile,
        }: { readonly out: string; readonly passphrase?: true; readonly passphraseFile?: string },
        command: Command,
      ) => {
        const output = openOutput(command.optsWithGlobals<GlobalOptions>().output, (text) => {
          process.stdout.write(text);
        });
        const chosen =
          passphrase === true || passphraseFile !== undefined ? await choosePassphrase(passphraseFile) : null;
        try {
          output.record({ ...createRecoveryKeyFile(readyCore(), out, chosen), file: out });
        } finally {
          chosen?.fill(0);
        }
        output.say('register it: dke recovery-key register <publicKey> --name NAME');
      },
    );

  noun
    .command('show <file>')
    .description('Shows the public half of the recovery key in a file.')
    .action((file: string, _options: object, command: Command) => {
      openOutput(command.optsWithGlobals<GlobalOptions>().output, (text) => {
        process.stdout.write(text);
      }).record({ ...describeRecoveryKeyFile(file), file });
    });

  noun
    .command('register <public-key>')
    .description('Snapshots are sealed to it from now on: the text that create has printed, or the file itself.')
    .requiredOption('--name <name>', 'whose it is, where it lies')
    .action(
      action<{ readonly name: string }>(async ({ call, output }, { name }, given = '') => {
        const publicKey = parseRecoveryKey(given) === null ? describeRecoveryKeyFile(given).publicKey : given;
        output.record(await call(routes.register, { body: { name, publicKey } }));
      }),
    );

  noun
    .command('list')
    .description('Lists recovery keys, removed ones too.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(routes.list), [
          ['ID', (row) => row.id],
          ['NAME', (row) => row.name],
          ['REGISTERED', (row) => row.createdAt],
          ['REMOVED', (row) => row.removedAt],
        ]);
      }),
    );

  noun
    .command('remove <id>')
    .description('New snapshots are no longer sealed to it. Keep its file as long as older ones are kept.')
    .option('--force', 'also the last one, while snapshots are made by a schedule')
    .action(
      action<{ readonly force?: boolean }>(async ({ call, output }, { force }, id = '') => {
        output.record(await call(routes.remove, { path: { id }, query: force === true ? { force: 'true' } : {} }));
      }),
    );
};
