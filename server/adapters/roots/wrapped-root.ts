// The root of an open wrapped file: its epochs, and the change that `dke root rewrap` asks of a
// service that runs. The format is wrapped-file.ts.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { CoreError, type KekRef } from '../../../addon/core.ts';
import type { RootKey, RootProvider } from '../../ports/root-provider.ts';
import { anchorBeside, backupReceipts, erase, overwrite, readOwnFile } from './durable-files.ts';
import {
  type ChangeRequest,
  changeContext,
  changePath,
  changeWays,
  damaged,
  dropChange,
  type OpenWrapped,
  packSlot,
  readWrapped,
  rootContext,
  slotAt,
  slotSize,
  unlockWrapped,
  type WrappingCore,
} from './wrapped-file.ts';

/** What the process has of the file. */
interface OpenRoot extends Pick<OpenWrapped, 'path' | 'by'> {
  head: OpenWrapped['head'];
  unlock: KekRef;
  current: RootKey;
  previous: RootKey | undefined;
}

const rewrap = (
  core: WrappingCore,
  state: OpenRoot,
  { name, type, createdAt, parameters, key: sealed }: ChangeRequest,
): void => {
  const { path, head, unlock, current, previous } = state;
  const key = core.openRecord<KekRef>(unlock, changeContext(head), Buffer.from(sealed, 'base64'));
  try {
    const roots = previous === undefined ? [current] : [current, previous];
    const present = { ...readWrapped(core, path), head, unlock, roots, by: state.by };
    changeWays(core, present, { without: [name], add: [{ name, type, createdAt, parameters, key }] });
    const file = readWrapped(core, path);
    const entry = file.head.providers.find((each) => each.name === name);
    if (entry === undefined) throw damaged(path, 'has lost a provider');
    const fresh = unlockWrapped(core, file, entry, key);
    for (const each of fresh.roots) core.release(each.key);
    core.release(unlock);
    state.head = fresh.head;
    state.unlock = fresh.unlock;
  } finally {
    core.release(key);
  }
};

const addEpoch = (core: WrappingCore, state: OpenRoot, given: RootKey | undefined): void => {
  const { path, head, unlock, current } = state;
  const { places, slots } = readWrapped(core, path);
  const place = places.get(current.epoch);
  const free = slotAt.find((at) => at !== place);
  if (free === undefined || state.previous !== undefined)
    throw new CoreError('bad-argument', 'the root key file already has two epochs: erase the older one first');
  const epoch = given?.epoch ?? current.epoch + 1;
  // A try that failed behind its write: what it wrote is taken, once it is durable.
  const tried = slots.find((slot) => slot.epoch === epoch);
  if (tried !== undefined) {
    overwrite(path, free, [packSlot(tried)]);
    state.previous = current;
    state.current = { epoch, key: core.openRecord(unlock, rootContext(head, epoch), tried.record) };
    return;
  }
  const key = given?.key ?? core.generateKek();
  let kept: KekRef;
  try {
    const record = core.sealRecord(unlock, rootContext(head, epoch), key);
    overwrite(path, free, [packSlot({ epoch, record })]);
    // Proved by opening it from the file.
    const written = readWrapped(core, path).slots.find((slot) => slot.epoch === epoch);
    if (written === undefined) throw new CoreError('io', `${path} did not keep the new root key`);
    kept = core.openRecord(unlock, rootContext(head, epoch), written.record);
  } finally {
    if (given === undefined) core.release(key);
  }
  state.previous = current;
  state.current = { epoch, key: kept };
};

const settle = (core: WrappingCore, { path, current }: OpenRoot): void => {
  const { places, slots } = readWrapped(core, path);
  const slot = slots.find(({ epoch }) => epoch === current.epoch);
  const place = places.get(current.epoch);
  if (slot === undefined || place === undefined) throw damaged(path, 'has lost the current root key');
  overwrite(path, place, [packSlot(slot)]);
};

const erasePrevious = (core: WrappingCore, state: OpenRoot): void => {
  const { path, current, previous } = state;
  if (previous === undefined) return;
  // The slot next to the current one, even if it no longer has a complete key: after a write whose
  // sync failed, the cache shows it as erased, but the device may not.
  const place = readWrapped(core, path).places.get(current.epoch);
  const older = slotAt.find((at) => at !== place);
  if (place === undefined || older === undefined) throw damaged(path, 'has lost the current root key');
  erase(core, path, older, slotSize);
  core.release(previous.key);
  state.previous = undefined;
};

const pendingChange = (core: WrappingCore, state: OpenRoot): ReturnType<RootProvider['pendingChange']> => {
  const { path } = state;
  if (!existsSync(changePath(path))) return undefined;
  let request: ChangeRequest;
  try {
    request = JSON.parse(readOwnFile(changePath(path)).toString('utf8')) as ChangeRequest;
  } catch (error) {
    dropChange(core, path);
    throw error;
  }
  let isDone = false;
  return {
    name: request.name,
    type: request.type,
    apply: () => {
      if (isDone) return;
      rewrap(core, state, request);
      isDone = true;
      dropChange(core, path);
    },
    drop: () => dropChange(core, path),
  };
};

/** The root of an open file. Keeps its keys: `release` gives them back. */
export const wrappedRoot = (core: WrappingCore, opened: OpenWrapped): RootProvider => {
  const { path } = opened;
  const [newest, older] = opened.roots;
  if (newest === undefined) throw damaged(path, 'contains no complete root key');
  const { head, unlock, by } = opened;
  const state: OpenRoot = { path, by, head, unlock, current: newest, previous: older };
  const system = core.fileSystem(dirname(path));
  return {
    name: 'wrapped',
    get ways() {
      return state.head.providers.map(({ name, type, createdAt }) => ({ name, type, createdAt, opened: name === by }));
    },
    get current() {
      return state.current;
    },
    get previous() {
      return state.previous;
    },
    erasure: { fileSystem: system.name, overwritesInPlace: system.overwritesInPlace },
    addEpoch: (given) => addEpoch(core, state, given),
    settle: () => settle(core, state),
    erasePrevious: () => erasePrevious(core, state),
    pendingChange: () => pendingChange(core, state),
    anchor: anchorBeside(path),
    backups: () => backupReceipts(path),
    check: () => {
      const { slots, head: seen } = readWrapped(core, path);
      const { head: own, current } = state;
      if (slots[0]?.epoch !== current.epoch || seen.file !== own.file || seen.unlockEpoch !== own.unlockEpoch)
        throw new CoreError('format', `the root key file ${path} was replaced while the service was running`);
    },
    reach: () => Promise.resolve(),
    release: () => {
      core.release(state.current.key);
      if (state.previous !== undefined) core.release(state.previous.key);
      core.release(state.unlock);
    },
  };
};
