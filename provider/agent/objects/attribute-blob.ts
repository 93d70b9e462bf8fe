// The encoding of the attributes that the service keeps for the agent without looking into them
// (`attributes` of a token object). Format 1, forever: a byte 1, then per attribute its type (u32)
// and its value:
//   0 false · 1 true · 2 CK_ULONG (u64) · 3 bytes (u32 length, bytes) · 4 mechanisms (u32 count,
//   u64 each) 5 template (u32 length, attributes in this same form without the first byte)
// Big-endian, ordered by type, so that equal attributes have equal bytes.
import type { Attribute, AttributeValue } from '../../schema/types.ts';

export type AttributeMap = Map<number, AttributeValue>;
export type ReadonlyAttributes = ReadonlyMap<number, AttributeValue>;

const format = 1;

const u32 = (value: number): Buffer => {
  const out = Buffer.alloc(4);
  out.writeUInt32BE(value);
  return out;
};
const u64 = (value: number | bigint): Buffer => {
  const out = Buffer.alloc(8);
  out.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)));
  return out;
};
const counted = (bytes: Uint8Array): Uint8Array[] => [u32(bytes.length), bytes];

const encodeValue = (value: AttributeValue): Uint8Array[] => {
  if (typeof value === 'boolean') return [Buffer.of(value ? 1 : 0)];
  if (typeof value !== 'object') return [Buffer.of(2), u64(value)];
  if (value instanceof Uint8Array) return [Buffer.of(3), ...counted(value)];
  if (isTemplate(value)) {
    const entries = value.flatMap((each) => (each.value === null ? [] : [[each.type, each.value] as const]));
    return [Buffer.of(5), ...counted(encodeEntries(entries))];
  }
  return [Buffer.of(4), u32(value.length), ...value.map(u64)];
};

/** An empty list is taken for a list of mechanisms: both have no entries. */
const isTemplate = (value: readonly number[] | readonly Attribute[]): value is readonly Attribute[] =>
  typeof value[0] === 'object';

const encodeEntries = (entries: Iterable<readonly [number, AttributeValue]>): Buffer =>
  Buffer.concat([...entries].sort(([a], [b]) => a - b).flatMap(([type, value]) => [u32(type), ...encodeValue(value)]));

export const encodeAttributes = (attributes: ReadonlyAttributes): Buffer =>
  Buffer.concat([Buffer.of(format), encodeEntries(attributes)]);

/** The length that a value has in memory: what a template that is applied later is checked by. */
const lengthOf = (value: AttributeValue): number => {
  if (typeof value === 'boolean') return 1;
  if (typeof value !== 'object') return 8;
  return value instanceof Uint8Array ? value.length : value.length * (isTemplate(value) ? 24 : 8);
};

const decodeEntries = (bytes: Buffer): [number, AttributeValue][] => {
  const entries: [number, AttributeValue][] = [];
  let at = 0;
  const take = (count: number): number => {
    const from = at;
    if (count > bytes.length - from) throw new RangeError('the attributes end too early');
    at += count;
    return from;
  };
  const number = (): number => bytes.readUInt32BE(take(4));
  const long = (): number | bigint => {
    const value = bytes.readBigUInt64BE(take(8));
    return value === 0xffff_ffff_ffff_ffffn ? -1 : value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
  };
  const slice = (): Buffer => {
    const length = number();
    const from = take(length);
    return bytes.subarray(from, from + length);
  };
  const value = (): AttributeValue => {
    const form = bytes[take(1)];
    switch (form) {
      case 0:
        return false;
      case 1:
        return true;
      case 2:
        return long();
      case 3:
        return slice();
      case 4: {
        const count = number();
        if (count * 8 > bytes.length - at) throw new RangeError('the attributes end too early');
        return Array.from({ length: count }, () => Number(long()));
      }
      case 5:
        return decodeEntries(slice()).map(([type, each]) => ({ type, value: each, length: lengthOf(each) }));
      default:
        throw new RangeError('the attributes have an unknown form');
    }
  };
  while (at < bytes.length) entries.push([number(), value()]);
  return entries;
};

/**
 * Throws RangeError when the bytes are not of this format. An object made without attributes has
 * none.
 */
export const decodeAttributes = (bytes: Buffer): AttributeMap => {
  if (bytes.length === 0) return new Map();
  if (bytes[0] !== format) throw new RangeError('the attributes have an unknown format');
  return new Map(decodeEntries(bytes.subarray(1)));
};
