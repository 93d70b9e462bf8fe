// DER (X.690), as much as keys need: tags below 31, lengths below 64 KiB. Writing takes a tree and
// makes one buffer, so that key material is copied once, into memory that the caller wipes; reading
// gives views.

export const tags = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  printableString: 0x13,
  sequence: 0x30,
} as const;

/** A value: bytes as they are, or values in a row. */
export interface Der {
  readonly tag: number;
  readonly content: Uint8Array | readonly Der[];
  /**
   * Bytes that stand before the content: a sign for integers, the count of unused bits for bit
   * strings.
   */
  readonly zero?: boolean;
}

export const der = (tag: number, content: Uint8Array | readonly Der[]): Der => ({ tag, content });
export const sequence = (...content: readonly Der[]): Der => der(tags.sequence, content);

/** Leading zeros are Cryptoki's to allow and DER's to refuse. */
export const withoutLeadingZeros = (bytes: Uint8Array): Uint8Array => {
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from++;
  return bytes.subarray(from);
};

/** An unsigned number, most significant byte first. */
export const unsigned = (bytes: Uint8Array): Der => {
  const content = withoutLeadingZeros(bytes);
  return { tag: tags.integer, content, zero: ((content[0] ?? 0x80) & 0x80) !== 0 };
};
export const bitString = (content: Uint8Array | readonly Der[]): Der => ({ tag: tags.bitString, content, zero: true });

const contentLength = ({ content, zero }: Der): number => {
  const own = content instanceof Uint8Array ? content.length : content.reduce((sum, each) => sum + fullLength(each), 0);
  return own + (zero === true ? 1 : 0);
};
const headLength = (length: number): number => (length < 0x80 ? 2 : length < 0x100 ? 3 : 4);
const fullLength = (value: Der): number => {
  const length = contentLength(value);
  return headLength(length) + length;
};

const write = (out: Buffer, at: number, value: Der): number => {
  const length = contentLength(value);
  if (length > 0xffff) throw new RangeError('a DER value is too long');
  let next = out.writeUInt8(value.tag, at);
  if (length >= 0x100) next = out.writeUInt16BE(length, out.writeUInt8(0x82, next));
  else if (length >= 0x80) next = out.writeUInt8(length, out.writeUInt8(0x81, next));
  else next = out.writeUInt8(length, next);
  if (value.zero === true) next = out.writeUInt8(0, next);
  if (value.content instanceof Uint8Array) {
    out.set(value.content, next);
    return next + value.content.length;
  }
  for (const each of value.content) next = write(out, next, each);
  return next;
};

export const encodeDer = (value: Der): Buffer => {
  const out = Buffer.alloc(fullLength(value));
  write(out, 0, value);
  return out;
};

/** Walks over values in a row. Throws RangeError where the bytes are not as expected. */
export class DerReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get done(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The content of the next value, which must have this tag. */
  take(tag: number): Buffer {
    const bytes = this.#bytes;
    if (bytes[this.#at] !== tag) throw new RangeError('a different DER value was expected');
    let length = bytes.readUInt8(this.#at + 1);
    let from = this.#at + 2;
    if (length >= 0x80) {
      const size = length & 0x7f;
      if (size < 1 || size > 2) throw new RangeError('a DER length is out of range');
      length = bytes.readUIntBE(from, size);
      from += size;
      if (length < (size === 1 ? 0x80 : 0x100)) throw new RangeError('a DER length is not in its shortest form');
    }
    if (length > bytes.length - from) throw new RangeError('a DER value ends too early');
    this.#at = from + length;
    return bytes.subarray(from, this.#at);
  }

  into(tag: number): DerReader {
    return new DerReader(this.take(tag));
  }

  unsigned(): Buffer {
    const content = this.take(tags.integer);
    return content.length > 1 && content[0] === 0 ? content.subarray(1) : content;
  }

  bitString(): Buffer {
    return this.take(tags.bitString).subarray(1);
  }
}
