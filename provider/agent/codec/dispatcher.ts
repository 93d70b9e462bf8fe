// The agent's half of the wire (PROTOCOL.md): reads a request frame's body by its row in calls.ts,
// calls the handler, and writes the body of the reply frame. Each call has a plan, prepared once:
// the signatures of its messages, and how its arguments are read and its results written, so that a
// `hot` call allocates neither an input object nor a view while lengths repeat. Contains no sockets
// and no sessions; what a value means is the handler's business. A malformed frame never reaches a
// handler.
//
// Frames of a session may come before an earlier one is answered: our library sends an Init
// together with the call that follows it. An Init is complete before that call is carried out,
// whichever function it is and whatever it waits for: `InitGate`.

import { type CallName, calls, type Handlers } from '../../schema/calls.ts';
import { parameterFormNames } from '../../schema/parameters.ts';
import { CKR } from '../../schema/return-values.ts';
import { type StructName, structs } from '../../schema/structs.ts';
import {
  type Arg,
  type AttributeAnswers,
  type AttributeQuery,
  type BytesOutput,
  type Call,
  CryptokiError,
  LengthOnly,
  type MessageResult,
} from '../../schema/types.ts';
import { Reader, readMechanism, readMessageParameter, readQueries, readTemplate, Space, View } from './reader.ts';
import { allOnes, type Dialect, malformed } from './wire.ts';
import { Writer, writeAnswers, writeBytes, writeList, writeMessageResult, writeStruct } from './writer.ts';

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
 * The order in which a reply tells its values: the bytes that are written in place first, then what
 * goes back through a message's parameter.
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

export const prefix = (code: number, signature: string): Buffer => {
  const bytes = Buffer.alloc(8 + signature.length);
  bytes.writeUInt32BE(code, 0);
  bytes.writeUInt32BE(signature.length, 4);
  bytes.write(signature, 8, 'latin1');
  return bytes;
};

/**
 * One argument of a call. Its values between reading and writing are stored here, so that a call
 * allocates nothing.
 */
interface Slot {
  readonly arg: Arg;
  readonly view: View;
  readonly space: Space;
  capacity: number | null;
  queries: readonly AttributeQuery[];
}

export interface Plan<C> {
  readonly name: CallName;
  readonly handler: ((connection: C, input: never) => unknown) | undefined;
  readonly request: Buffer;
  readonly reply: Buffer;
  readonly slots: readonly Slot[];
  readonly outputs: readonly Slot[];
  readonly input: Record<string, unknown> | null;
  readonly place: Place;
}

/**
 * Where a call stands to the Inits of its session: it is one, it waits for those of some kinds or
 * for all, or for none.
 */
type Place =
  | { readonly is: 'init'; readonly kind: string }
  | { readonly is: 'next'; readonly kinds: readonly string[] | null }
  | { readonly is: 'apart' };

/** Calls by which a thread gives up what it has begun: they wait for nothing. */
const givesUp: ReadonlySet<string> = new Set<CallName>(['C_CloseSession', 'C_SessionCancel']);

const placeOf = (name: CallName, { args, starts, ends, continues }: Call): Place => {
  if (args[0]?.name !== 'session' || givesUp.has(name)) return { is: 'apart' };
  // An Init waits for no other: who sends it has given up the one before.
  if (starts !== undefined) return { is: 'init', kind: starts };
  const kinds = [...(continues ?? []), ...(ends === undefined ? [] : [ends])];
  return { is: 'next', kinds: kinds.length === 0 ? null : kinds };
};

/** The Inits that have not been answered. */
class InitGate<C> {
  readonly #unfinished = new Map<C, Map<string, Promise<unknown>>>();

  get isIdle(): boolean {
    return this.#unfinished.size === 0;
  }

  /**
   * Resolves when the Inits that come before a call are complete, well or not; null: there are
   * none.
   */
  before(connection: C, place: Place, session: bigint): Promise<unknown> | null {
    if (place.is !== 'next') return null;
    const inits = this.#unfinished.get(connection);
    if (inits === undefined) return null;
    const { kinds } = place;
    const waited = [...inits].flatMap(([slot, over]) => {
      const [of = '', kind = ''] = slot.split(' ');
      return of === String(session) && (kinds === null || kinds.includes(kind)) ? [over] : [];
    });
    return waited.length === 0 ? null : Promise.allSettled(waited);
  }

