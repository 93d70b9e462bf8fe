// Receipts that commands on a host leave beside what they work on, one in each line. They are
// added, never replaced: the service keeps all of them, also those of the time in which it did not
// run. A receipt is on the disk before what it is about exists.

import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder } from '../../base/durable-files.ts';
import { StartError } from '../../base/start-error.ts';

/** What is read of it, from its end: thousands of receipts. */
const mostBytes = 1024 * 1024;

const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** The service has to read what root has made: a new file belongs to the owner of its folder. */
const openToAdd = (path: string): number => {
  try {
    const made = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0o600);
    const { uid, gid } = statSync(dirname(path));
    if (process.getuid?.() === 0) fchownSync(made, uid, gid);
    return made;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
  }
};

export const addReceipt = (path: string, receipt: object): void => {
  const fd = openToAdd(path);
  try {
    // After a line that a power failure has cut off, too.
    const line = Buffer.from(`\n${JSON.stringify(receipt)}\n`);
    if (writeSync(fd, line) !== line.length) throw new Error(`the disk takes no bytes for ${path}`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  syncFolder(dirname(path));
};

/**
 * The oldest first. A line that is not whole, or not a receipt, is none: `parse` answers undefined.
 * Without the file there are none; throws StartError for one that cannot be read, because it is
 * then not known which backups exist.
 */
export const readReceipts = <T>(path: string, parse: (found: object) => T | undefined): readonly T[] => {
  let text: string;
  try {
    const fd = openSync(path, 'r');
    try {
      const { size } = fstatSync(fd);
      const bytes = Buffer.alloc(Math.min(size, mostBytes));
      text = bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, size - bytes.length));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw new StartError(
      'permission',
      `${path} cannot be read (${codeOf(error)}): it says which backups exist. Give the file to the service's user (chown)`,
      { cause: error },
    );
  }
  return text.split('\n').flatMap((line) => {
    try {
      // A line with a list is of an earlier version.
      return [JSON.parse(line) as unknown].flat().flatMap((found) => {
        const receipt = typeof found === 'object' && found !== null ? parse(found) : undefined;
        return receipt === undefined ? [] : [receipt];
      });
    } catch {
      return [];
    }
  });
};
