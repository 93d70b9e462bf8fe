// Root provider `file`: one file with two slots, kept by the addon (FORMAT.md). It is made at first
// start, mode 0400, and belongs next to no backup of the database: anyone who has both has the
// keys.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Core, CoreError } from '../../../addon/core.ts';
import type { RootKey, RootProvider } from '../../ports/root-provider.ts';
import { anchorBeside, backupReceipts } from './durable-files.ts';

type RootCore = Pick<
  Core,
  | 'createRootFile'
  | 'openRootFile'
  | 'addRootEpoch'
  | 'takeRootEpoch'
  | 'settleRootFile'
  | 'eraseRootEpoch'
  | 'fileSystem'
  | 'release'
>;

/**
 * Opens the file, or makes it when `create` says that nothing is sealed under it yet. Throws
 * CoreError ('io', 'permission', 'format').
 */
export const openFileRoot = (core: RootCore, path: string, create: boolean): RootProvider => {
  if (!existsSync(path)) {
    if (!create)
      throw new CoreError(
        'io',
        `the root key file ${path} is missing: put it back; without it the store cannot be opened`,
      );
    core.release(core.createRootFile(path).key);
  }
  const opened = core.openRootFile(path);
  let current: RootKey = opened.current;
  let previous: RootKey | undefined = opened.previous;
  const system = core.fileSystem(dirname(path));

  return {
    name: 'file',
    ways: [{ name: 'file', type: 'file', createdAt: null, opened: true }],
    get current() {
      return current;
    },
    get previous() {
      return previous;
    },
    erasure: { fileSystem: system.name, overwritesInPlace: system.overwritesInPlace },
    addEpoch: (given) => {
      if (previous !== undefined)
        throw new CoreError('bad-argument', 'the root key file already has two epochs: erase the older one first');
      const seen = core.openRootFile(path);
      let added = seen.current;
      // A try that failed behind its write: what it wrote is taken, once it is durable.
      if (seen.previous !== undefined) {
        core.release(seen.previous.key);
        core.settleRootFile(path);
      } else {
        core.release(seen.current.key);
        added = given === undefined ? core.addRootEpoch(path) : core.takeRootEpoch(path, given.epoch, given.key);
      }
      previous = current;
      current = added;
    },
    settle: () => core.settleRootFile(path),
    erasePrevious: () => {
      if (previous === undefined) return;
      core.eraseRootEpoch(path, previous.epoch);
      core.release(previous.key);
      previous = undefined;
    },
    pendingChange: () => undefined,
    anchor: anchorBeside(path),
    backups: () => backupReceipts(path),
    check: () => {
      const seen = core.openRootFile(path);
      core.release(seen.current.key);
      if (seen.previous !== undefined) core.release(seen.previous.key);
      if (seen.current.epoch !== current.epoch)
        throw new CoreError('format', `the root key file ${path} was replaced while the service was running`);
    },
    reach: () => Promise.resolve(),
    release: () => {
      core.release(current.key);
      if (previous !== undefined) core.release(previous.key);
    },
  };
};
