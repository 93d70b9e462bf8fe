// Files that the command keeps for one person: JSON in the person's configuration folder, which no
// other user can read.

import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { putInPlace, writeDurably } from '../base/durable-files.ts';
import { CommandError } from './exit-codes.ts';
import { readSecretFile } from './files.ts';

export const ownFile = (name: string): string => {
  const { XDG_CONFIG_HOME: given } = process.env;
  return join(given === undefined || given === '' ? join(homedir(), '.config') : given, 'dke', name);
};

/**
 * Undefined: there is none. Throws `CommandError`, which names the file, when it is not what we
 * wrote.
 */
export const readOwnFile = <T>(
  path: string,
  parse: (value: unknown) => T | undefined,
  what: string,
  hint: string,
): T | undefined => {
  if (!existsSync(path)) return undefined;
  const bytes = readSecretFile(path);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    value = undefined;
  } finally {
    bytes.fill(0);
  }
  const parsed = parse(value);
  if (parsed !== undefined) return parsed;
  throw new CommandError('config', `${path} is not ${what}`, { hint });
};

/**
 * Writes a draft beside the file, for `use`, and leaves none. Its name is random: processes of two
 * containers with one home have the same numbers. Throws `CommandError`: why it cannot be.
 */
const withDraft = (path: string, text: string, use: (draft: string) => void): void => {
  const draft = `${path}.${randomUUID()}`;
  let isOurs = false;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    try {
      writeDurably(draft, text, { flag: 'wx' });
      isOurs = true;
    } catch (error) {
      // A full disk leaves a part of it.
      isOurs = (error as NodeJS.ErrnoException).code !== 'EEXIST';
      throw error;
    }
    use(draft);
  } catch (error) {
    throw new CommandError('config', `${path} cannot be written (${(error as NodeJS.ErrnoException).code})`, {
      hint: 'make its folder yours, with room on the disk, or set XDG_CONFIG_HOME to such a folder',
    });
  } finally {
    if (isOurs && existsSync(draft)) rmSync(draft, { force: true });
  }
};

/** The old file or the new one is there at any moment. */
export const writeOwnFile = (path: string, value: object): void =>
  withDraft(path, JSON.stringify(value), (draft) => putInPlace(draft, path));

/** Before something begins whose result is kept in this file. */
export const requireWritable = (path: string): void => withDraft(path, '{}', () => undefined);
