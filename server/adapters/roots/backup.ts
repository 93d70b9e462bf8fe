// A backup of the root key: a wrapped root file (wrapped-file.ts) that a passphrase of its own
// opens, and nothing else. The receipt next to the root key says of which epoch the newest one is;
// the service reads it (operations/root/root-backup.ts).

import { existsSync, rmSync } from 'node:fs';
import { type Core, CoreError, type RecordContext } from '../../../addon/core.ts';
import { newId } from '../../base/ids.ts';
import type { RootBackup, RootKey } from '../../ports/root-provider.ts';
import { backupReceiptPath } from './durable-files.ts';
import { openWrappedFile, type RootOptions } from './open-root.ts';
import { addReceipt } from './receipts.ts';
import { type AskPassphrase, createWays, WayClosed } from './unlock-ways.ts';
import {
  createWrapped,
  formatOf,
  type OpenWrapped,
  readWrappedBackup,
  releaseWrapped,
  unlockWrapped,
} from './wrapped-file.ts';

const name = 'backup';

const openWithPassphrase = async (
  options: Pick<RootOptions, 'core' | 'readDescriptor'>,
  path: string,
  passphrase: Buffer,
): Promise<OpenWrapped> => {
  const { core, readDescriptor } = options;
  const file = readWrappedBackup(path);
  const entry = file.head.providers.find((each) => each.type === 'passphrase');
  if (entry === undefined) throw new CoreError('format', `${path} is not a backup of a root key`);
  const key = await createWays(core, readDescriptor).fromPassphrase(passphrase, entry.parameters);
  try {
    return unlockWrapped(core, file, entry, key);
  } catch (error) {
    if (error instanceof CoreError && error.code === 'authentication-failed')
      throw new CoreError('authentication-failed', `the passphrase of ${path} is wrong`);
    throw error;
  } finally {
    core.release(key);
  }
};

/**
 * Opens a backup without restoring it. The caller releases it (`releaseWrapped`, or its root).
 * Throws CoreError and WayClosed.
 */
export const openRootBackup = async (
  options: Pick<RootOptions, 'core' | 'readDescriptor' | 'ask'>,
  backup: string,
): Promise<OpenWrapped> => {
  const passphrase = await options.ask({ name, fresh: false, declared: false });
  if (passphrase === undefined) throw new WayClosed('no passphrase was given: --passphrase-file', false);
  return openWithPassphrase(options, backup, passphrase).finally(() => passphrase.fill(0));
};

/** Whether both are the same key: what one seals, the other opens. */
const requireSame = (core: Core, one: RootKey, other: RootKey | undefined, path: string): void => {
  const id = Buffer.alloc(16);
  core.random(id);
  const context: RecordContext = {
    tenant: id,
    object: id,
    version: 1,
    epoch: one.epoch,
    class: 'root-key',
    attributes: Buffer.from('{"algorithm":"kek"}'),
  };
  const probe = core.generateKek();
  try {
    if (other === undefined || other.epoch !== one.epoch)
      throw new CoreError('io', `${path} does not have the root key`);
    core.release(core.openRecord(other.key, context, core.sealRecord(one.key, context, probe)));
  } finally {
    core.release(probe);
  }
};

const openRoots = async (options: RootOptions): Promise<{ readonly roots: readonly RootKey[]; release(): void }> => {
  const { core, root } = options;
  if (!existsSync(root.path)) throw new CoreError('io', `the root key file ${root.path} is missing`);
  if (formatOf(root.path) === 1) {
    const { current, previous } = core.openRootFile(root.path);
    const roots = previous === undefined ? [current] : [current, previous];
    return {
      roots,
      release: () => {
        for (const { key } of roots) core.release(key);
      },
    };
  }
  const opened = await openWrappedFile(options);
  if (!('head' in opened)) {
    const why = opened.map(({ name: provider, reason }) => `${provider}: ${reason}`).join('; ');
    throw new CoreError(
      'permission',
      `the root key ${root.path} could not be opened: ${why || 'no provider is declared'}`,
    );
  }
  return { roots: opened.roots, release: () => releaseWrapped(core, opened) };
};

