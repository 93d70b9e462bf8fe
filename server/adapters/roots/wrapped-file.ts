// The wrapped root key file, format 2 of FORMAT.md: root keys sealed under an unlock key, and this
// one sealed under each provider's key. Every provider opens the file alone; a new epoch of the
// root needs none of them, because the unlock key is open then. Nothing in the file is unencrypted,
// so it is read and written here and not in the addon. Leaves out where a provider's key comes from
// (passphrase.ts, hardware.ts, file-root.ts).

import { createHash } from 'node:crypto';
import { chmodSync, existsSync, linkSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Core, CoreError, type KekRef, type RecordContext } from '../../../addon/core.ts';
import { canonicalJson } from '../../base/bytes.ts';
import { putInPlace, removeDurably, replaceFile, syncFolder, writeDurably } from '../../base/durable-files.ts';
import type { RootKey, RootWay } from '../../ports/root-provider.ts';
import { erase, readGivenSecret, readOwnFile, rootMagic } from './durable-files.ts';

export type WrappingCore = Pick<
  Core,
  'random' | 'generateKek' | 'sealRecord' | 'openRecord' | 'release' | 'fileSystem'
>;

/** What a provider needs to make its key again; nothing of it is secret. */
export type WayParameters = { readonly [name: string]: string | number };

interface Entry {
  /** 32 hexadecimal digits. */
  readonly id: string;
  readonly name: string;
  readonly type: RootWay['type'];
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly parameters: WayParameters;
  /** The unlock key, sealed under the provider's key: Base64. */
  readonly unlock: string;
  /**
   * The provider's key, sealed under the unlock key, so that a new unlock key needs no provider:
   * Base64.
   */
  readonly back: string;
}

interface Head {
  readonly file: string;
  /** Counts unlock keys. */
  readonly unlockEpoch: number;
  readonly providers: readonly Entry[];
}

interface Slot {
  readonly epoch: number;
  readonly record: Buffer;
}

const magic = rootMagic;
const format = 2;
const headSize = 16_384;
export const slotSize = 4_096;
export const slotAt = [headSize, headSize + slotSize] as const;
const fileSize = headSize + 2 * slotSize;
const slotMagic = Buffer.from('SLOT');
const mostProviders = 8;

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

const packHead = (head: Head): Buffer => {
  const text = Buffer.from(canonicalJson(head as never), 'utf8');
  const body = Buffer.concat([magic, u32(format), u32(text.length), text]);
  if (body.length + 32 > headSize)
    throw new CoreError('bad-argument', 'the root key file has no room for another provider');
  return Buffer.concat([body, sha256(body), Buffer.alloc(headSize - body.length - 32)]);
};
export const packSlot = ({ epoch, record }: Slot): Buffer => {
  const body = Buffer.concat([slotMagic, u32(epoch), u32(record.length), record]);
  return Buffer.concat([body, sha256(body), Buffer.alloc(slotSize - body.length - 32)]);
};
const unpackSlot = (block: Buffer): Slot | undefined => {
  if (!block.subarray(0, 4).equals(slotMagic)) return undefined;
  const epoch = block.readUInt32BE(4);
  const length = block.readUInt32BE(8);
  if (epoch === 0 || 12 + length + 32 > slotSize) return undefined;
  const body = block.subarray(0, 12 + length);
  if (!sha256(body).equals(block.subarray(12 + length, 12 + length + 32))) return undefined;
  return { epoch, record: Buffer.from(body.subarray(12)) };
};

/** What format the file has; 1 is the addon's own. */
export const formatOf = (path: string): number => {
  const head = readOwnFile(path).subarray(0, 12);
  if (head.length < 12 || !head.subarray(0, 8).equals(magic))
    throw new CoreError('format', `${path} is not a root key file`);
  return head.readUInt32BE(8);
};

export interface WrappedFile {
  readonly path: string;
  readonly head: Head;
  /** The newest first: one, or two while a turn is unfinished. */
  readonly slots: readonly Slot[];
  /** Places of the slots, by epoch. */
  readonly places: ReadonlyMap<number, number>;
}

export const damaged = (path: string, what: string): CoreError =>
  new CoreError('format', `${path} ${what}: put back its copy; nothing was changed`);

/** An earlier change that was cut off is finished: the file that was replaced is overwritten. */
const finishReplacement = (core: Pick<Core, 'random'>, path: string): void => {
  const old = `${path}.old`;
  if (!existsSync(old)) return;
  const { ino, size } = statSync(old);
  // Not replaced yet: both names are of one file, which must stay as it is.
  if (ino !== statSync(path).ino) {
    // A file of format 1 has mode 400.
    chmodSync(old, 0o600);
    erase(core, old, 0, size);
  }
  removeDurably(old);
};

/**
 * Overwrites a file that has the root keys under a key of before, or of a change that never
 * happened, and removes it.
 */
const eraseFile = (core: Pick<Core, 'random'>, path: string): void => {
  if (!existsSync(path)) return;
  erase(core, path, 0, statSync(path).size);
  removeDurably(path);
};

