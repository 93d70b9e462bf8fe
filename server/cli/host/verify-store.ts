// `dke verify`: checks everything that a stopped service has stored, or a copy of it.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { loadConfig, loadHostConfig } from '../../app/config/config.ts';
import { configFlag, nounOf, passphraseFlag } from '../service/command-rows.ts';
import { askFor } from '../terminal/ask-secret.ts';
import { CommandError } from '../terminal/exit-codes.ts';

export const requireSound = (findings: readonly string[], hint: string): void => {
  if (findings.length > 0)
    throw new CommandError('checks-failed', `the stored data has problems (${findings.length}): ${findings[0]}`, {
      hint,
    });
};

export const addVerify = (program: Command): void => {
  nounOf(program).local(
    'verify',
    'Checks, while the service is stopped, that every key record can be opened, that policy rows and the audit log are as they ' +
      'were written, and that destroyed keys have no material. Changes nothing.',
    {
      ...configFlag,
      '--data <folder>': 'a copy of its data directory, with the root key in it as root.key',
      ...passphraseFlag,
    },
    async (output, { config: path, data, passphraseFile }) => {
      const declared = (data === undefined ? loadHostConfig : loadConfig)(path, process.cwd());
      const folder = data === undefined ? undefined : resolve(data);
      const config =
        folder === undefined
          ? declared
          : { ...declared, dataDirectory: folder, root: { ...declared.root, path: resolve(folder, 'root.key') } };
      const { verifyOffline } = await import('../../app/host/offline.ts');
      const { findings, ...counts } = await verifyOffline(config, askFor(passphraseFile, undefined));
      output.record({ ...counts, valid: findings.length === 0, findings });
      requireSound(
        findings,
        'keep a copy of these files as they are; then restore a backup, or destroy the keys that are named (docs/faults.md)',
      );
    },
  );
};
