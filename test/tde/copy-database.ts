// Copies the files of a database to another directory, which stands for a backup, a restore and a
// duplicate here.
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Without its alert log, with or without the wallet, and without the files that are named. */
export const copyDatabase = (
  from: string,
  to: string,
  parts: readonly ('wallet' | 'data')[] = ['wallet', 'data'],
  without: readonly string[] = [],
): void => {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from))
    if (
      parts.includes(name === 'wallet' ? 'wallet' : 'data') &&
      !without.includes(name) &&
      !/^(alert_|profile)/.test(name)
    )
      cpSync(join(from, name), join(to, name), { recursive: true });
};
