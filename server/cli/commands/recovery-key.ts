// `dke recovery-key`: what opens snapshots. Made and kept apart from the service, which knows the
// public half.

import type { Command } from 'commander';
import { core } from '../../../addon/core.ts';
import { command } from '../../base/command-line.ts';
import { parseRecoveryKey } from '../../base/recovery-key.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';
import { createRecoveryKeyFile, describeRecoveryKeyFile } from '../service/recovery-key-file.ts';
import { readPassphrase } from '../terminal/ask-secret.ts';

const routes = operations.recoveryKeys;

/** Locked memory where the system gives it: this is a short-lived process. */
export const readyCore = (): typeof core => {
  core.initialize({ allowUnlocked: true });
  return core;
};

export const addRecoveryKey = (program: Command): void => {
  const noun = addNoun(program, 'recovery-key');

  noun.local(
    'create',
    'Creates a recovery key in a new file (mode 600). Needs no service: run it on another machine, and keep copies of the file.',
    {
      '--out <file>': { help: 'the new file', required: true },
      '--passphrase': 'protect it with a passphrase, which the command asks for',
      '--passphrase-file <file>': 'protect it with the passphrase in this file (mode 600); - for standard input',
    },
    async (output, { out, passphrase, passphraseFile }) => {
      const chosen =
        passphrase === true || passphraseFile !== undefined ? await readPassphrase(passphraseFile, true) : null;
      try {
        const created = createRecoveryKeyFile(readyCore(), out, chosen);
        output.record({ ...created, file: out });
        output.say(`register it: ${command`dke recovery-key register --name=NAME ${created.publicKey}`}`);
      } finally {
        chosen?.fill(0);
      }
    },
  );
  noun.local('show <file>', 'Shows the public half of the recovery key in a file.', {}, (output, _, file = '') =>
    output.record({ ...describeRecoveryKeyFile(file), file }),
  );
  noun.row(
    routes.register,
    'register <public-key>',
    'Registers a recovery key: new snapshots are sealed to it. Pass the text that create printed, or the file itself.',
    {
      options: { '--name <name>': { help: 'for example its owner and where it is stored', required: true } },
      also: (_, __, given = '') => ({
        body: { publicKey: parseRecoveryKey(given) === null ? describeRecoveryKeyFile(given).publicKey : given },
      }),
    },
  );
  noun.row(
    routes.list,
    'list',
    'Lists recovery keys, including removed ones, and how many snapshots each of them opens.',
    {
      columns: { ID: 'id', NAME: 'name', REGISTERED: 'createdAt', REMOVED: 'removedAt', OPENS: 'snapshotCount' },
    },
  );
  noun.row(
    routes.remove,
    'remove <id>',
    'Removes a recovery key: new snapshots are no longer sealed to it. The answer names the older snapshots that it still opens: keep its file as long as you keep them.',
    { options: { '--force': 'remove even the last one while a schedule creates snapshots' } },
  );
};