  begins(connection: C, place: Place, session: bigint, over: Promise<unknown>): void {
    if (place.is !== 'init') return;
    const slot = `${session} ${place.kind}`;
    const inits = this.#unfinished.get(connection) ?? new Map<string, Promise<unknown>>();
    this.#unfinished.set(connection, inits);
    inits.set(slot, over);
    const done = (): void => {
      if (inits.get(slot) !== over) return;
      inits.delete(slot);
      if (inits.size === 0) this.#unfinished.delete(connection);
    };
    over.then(done, done);
  }
}

const isInput = ({ kind }: Arg): boolean => requestLetters[kind] !== undefined;
const isOutput = ({ kind }: Arg): boolean => replyLetters[kind] !== undefined || kind === 'struct';

export const makePlan = <C>(name: CallName, row: Call, handlers: Handlers<C>): Plan<C> => {
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
    place: placeOf(name, row),
  };
};

/**
 * Bytes between the start of an `ay` and its content: the byte that says "present", and the length.
 */
const arrayHead = 5;

export const readInput = <C>(reader: Reader, plan: Plan<C>, reply: Buffer): Record<string, unknown> => {
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
        // A handler of a call that is not hot may read the capacity after waiting, when the slot
        // serves another caller.
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

/**
 * What of a call its late reply still needs: the slots themselves serve other calls in the
 * meantime.
 */
export interface Asked {
  readonly capacity: number | null;
  readonly queries: readonly AttributeQuery[];
}

export const writeOutput = <C>(
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

/**
 * What a call that failed is answered with. `line`: its cause, for the user of the database; only
 * our own library reads it.
 */
export interface Failure {
  readonly rv: number;
  readonly line: string | null;
}

const errorPrefix = prefix(0, 'u');
const explainedPrefix = prefix(0, 'uz');
/** Longest line of a cause in a reply, in bytes. */
const maxLine = 600;

const writeError = (writer: Writer, reply: Buffer, { rv, line }: Failure, dialect: Dialect): number => {
  const text = dialect === 'own' && line !== null ? Buffer.from(line).subarray(0, maxLine) : null;
  const isExplained = text !== null && explainedPrefix.length + 12 + text.length <= reply.length;
  writer.open(reply);
  writer.raw(isExplained ? explainedPrefix : errorPrefix);
  writer.ulong(rv);
  if (isExplained) writer.array(text);
  return writer.at;
};
const lateErrorLength = explainedPrefix.length + 12 + maxLine;

/** The reply to a call that is refused without being dispatched. Returns its length. */
export const writeRefusal = (reply: Buffer, failure: Failure, dialect: Dialect): number =>
  writeError(new Writer(), reply, failure, dialect);

const notSupported: Failure = { rv: CKR.FUNCTION_NOT_SUPPORTED, line: null };

/** Largest reply that is written late, into memory of its own. */
const maxLateReply = 1 << 20;
/** A late reply starts out this small and grows to what it needs. */
const lateReply = 4096;

/**
 * Turns what a handler threw into the answer, and reports it. `call` is null when no call could be
 * read.
 */
export type Fail<C> = (error: unknown, call: CallName | null, connection: C) => Failure;

/** A call as its row describes it: what its messages begin with, up to the first argument. */
export interface Envelope {
  readonly name: CallName;
  readonly request: Buffer;
  readonly reply: Buffer;
}

/** Hears of every call whose handler is run. What it is told is valid during the call only. */
export interface Witness<C> {
  before(connection: C, call: Envelope, input: Readonly<Record<string, unknown>>): void;
  /**
   * The call has succeeded, and at once. `message` is the request's body, its first `length` bytes.
   */
  after(connection: C, call: Envelope, input: Readonly<Record<string, unknown>>, message: Buffer, length: number): void;
  /** The call has to wait; the promise settles when it has ended. */
  waits(connection: C, call: Envelope, over: Promise<unknown>): void;
}

/**
 * The offset of the IV in an Init of our own dialect whose parameter begins with it: a flat one and
 * that of GCM. Null for others.
 */
export const initialValue = (
  { request }: Envelope,
  message: Buffer,
): { readonly at: number; readonly length: number } | null => {
  // After the session: the mechanism's type, the parameter's form, and the IV's length.
  const at = request.length + 8 + 4;
  const form = parameterFormNames[message[at] as number];
  if (form !== 'bytes' && form !== 'gcm') return null;
  return { at: at + 5, length: message.readUInt32BE(at + 1) };
};

/** `CryptokiError` carries its return value; anything else is CKR_GENERAL_ERROR. */
export const returnValueOf = (error: unknown): number =>
  error instanceof CryptokiError ? error.rv : CKR.GENERAL_ERROR;

/**
 * Takes one request body (`request[0..length)`) to its handler and writes the reply body into
 * `reply`.
 *
 * Returns the length of the reply, or a promise of a reply of its own when the handler is
 * asynchronous, or -1 when the frame contains no message: close the connection then. Never throws,
 * and the promise never rejects. `reply` must be at least 64 bytes long.
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
  fail: Fail<C> = (error) => ({ rv: returnValueOf(error), line: null }),
  witness: Witness<C> | null = null,
): DispatchFrame<C> => {
  const plans: (Plan<C> | undefined)[] = [];
  for (const [name, row] of Object.entries(calls) as [CallName, Call][]) {
    if (row.code !== 0) plans[row.code] = makePlan(name, row, handlers);
  }
  const reader = new Reader();
  const writer = new Writer();

  const gate = new InitGate<C>();
  /** For replies to frames that have waited. */
  let spare: Buffer | null = null;

  /** Carries out a frame that comes after an Init, when that is complete. */
  const afterInit = async (
    over: Promise<unknown>,
    connection: C,
    dialect: Dialect,
    frame: Buffer,
    room: number,
  ): Promise<Uint8Array> => {
    await over;
    spare ??= Buffer.alloc(room);
    const result = dispatch(connection, dialect, frame, frame.length, spare);
    const late = typeof result === 'number' ? Buffer.from(spare.subarray(0, Math.max(result, 0))) : result;
    if (typeof result === 'number') spare.fill(0, 0, Math.max(result, 0));
    frame.fill(0);
    return late;
  };

  const finishLate = async (
    connection: C,
    dialect: Dialect,
    plan: Plan<C>,
    asked: readonly Asked[],
    promise: Promise<unknown>,
  ) => {
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
      const bytes = Buffer.alloc(lateErrorLength);
      return bytes.subarray(0, writeError(late, bytes, fail(error, plan.name, connection), dialect));
    }
  };

  const dispatch: DispatchFrame<C> = (connection, dialect, request, length, reply) => {
    if (length < 8) return -1;
    reader.open(request, length, dialect);
    const plan = plans[reader.u32()];
    if (plan === undefined) return writeError(writer, reply, notSupported, dialect);
    const expected = plan.request;
    if (length < expected.length) return -1;
    for (let i = 4; i < expected.length; i++) if (request[i] !== expected[i]) return -1;
    reader.at = expected.length;
    if (plan.handler === undefined) return writeError(writer, reply, notSupported, dialect);
    const sessionOf = (): bigint => (length < expected.length + 8 ? 0n : request.readBigUInt64BE(expected.length));
    const over = gate.isIdle ? null : gate.before(connection, plan.place, sessionOf());
    if (over !== null)
      return afterInit(over, connection, dialect, Buffer.from(request.subarray(0, length)), reply.length);
    try {
      const input = readInput(reader, plan, reply);
      witness?.before(connection, plan, input);
      const value = plan.handler(connection, input as never);
      if (value instanceof Promise) {
        gate.begins(connection, plan.place, sessionOf(), value);
        witness?.waits(connection, plan, value);
        const asked = plan.outputs.map(({ capacity, queries }): Asked => ({ capacity, queries }));
        return finishLate(connection, dialect, plan, asked, value);
      }
      writer.open(reply);
      writer.raw(plan.reply);
      writeOutput(writer, plan, value, plan.outputs, true);
      witness?.after(connection, plan, input, request, length);
      return writer.at;
    } catch (error) {
      return writeError(writer, reply, fail(error, plan.name, connection), dialect);
    }
  };
  return dispatch;
};
