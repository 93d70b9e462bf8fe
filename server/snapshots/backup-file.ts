// The file of a backup of the whole service (addon/FORMAT.md, section 7): a few named parts in one encrypted stream, sealed to recovery keys.
// Every byte of the parts is authenticated before it is written anywhere, and a file that was cut off is noticed. Leaves out what the parts
// are, and the root key, which is never in a backup.

import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { type Core, CoreError, type KeyRef } from '../../addon/core.ts';
import { labelBytes } from '../../addon/labels.ts';
import { canonicalJson, parseBase64, toBase64 } from '../base/bytes.ts';
import { putInPlaceSoon } from '../base/durable-files.ts';
import { ServiceError } from '../base/errors.ts';
import { isId } from '../base/ids.ts';
import { backupContext, type RecoveryPublicKey } from '../base/recovery-key.ts';
import { segmentNonce, sha256, tagLength } from './layout.ts';

export type BackupCore = Pick<Core, 'generateGeneric' | 'hkdf' | 'hpkeSealKey' | 'hpkeOpenKey' | 'cipher' | 'release'>;

export interface BackupPreface {
  readonly backupId: string;
  /** When the copy of the database was made: RFC 3339. */
  readonly at: string;
  /** Of the program that made it. */
  readonly version: string;
  /** The newest migration of the database. */
  readonly schema: string;
  /** Name of the audit log, and its records. */
  readonly log: string;
  readonly records: number;
  /** Of the root keys without which the database does not open. */
  readonly rootEpochs: readonly number[];
  readonly recipients: readonly { readonly recoveryKeyId: string; readonly sealedKey: string }[];
}

export interface BackupPart {
  readonly name: string;
  readonly from: Buffer | { readonly path: string };
}

const magic = Buffer.from('DKE-BKUP');
const format = 1;
const headLength = 16;
const mostPreface = 65_536;
/** Plaintext of every segment but the last, which is shorter. */
const segmentLength = 1_048_576;
const mostHeader = 1024;

const damaged = (path: string, what: string): ServiceError =>
  new ServiceError('key-tampered', `${path} is ${what}`, { hint: 'use another copy of it, or another backup' });

const contentKey = (core: Pick<Core, 'hkdf'>, key: KeyRef, preface: Uint8Array): KeyRef =>
  core.hkdf(key, 'sha256', sha256(preface), labelBytes('dke backup 1'), 'aes', 32);

const parametersOf = (index: number, last: boolean) =>
  ({ algorithm: 'aes-gcm', iv: segmentNonce(index, last), tagLength }) as const;

/** Fills the buffer as far as the file goes. */
const readFully = async (file: FileHandle, buffer: Buffer): Promise<number> => {
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return length;
};

async function* bytesOf({ name, from }: BackupPart): AsyncGenerator<Buffer> {
  if (Buffer.isBuffer(from)) {
    yield Buffer.from(`${canonicalJson({ bytes: from.length, name })}\n`);
    yield from;
    return;
  }
  const file = await open(from.path, 'r');
  try {
    const { size } = await file.stat();
    yield Buffer.from(`${canonicalJson({ bytes: size, name })}\n`);
    const buffer = Buffer.allocUnsafeSlow(segmentLength);
    for (let left = size; left > 0; ) {
      const length = await readFully(file, buffer.subarray(0, Math.min(left, buffer.length)));
      if (length === 0) throw new RangeError(`${from.path} became shorter while it was read`);
      left -= length;
      yield buffer.subarray(0, length);
    }
  } finally {
    await file.close();
  }
}

