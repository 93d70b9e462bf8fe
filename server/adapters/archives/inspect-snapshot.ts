// Reads a snapshot from its beginning to its end, a segment at a time. Without its key: structure,
// digest, signature and what was erased. With it: every row and every key. Whatever does not fit is
// one error that says where.

import { createHash, createPublicKey, verify } from 'node:crypto';
import { type Core, CoreError, type KekRef, type KeyRef } from '../../../addon/core.ts';
import { parseBase64 } from '../../base/bytes.ts';
import { parseVerifierKey } from '../../base/checkpoint.ts';
import { localDisk } from '../../base/disk-files.ts';
import { isId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { DiskFile, ForeignDisk } from '../../ports/foreign-disk.ts';
import type {
  ErasedUnit,
  SnapshotClosing,
  SnapshotInspection,
  SnapshotItem,
  SnapshotPreface,
  SnapshotRow,
  TrustedSigners,
} from '../../ports/snapshot-archive.ts';
import {
  closingText,
  damaged,
  endMark,
  erasureText,
  fixedParts,
  headLength,
  mostCiphertext,
  mostClosing,
  mostSlots,
  parseClosing,
  parsePreface,
  readErased,
  readHead,
  segmentHeadLength,
  segmentNonce,
  sha256,
  signatureLength,
  slotLength,
  slotsOf,
  tagLength,
} from './snapshot-layout.ts';
import { deriveKeys, materialContext, unitContext } from './write-snapshot.ts';

/** Whether the text was signed with Ed25519 by one of these keys. */
export const isSigned = (text: string, signature: Uint8Array, publicKey: Uint8Array): boolean => {
  const key = createPublicKey({
    format: 'jwk',
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') },
  });
  return verify(null, Buffer.from(text), key, signature);
};
const trusts = (trusted: TrustedSigners, publicKey: Uint8Array): boolean =>
  trusted.some((key) => Buffer.from(key).equals(publicKey));

export interface Segment {
  readonly index: number;
  /** Where its slots begin in the file. */
  readonly slotsAt: number;
  readonly slots: Buffer;
  readonly ciphertext: Buffer;
  readonly last: boolean;
}

export interface SnapshotFile {
  readonly preface: SnapshotPreface;
  readonly prefaceBytes: Buffer;
  segments(): AsyncGenerator<Segment, { readonly closing: SnapshotClosing; readonly signature: Buffer }>;
  readonly handle: DiskFile;
  readonly size: number;
}

/** Opens a file and reads its preface. The caller closes the handle. */
export const openSnapshot = async (
  path: string,
  mode: 'r' | 'r+' = 'r',
  disk: Pick<ForeignDisk, 'open'> = localDisk,
): Promise<SnapshotFile> => {
  let handle: DiskFile;
  try {
    handle = await disk.open(path, mode);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT')
      throw new ServiceError('not-found', `the snapshot's file ${path} is missing`, { cause: error });
    throw new ServiceError('unavailable', `the snapshot's file ${path} cannot be opened (${code ?? message})`, {
      cause: error,
    });
  }
  try {
    const size = await handle.size();
    const read = async (at: number, length: number): Promise<Buffer> => {
      const bytes = await handle.read(at, length);
      if (bytes.length < length) throw damaged('it is cut short');
      return bytes;
    };
    const prefaceLength = readHead(await read(0, Math.min(headLength, size)));
    const prefaceBytes = await read(headLength, prefaceLength);
    const preface = parsePreface(prefaceBytes);
    return {
      preface,
      prefaceBytes,
      handle,
      size,
      async *segments() {
        let at = headLength + prefaceLength;
        let head = await read(at, segmentHeadLength);
        for (let index = 0; ; index += 1) {
          const count = head.readUInt32BE(0);
          const length = head.readUInt32BE(4);
          if (count > mostSlots || length < tagLength || length > mostCiphertext)
            throw damaged(`the head of segment ${index}`);
          const slotsAt = at + segmentHeadLength;
          const body = await read(slotsAt, count * slotLength + length);
          at = slotsAt + body.length;
          head = await read(at, segmentHeadLength);
          const last = head.readUInt32BE(0) === endMark;
          yield {
            index,
            slotsAt,
            slots: body.subarray(0, count * slotLength),
            ciphertext: body.subarray(count * slotLength),
            last,
          };
          if (last) break;
        }
        const length = head.readUInt32BE(4);
        if (length > mostClosing) throw damaged('its end');
        const rest = await read(at + segmentHeadLength, length + signatureLength);
        if (at + segmentHeadLength + rest.length !== size) throw damaged('something follows its end');
        return { closing: parseClosing(rest.subarray(0, length)), signature: rest.subarray(length) };
      },
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
};

/** Reads everything that can be read without a key. */
export const inspectSnapshot = async (
  path: string,
  trusted: TrustedSigners,
  disk: Pick<ForeignDisk, 'open'> = localDisk,
): Promise<SnapshotInspection> => {
  const file = await openSnapshot(path, 'r', disk);
  try {
    const { preface, prefaceBytes, size } = file;
    const digest = createHash('sha256');
    const head = await file.handle.read(0, headLength);
    digest.update(head).update(prefaceBytes);
    const erased: ErasedUnit[] = [];
    let segments = 0;
    let units = 0;
    const iterator = file.segments();
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) {
        const { closing, signature } = next.value;
        const signer = parseVerifierKey(closing.signer);
        const publicKey =
          signer === null ? null : Buffer.from(signer.key.export({ format: 'jwk' }).x ?? '', 'base64url');
        if (publicKey === null || !isSigned(closingText(closing), signature, publicKey)) throw damaged('its signature');
        if (!trusts(trusted, publicKey))
          throw new ServiceError(
            'conflict',
            `the snapshot was signed by ${closing.signer}, which is not trusted here`,
            {
              reason: 'snapshot-signer',
              hint: 'if it comes from another of your services, specify its verifier key (run dke audit log there)',
            },
          );
        if (closing.snapshotId !== preface.snapshotId || closing.digest !== digest.digest('base64'))
          throw damaged('its contents');
        if (closing.segments !== segments || closing.units !== units) throw damaged('its counts');
        return { preface, closing, size, erased };
      }
      const { slots, ciphertext } = next.value;
      segments += 1;
      for (const { id, digest: expected, body } of slotsOf(slots)) {
        units += 1;
        const gone = readErased(body);
        if (gone === null) {
          if (!sha256(body).equals(expected)) throw damaged(`the key of ${id}`);
          continue;
        }
        const { at, publicKey, signature } = gone;
        if (!trusts(trusted, publicKey) || !isSigned(erasureText(preface.snapshotId, id, at), signature, publicKey))
          throw damaged(`the erasure of ${id}`);
        erased.push({ id, at });
      }
      const segmentHead = Buffer.alloc(segmentHeadLength);
      segmentHead.writeUInt32BE(slots.length / slotLength, 0);
      segmentHead.writeUInt32BE(ciphertext.length, 4);
      digest.update(segmentHead).update(fixedParts(slots)).update(ciphertext);
    }
  } finally {
    await file.handle.close();
  }
};

type ReadCore = Pick<Core, 'hkdf' | 'openRecord' | 'cipher' | 'release'>;

const toDamaged = (error: unknown, where: string): unknown =>
  (error instanceof CoreError && ['authentication-failed', 'format', 'key-type', 'data-length'].includes(error.code)) ||
  error instanceof SyntaxError
    ? damaged(where, error)
    : error;

const parseRow = (row: { readonly [column: string]: unknown }): SnapshotRow =>
  Object.fromEntries(
    Object.entries(row).map(([column, value]) => {
      if (value === null || typeof value === 'string' || typeof value === 'number') return [column, value];
      const bytes = parseBase64(String((value as { readonly base64?: unknown }).base64));
      if (bytes === null) throw damaged('a row');
      return [column, bytes];
    }),
  );

interface Line {
  readonly table?: string;
  readonly row?: { readonly [column: string]: unknown };
  readonly tampered?: boolean;
  readonly unit?: string;
  readonly version?: number;
  readonly copies?: readonly string[];
  readonly attributes?: string;
  readonly check?: string;
  readonly record?: string;
}

/**
 * Opens everything. `inspectSnapshot` comes first: this trusts the outer structure, and checks
 * every seal.
 */
export async function* readItems(
  core: ReadCore,
  path: string,
  key: KeyRef,
  disk: Pick<ForeignDisk, 'open'> = localDisk,
): AsyncGenerator<SnapshotItem> {
  const file = await openSnapshot(path, 'r', disk);
  const { snapshotId, tenantId } = file.preface;
  let keys: ReturnType<typeof deriveKeys> | undefined;
  try {
    keys = deriveKeys(core, key, file.prefaceBytes);
    for await (const { index, slots, ciphertext, last } of file.segments()) {
      const plain = Buffer.alloc(ciphertext.length - tagLength);
      try {
        core.cipher(
          keys.rows,
          'decrypt',
          { algorithm: 'aes-gcm', iv: segmentNonce(index, last), aad: sha256(fixedParts(slots)), tagLength },
          ciphertext,
          plain,
        );
      } catch (error) {
        throw index === 0
          ? new ServiceError('key-tampered', 'the key does not open this snapshot, or the snapshot is damaged', {
              reason: 'snapshot-damaged',
              cause: error,
            })
          : toDamaged(error, `segment ${index}`);
      }
      const bodies = new Map(slotsOf(slots).map(({ id, body }) => [id, body]));
      let open: { readonly id: string; readonly key: KekRef } | undefined;
      try {
        for (const text of plain.toString('utf8').split('\n')) {
          if (text === '') continue;
          const line = JSON.parse(text) as Line;
          if (line.table !== undefined && line.row !== undefined) {
            yield { kind: 'row', table: line.table, row: parseRow(line.row), tampered: line.tampered === true };
            continue;
          }
          const { unit = '', version = 0, copies = [], attributes = '', check = '', record = '' } = line;
          const body = bodies.get(unit);
          const bytes = parseBase64(record);
          if (!isId(unit) || body === undefined || bytes === null) throw damaged(`segment ${index}`);
          const said = { kind: 'material', unitId: unit, version, copies, attributes, check } as const;
          const gone = readErased(body);
          if (gone !== null) {
            yield { ...said, key: null, erasedAt: gone.at };
            continue;
          }
          if (open?.id !== unit) {
            if (open !== undefined) core.release(open.key);
            open = undefined;
            open = { id: unit, key: core.openRecord(keys.units, unitContext(snapshotId, tenantId, unit), body) };
          }
          yield {
            ...said,
            key: core.openRecord(open.key, materialContext(tenantId, unit, version, attributes), bytes),
            erasedAt: null,
          };
        }
      } catch (error) {
        throw toDamaged(error, `segment ${index}`);
      } finally {
        if (open !== undefined) core.release(open.key);
      }
    }
  } finally {
    if (keys !== undefined) {
      core.release(keys.rows);
      core.release(keys.units);
    }
    await file.handle.close();
  }
}
