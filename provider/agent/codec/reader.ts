// Reads the values of a request (PROTOCOL.md). Offsets instead of slices, one pass. Every read
// checks the end of the message, and no memory is allocated for a count before the message is known
// to contain that many rows.
import { attributeKind } from '../../schema/attributes.ts';
import { CKM, parameterKind } from '../../schema/mechanisms.ts';
import {
  type MechanismParameter,
  type MemberKind,
  membersOf,
  type ParameterForm,
  type PrfData,
  parameterFormNames,
} from '../../schema/parameters.ts';
import { CKR } from '../../schema/return-values.ts';
import {
  type Attribute,
  type AttributeQuery,
  type AttributeValue,
  CryptokiError,
  type Mechanism,
  type MessageParameter,
  type OutBuffer,
} from '../../schema/types.ts';
import { allOnes, type Dialect, malformed, noBytes, twoTo32 } from './wire.ts';

/** Templates nest at most this deep, as in p11-kit. */
const maxDepth = 8;
/**
 * Rows of one message: of its templates, of those within them, and of lists of mechanisms. Objects
 * have some dozens of attributes. Far more rows fit into a message, and to work through them would
 * take so long that others had to wait.
 */
const maxRows = 4096;
/** Walks over one request. Every read checks the end and throws CKR_DEVICE_ERROR. */
export class Reader {
  bytes: Buffer = noBytes;
  at = 0;
  end = 0;
  dialect: Dialect = 'own';
  #rows = 0;

  open(bytes: Buffer, length: number, dialect: Dialect): void {
    this.#rows = 0;
    this.bytes = bytes;
    this.at = 0;
    this.end = length;
    this.dialect = dialect;
  }

  /**
   * The number of rows that follow, each of at least `least` bytes. Refused before anything is
   * allocated for them.
   */
  rows(least: number, what: string): number {
    const count = this.u32();
    if (count * least > this.end - this.at) throw malformed(what);
    this.#rows += count;
    if (this.#rows > maxRows)
      throw new CryptokiError(CKR.ARGUMENTS_BAD, `a call can have at most ${maxRows} attributes`);
    return count;
  }

  /** The offset of the next `count` bytes, which it steps over. */
  take(count: number): number {
    const at = this.at;
    if (count > this.end - at) throw malformed('too short');
    this.at = at + count;
    return at;
  }

  u8(): number {
    return this.bytes[this.take(1)] as number;
  }

  u32(): number {
    const at = this.take(4);
    const b = this.bytes;
    return (
      (((b[at] as number) << 24) |
        ((b[at + 1] as number) << 16) |
        ((b[at + 2] as number) << 8) |
        (b[at + 3] as number)) >>>
      0
    );
  }

  /** A CK_ULONG: -1 for all ones; above 2^53 rounded, which no handle, length or type reaches. */
  ulong(): number {
    const high = this.u32();
    const low = this.u32();
    if (high === 0) return low;
    return high === allOnes && low === allOnes ? -1 : high * twoTo32 + low;
  }

  /** A CK_ULONG exactly. */
  exactUlong(): number | bigint {
    const high = this.u32();
    const low = this.u32();
    if (high < 0x20_0000) return high * twoTo32 + low;
    return high === allOnes && low === allOnes ? -1 : (BigInt(high) << 32n) | BigInt(low);
  }

  /**
   * Steps over a byte array and returns its length; `from` is then its offset. All ones is a null
   * pointer: no bytes.
   */
  from = 0;
  span(): number {
    const length = this.u32();
    if (length === allOnes) {
      this.from = this.at;
      return 0;
    }
    this.from = this.take(length);
    return length;
  }

  /** A byte array, copied. */
  copy(): Uint8Array {
    const length = this.span();
    return new Uint8Array(this.bytes.subarray(this.from, this.from + length));
  }
}

/** A view on a frame, created again only when buffer, offset or length differ from the last one. */
export class View {
  #base: Buffer = noBytes;
  #from = 0;
  #view: Buffer = noBytes;

  of(base: Buffer, from: number, length: number): Buffer {
    if (base !== this.#base || from !== this.#from || length !== this.#view.length) {
      this.#base = base;
      this.#from = from;
      this.#view = base.subarray(from, from + length);
    }
    return this.#view;
  }
}

export class Space implements OutBuffer {
  capacity: number | null = null;
  #reply: Buffer = noBytes;
  #from = 0;
  #view = new View();

  open(capacity: number | null, reply: Buffer, from: number): void {
    this.capacity = capacity;
    this.#reply = reply;
    this.#from = from;
  }

