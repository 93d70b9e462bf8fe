// What tells a restore of a backup that was cut off from one that is complete. The journal comes
// first, and the database gets its name last: with a journal and without a database, everything
// that the restore has made is undone by the next one, and no service starts. The caller has the
// lock of the data directory.

import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeDurably, syncFolder, writeDurably } from '../../base/durable-files.ts';

export interface RestoreJournal {
  /**
   * Outside of the data directory, and not there before. With a digest: not one that a person has
   * written since. What is older than the journal, a person has moved there since.
   */
  readonly files: readonly { readonly path: string; readonly digest: string | null }[];
  /** The first folder that was made for the data directory; null: it was there. */
  readonly folder: string | null;
}

/** The digest in the journal of a text that a restore writes: SHA-256, hexadecimal. */
export const digestOf = (content: string | Uint8Array): string => hash('sha256', content, 'hex');

const journalPath = (dataDirectory: string): string => join(dataDirectory, 'restore-under-way');
const databasePath = (dataDirectory: string): string => join(dataDirectory, 'dke.db');

/** Whether a restore is under way, was cut off, or is complete but for its journal. */
export const hasJournal = (dataDirectory: string): boolean => existsSync(journalPath(dataDirectory));

export const beginJournal = (dataDirectory: string, journal: RestoreJournal): void => {
  writeDurably(journalPath(dataDirectory), JSON.stringify(journal));
  syncFolder(dataDirectory);
};
export const endJournal = (dataDirectory: string): void => removeDurably(journalPath(dataDirectory));

/** A restore is complete once the database has its name. */
export const isRestoreCutOff = (dataDirectory: string): boolean =>
  hasJournal(dataDirectory) && !existsSync(databasePath(dataDirectory));
/** A restore that was cut off after its last step is complete. */
export const settleRestore = (dataDirectory: string): void => {
  if (hasJournal(dataDirectory) && !isRestoreCutOff(dataDirectory)) endJournal(dataDirectory);
};

/** One whose writing was cut off is of a restore that has made nothing yet. */
const readJournal = (path: string): RestoreJournal => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as RestoreJournal;
  } catch (error) {
    if (error instanceof SyntaxError) return { files: [], folder: null };
    throw error;
  }
};

/**
 * Undoes everything but the data directory and its lock. Answers the first folder that the restore
 * has made.
 */
export const undoRestore = (dataDirectory: string): string | null => {
  const journal = journalPath(dataDirectory);
  const { files, folder } = readJournal(journal);
  const begunAt = statSync(journal).mtimeMs;
  for (const { path, digest } of files)
    if (
      existsSync(path) &&
      (digest === null ? statSync(path).mtimeMs >= begunAt : digestOf(readFileSync(path)) === digest)
    )
      removeDurably(path);
  for (const name of readdirSync(dataDirectory))
    if (name !== 'lock' && join(dataDirectory, name) !== journal)
      rmSync(join(dataDirectory, name), { recursive: true, force: true });
  endJournal(dataDirectory);
  return folder;
};
