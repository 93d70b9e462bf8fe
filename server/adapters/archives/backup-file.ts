// The file of a backup of the whole service (addon/FORMAT.md, section 7): a few named parts in one
// encrypted stream, sealed to recovery keys, and a closing that the audit key has signed. A file
// that was cut off or changed is noticed. Leaves out what the parts are, and the root key, which is
// never in a backup.
//
// 1. Who chooses a file: everyone who can write where backups are kept. The public recovery keys
//    are not secret, so that such a person can make one that opens.
// 2. What proves it: its closing, signed by the verifier key that the reader brings. Without one,
//    and in format 1, the file is not authentic: it is read, and what it says is shown, but nothing
//    of it is applied unasked (app/host/restore-backup.ts).
// 3. Whose: the closing names the backup; its digest covers preface and parts.
// 4. How large: preface, closing, and names of parts have limits here; the reader of a part has the
//    others.
// 5. Older: a file says when it was made. Which is the newest, the audit log says
//    (`service.backed-up` has the digest).
// 6. What others see: the preface, which has no names.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { type Core, CoreError, type KeyRef } from '../../../addon/core.ts';
import { labelBytes } from '../../../addon/labels.ts';
import { canonicalJson, parseBase64, toBase64 } from '../../base/bytes.ts';
import { parseVerifierKey, publicKeyOf, type Verifier } from '../../base/checkpoint.ts';
import { publishSoon } from '../../base/durable-files.ts';
import { isId } from '../../base/ids.ts';
import { backupContext, type RecoveryPublicKey } from '../../base/recovery-key.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type BackupClosing, backupClosingText } from '../../domain/service-backup.ts';
import type { BackupAuthority } from '../../ports/backup-authority.ts';
import { isSigned } from './inspect-snapshot.ts';
import { segmentNonce, sha256, signatureLength, tagLength } from './snapshot-layout.ts';

export type BackupCore = Pick<Core, 'generateGeneric' | 'hkdf' | 'hpkeSealKey' | 'hpkeOpenKey' | 'cipher' | 'release'>;

export interface BackupPreface {
  readonly backupId: string;
  /** When the copy of the database was made: RFC 3339. */
  readonly at: string;
  /** Version of the program that made the backup. */
  readonly version: string;
  /** The newest migration of the database. */
  readonly schema: string;
  /** Name of the audit log, and its records. */
  readonly log: string;
  readonly records: number;
  /** Epochs of the root keys without which the database does not open. */
  readonly rootEpochs: readonly number[];
  readonly recipients: readonly { readonly recoveryKeyId: string; readonly sealedKey: string }[];
}

export interface BackupPart {
  readonly name: string;
  readonly from: Buffer | { readonly path: string };
}

const magic = Buffer.from('DKE-BKUP');
/** The first one has no closing. */
const format = 2;
const headLength = 16;
const mostPreface = 65_536;
const mostClosing = 4096;
/** The length of the closing is the last thing in the file. */
const closingLength = 4;
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

/** A backup that is under way: of this one only, whichever services write to the same place. */
export const draftOf = (path: string, backupId: string): string => `${path}.${backupId}.part`;

