// The agent's half of the wire (PROTOCOL.md): takes a request frame's body apart by its row in calls.ts, calls the handler,
// and writes the reply frame's body. No sockets, no sessions, no meaning: what a value is for is the handler's business.
//
// Built for few microseconds per call: one pass over the frame, offsets instead of slices, and for `hot` calls neither a
// new input object nor a new view as long as lengths repeat. Bytes of a malformed frame never reach a handler.
import { attributeKind } from '../schema/attributes.ts';
import { type CallName, calls, type Handlers } from '../schema/calls.ts';
import { CKM, parameterKind } from '../schema/mechanisms.ts';
import { CKR } from '../schema/return-values.ts';
import { type StructName, structs, type Version } from '../schema/structs.ts';
import {
  type Arg,
  type Attribute,
  type AttributeAnswers,
  type AttributeQuery,
  type AttributeValue,
  type BytesOutput,
  type Call,
  CryptokiError,
  LengthOnly,
  type Mechanism,
  type MechanismParameter,
  type MechanismParameterKind,
  type MessageParameter,
  type MessageResult,
  type OutBuffer,
} from '../schema/types.ts';

/** The version byte of our own library. p11-kit's peers send 0 (to 0.24), 1 (0.25) or 2 (0.26). */
export const ownVersion = 0xd1;
/** The version answered to p11-kit's peers: the one that all of them speak. */
export const foreignVersion = 0;

/** How the peer writes mechanisms and asks for attributes; decided by the version byte it offered. */
export type Dialect = 'own' | 'p11-kit-0.24' | 'p11-kit-0.26';

/** What to answer to a peer's version byte, and which dialect it speaks from then on. */
export const negotiate = (version: number): { readonly answer: number; readonly dialect: Dialect } => {
  if (version === ownVersion) return { answer: ownVersion, dialect: 'own' };
  return { answer: foreignVersion, dialect: version >= 2 ? 'p11-kit-0.26' : 'p11-kit-0.24' };
};

/** Templates nest at most this deep, as in p11-kit. */
const maxDepth = 8;
/**
 * Rows of one message: of its templates, of those within them, and of lists of mechanisms. Objects have some dozens of attributes. Far more
 * rows fit into a message, and to work through them would take so long that others had to wait.
 */
const maxRows = 4096;
/** The forms of parameters in our own dialect, by number on the wire. */
const parameterForms = [
  'none',
  'bytes',
  'ulong',
  'ctr',
  'gcm',
  'pss',
  'oaep',
  'ecdh1',
  'hkdf',
  'ccm',
  'eddsa',
  'data',
  'ivdata',
  'sp800',
] as const;
const noBytes = Buffer.alloc(0);
const twoTo32 = 0x1_0000_0000;
const allOnes = 0xffff_ffff;

const malformed = (what: string): CryptokiError => new CryptokiError(CKR.DEVICE_ERROR, `malformed message: ${what}`);
const misanswered = (what: string): CryptokiError => new CryptokiError(CKR.GENERAL_ERROR, `bad answer: ${what}`);

// --- reading --------------------------------------------------------------------------------------------------------

/** Walks over one request. Every read checks the end and throws CKR_DEVICE_ERROR. */
class Reader {
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

