// Files next to the root key: read by their owner only, and overwritten in place where the old must
// not stay.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Core, CoreError } from '../../../addon/core.ts';
import { replaceFile } from '../../base/durable-files.ts';
import { forbiddenModeOf, requiredMode } from '../../base/secret-mode.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type BackupReceipt, parseBackupReceipt } from '../../domain/backup-receipt.ts';
import type { RootBackup, RootProvider } from '../../ports/root-provider.ts';
import { readReceipts } from './receipts.ts';

const said = (work: string, path: string, error: unknown): CoreError =>
  error instanceof CoreError
    ? error
    : new CoreError('io', `${path} could not be ${work} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);

const readChecked = (path: string, flags: number, check: (file: Stats) => void): Buffer => {
  try {
    const fd = openSync(path, constants.O_RDONLY | flags);
    try {
      check(fstatSync(fd));
      return readFileSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw said('read', path, error);
  }
};

const requireMode = (path: string, mode: number, forbidden: number, required: string): void => {
  if ((mode & forbidden) !== 0)
    throw new CoreError('permission', `${path} has mode ${(mode & 0o777).toString(8)}: it must have mode ${required}`);
};

/** A file of this user that no other user can read. Throws CoreError 'io', 'permission'. */
export const readOwnFile = (path: string): Buffer =>
  readChecked(path, constants.O_NOFOLLOW, ({ mode, uid }) => {
    const own = process.geteuid?.() ?? 0;
    if (uid !== own) throw new CoreError('permission', `${path} belongs to user ${uid}: it must belong to user ${own}`);
    requireMode(path, mode, 0o077, '600');
  });

/**
 * A passphrase, a PIN or a backup that was put there for this user, by the user or by root
 * (base/secret-mode.ts). Links of both are followed: secrets of Kubernetes are links. Throws
 * CoreError 'io', 'permission'.
 */
export const readGivenSecret = (path: string): Buffer => {
  const own = process.geteuid?.() ?? 0;
  const requireOwner = ({ uid }: Stats): void => {
    if (uid !== own && uid !== 0)
      throw new CoreError('permission', `${path} belongs to user ${uid}: it must belong to user ${own} or root`);
  };
  return readChecked(path, 0, (file) => {
    requireOwner(lstatSync(path));
    requireOwner(file);
    requireMode(path, file.mode, forbiddenModeOf(file.uid, own), requiredMode);
  });
};

/** Writes bytes into a file that is there, durably, and reads them back. */
export const overwrite = (path: string, position: number, bytes: readonly Uint8Array[]): void => {
  try {
    const fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
    try {
      for (const each of bytes) {
        if (writeSync(fd, each, 0, each.length, position) !== each.length)
          throw new CoreError('io', `${path} could not be written to its end`);
        fsyncSync(fd);
      }
      const last = bytes.at(-1) ?? Buffer.alloc(0);
      const back = Buffer.alloc(last.length);
      readSync(fd, back, 0, back.length, position);
      if (!back.equals(last)) throw new CoreError('io', `${path} did not keep what was written`);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw said('written', path, error);
  }
};

/** Overwrites with random bytes, then with zeros. */
export const erase = (core: Pick<Core, 'random'>, path: string, position: number, length: number): void => {
  const noise = Buffer.alloc(length);
  core.random(noise);
  overwrite(path, position, [noise, Buffer.alloc(length)]);
};

/** How every root key file begins. */
export const rootMagic = Buffer.from('DKE-ROOT');

/** Sizes of both formats of a root key file, in bytes (FORMAT.md). */
const rootFileSizes = new Set([12_288, 24_576]);
/** What the service itself keeps beside the root key, with the names of their drafts. */
const keptBeside = ['.backup', '.checkpoint', '.change'].flatMap((end) => [end, `${end}.new`]);
/**
 * Other files in the folder of the root key that are root key files: copies that people made. What
 * has the name of the root key and an end of its own is one whatever is in it: a damaged one was
 * moved aside, and most of it may be a key. Of the others, only files with such a name are opened:
 * the database and its locks may be in the same folder, and a process that closes a file it has
 * locked elsewhere loses its lock (POSIX).
 */
export const rootFilesBeside = (path: string): readonly string[] => {
  const folder = dirname(path);
  const own = basename(path);
  const isRootFile = (name: string): boolean => {
    if (name.startsWith(`${own}.`)) return !keptBeside.includes(name.slice(own.length));
    try {
      if (!/root|key/i.test(name) || !rootFileSizes.has(lstatSync(join(folder, name)).size)) return false;
      const fd = openSync(join(folder, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const head = Buffer.alloc(rootMagic.length);
        return fstatSync(fd).isFile() && readSync(fd, head) === head.length && head.equals(rootMagic);
      } finally {
        closeSync(fd);
      }
    } catch {
      // A link, or a file of another user: not one that this service can have written.
      return false;
    }
  };
  try {
    return readdirSync(folder)
      .filter((name) => name !== own && isRootFile(name))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
};

/** Where the receipts of backups of the root key are. */
export const backupReceiptPath = (path: string): string => `${path}.backup`;
export const backupReceipts = (path: string): readonly BackupReceipt[] =>
  readReceipts(backupReceiptPath(path), parseBackupReceipt);

/** The newest backup that was made on this host. */
export const backupBeside = (path: string): RootBackup | undefined => {
  const made = backupReceipts(path).flatMap(({ state, rootEpoch, at }) =>
    state === 'made' && rootEpoch !== null ? [{ epoch: rootEpoch, at }] : [],
  );
  return made.toSorted((one, other) => one.epoch - other.epoch || one.at - other.at).at(-1);
};

export const anchorPathOf = (path: string): string => `${path}.checkpoint`;

/** The checkpoint of the audit log that is kept next to the root key. */
export const anchorBeside = (path: string): RootProvider['anchor'] => {
  const anchorPath = anchorPathOf(path);
  return {
    read: () => (existsSync(anchorPath) ? readFileSync(anchorPath, 'utf8') : undefined),
    write: (note) => replaceFile(anchorPath, note),
    place: () => {
      const writtenAt = statSync(anchorPath, { throwIfNoEntry: false })?.mtimeMs;
      return writtenAt === undefined ? anchorPath : `${anchorPath} (written ${toRfc3339(writtenAt)})`;
    },
  };
};