/** Writes a new file, whole or not at all. Throws errors of the file system as they are. */
export const writeBackup = async (
  core: BackupCore,
  path: string,
  named: Omit<BackupPreface, 'recipients'>,
  recoveryKeys: readonly RecoveryPublicKey[],
  parts: readonly BackupPart[],
  { sign }: Pick<BackupAuthority, 'sign'>,
  /** Ends the draft of a backup that fails. */
  discard: (draft: string) => Promise<void> = (draft) => rm(draft, { force: true }),
): Promise<{ readonly bytes: number; readonly digest: string; readonly signer: string }> => {
  const draft = draftOf(path, named.backupId);
  const own = core.generateGeneric(32);
  const hash = createHash('sha256');
  let key: KeyRef | undefined;
  let file: FileHandle | undefined;
  let hasDraft = false;
  try {
    const recipients = recoveryKeys.map(({ id, publicKey }) => {
      const { info, aad } = backupContext(named.backupId, id);
      return { recoveryKeyId: id, sealedKey: toBase64(core.hpkeSealKey(publicKey, info, aad, own)) };
    });
    const preface = Buffer.from(canonicalJson({ ...named, recipients }));
    if (preface.length > mostPreface)
      throw new ServiceError(
        'conflict',
        `a backup cannot be encrypted to ${recoveryKeys.length} recovery keys: their list is longer than ${mostPreface} bytes`,
        { hint: 'remove recovery keys that nothing needs (dke recovery-key remove), then create the backup again' },
      );
    const head = Buffer.alloc(headLength);
    magic.copy(head);
    head.writeUInt32BE(format, 8);
    head.writeUInt32BE(preface.length, 12);
    key = contentKey(core, own, preface);
    file = await open(draft, 'wx', 0o600);
    hasDraft = true;
    const opened = file;
    const write = async (bytes: Buffer): Promise<void> => {
      hash.update(bytes);
      await opened.writeFile(bytes);
    };
    await write(Buffer.concat([head, preface]));
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
      await write(sealed.subarray(0, length));
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
    const digest = toBase64(hash.digest());
    const { backupId } = named;
    const { signer, signature } = await sign({ backupId, digest, recoveryKeyIds: recoveryKeys.map(({ id }) => id) });
    const closing = Buffer.from(canonicalJson({ backupId, digest, signer }));
    const end = Buffer.alloc(closingLength);
    end.writeUInt32BE(closing.length);
    await file.writeFile(Buffer.concat([closing, signature, end]));
    await file.sync();
    const { size } = await file.stat();
    await file.close();
    file = undefined;
    await publishSoon(draft, path);
    return { bytes: size, digest, signer };
  } catch (error) {
    await file?.close();
    if (hasDraft) await discard(draft);
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

/** What can be read of a backup without a key. It counts only when the file was read to its end. */
export interface BackupHead {
  readonly preface: BackupPreface;
  /** With the key that has signed it. Null in format 1, which is not authentic. */
  readonly closing: (BackupClosing & { readonly by: Verifier }) | null;
}
interface OpenedHead extends BackupHead {
  readonly file: FileHandle;
  /** The head of the file, and its preface. */
  readonly bytes: readonly [Buffer, Buffer];
  /** Bytes of segments. */
  readonly segments: number;
}

/** The closing, whose signature fits it; whether its signer is trusted, the caller decides. */
const parseClosing = (path: string, bytes: Buffer, signature: Buffer): NonNullable<BackupHead['closing']> => {
  try {
    const { backupId, digest, signer } = JSON.parse(bytes.toString('utf8')) as BackupClosing;
    const by = parseVerifierKey(String(signer));
    const closing = { backupId: String(backupId), digest: String(digest), signer: String(signer) };
    const fits = by !== null && Buffer.from(canonicalJson(closing)).equals(bytes);
    if (fits && isSigned(backupClosingText(closing), signature, publicKeyOf(by))) return { ...closing, by };
  } catch {
    // Said below.
  }
  throw damaged(path, 'cut off or damaged: its signature does not fit');
};

const openHead = async (path: string): Promise<OpenedHead> => {
  // A named pipe would wait for its other end: a user who may write in the folder can put one
  // there.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const head = Buffer.alloc(headLength);
    if (
      !(await file.stat()).isFile() ||
      (await readFully(file, head)) < headLength ||
      !head.subarray(0, 8).equals(magic)
    )
      throw new ServiceError('validation', `${path} is not a backup of a service`, {
        hint: 'a snapshot of one tenant is restored with dke snapshot restore, a backup of the root key with dke root restore',
      });
    const version = head.readUInt32BE(8);
    if (version < 1 || version > format)
      throw new ServiceError('unsupported', `this version does not know the format of ${path}`, {
        hint: 'use the version that created it, or a newer one',
      });
    const length = head.readUInt32BE(12);
    const bytes = Buffer.alloc(Math.min(length, mostPreface));
    if (length > mostPreface || (await readFully(file, bytes)) < length) throw damaged(path, 'cut off or damaged');
    const preface = parsePreface(path, bytes);
    const behindPreface = (await file.stat()).size - headLength - length;
    if (version === 1) return { file, preface, closing: null, bytes: [head, bytes], segments: behindPreface };
    const before = async (end: number, count: number): Promise<Buffer> => {
      const part = Buffer.alloc(count);
      const at = headLength + length + end - count;
      if (end < count || (await file.read(part, 0, count, at)).bytesRead < count) throw damaged(path, 'cut off');
      return part;
    };
    const signedAt = behindPreface - closingLength;
    const textLength = (await before(behindPreface, closingLength)).readUInt32BE();
    if (textLength > mostClosing) throw damaged(path, 'cut off: its end is missing');
    const signature = await before(signedAt, signatureLength);
    const text = await before(signedAt - signatureLength, textLength);
    const closing = parseClosing(path, text, signature);
    if (closing.backupId !== preface.backupId) throw damaged(path, 'damaged: it is made of two backups');
    const segments = signedAt - signatureLength - textLength;
    return { file, preface, closing, bytes: [head, bytes], segments };
  } catch (error) {
    await file.close();
    throw error;
  }
};

/**
 * What the file says without a key. It counts only when the file was opened: the key depends on it.
 */
export const readBackupHead = async (path: string): Promise<BackupHead> => {
  const { file, preface, closing } = await openHead(path);
  await file.close();
  return { preface, closing };
};

/** Whose backups are authentic. */
export interface BackupTrust {
  readonly verifier: Verifier;
  /**
   * Digests that the audit log names, where one was given: then nothing else counts. Former keys,
   * which others may have, sign in vain.
   */
  readonly logged: ReadonlySet<string> | undefined;
}

/**
 * Throws ServiceError unless the audit log names the backup, or, without one, this verifier's key
 * has signed it.
 */
export const requireSigner = (path: string, { closing }: BackupHead, { verifier, logged }: BackupTrust): void => {
  if (closing === null)
    throw new ServiceError(
      'forbidden',
      `${path} is not authentic: it has no signature, as backups of earlier versions`,
      {
        hint: 'leave out --signer to open it all the same',
      },
    );
  if (logged !== undefined) {
    if (logged.has(closing.digest)) return;
    throw new ServiceError('forbidden', `${path} is not authentic: the audit log does not name it`, {
      hint: 'export it again: the service records a backup (service.backed-up) within ten seconds after its end',
    });
  }
  if (closing.by.name === verifier.name && publicKeyOf(closing.by).equals(publicKeyOf(verifier))) return;
  throw new ServiceError('forbidden', `${path} is not authentic: it was signed by ${closing.signer}`, {
    hint: 'if it was made before the audit key was rotated, specify the former verifier key (formerKeys of dke audit log)',
  });
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
async function* openSegments(
  core: BackupCore,
  path: string,
  key: KeyRef,
  { file, segments }: OpenedHead,
  take: (sealed: Buffer) => void,
): AsyncGenerator<Buffer> {
  const sealed = Buffer.allocUnsafeSlow(segmentLength + tagLength);
  const plain = Buffer.allocUnsafeSlow(segmentLength + tagLength);
  for (let index = 0; ; index += 1) {
    const left = segments - index * sealed.length;
    const length = await readFully(file, sealed.subarray(0, Math.max(0, Math.min(left, sealed.length))));
    const last = length < sealed.length;
    take(sealed.subarray(0, length));
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
  try {
    const value = JSON.parse(bytes.toString('utf8')) as { readonly bytes: unknown; readonly name: unknown };
    if (isCount(value.bytes) && typeof value.name === 'string') return { bytes: value.bytes, name: value.name };
  } catch {
    // Said below.
  }
  throw damaged(path, 'of a layout that this version does not know');
};

/**
 * Opens the whole file: each part goes to what `into` names for it, and nowhere when that is
 * nothing. Throws ServiceError when the file is damaged or cut off: what was written until then is
 * useless.
 */
export const readBackup = async (
  core: BackupCore,
  path: string,
  own: KeyRef,
  into: (name: string) => BackupSink | undefined,
): Promise<BackupHead & { readonly parts: ReadonlyMap<string, number> }> => {
  const head = await openHead(path);
  const { file, preface, closing } = head;
  const key = contentKey(core, own, head.bytes[1]);
  const digest = createHash('sha256');
  for (const bytes of head.bytes) digest.update(bytes);
  const parts = new Map<string, number>();
  try {
    let header = Buffer.alloc(0);
    let left = 0;
    let sink: BackupSink | undefined;
    const begin = (line: Buffer): Promise<void> | undefined => {
      const { bytes, name } = parseHeader(path, line);
      if (parts.has(name)) throw damaged(path, 'of a layout that this version does not know');
      parts.set(name, bytes);
      left = bytes;
      sink = into(name);
      return bytes === 0 ? sink?.end() : undefined;
    };
    for await (const segment of openSegments(core, path, key, head, (sealed) => digest.update(sealed)))
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
    if (closing !== null && closing.digest !== toBase64(digest.digest()))
      throw damaged(path, 'damaged: it is not what was signed');
    return { preface, closing, parts };
  } finally {
    core.release(key);
    await file.close();
  }
};
