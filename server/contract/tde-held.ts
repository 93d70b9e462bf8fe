// What an agent holds of many objects, in the raw bytes of two requests: whether it is still so
// (`refresh`), and the values of data objects (`readValues`). Both are packed here and read here.
// Entries have a fixed length, so a body that is not whole entries, or has more of them than one
// request may have, is refused before one is read.
//
// Who can choose it: any process with the application's credential. A handle is only looked up
// under the rules of who asks, and a version is only compared. What is lost or late: an answer
// counts from when its request was sent, so an old one proves less.

import { misfit } from './tde-codec.ts';
import { type KeyUsage, keyUsages } from './tde-objects.ts';

/** Limits of one request: objects that the agent says it holds, and values that it asks for. */
export const mostHeld = 2048;
export const mostValues = 256;
/** Bytes of values in one answer; what does not fit is asked for again. */
export const mostValueBytes = 512 * 1024;

/**
 * `uses`: what a key is to be used for. `version`: of the object as the agent knows it
 * (`TokenObject`); 0: it does not know the object.
 */
export interface HeldObject {
  readonly handle: number;
  readonly uses: readonly KeyUsage[];
  readonly version: number;
}
/**
 * `uses`: those that would be admitted now. `same`: the object is there, and as the agent knows it.
 */
export type HeldAnswer = Omit<HeldObject, 'handle' | 'version'> & { readonly same: boolean };

const [handleBytes, versionBytes, heldBytes, answerBytes] = [4, 6, 11, 1];
const sameBit = 1 << keyUsages.length;

const maskOf = (uses: readonly KeyUsage[]): number =>
  keyUsages.reduce((mask, usage, bit) => mask | (uses.includes(usage) ? 1 << bit : 0), 0);
const usesOf = (mask: number): KeyUsage[] => keyUsages.filter((_, bit) => (mask & (1 << bit)) !== 0);

/** How many entries there are. Throws 'validation'. */
const entries = (raw: Uint8Array, bytes: number, most: number): number => {
  const count = raw.length / bytes;
  if (!Number.isInteger(count) || count < 1 || count > most) throw misfit('raw', `must be 1 to ${most} entries`);
  return count;
};
const listOf = <T>(count: number, read: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => read(at));

export const packHeld = (held: readonly HeldObject[]): Buffer<ArrayBuffer> => {
  const raw = Buffer.alloc(held.length * heldBytes);
  for (const [at, { handle, uses, version }] of held.entries()) {
    raw.writeUInt32BE(handle, at * heldBytes);
    raw.writeUIntBE(version, at * heldBytes + handleBytes, versionBytes);
    raw.writeUInt8(maskOf(uses), at * heldBytes + handleBytes + versionBytes);
  }
  return raw;
};
export const unpackHeld = (raw: Buffer): readonly HeldObject[] =>
  listOf(entries(raw, heldBytes, mostHeld), (at) => ({
    handle: raw.readUInt32BE(at * heldBytes),
    version: raw.readUIntBE(at * heldBytes + handleBytes, versionBytes),
    uses: usesOf(raw.readUInt8(at * heldBytes + handleBytes + versionBytes)),
  }));

export const packHeldAnswers = (answers: readonly HeldAnswer[]): Buffer =>
  Buffer.from(answers.map(({ uses, same }) => maskOf(uses) | (same ? sameBit : 0)));
/** Reads the answers to a request with `count` entries; throws unless each entry has one. */
export const unpackHeldAnswers = (raw: Uint8Array, count: number): readonly HeldAnswer[] => {
  if (entries(raw, answerBytes, mostHeld) !== count) throw misfit('raw', 'must answer each entry');
  return listOf(count, (at) => ({ uses: usesOf(raw[at] ?? 0), same: ((raw[at] ?? 0) & sameBit) !== 0 }));
};

export const packHandles = (handles: readonly number[]): Buffer<ArrayBuffer> => {
  const raw = Buffer.alloc(handles.length * handleBytes);
  for (const [at, handle] of handles.entries()) raw.writeUInt32BE(handle, at * handleBytes);
  return raw;
};
export const unpackHandles = (raw: Buffer): readonly number[] =>
  listOf(entries(raw, handleBytes, mostValues), (at) => raw.readUInt32BE(at * handleBytes));

/** A value and the version of its object come from one read. */
export interface ValueOf {
  readonly handle: number;
  readonly version: number;
  readonly value: Uint8Array;
}
const lengthBytes = 4;
const valueHead = handleBytes + versionBytes + lengthBytes;

export const packValues = (values: readonly ValueOf[]): Buffer => {
  const raw = Buffer.allocUnsafeSlow(values.reduce((length, { value }) => length + valueHead + value.length, 0));
  let at = 0;
  for (const { handle, version, value } of values) {
    raw.writeUInt32BE(handle, at);
    raw.writeUIntBE(version, at + handleBytes, versionBytes);
    raw.writeUInt32BE(value.length, at + handleBytes + versionBytes);
    raw.set(value, at + valueHead);
    at += valueHead + value.length;
  }
  return raw;
};
/** The values are views. */
export const unpackValues = (bytes: Uint8Array): readonly ValueOf[] => {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const values: ValueOf[] = [];
  for (let at = 0; at < raw.length; ) {
    if (raw.length - at < valueHead || values.length >= mostValues) throw misfit('raw', 'must be values');
    const length = raw.readUInt32BE(at + handleBytes + versionBytes);
    const value = raw.subarray(at + valueHead, at + valueHead + length);
    if (value.length !== length) throw misfit('raw', 'must be whole values');
    const version = raw.readUIntBE(at + handleBytes, versionBytes);
    values.push({ handle: raw.readUInt32BE(at), version, value });
    at += valueHead + length;
  }
  return values;
};
