// Folders for what tests write, which are removed with them.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
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

const systemFolder = '/run/dke-pkcs11';
/**
 * Where an agent for all users of a host may have its socket: one for each test file. After
 * `remove` nothing is left, not even the system folder, which root's processes would take for
 * theirs.
 */
export const folderInSystem = (name: string): { readonly path: string; make(): void; remove(): void } => {
  const path = join(systemFolder, `${name}-${process.pid}`);
  return {
    path,
    make: () => {
      mkdirSync(path, { recursive: true });
      for (const each of [systemFolder, path]) chmodSync(each, 0o755);
    },
    remove: () => {
      rmSync(path, { recursive: true, force: true });
      if (readdirSync(systemFolder).length === 0) rmdirSync(systemFolder);
    },
  };
};
