// Root provider `file`: one file with two slots, kept by the addon (FORMAT.md). It is made at first start, mode 0400, and
// belongs beside no backup of the database: whoever has both has the keys.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Core, CoreError } from '../../addon/core.ts';
import type { RootKey, RootProvider } from '../ports/root-provider.ts';

type RootCore = Pick<
  Core,
  'createRootFile' | 'openRootFile' | 'addRootEpoch' | 'eraseRootEpoch' | 'fileSystem' | 'release'
>;

/** Replaces a file as a whole: after a crash it is the old one or the new one. */
const replaceFile = (path: string, text: string): void => {
  const draft = `${path}.new`;
  const fd = openSync(draft, 'w', 0o600);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(draft, path);
  const directory = openSync(dirname(path), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
};

/** Opens the file, or makes it when `create` says that nothing is sealed under it yet. Throws CoreError ('io', 'permission', 'format'). */
export const openFileRoot = (core: RootCore, path: string, create: boolean): RootProvider => {
  if (!existsSync(path)) {
    if (!create)
      throw new CoreError(
        'io',
        `the root key file ${path} is missing: put it back; without it the store cannot be opened`,
      );
    core.release(core.createRootFile(path).key);
  }
  const anchorPath = `${path}.checkpoint`;
  const opened = core.openRootFile(path);
  let current: RootKey = opened.current;
  let previous: RootKey | undefined = opened.previous;
  const system = core.fileSystem(dirname(path));

  return {
    name: 'file',
    get current() {
      return current;
    },
    get previous() {
      return previous;
    },
    erasure: { fileSystem: system.name, overwritesInPlace: system.overwritesInPlace },
    addEpoch: () => {
      const added = core.addRootEpoch(path);
      previous = current;
      current = added;
    },
    erasePrevious: () => {
      if (previous === undefined) return;
      core.eraseRootEpoch(path, previous.epoch);
      core.release(previous.key);
      previous = undefined;
    },
    anchor: {
      read: () => (existsSync(anchorPath) ? readFileSync(anchorPath, 'utf8') : undefined),
      write: (note) => replaceFile(anchorPath, note),
    },
    check: () => {
      const seen = core.openRootFile(path);
      core.release(seen.current.key);
      if (seen.previous !== undefined) core.release(seen.previous.key);
      if (seen.current.epoch !== current.epoch)
        throw new CoreError('format', `the root key file ${path} was replaced while the service was running`);
    },
  };
};