/**
 * What a process that ended within a change has left beside the file: a draft opens with the keys
 * of providers, and a rotation does not change it. Only for who holds the lock of the data
 * directory: the draft may be another process's.
 */
export const clearDrafts = (core: Pick<Core, 'random'>, path: string): void => {
  if (existsSync(path)) finishReplacement(core, path);
  for (const draft of [`${path}.new`, `${changePath(path)}.new`]) eraseFile(core, draft);
};

/** Puts a new file in the place of the old one, whose contents are then overwritten. */
const replaceErasing = (core: Pick<Core, 'random'>, path: string, content: Buffer): void => {
  if (existsSync(path)) finishReplacement(core, path);
  const draft = `${path}.new`;
  eraseFile(core, draft);
  try {
    writeDurably(draft, content);
    if (existsSync(path)) {
      linkSync(path, `${path}.old`);
      syncFolder(dirname(path));
    }
    putInPlace(draft, path);
  } catch (error) {
    eraseFile(core, draft);
    throw error;
  }
  if (existsSync(path)) finishReplacement(core, path);
};

/** Reads the file without opening it. Throws CoreError 'io', 'permission', 'format'. */
export const readWrapped = (core: Pick<Core, 'random'>, path: string): WrappedFile => {
  if (existsSync(path)) finishReplacement(core, path);
  return parseWrapped(path, readOwnFile(path));
};

/**
 * A backup may be given by root, as its passphrase may: as a secret of Kubernetes. Nothing is
 * written.
 */
export const readWrappedBackup = (path: string): WrappedFile => parseWrapped(path, readGivenSecret(path));

const parseWrapped = (path: string, bytes: Buffer): WrappedFile => {
  if (bytes.length !== fileSize || !bytes.subarray(0, 8).equals(magic))
    throw damaged(path, 'is not a wrapped root key file');
  if (bytes.readUInt32BE(8) !== format)
    throw new CoreError(
      'format',
      `${path} is of a format that this version does not know: use the version that wrote it`,
    );
  const length = bytes.readUInt32BE(12);
  const end = 16 + length;
  if (end + 32 > headSize || !sha256(bytes.subarray(0, end)).equals(bytes.subarray(end, end + 32)))
    throw damaged(path, 'has a damaged head');
  const head = JSON.parse(bytes.subarray(16, end).toString('utf8')) as Head;
  const found = slotAt.map((at) => unpackSlot(bytes.subarray(at, at + slotSize)));
  const slots = found.filter((slot) => slot !== undefined).sort((a, b) => b.epoch - a.epoch);
  if (slots.length === 0) throw damaged(path, 'contains no complete root key');
  if (slots[0]?.epoch === slots[1]?.epoch) throw damaged(path, 'contains one epoch twice');
  const places = new Map(
    found.flatMap((slot, index) => (slot === undefined ? [] : [[slot.epoch, slotAt[index] ?? 0]])),
  );
  return { path, head, slots, places };
};

const context = (file: string, object: string, kind: string, version: number, epoch: number): RecordContext => ({
  tenant: Buffer.from(file, 'hex'),
  object: Buffer.from(object, 'hex'),
  version,
  epoch,
  class: kind,
  attributes: Buffer.from(canonicalJson({ algorithm: 'kek' }), 'utf8'),
});
export const rootContext = ({ file, unlockEpoch }: Pick<Head, 'file' | 'unlockEpoch'>, epoch: number): RecordContext =>
  context(file, file, 'root-key', epoch, unlockEpoch);
const unlockContext = ({ file, unlockEpoch }: Pick<Head, 'file' | 'unlockEpoch'>, id: string): RecordContext =>
  context(file, id, 'root-unlock', unlockEpoch, 1);
const backContext = ({ file, unlockEpoch }: Pick<Head, 'file' | 'unlockEpoch'>, id: string): RecordContext =>
  context(file, id, 'root-provider', 1, unlockEpoch);

export const changeContext = ({ file, unlockEpoch }: Pick<Head, 'file' | 'unlockEpoch'>): RecordContext =>
  context(file, file, 'root-change', 1, unlockEpoch);

/** A file whose root keys are open. */
export interface OpenWrapped extends WrappedFile {
  readonly unlock: KekRef;
  /** The newest first. */
  readonly roots: readonly RootKey[];
  /** The provider that opened it. */
  readonly by: string;
}

/**
 * Opens it with a provider's key. Throws CoreError 'authentication-failed' when that is not the
 * one.
 */
export const unlockWrapped = (core: WrappingCore, file: WrappedFile, entry: Entry, key: KekRef): OpenWrapped => {
  const unlock = core.openRecord<KekRef>(key, unlockContext(file.head, entry.id), Buffer.from(entry.unlock, 'base64'));
  const roots: RootKey[] = [];
  try {
    for (const { epoch, record } of file.slots)
      roots.push({ epoch, key: core.openRecord<KekRef>(unlock, rootContext(file.head, epoch), record) });
  } catch (error) {
    for (const each of roots) core.release(each.key);
    core.release(unlock);
    if (error instanceof CoreError && error.code === 'authentication-failed')
      throw damaged(file.path, 'contains a root key that cannot be opened');
    throw error;
  }
  return { ...file, unlock, roots, by: entry.name };
};

