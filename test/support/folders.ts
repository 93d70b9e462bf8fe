// Folders for what tests write, which are removed with them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';

const makeFolder = (atEnd: (remove: () => void) => void): string => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-test-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** For the test that runs, or whose `beforeEach` does. */
export const folderOfTest = (): string => makeFolder(onTestFinished);
/** For all tests of a file or a `describe`: called there. */
export const sharedFolder = (): string => makeFolder(afterAll);