/**
 * Writes a new file with the root key, opens it again by its passphrase, and leaves the receipt.
 * The service may run. Throws CoreError and WayClosed.
 */
export const backUpRoot = async (options: RootOptions, out: string, now: number): Promise<RootBackup> => {
  const { core, root, ask } = options;
  if (existsSync(out)) throw new CoreError('permission', `${out} already exists: specify a new file`);
  let typed: Buffer | undefined;
  const keep: AskPassphrase = async (question) => {
    const given = await ask(question);
    typed = given && Buffer.from(given);
    return given;
  };
  const receipts = backupReceiptPath(root.path);
  const begun = { id: newId(now), state: 'begun', at: now };
  let source: Awaited<ReturnType<typeof openRoots>> | undefined;
  let isMade = false;
  // Before the root key is read: a run that erases it in the meantime knows that there is a backup.
  addReceipt(receipts, begun);
  try {
    source = await openRoots(options);
    const way = { name, type: 'passphrase', credential: undefined, file: undefined, descriptor: undefined } as const;
    const made = await createWays(core, options.readDescriptor).make(way, keep);
    try {
      // Another program may have made a file of this name in the meantime, which stays.
      if (existsSync(out)) throw new CoreError('permission', `${out} already exists: specify a new file`);
      isMade = true;
      createWrapped(core, out, [{ name, type: 'passphrase', createdAt: now, ...made }], source.roots);
    } finally {
      core.release(made.key);
    }
    if (typed === undefined) throw new WayClosed('no passphrase was given', false);
    const opened = await openWithPassphrase(options, out, typed);
    try {
      for (const [at, each] of source.roots.entries()) requireSame(core, each, opened.roots[at], out);
    } finally {
      releaseWrapped(core, opened);
    }
    const epochs = source.roots.map(({ epoch }) => epoch);
    const rootEpoch = Math.max(...epochs);
    addReceipt(receipts, { ...begun, state: 'made', rootEpoch, oldestRootEpoch: Math.min(...epochs) });
    return { epoch: rootEpoch, at: now };
  } catch (error) {
    if (isMade) rmSync(out, { force: true });
    addReceipt(receipts, { ...begun, state: 'failed' });
    throw error;
  } finally {
    typed?.fill(0);
    source?.release();
  }
};

/**
 * Writes the root key file from a backup, as the configuration declares it. `check` sees the epochs
 * first, and throws when they are not those that the database needs. Throws CoreError and
 * WayClosed.
 */
export const restoreRoot = async (
  options: RootOptions,
  backup: string,
  now: number,
  check: (epochs: readonly number[]) => Promise<void>,
): Promise<number> => {
  const { core, root, ask } = options;
  if (existsSync(root.path))
    throw new CoreError('permission', `the root key file ${root.path} exists: move it away first; nothing was changed`);
  const opened = await openRootBackup(options, backup);
  const ways = [];
  try {
    const { roots } = opened;
    await check(roots.map(({ epoch }) => epoch));
    const maker = createWays(core, options.readDescriptor);
    for (const way of root.providers)
      ways.push({ name: way.name, type: way.type, createdAt: now, ...(await maker.make(way, ask)) });
    if (ways.length > 0) createWrapped(core, root.path, ways, roots);
    else
      for (const { epoch, key } of roots.toReversed())
        core.release(
          (existsSync(root.path)
            ? core.takeRootEpoch(root.path, epoch, key)
            : core.restoreRootFile(root.path, epoch, key)
          ).key,
        );
    return Math.max(...roots.map(({ epoch }) => epoch));
  } finally {
    for (const { key } of ways) core.release(key);
    releaseWrapped(core, opened);
  }
};