  get space(): Buffer {
    const length = Math.min(this.capacity ?? 0, this.#reply.length - this.#from);
    return this.#view.of(this.#reply, this.#from, Math.max(length, 0));
  }
}

const readAttribute = (reader: Reader, depth: number): Attribute => {
  const type = reader.u32();
  if (reader.u8() === 0) return { type, value: null, length: -1 };
  const length = reader.u32();
  return { type, value: readValue(reader, type, length, depth), length };
};

const readValue = (reader: Reader, type: number, length: number, depth: number): AttributeValue => {
  switch (attributeKind(type)) {
    case 'boolean':
      return reader.u8() !== 0;
    case 'byteBoolean': {
      const given = reader.span();
      return given > 0 && reader.bytes[reader.from] !== 0;
    }
    case 'ulong':
      return reader.exactUlong();
    case 'secret': {
      const given = reader.span();
      return reader.bytes.subarray(reader.from, reader.from + given);
    }
    case 'template': {
      if (depth >= maxDepth) throw malformed('templates are nested too deeply');
      return readTemplate(reader, depth + 1);
    }
    case 'mechanisms': {
      const count = reader.rows(8, 'mechanism list');
      // p11-kit writes the count of a list whose pointer is null, and then no list.
      if (count * 8 !== length) throw malformed('mechanism list');
      const types: number[] = [];
      for (let i = 0; i < count; i++) types.push(reader.ulong());
      return types;
    }
    case 'date':
    case 'bytes':
      return reader.copy();
  }
};

export const readTemplate = (reader: Reader, depth: number): readonly Attribute[] => {
  const count = reader.rows(5, 'attribute count');
  const attributes: Attribute[] = [];
  for (let i = 0; i < count; i++) attributes.push(readAttribute(reader, depth));
  return attributes;
};

export const readQueries = (reader: Reader, depth: number): readonly AttributeQuery[] => {
  const count = reader.rows(8, 'attribute count');
  const queries: AttributeQuery[] = [];
  for (let i = 0; i < count; i++) {
    const type = reader.u32();
    const room = reader.u32();
    queries.push({ type, capacity: room === 0 ? null : room === allOnes ? 0 : room });
    if (room !== 0 && reader.dialect !== 'p11-kit-0.24' && attributeKind(type) === 'template') {
      if (depth >= maxDepth) throw malformed('templates are nested too deeply');
      readQueries(reader, depth + 1);
    }
  }
  return queries;
};

const readPrfData = (reader: Reader): readonly PrfData[] =>
  Array.from({ length: reader.rows(29, 'data parameters') }, () => ({
    type: reader.ulong(),
    littleEndian: reader.u8() !== 0,
    bits: reader.ulong(),
    method: reader.ulong(),
    bytes: reader.copy(),
  }));

const readMember: { readonly [K in MemberKind]: (reader: Reader) => unknown } = {
  ulong: (reader) => reader.ulong(),
  flag: (reader) => reader.u8() !== 0,
  bytes: (reader) => reader.copy(),
  array: (reader) => reader.copy(),
  prfData: readPrfData,
};
const readers = new Map(
  parameterFormNames.map((form) => [
    form,
    membersOf(form).map(([name, { kind }]) => ({ name, read: readMember[kind] })),
  ]),
);

const readParameter = (reader: Reader, form: ParameterForm): MechanismParameter | null => {
  if (form === 'none') return null;
  const parameter: Record<string, unknown> = { kind: form };
  for (const { name, read } of readers.get(form) ?? []) parameter[name] = read(reader);
  return parameter as unknown as MechanismParameter;
};

export const readMechanism = (reader: Reader): Mechanism | null => {
  const type = reader.u32();
  if (type === allOnes) return null;
  if (reader.dialect === 'own') {
    const form = parameterFormNames[reader.u8()];
    if (form === undefined) throw malformed('mechanism parameter');
    return { type, parameter: readParameter(reader, form) };
  }
  const kind = parameterKind(type);
  if (reader.dialect === 'p11-kit-0.26') {
    return { type, parameter: kind === 'none' || reader.u8() === 0 ? null : readParameter(reader, kind) };
  }
  // 0.24 knows two mechanisms with a structure and sends bytes for all else, a null array for no
  // parameter.
  if (type === CKM.RSA_PKCS_PSS || type === CKM.RSA_PKCS_OAEP) return { type, parameter: readParameter(reader, kind) };
  const bytes = reader.copy();
  return { type, parameter: bytes.length === 0 ? null : { kind: 'bytes', bytes } };
};

/** The forms of message parameters, by number on the wire. */
const [noMessage, gcmMessage] = [0, 1];

export const readMessageParameter = (reader: Reader): MessageParameter | null => {
  const form = reader.u8();
  if (form === noMessage) return null;
  if (form !== gcmMessage) throw malformed('message parameter');
  return {
    kind: 'gcm',
    iv: reader.copy(),
    ivFixedBits: reader.ulong(),
    ivGenerator: reader.ulong(),
    tag: reader.copy(),
    tagBits: reader.ulong(),
  };
};
