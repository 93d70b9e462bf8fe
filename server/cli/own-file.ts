// Files that the command keeps for one person: JSON in the person's configuration folder, which no other user can read.

import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { putInPlace, writeDurably } from '../base/durable-files.ts';
import { CommandError } from './exit-codes.ts';
import { readSecretFile } from './files.ts';

export const ownFile = (name: string): string => {
  const { XDG_CONFIG_HOME: given } = process.env;
  return join(given === undefined || given === '' ? join(homedir(), '.config') : given, 'dke', name);
};

/** Undefined: there is none. Throws `CommandError`, which names the file, when it is not what we wrote. */
export const readOwnFile = <T>(
  path: string,
  is: (value: unknown) => value is T,
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
  if (is(value)) return value;
  throw new CommandError('config', `${path} is not ${what}`, { hint });
};

/** The old file or the new one is there at any moment. */
export const writeOwnFile = (path: string, value: object): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fresh = `${path}.${process.pid}`;
  writeDurably(fresh, JSON.stringify(value), { flag: 'wx' });
  putInPlace(fresh, path);
};
