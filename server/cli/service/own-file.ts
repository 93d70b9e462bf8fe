// Files that the command keeps for one person: JSON in the person's configuration folder, which no
// other user can read.

import { randomUUID } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { command } from '../../base/command-line.ts';
import { putInPlace, writeDurably } from '../../base/durable-files.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readSecretFile } from '../terminal/secret-files.ts';

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

const unwritable = (path: string, error: unknown): CommandError =>
  error instanceof CommandError
    ? error
    : new CommandError('config', `${path} cannot be written (${(error as NodeJS.ErrnoException).code})`, {
        hint: 'make its folder yours, with room on the disk, or set XDG_CONFIG_HOME to such a folder',
      });

/** A change takes milliseconds: a lock of before was left by a command that was killed. */
const staleMs = 10_000;
const lookEveryMs = 10;
const pause = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lookEveryMs);
const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

/** Locks of others are waited for, one after the other, for so long in all. */
const lockMs = 30_000;

/** Removes a lock that was left. Two commands may see it at once: only that very one goes. */
const removeStale = (lock: string): void => {
  // A link, or a folder, is not a lock of ours: commands write files, and remove only those.
  if (lstatSync(lock, { throwIfNoEntry: false })?.isFile() === false)
    throw new CommandError('config', `${lock} is not a file`, { hint: command`check what it is, then: rm -r ${lock}` });
  const owner = readIfThere(lock);
  // A time ahead of this clock is not that of a command that runs.
  const age = Math.abs(Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()));
  if (owner === undefined || age < staleMs) return;
  const aside = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (readIfThere(aside) !== owner && !existsSync(lock)) renameSync(aside, lock);
  else rmSync(aside, { force: true });
};

/** Processes of two containers with one home have the same numbers: a lock has a random owner. */
const lockFor = (path: string, waitMs: number): { isOurs(): boolean; release(): void } => {
  const lock = `${path}.lock`;
  const owner = randomUUID();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const end = performance.now() + waitMs;
  for (;;)
    try {
      writeFileSync(lock, owner, { flag: 'wx', mode: 0o600 });
      const isOurs = (): boolean => readIfThere(lock) === owner;
      return {
        isOurs,
        release: () => {
          if (isOurs()) rmSync(lock, { force: true });
        },
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      removeStale(lock);
      if (performance.now() > end)
        throw new CommandError('config', `another command keeps ${lock}`, {
          hint: command`wait until it ends and run the command again; if it was killed: rm ${lock}`,
        });
      pause();
    }
};

/** A draft is written under the lock alone: what is there was left by a command that was killed. */
const removeDrafts = (path: string): void => {
  const start = `${basename(path)}.`;
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(start) && isUuid.test(name.slice(start.length)))
      rmSync(join(dirname(path), name), { force: true });
};
const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Reads, changes and writes a file while no other command does: of two changes at once, both are in
 * it. Throws `CommandError`: why it cannot be written.
 */
export const changeOwnFile = (path: string, work: (write: (value: object) => void) => void, waitMs = lockMs): void => {
  let lock: ReturnType<typeof lockFor> | undefined;
  try {
    lock = lockFor(path, waitMs);
    removeDrafts(path);
    const { isOurs } = lock;
    work((value) =>
      withDraft(path, JSON.stringify(value), (draft) => {
        if (!isOurs())
          throw new CommandError('config', `another command has changed ${path} in the meantime`, {
            hint: 'run the command again',
          });
        // The old file or the new one is there at any moment.
        putInPlace(draft, path);
      }),
    );
  } catch (error) {
    throw unwritable(path, error);
  } finally {
    lock?.release();
  }
};

/** Writes a draft beside the file, for `use`, and leaves none. */
const withDraft = (path: string, text: string, use: (draft: string) => void): void => {
  const draft = `${path}.${randomUUID()}`;
  try {
    writeDurably(draft, text, { flag: 'wx' });
    use(draft);
  } finally {
    rmSync(draft, { force: true });
  }
};

/** Before something begins whose result is kept in this file. */
export const requireWritable = (path: string): void =>
  changeOwnFile(path, () => withDraft(path, '{}', () => undefined));
