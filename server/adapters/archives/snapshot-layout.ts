// The bytes of a snapshot file (addon/FORMAT.md, section 5): its parts taken apart and put
// together. No keys here, and no files.

import { hash } from 'node:crypto';
import { canonicalJson, parseBase64 } from '../../base/bytes.ts';
import { isId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { SnapshotClosing, SnapshotPreface } from '../../ports/snapshot-archive.ts';

export const magic = Buffer.from('DKE-SNAP');
export const format = 1;
/** magic, format, length of the preface. */
export const headLength = 16;
export const mostPreface = 65_536;
export const mostClosing = 65_536;
/** Number of slots, length of the ciphertext. */
export const segmentHeadLength = 8;
export const endMark = 0xffff_ffff;
export const signatureLength = 64;
export const tagLength = 16;

/**
 * Lengths of a slot. Its fixed part, the unit's id and the digest of its record, stays forever; the
 * body is overwritten when the unit is erased.
 */
export const slotFixed = 48;
export const slotBody = 171;
export const slotLength = slotFixed + slotBody;
export const mostSlots = 256;
/** One row may be long, so that a segment may be. */
export const mostCiphertext = 32 * 1_048_576;

export const sha256 = (...parts: readonly Uint8Array[]): Buffer =>
  hash('sha256', parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts), 'buffer');

export const damaged = (what: string, cause?: unknown): ServiceError =>
  new ServiceError('key-tampered', `the snapshot is damaged or was changed after signing: ${what}`, {
    reason: 'snapshot-damaged',
    hint: 'use another snapshot, or another copy of this one; nothing was changed',
    ...(cause === undefined ? {} : { cause }),
  });

const u32 = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at);
  return bytes;
};

export const packHead = (preface: SnapshotPreface): Buffer => {
  const text = Buffer.from(canonicalJson(preface));
  if (text.length > mostPreface) throw new RangeError('the preface of a snapshot is too long');
  return Buffer.concat([magic, u32(format, text.length), text]);
};

/** Length of the preface that follows. */
export const readHead = (head: Buffer): number => {
  if (head.length < headLength || !head.subarray(0, 8).equals(magic))
    throw new ServiceError('validation', 'this is not a snapshot', { reason: 'snapshot-damaged' });
  if (head.readUInt32BE(8) !== format)
    throw new ServiceError('unsupported', 'this version does not know the format of the snapshot', {
      hint: 'use the version that created it, or a newer one',
    });
  const length = head.readUInt32BE(12);
  if (length === 0 || length > mostPreface) throw damaged('its head');
  return length;
};

const parseJson = (bytes: Buffer, what: string): { readonly [name: string]: unknown } => {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    // One text for one value: what was signed or bound is read in one way only.
    if (typeof value === 'object' && value !== null && Buffer.from(canonicalJson(value)).equals(bytes))
      return value as { readonly [name: string]: unknown };
  } catch {
    // Said below.
  }
  throw damaged(what);
};

const isText = (value: unknown): value is string => typeof value === 'string';

const isRecipient = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false;
  const { recoveryKeyId, sealedKey } = value as Readonly<Record<string, unknown>>;
  return (
    isText(recoveryKeyId) &&
    /^[0-9a-f]{16}$/.test(recoveryKeyId) &&
    isText(sealedKey) &&
    parseBase64(sealedKey)?.length === 80
  );
};

export const parsePreface = (bytes: Buffer): SnapshotPreface => {
  const value = parseJson(bytes, 'its preface');
  const { snapshotId, tenantId, at, schema, recipients } = value;
  const fits =
    isText(snapshotId) &&
    isId(snapshotId) &&
    isText(tenantId) &&
    isId(tenantId) &&
    isText(at) &&
    Number.isFinite(Date.parse(at)) &&
    isText(schema) &&
    Array.isArray(recipients) &&
    recipients.every(isRecipient);
  if (!fits) throw damaged('its preface');
  return value as unknown as SnapshotPreface;
};

export const packSegmentHead = (slots: number, ciphertext: number): Buffer => u32(slots, ciphertext);

/**
 * One key seals one snapshot, so that a counter is all that its nonces need; the last segment is
 * told from the others.
 */
export const segmentNonce = (index: number, last: boolean): Buffer => u32(0, index, last ? 1 : 0);

/** What of the slots is bound to the ciphertext next to them. */
export const fixedParts = (slots: Buffer): Buffer => {
  const count = slots.length / slotLength;
  const out = Buffer.alloc(count * slotFixed);
  for (let at = 0; at < count; at += 1) slots.copy(out, at * slotFixed, at * slotLength, at * slotLength + slotFixed);
  return out;
};

const idText = (bytes: Buffer): string => {
  const digits = bytes.toString('hex');
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    '-',
  );
};

export interface Slot {
  readonly id: string;
  readonly digest: Buffer;
  readonly body: Buffer;
}
export const slotsOf = (slots: Buffer): readonly Slot[] =>
  Array.from({ length: slots.length / slotLength }, (_, index) => {
    const at = index * slotLength;
    return {
      id: idText(slots.subarray(at, at + 16)),
      digest: slots.subarray(at + 16, at + slotFixed),
      body: slots.subarray(at + slotFixed, at + slotLength),
    };
  });

const erasedMark = Buffer.from('GONE');
const at8 = (at: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(at));
  return bytes;
};
/** What is signed about an erased unit. */
export const erasureText = (snapshotId: string, unitId: string, at: number): string =>
  `dke snapshot 1 erased\n${snapshotId}\n${unitId}\n${at}\n`;

/** What stands over the key of an erased unit. */
export const packErased = (at: number, publicKey: Uint8Array, signature: Uint8Array): Buffer => {
  const body = Buffer.alloc(slotBody);
  Buffer.concat([erasedMark, at8(at), publicKey, signature]).copy(body);
  return body;
};

/** Null: the unit is not erased. */
export const readErased = (
  body: Buffer,
): { readonly at: number; readonly publicKey: Buffer; readonly signature: Buffer } | null =>
  body.subarray(0, 4).equals(erasedMark) && body.subarray(108).every((byte) => byte === 0)
    ? {
        at: Number(body.readBigUInt64BE(4)),
        publicKey: body.subarray(12, 44),
        signature: body.subarray(44, 108),
      }
    : null;

export const closingText = (closing: SnapshotClosing): string => `dke snapshot 1\n${canonicalJson(closing)}`;

export const packClosing = (closing: SnapshotClosing, signature: Uint8Array): Buffer => {
  const text = Buffer.from(canonicalJson(closing));
  return Buffer.concat([u32(endMark, text.length), text, signature]);
};

export const parseClosing = (bytes: Buffer): SnapshotClosing => {
  const value = parseJson(bytes, 'its end');
  const { audit, rows, signer, snapshotId, digest } = value;
  const isRecord = (member: unknown): member is object => typeof member === 'object' && member !== null;
  const counts = [value.segments, value.lines, value.units, value.materials, value.omitted];
  const fits =
    value.format === 1 &&
    isText(snapshotId) &&
    isText(digest) &&
    isText(signer) &&
    isRecord(rows) &&
    isRecord(audit) &&
    [...counts, (audit as { readonly size?: unknown }).size].every(
      (count) => Number.isSafeInteger(count) && Number(count) >= 0,
    );
  if (!fits) throw damaged('its end');
  return value as unknown as SnapshotClosing;
};
