// How many audit records the database had at its last durable commit, and the root of their tree,
// in a file next to it. SQLite recovers its log as far as the log is whole: a changed byte, or a
// log that was taken away, silently takes confirmed changes back. With this number that shows at
// the next start.
//
// It is written behind the commit and never synced: a killed process leaves it exact, a power
// failure leaves it at most too low. So it never asks for more than was confirmed. What is torn or
// changed in it says nothing. A durable commit that appended no audit record is not covered.

import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { toRfc3339 } from '../../../../base/time.ts';

export interface CommittedLog {
  readonly records: number;
  /** Undefined: not known. */
  readonly root: Buffer | undefined;
}

export interface CommittedMark {
  /** The mark as it was found at the start; undefined: not known. */
  readonly found: CommittedLog | undefined;
  /** After a durable commit. A smaller number than before is not written: that must be accepted. */
  write(log: CommittedLog): void;
  /** The database is accepted as it is: the next commit starts a new mark. */
  accept(): void;
  /** The file, and when it was written. */
  place(): string;
  close(): void;
}

const digits = 16;
const unknownRoot = '-'.repeat(64);
const textOf = ({ records, root }: CommittedLog): string => {
  const log = `${String(records).padStart(digits, '0')} ${root?.toString('hex') ?? unknownRoot}`;
  return `${log} ${createHash('sha256').update(`dke committed ${log}`).digest('hex').slice(0, 16)}\n`;
};
const read = (path: string): CommittedLog | undefined => {
  try {
    const text = readFileSync(path, 'latin1');
    const root = text.slice(digits + 1, digits + 1 + unknownRoot.length);
    const log = {
      records: Number(text.slice(0, digits)),
      root: root === unknownRoot ? undefined : Buffer.from(root, 'hex'),
    };
    return text === textOf(log) ? log : undefined;
  } catch {
    return undefined;
  }
};

/** `database`: the path of the database file. */
export const openCommittedMark = (database: string): CommittedMark => {
  const path = `${database}.committed`;
  const found = read(path);
  let highest = found?.records ?? 0;
  let file: number | undefined;
  return {
    found,
    write: (log) => {
      if (log.records <= highest) return;
      highest = log.records;
      try {
        file ??= openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
        writeSync(file, textOf(log), 0, 'latin1');
      } catch {
        // A full disk or a failing one: what the file says stays true, it is only less.
      }
    },
    place: () => {
      const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      return writtenAt === undefined ? path : `${path} (written ${toRfc3339(writtenAt)})`;
    },
    accept: () => {
      highest = 0;
    },
    close: () => {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
};