  /** The number of rows that follow, each of at least `least` bytes. Refused before anything is allocated for them. */
  rows(least: number, what: string): number {
    const count = this.u32();
    if (count * least > this.end - this.at) throw malformed(what);
    this.#rows += count;
    if (this.#rows > maxRows) throw new CryptokiError(CKR.ARGUMENTS_BAD, `a call has at most ${maxRows} attributes`);
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

  /** Steps over a byte array and returns its length; `from` is then its offset. All ones is a null pointer: no bytes. */
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

/** A view on a frame, made anew only when buffer, offset or length differ from the last one. */
class View {
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

class Space implements OutBuffer {
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
      if (depth >= maxDepth) throw malformed('templates nest too deep');
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

const readTemplate = (reader: Reader, depth: number): readonly Attribute[] => {
  const count = reader.rows(5, 'attribute count');
  const attributes: Attribute[] = [];
  for (let i = 0; i < count; i++) attributes.push(readAttribute(reader, depth));
  return attributes;
};

const readQueries = (reader: Reader, depth: number): readonly AttributeQuery[] => {
  const count = reader.rows(8, 'attribute count');
  const queries: AttributeQuery[] = [];
  for (let i = 0; i < count; i++) {
    const type = reader.u32();
    const room = reader.u32();
    queries.push({ type, capacity: room === 0 ? null : room === allOnes ? 0 : room });
    if (room !== 0 && reader.dialect !== 'p11-kit-0.24' && attributeKind(type) === 'template') {
      if (depth >= maxDepth) throw malformed('templates nest too deep');
      readQueries(reader, depth + 1);
    }
  }
  return queries;
};

const readParameter = (reader: Reader, kind: MechanismParameterKind | 'none'): MechanismParameter | null => {
  switch (kind) {
    case 'none':
      return null;
    case 'bytes':
      return { kind, bytes: reader.copy() };
    case 'ulong':
      return { kind, value: reader.ulong() };
    case 'ctr':
      return { kind, counterBits: reader.ulong(), block: reader.copy() };
    case 'gcm':
      return { kind, iv: reader.copy(), ivBits: reader.ulong(), aad: reader.copy(), tagBits: reader.ulong() };
    case 'pss':
      return { kind, hash: reader.ulong(), mgf: reader.ulong(), saltLength: reader.ulong() };
    case 'oaep':
      return { kind, hash: reader.ulong(), mgf: reader.ulong(), source: reader.ulong(), label: reader.copy() };
    case 'ecdh1':
      return { kind, kdf: reader.ulong(), shared: reader.copy(), publicData: reader.copy() };
    case 'hkdf':
      return {
        kind,
        extract: reader.u8() !== 0,
        expand: reader.u8() !== 0,
        hash: reader.ulong(),
        saltType: reader.ulong(),
        salt: reader.copy(),
        saltKey: reader.ulong(),
        info: reader.copy(),
      };
    case 'data':
      return { kind, data: reader.copy() };
    case 'ivdata':
      return { kind, iv: reader.copy(), data: reader.copy() };
    case 'sp800': {
      const prf = reader.ulong();
      const additionalKeys = reader.ulong();
      const iv = reader.copy();
      const count = reader.rows(29, 'data parameters');
      const data = Array.from({ length: count }, () => ({
        type: reader.ulong(),
        littleEndian: reader.u8() !== 0,
        bits: reader.ulong(),
        method: reader.ulong(),
        bytes: reader.copy(),
      }));
      return { kind, prf, additionalKeys, iv, data };
    }
    case 'eddsa':
      return { kind, prehash: reader.u8() !== 0, context: reader.copy() };
    case 'ccm':
      return {
        kind,
        dataLength: reader.ulong(),
        nonce: reader.copy(),
        aad: reader.copy(),
        macLength: reader.ulong(),
      };
  }
};

const readMechanism = (reader: Reader): Mechanism | null => {
  const type = reader.u32();
  if (type === allOnes) return null;
  if (reader.dialect === 'own') {
    const form = parameterForms[reader.u8()];
    if (form === undefined) throw malformed('mechanism parameter');
    return { type, parameter: readParameter(reader, form) };
  }
  const kind = parameterKind(type);
  if (reader.dialect === 'p11-kit-0.26') {
    return { type, parameter: kind === 'none' || reader.u8() === 0 ? null : readParameter(reader, kind) };
  }
  // 0.24 knows two mechanisms with a structure and sends bytes for all else, a null array for no parameter.
  if (type === CKM.RSA_PKCS_PSS || type === CKM.RSA_PKCS_OAEP) return { type, parameter: readParameter(reader, kind) };
  const bytes = reader.copy();
  return { type, parameter: bytes.length === 0 ? null : { kind: 'bytes', bytes } };
};

/** The forms of message parameters, by number on the wire. */
const [noMessage, gcmMessage] = [0, 1];

const readMessageParameter = (reader: Reader): MessageParameter | null => {
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

// --- writing --------------------------------------------------------------------------------------------------------

/** Fills one reply. Every write checks the room and throws CKR_DEVICE_MEMORY. */
class Writer {
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

/** Writes a value of an attribute, or what stands for it when only its length is told. */
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

const writeAnswers = (writer: Writer, queries: readonly AttributeQuery[], answers: AttributeAnswers): void => {
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

/** Bytes for an `out` argument. `from` is where its `space` began, -1 when a reply is written into another buffer. */
const writeBytes = (writer: Writer, value: BytesOutput, capacity: number | null, from: number): void => {
  if (typeof value === 'number') {
    if (from !== writer.at + 5) throw misanswered('space is gone once a handler has awaited');
    if (capacity === null || value > capacity) throw misanswered('more bytes than asked for');
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

const writeList = (writer: Writer, value: readonly number[], capacity: number | null): void => {
  const told = capacity === null || value.length > capacity;
  writer.u8(told ? 0 : 1);
  writer.u32(value.length);
  if (!told) for (const each of value) writer.ulong(each);
};

const writeMessageResult = (writer: Writer, { iv, tag }: MessageResult): void => {
  for (const bytes of [iv, tag]) {
    if (bytes === null) writer.u32(allOnes);
    else writer.array(bytes);
  }
};

const encodedText = new TextEncoder();
const blank = 0x20;

const writeStruct = (writer: Writer, name: StructName, value: Readonly<Record<string, unknown>>): void => {
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

// --- rows -----------------------------------------------------------------------------------------------------------

const requestLetters: Readonly<Partial<Record<Arg['kind'], string>>> = {
  ulong: 'u',
  flag: 'y',
  bytes: 'ay',
  data: 'ay',
  label: 'z',
  template: 'aA',
  mechanism: 'M',
  messageMechanism: 'M',
  seal: 'G',
  open: 'G',
  out: 'fy',
  fill: 'fy',
  list: 'fu',
  batch: 'fu',
  query: 'fA',
};
const replyLetters: Readonly<Partial<Record<Arg['kind'], string>>> = {
  out: 'ay',
  fill: 'ay',
  list: 'au',
  batch: 'au',
  query: 'aAu',
  result: 'u',
  seal: 'g',
};

/**
 * The order in which a reply tells its values: the bytes that are written in place first, then what goes back through a
 * message's parameter.
 */
export const replyOrder = (args: readonly Arg[]): readonly Arg[] => [
  ...args.filter(({ kind }) => kind !== 'seal'),
  ...args.filter(({ kind }) => kind === 'seal'),
];

/** The signature string that a request or a reply of a call opens with. */
export const signatures = (row: Call): { readonly request: string; readonly reply: string } => ({
  request: row.args.map(({ kind }) => requestLetters[kind] ?? '').join(''),
  reply: replyOrder(row.args)
    .map(({ kind, struct }) =>
      struct === null
        ? (replyLetters[kind] ?? '')
        : Object.values(structs[struct])
            .map(({ wire }) => wire[0])
            .join(''),
    )
    .join(''),
});

const prefix = (code: number, signature: string): Buffer => {
  const bytes = Buffer.alloc(8 + signature.length);
  bytes.writeUInt32BE(code, 0);
  bytes.writeUInt32BE(signature.length, 4);
  bytes.write(signature, 8, 'latin1');
  return bytes;
};

/** An argument as the codec works through it: what it holds between reading and writing is here, not allocated per call. */
interface Slot {
  readonly arg: Arg;
  readonly view: View;
  readonly space: Space;
  capacity: number | null;
  queries: readonly AttributeQuery[];
}

interface Plan<C> {
  readonly name: CallName;
  readonly handler: ((connection: C, input: never) => unknown) | undefined;
  readonly request: Buffer;
  readonly reply: Buffer;
  readonly slots: readonly Slot[];
  readonly outputs: readonly Slot[];
  readonly input: Record<string, unknown> | null;
}

const isInput = ({ kind }: Arg): boolean => requestLetters[kind] !== undefined;
const isOutput = ({ kind }: Arg): boolean => replyLetters[kind] !== undefined || kind === 'struct';

const makePlan = <C>(name: CallName, row: Call, handlers: Handlers<C>): Plan<C> => {
  const { request, reply } = signatures(row);
  const slots = row.args.map(
    (arg): Slot => ({ arg, view: new View(), space: new Space(), capacity: null, queries: [] }),
  );
  const slotOf = (arg: Arg): Slot => slots[row.args.indexOf(arg)] as Slot;
  return {
    name,
    handler: handlers[name] as Plan<C>['handler'],
    request: prefix(row.code, request),
    reply: prefix(row.code, reply),
    slots: slots.filter(({ arg }) => isInput(arg)),
    outputs: replyOrder(row.args).filter(isOutput).map(slotOf),
    input: row.hot ? {} : null,
  };
};

/** Bytes between the start of an `ay` and its content: the byte that says "present", and the length. */
const arrayHead = 5;

const readInput = <C>(reader: Reader, plan: Plan<C>, reply: Buffer): Record<string, unknown> => {
  const input = plan.input ?? {};
  for (const slot of plan.slots) {
    const { kind, name } = slot.arg;
    switch (kind) {
      case 'ulong':
        input[name] = reader.ulong();
        break;
      case 'flag':
        input[name] = reader.u8() !== 0;
        break;
      case 'bytes':
      case 'data': {
        const present = reader.u8() !== 0;
        const length = present ? reader.span() : reader.u32();
        if (!present) {
          reader.from = reader.at;
          if (length !== 0) {
            // A length without bytes: they follow in parts.
            if (kind === 'bytes' || reader.dialect !== 'own') throw malformed('bytes without bytes');
            input[name] = new LengthOnly(length);
            break;
          }
        }
        input[name] = slot.view.of(reader.bytes, reader.from, length);
        break;
      }
      case 'label': {
        const length = reader.span();
        input[name] = reader.bytes.subarray(reader.from, reader.from + length);
        break;
      }
      case 'template':
        input[name] = readTemplate(reader, 0);
        break;
      case 'mechanism':
      case 'messageMechanism':
        input[name] = readMechanism(reader);
        break;
      case 'seal':
      case 'open':
        input[name] = readMessageParameter(reader);
        break;
      case 'out':
      case 'fill': {
        const room = reader.u32();
        const capacity = room === 0 && kind === 'out' ? null : room === allOnes ? 0 : room;
        slot.capacity = capacity;
        // A handler of a call that is not hot may look at the capacity after waiting, when the slot serves another caller.
        const space = plan.input === null ? new Space() : slot.space;
        space.open(capacity, reply, plan.reply.length + arrayHead);
        input[name] = space;
        break;
      }
      case 'list': {
        const room = reader.u32();
        slot.capacity = room === 0 ? null : room;
        input[name] = slot.capacity;
        break;
      }
      case 'batch':
        slot.capacity = reader.u32();
        input[name] = slot.capacity;
        break;
      case 'query':
        slot.queries = readQueries(reader, 0);
        input[name] = slot.queries;
        break;
    }
  }
  if (reader.at !== reader.end) throw malformed('too long');
  return input;
};

/** What of a call its late reply still needs: the slots themselves serve other calls meanwhile. */
interface Asked {
  readonly capacity: number | null;
  readonly queries: readonly AttributeQuery[];
}

const writeOutput = <C>(
  writer: Writer,
  plan: Plan<C>,
  value: unknown,
  asked: readonly Asked[],
  inPlace: boolean,
): void => {
  const { outputs } = plan;
  for (let i = 0; i < outputs.length; i++) {
    const { arg } = outputs[i] as Slot;
    const { capacity, queries } = asked[i] as Asked;
    const given = outputs.length === 1 ? value : (value as Record<string, unknown>)[arg.name];
    switch (arg.kind) {
      case 'out':
      case 'fill':
        writeBytes(writer, given as BytesOutput, capacity, inPlace ? plan.reply.length + arrayHead : -1);
        break;
      case 'list':
      case 'batch':
        writeList(writer, given as readonly number[], capacity);
        break;
      case 'query':
        writeAnswers(writer, queries, given as AttributeAnswers);
        break;
      case 'result':
        writer.ulong(given as number);
        break;
      case 'seal':
        writeMessageResult(writer, given as MessageResult);
        break;
      case 'struct':
        writeStruct(writer, arg.c as StructName, given as Readonly<Record<string, unknown>>);
        break;
    }
  }
};

const errorPrefix = prefix(0, 'u');

const writeError = (writer: Writer, reply: Buffer, rv: number): number => {
  writer.open(reply);
  writer.raw(errorPrefix);
  writer.ulong(rv);
  return writer.at;
};

/** A reply of a return value alone, by who does not dispatch. The reply's length: less than 64 bytes. */
export const writeRefusal = (reply: Buffer, rv: number): number => writeError(new Writer(), reply, rv);

/** Largest reply that is written late, into memory of its own. */
const maxLateReply = 1 << 20;
/** A late reply starts out this small and grows to what it needs. */
const lateReply = 4096;

// --- dispatch -------------------------------------------------------------------------------------------------------

/** Turns what a handler threw into a return value, and reports it. `call` is null when no call could be read. */
export type Fail<C> = (error: unknown, call: CallName | null, connection: C) => number;

/** A call as its row describes it: what its messages begin with, up to the first argument. */
export interface Envelope {
  readonly name: CallName;
  readonly request: Buffer;
  readonly reply: Buffer;
}

/** Hears of every call whose handler is run. What it is told is valid during the call only. */
export interface Witness<C> {
  before(connection: C, call: Envelope, input: Readonly<Record<string, unknown>>): void;
  /** It went well, and at once. `message` is the request's body. */
  after(connection: C, call: Envelope, input: Readonly<Record<string, unknown>>, message: Buffer, length: number): void;
  /** It has to wait; the promise tells when it is over. */
  waits(connection: C, call: Envelope, over: Promise<unknown>): void;
}

/** Where the IV lies in an Init of our own dialect whose parameter begins with it: a flat one and that of GCM. Null for others. */
export const initialValue = (
  { request }: Envelope,
  message: Buffer,
): { readonly at: number; readonly length: number } | null => {
  // After the session: the mechanism's type, the parameter's form, and the IV's length.
  const at = request.length + 8 + 4;
  const form = parameterForms[message[at] as number];
  if (form !== 'bytes' && form !== 'gcm') return null;
  return { at: at + 5, length: message.readUInt32BE(at + 1) };
};

/** `CryptokiError` carries its return value; anything else is CKR_GENERAL_ERROR. */
export const returnValueOf = (error: unknown): number =>
  error instanceof CryptokiError ? error.rv : CKR.GENERAL_ERROR;

/**
 * Takes one request body (`request[0..length)`) to its handler and writes the reply body into `reply`.
 *
 * Returns the length of the reply, or a promise of a reply of its own when the handler is asynchronous, or -1 when the
 * frame holds no message at all: close the connection then. Never throws, and the promise never rejects.
 * `reply` must be at least 64 bytes long.
 */
export type DispatchFrame<C> = (
  connection: C,
  dialect: Dialect,
  request: Buffer,
  length: number,
  reply: Buffer,
) => number | Promise<Uint8Array>;

export const createDispatcher = <C>(
  handlers: Handlers<C>,
  fail: Fail<C> = returnValueOf,
  witness: Witness<C> | null = null,
): DispatchFrame<C> => {
  const plans: (Plan<C> | undefined)[] = [];
  for (const [name, row] of Object.entries(calls) as [CallName, Call][]) {
    if (row.code !== 0) plans[row.code] = makePlan(name, row, handlers);
  }
  const reader = new Reader();
  const writer = new Writer();

  const finishLate = async (connection: C, plan: Plan<C>, asked: readonly Asked[], promise: Promise<unknown>) => {
    const late = new Writer();
    try {
      const value = await promise;
      for (let size = lateReply; ; size *= 4) {
        late.open(Buffer.alloc(Math.min(size, maxLateReply)));
        try {
          late.raw(plan.reply);
          writeOutput(late, plan, value, asked, false);
          break;
        } catch (error) {
          // What it holds of the answer may be secret.
          late.bytes.fill(0);
          if (size >= maxLateReply || returnValueOf(error) !== CKR.DEVICE_MEMORY) throw error;
        }
      }
      return late.bytes.subarray(0, late.at);
    } catch (error) {
      const bytes = Buffer.alloc(errorPrefix.length + 8);
      writeError(late, bytes, fail(error, plan.name, connection));
      return bytes;
    }
  };

  return (connection, dialect, request, length, reply) => {
    if (length < 8) return -1;
    reader.open(request, length, dialect);
    const plan = plans[reader.u32()];
    if (plan === undefined) return writeError(writer, reply, CKR.FUNCTION_NOT_SUPPORTED);
    const expected = plan.request;
    if (length < expected.length) return -1;
    for (let i = 4; i < expected.length; i++) if (request[i] !== expected[i]) return -1;
    reader.at = expected.length;
    if (plan.handler === undefined) return writeError(writer, reply, CKR.FUNCTION_NOT_SUPPORTED);
    try {
      const input = readInput(reader, plan, reply);
      witness?.before(connection, plan, input);
      const value = plan.handler(connection, input as never);
      if (value instanceof Promise) {
        witness?.waits(connection, plan, value);
        const asked = plan.outputs.map(({ capacity, queries }): Asked => ({ capacity, queries }));
        return finishLate(connection, plan, asked, value);
      }
      writer.open(reply);
      writer.raw(plan.reply);
      writeOutput(writer, plan, value, plan.outputs, true);
      witness?.after(connection, plan, input, request, length);
      return writer.at;
    } catch (error) {
      return writeError(writer, reply, fail(error, plan.name, connection));
    }
  };
};
