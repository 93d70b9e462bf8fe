// `dke store`: the database of a stopped service.

import type { Command } from 'commander';
import { loadConfig, loadHostConfig } from '../../app/config/config.ts';
import { addNoun, configFlag, passphraseFlag } from '../service/command-rows.ts';
import { askFor } from '../terminal/ask-secret.ts';

export const addStore = (program: Command): void => {
  addNoun(program, 'store').local(
    'migrate',
    'Copies everything from the embedded database to PostgreSQL, or back, while the service is stopped: from the store of --config ' +
      'to that of --to, which must be empty. The copy is complete and verified, or nothing is copied. The source is unchanged.',
    {
      '--to <file>': {
        help: 'the new configuration of the service; only [store] differs',
        required: true,
      },
      ...configFlag,
      ...passphraseFlag,
    },
    async (output, { config, to, passphraseFile }) => {
      const { migrateStore } = await import('../../app/host/offline.ts');
      const ask = askFor(passphraseFile, undefined);
      output.record({
        ...(await migrateStore(loadHostConfig(config, process.cwd()), loadConfig(to, process.cwd()), ask)),
      });
    },
  );
};