/** A provider to be: its key, and what makes it again. */
export interface NewWay extends Pick<RootWay, 'name' | 'type'> {
  readonly key: KekRef;
  readonly parameters: WayParameters;
  readonly createdAt: number;
}

const randomHex = (core: Pick<Core, 'random'>): string => {
  const bytes = Buffer.alloc(16);
  core.random(bytes);
  return bytes.toString('hex');
};

/** The whole file: the root keys under a fresh unlock key, which every way opens. */
const buildFile = (
  core: WrappingCore,
  path: string,
  file: { readonly file: string; readonly unlockEpoch: number },
  roots: readonly RootKey[],
  ways: readonly (NewWay & { readonly id: string })[],
): void => {
  if (ways.length === 0) throw new CoreError('bad-argument', 'a root key requires a provider');
  if (ways.length > mostProviders)
    throw new CoreError('bad-argument', `a root key has at most ${mostProviders} providers`);
  if (new Set(ways.map(({ name }) => name)).size !== ways.length)
    throw new CoreError('bad-argument', 'a provider with this name already exists');
  const unlock = core.generateKek();
  try {
    const providers = ways.map(
      ({ id, name, type, createdAt, parameters, key }): Entry => ({
        id,
        name,
        type,
        createdAt,
        parameters,
        unlock: core.sealRecord(key, unlockContext(file, id), unlock).toString('base64'),
        back: core.sealRecord(unlock, backContext(file, id), key).toString('base64'),
      }),
    );
    const slots = roots.map(({ epoch, key }) =>
      packSlot({ epoch, record: core.sealRecord(unlock, rootContext(file, epoch), key) }),
    );
    replaceErasing(
      core,
      path,
      Buffer.concat([
        packHead({ ...file, providers }),
        slots[0] ?? Buffer.alloc(0),
        slots[1] ?? Buffer.alloc(slotSize),
      ]),
    );
  } finally {
    core.release(unlock);
  }
};

/**
 * Makes the file for these root keys, in the place of a file of format 1 when one is there; `roots`
 * empty: with a fresh root key of epoch 1. What stood there before is overwritten.
 */
export const createWrapped = (
  core: WrappingCore,
  path: string,
  ways: readonly NewWay[],
  roots: readonly RootKey[] = [],
): void => {
  const fresh = roots.length === 0 ? [{ epoch: 1, key: core.generateKek() }] : [];
  try {
    buildFile(
      core,
      path,
      { file: randomHex(core), unlockEpoch: 1 },
      [...roots, ...fresh],
      ways.map((way) => ({ ...way, id: randomHex(core) })),
    );
  } finally {
    for (const { key } of fresh) core.release(key);
  }
};

/**
 * Writes the file again under a new unlock key: without the providers of `without`, with those of
 * `add`.
 */
export const changeWays = (
  core: WrappingCore,
  opened: OpenWrapped,
  { without, add }: { readonly without: readonly string[]; readonly add: readonly NewWay[] },
): void => {
  const { head, roots, unlock, path } = opened;
  const kept: (NewWay & { readonly id: string })[] = [];
  try {
    for (const { id, name, type, createdAt, parameters, back } of head.providers) {
      if (without.includes(name)) continue;
      const key = core.openRecord<KekRef>(unlock, backContext(head, id), Buffer.from(back, 'base64'));
      kept.push({ id, name, type, createdAt, parameters, key });
    }
    const added = add.map((way) => ({ ...way, id: randomHex(core) }));
    buildFile(core, path, { file: head.file, unlockEpoch: head.unlockEpoch + 1 }, roots, [...kept, ...added]);
  } finally {
    for (const { key } of kept) core.release(key);
  }
};

/**
 * What `dke root rewrap` leaves for a service that runs: the provider's new key, sealed under the
 * unlock key.
 */
export interface ChangeRequest extends Pick<Entry, 'name' | 'type' | 'createdAt' | 'parameters'> {
  readonly file: string;
  readonly unlockEpoch: number;
  readonly key: string;
}
export const changePath = (path: string): string => `${path}.change`;

/** Asks the service that has this file open to give a provider a new key. */
export const requestChange = (core: WrappingCore, { head, unlock, path }: OpenWrapped, way: NewWay): void => {
  const { name, type, createdAt, parameters, key } = way;
  const { file, unlockEpoch } = head;
  const sealed = core.sealRecord(unlock, changeContext(head), key).toString('base64');
  const request: ChangeRequest = { file, unlockEpoch, name, type, createdAt, parameters, key: sealed };
  replaceFile(changePath(path), canonicalJson(request as never));
};

/** Erases it, taken or not. */
export const dropChange = (core: Pick<Core, 'random'>, path: string): void => {
  const request = changePath(path);
  if (!existsSync(request)) return;
  try {
    erase(core, request, 0, statSync(request).size);
  } finally {
    removeDurably(request);
  }
};

export const releaseWrapped = (core: Pick<Core, 'release'>, { unlock, roots }: OpenWrapped): void => {
  core.release(unlock);
  for (const { key } of roots) core.release(key);
};