/** Writes a new file, whole or not at all. Answers its size. Throws errors of the file system as they are. */
export const writeBackup = async (
  core: BackupCore,
  path: string,
  named: Omit<BackupPreface, 'recipients'>,
  recoveryKeys: readonly RecoveryPublicKey[],
  parts: readonly BackupPart[],
): Promise<number> => {
  const draft = `${path}.part`;
  const own = core.generateGeneric(32);
  let key: KeyRef | undefined;
  let file: FileHandle | undefined;
  try {
    const recipients = recoveryKeys.map(({ id, publicKey }) => {
      const { info, aad } = backupContext(named.backupId, id);
      return { recoveryKeyId: id, sealedKey: toBase64(core.hpkeSealKey(publicKey, info, aad, own)) };
    });
    const preface = Buffer.from(canonicalJson({ ...named, recipients }));
    const head = Buffer.alloc(headLength);
    magic.copy(head);
    head.writeUInt32BE(format, 8);
    head.writeUInt32BE(preface.length, 12);
    key = contentKey(core, own, preface);
    file = await open(draft, 'wx', 0o600);
    await file.writeFile(Buffer.concat([head, preface]));
    const plain = Buffer.allocUnsafeSlow(segmentLength);
    const sealed = Buffer.allocUnsafeSlow(segmentLength + tagLength);
    let [filled, index] = [0, 0];
    const writeSegment = async (last: boolean): Promise<void> => {
      const length = core.cipher(
        key as KeyRef,
        'encrypt',
        parametersOf(index, last),
        plain.subarray(0, filled),
        sealed,
      );
      await file?.writeFile(sealed.subarray(0, length));
      [filled, index] = [0, index + 1];
    };
    for (const part of parts)
      for await (const bytes of bytesOf(part))
        for (let at = 0; at < bytes.length; ) {
          const taken = bytes.copy(plain, filled, at);
          at += taken;
          filled += taken;
          if (filled === segmentLength) await writeSegment(false);
        }
    await writeSegment(true);
    await file.sync();
    const { size } = await file.stat();
    await file.close();
    file = undefined;
    await putInPlaceSoon(draft, path);
    return size;
  } catch (error) {
    await file?.close();
    // A file of another backup that is under way is not this one's.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(draft, { force: true });
    throw error;
  } finally {
    if (key !== undefined) core.release(key);
    core.release(own);
  }
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const parsePreface = (path: string, bytes: Buffer): BackupPreface => {
  try {
    const value = JSON.parse(bytes.toString('utf8')) as BackupPreface;
    const { backupId, at, version, schema, log, records, rootEpochs, recipients } = value;
    const fits =
      isId(backupId) &&
      Number.isFinite(Date.parse(at)) &&
      [version, schema, log].every((text) => typeof text === 'string') &&
      isCount(records) &&
      rootEpochs.length > 0 &&
      rootEpochs.every(isCount) &&
      recipients.every(
        ({ recoveryKeyId, sealedKey }) => /^[0-9a-f]{16}$/.test(recoveryKeyId) && parseBase64(sealedKey)?.length === 80,
      );
    if (fits) return value;
  } catch {
    // Said below.
  }
  throw damaged(path, 'damaged: its preface is not what was written');
};

const openHead = async (
  path: string,
): Promise<{ readonly file: FileHandle; readonly preface: BackupPreface; readonly bytes: Buffer }> => {
  const file = await open(path, constants.O_RDONLY);
  try {
    const head = Buffer.alloc(headLength);
    if ((await readFully(file, head)) < headLength || !head.subarray(0, 8).equals(magic))
      throw new ServiceError('validation', `${path} is not a backup of a service`, {
        hint: 'a snapshot of one tenant is restored with dke snapshot, a backup of the root key with dke root restore',
      });
    if (head.readUInt32BE(8) !== format)
      throw new ServiceError('unsupported', `this version does not know the format of ${path}`, {
        hint: 'use the version that created it, or a newer one',
      });
    const length = head.readUInt32BE(12);
    const bytes = Buffer.alloc(Math.min(length, mostPreface));
    if (length > mostPreface || (await readFully(file, bytes)) < length) throw damaged(path, 'cut off or damaged');
    return { file, preface: parsePreface(path, bytes), bytes };
  } catch (error) {
    await file.close();
    throw error;
  }
};

/** What the file says without a key. It counts only when the file was opened: the key depends on it. */
export const readBackupPreface = async (path: string): Promise<BackupPreface> => {
  const { file, preface } = await openHead(path);
  await file.close();
  return preface;
};

/** The key of a backup, opened with one of its recovery keys. The caller releases it. */
export const openBackupKey = (
  core: Pick<Core, 'hpkeOpenKey'>,
  { backupId, recipients }: BackupPreface,
  recoveryKeyId: string,
  recoveryKey: KeyRef,
): KeyRef => {
  const found = recipients.find((each) => each.recoveryKeyId === recoveryKeyId);
  if (found === undefined)
    throw new ServiceError('forbidden', `the backup is not encrypted to the recovery key ${recoveryKeyId}`, {
      hint: `it is encrypted to ${recipients.map((each) => each.recoveryKeyId).join(', ')}`,
    });
  const { info, aad } = backupContext(backupId, recoveryKeyId);
  return core.hpkeOpenKey(recoveryKey, info, aad, parseBase64(found.sealedKey) ?? Buffer.alloc(0), 'generic');
};

/** Plaintext, segment by segment. The buffer is used again. */
async function* openSegments(core: BackupCore, path: string, key: KeyRef, file: FileHandle): AsyncGenerator<Buffer> {
  const sealed = Buffer.allocUnsafeSlow(segmentLength + tagLength);
  const plain = Buffer.allocUnsafeSlow(segmentLength + tagLength);
  for (let index = 0; ; index += 1) {
    const length = await readFully(file, sealed);
    const last = length < sealed.length;
    if (length < tagLength) throw damaged(path, 'cut off: its end is missing');
    let opened: number;
    try {
      opened = core.cipher(key, 'decrypt', parametersOf(index, last), sealed.subarray(0, length), plain);
    } catch (error) {
      if (error instanceof CoreError && error.code === 'authentication-failed')
        throw damaged(path, last ? 'cut off or damaged near its end' : `damaged near byte ${index * sealed.length}`);
      throw error;
    }
    yield plain.subarray(0, opened);
    if (last) return;
  }
}

export interface BackupSink {
  write(bytes: Buffer): Promise<void>;
  end(): Promise<void>;
}

const parseHeader = (path: string, bytes: Buffer): { readonly bytes: number; readonly name: string } => {
  const value = JSON.parse(bytes.toString('utf8')) as { readonly bytes: unknown; readonly name: unknown };
  if (isCount(value.bytes) && typeof value.name === 'string') return { bytes: value.bytes, name: value.name };
  throw damaged(path, 'of a layout that this version does not know');
};

/**
 * Opens the whole file: each part goes to what `into` names for it, and nowhere when that is nothing. Throws ServiceError when the file is damaged or
 * cut off: what was written until then is useless.
 */
export const readBackup = async (
  core: BackupCore,
  path: string,
  own: KeyRef,
  into: (name: string) => BackupSink | undefined,
): Promise<{ readonly preface: BackupPreface; readonly parts: ReadonlyMap<string, number> }> => {
  const { file, preface, bytes: prefaceBytes } = await openHead(path);
  const key = contentKey(core, own, prefaceBytes);
  const parts = new Map<string, number>();
  try {
    let header = Buffer.alloc(0);
    let left = 0;
    let sink: BackupSink | undefined;
    const begin = (line: Buffer): Promise<void> | undefined => {
      const { bytes, name } = parseHeader(path, line);
      parts.set(name, bytes);
      left = bytes;
      sink = into(name);
      return bytes === 0 ? sink?.end() : undefined;
    };
    for await (const segment of openSegments(core, path, key, file))
      for (let at = 0; at < segment.length; ) {
        if (left === 0) {
          const end = segment.indexOf(10, at);
          header = Buffer.concat([header, segment.subarray(at, end < 0 ? segment.length : end)]);
          if (header.length > mostHeader) throw damaged(path, 'of a layout that this version does not know');
          at = end < 0 ? segment.length : end + 1;
          if (end < 0) continue;
          await begin(header);
          header = Buffer.alloc(0);
          continue;
        }
        const taken = segment.subarray(at, at + left);
        await sink?.write(taken);
        at += taken.length;
        left -= taken.length;
        if (left === 0) await sink?.end();
      }
    if (left > 0 || header.length > 0) throw damaged(path, 'cut off: its end is missing');
    return { preface, parts };
  } finally {
    core.release(key);
    await file.close();
  }
};
