// What the next restore undoes of one that was cut off: only files that the former one can have
// written.
import { existsSync, mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { beginJournal, undoRestore } from '../../../server/app/host/restore-journal.ts';
import { folderOfTest } from '../../support/folders.ts';

test('a root key that a person has moved to its place since then is left alone', () => {
  const folder = folderOfTest();
  const data = join(folder, 'data');
  const path = join(folder, 'root.key');
  mkdirSync(data);
  const elsewhere = join(folder, 'the only root key');
  writeFileSync(elsewhere, 'a root key');
  const lastYear = new Date(Date.now() - 365 * 86_400_000);
  utimesSync(elsewhere, lastYear, lastYear);
  const files = [{ path, digest: null }];
  beginJournal(data, { files, folder: null });
  renameSync(elsewhere, path);
  undoRestore(data);
  expect(existsSync(path)).toBe(true);
});

test('a root key that the restore has written is removed', () => {
  const folder = folderOfTest();
  const data = join(folder, 'data');
  const path = join(folder, 'root.key');
  mkdirSync(data);
  beginJournal(data, { files: [{ path, digest: null }], folder: null });
  writeFileSync(path, 'a root key');
  undoRestore(data);
  expect(existsSync(path)).toBe(false);
});
