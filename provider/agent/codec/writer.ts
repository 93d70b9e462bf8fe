// Writes the values of a reply (PROTOCOL.md). Every write checks the room that is left in the
// frame.
import { attributeKind } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type StructName, structs, type Version } from '../../schema/structs.ts';
import {
  type AttributeAnswers,
  type AttributeQuery,
  type AttributeValue,
  type BytesOutput,
  CryptokiError,
  LengthOnly,
  type MessageResult,
} from '../../schema/types.ts';
import { allOnes, misanswered, noBytes, twoTo32 } from './wire.ts';

/** Fills one reply. Every write checks the room and throws CKR_DEVICE_MEMORY. */
export class Writer {
  bytes: Buffer = noBytes;
  at = 0;

  open(bytes: Buffer): void {
    this.bytes = bytes;
    this.at = 0;
  }

  room(count: number): number {
    const at = this.at;
    if (count > this.bytes.length - at) throw new CryptokiError(CKR.DEVICE_MEMORY, 'the answer exceeds a frame');
    this.at = at + count;
    return at;
  }

  u8(value: number): void {
    this.bytes[this.room(1)] = value;
  }

  u32(value: number): void {
    const at = this.room(4);
    const b = this.bytes;
    b[at] = value >>> 24;
    b[at + 1] = value >>> 16;
    b[at + 2] = value >>> 8;
    b[at + 3] = value;
  }

  ulong(value: number | bigint): void {
    if (typeof value === 'bigint') {
      this.u32(Number((value >> 32n) & 0xffff_ffffn));
      this.u32(Number(value & 0xffff_ffffn));
    } else if (value >= 0) {
      this.u32(Math.floor(value / twoTo32));
      this.u32(value >>> 0);
    } else {
      this.u32(allOnes);
      this.u32(allOnes);
    }
  }

  raw(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.room(bytes.length));
  }

  array(bytes: Uint8Array): void {
    this.u32(bytes.length);
    this.raw(bytes);
  }
}

/** The length of a value in the caller's memory: CK_ULONG is 8 bytes, CK_ATTRIBUTE 24. */
const memoryLength = (type: number, value: AttributeValue | LengthOnly): number => {
  if (value instanceof LengthOnly || value instanceof Uint8Array) return value.length;
  if (typeof value === 'boolean') return 1;
  if (typeof value !== 'object') return 8;
  return value.length * (attributeKind(type) === 'template' ? 24 : 8);
};

const ask = (holds: boolean): void => {
  if (!holds) throw misanswered('an attribute of the wrong kind');
};

/** Writes a value of an attribute, or what represents it when only its length is told. */
const writeValue = (writer: Writer, type: number, value: AttributeValue | LengthOnly): void => {
  const kind = attributeKind(type);
  if (value instanceof LengthOnly) {
    if (kind === 'boolean') writer.u8(0);
    else if (kind === 'ulong') writer.ulong(0);
    else writer.u32(kind === 'template' || kind === 'mechanisms' ? 0 : allOnes);
  } else if (typeof value === 'boolean') {
    ask(kind === 'boolean' || kind === 'byteBoolean');
    if (kind === 'byteBoolean') writer.u32(1);
    writer.u8(value ? 1 : 0);
  } else if (typeof value !== 'object') {
    ask(kind === 'ulong');
    writer.ulong(value);
  } else if (value instanceof Uint8Array) {
    ask(kind === 'bytes' || kind === 'secret' || kind === 'date');
    writer.array(value);
  } else {
    ask(kind === 'template' || kind === 'mechanisms');
    writer.u32(value.length);
    for (const each of value) {
      if (typeof each === 'number') writer.ulong(each);
      else writeAttribute(writer, each.type, each.value);
    }
  }
};

const writeAttribute = (writer: Writer, type: number, value: AttributeValue | LengthOnly | null): void => {
  writer.u32(type);
  writer.u8(value === null ? 0 : 1);
  if (value === null) return;
  writer.u32(memoryLength(type, value));
  writeValue(writer, type, value);
};

export const writeAnswers = (writer: Writer, queries: readonly AttributeQuery[], answers: AttributeAnswers): void => {
  if (answers.values.length !== queries.length) throw misanswered('attribute count');
  let rv = answers.rv;
  writer.u32(queries.length);
  for (const [i, { type, capacity }] of queries.entries()) {
    const value = answers.values[i] ?? null;
    if (value === null) {
      writeAttribute(writer, type, null);
    } else if (capacity === null) {
      writeAttribute(writer, type, new LengthOnly(memoryLength(type, value)));
    } else if (value instanceof LengthOnly || memoryLength(type, value) > capacity) {
      if (rv === CKR.OK) rv = CKR.BUFFER_TOO_SMALL;
      writeAttribute(writer, type, null);
    } else {
      writeAttribute(writer, type, value);
    }
  }
  writer.ulong(rv);
};

/**
 * Bytes for an `out` argument. `from` is where its `space` began, -1 when a reply is written into
 * another buffer.
 */
export const writeBytes = (writer: Writer, value: BytesOutput, capacity: number | null, from: number): void => {
  if (typeof value === 'number') {
    if (from !== writer.at + 5) throw misanswered('the buffer is not available after a handler has awaited');
    if (capacity === null || value > capacity) throw misanswered('more bytes than requested');
    writer.u8(1);
    writer.u32(value);
    writer.room(value);
  } else if (value instanceof LengthOnly || capacity === null || value.length > capacity) {
    writer.u8(0);
    writer.u32(value.length);
  } else {
    writer.u8(1);
    writer.array(value);
  }
};

export const writeList = (writer: Writer, value: readonly number[], capacity: number | null): void => {
  const told = capacity === null || value.length > capacity;
  writer.u8(told ? 0 : 1);
  writer.u32(value.length);
  if (!told) for (const each of value) writer.ulong(each);
};

export const writeMessageResult = (writer: Writer, { iv, tag }: MessageResult): void => {
  for (const bytes of [iv, tag]) {
    if (bytes === null) writer.u32(allOnes);
    else writer.array(bytes);
  }
};

const encodedText = new TextEncoder();
const blank = 0x20;

export const writeStruct = (writer: Writer, name: StructName, value: Readonly<Record<string, unknown>>): void => {
  for (const [field, { wire }] of Object.entries(structs[name])) {
    const given = value[field];
    if (wire === 'v') {
      const { major, minor } = given as Version;
      writer.u8(major);
      writer.u8(minor);
    } else if (wire === 'u') {
      writer.ulong(given as number);
    } else {
      const length = Number(wire.slice(1));
      writer.u32(length);
      const at = writer.room(length);
      writer.bytes.fill(blank, at, at + length);
      // `encodeInto` cuts between characters, never inside one.
      encodedText.encodeInto(given as string, writer.bytes.subarray(at, at + length));
    }
  }
};
