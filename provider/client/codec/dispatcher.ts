// The agent's half of the wire (PROTOCOL.md): reads a request frame's body by its row in calls.ts, calls the handler, and writes the
// body of the reply frame. It contains no sockets and no sessions; what a value means is the handler's business. A malformed frame
// never reaches a handler.
import { type CallName, calls, type Handlers } from '../../schema/calls.ts';
import { parameterFormNames } from '../../schema/parameters.ts';
import { CKR } from '../../schema/return-values.ts';
import { type Call, CryptokiError } from '../../schema/types.ts';
import { type Asked, makePlan, type Plan, prefix, readInput, writeOutput } from './plan.ts';
import { Reader } from './reader.ts';
import type { Dialect } from './wire.ts';
import { Writer } from './writer.ts';

/** What a call that failed is answered with. `line`: its cause, for the user of the database; only our own library reads it. */
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

/** Turns what a handler threw into the answer, and reports it. `call` is null when no call could be read. */
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
  /** It went well, and at once. `message` is the request's body. */
  after(connection: C, call: Envelope, input: Readonly<Record<string, unknown>>, message: Buffer, length: number): void;
  /** It has to wait; the promise tells when it is over. */
  waits(connection: C, call: Envelope, over: Promise<unknown>): void;
}

/** The offset of the IV in an Init of our own dialect whose parameter begins with it: a flat one and that of GCM. Null for others. */
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
 * Takes one request body (`request[0..length)`) to its handler and writes the reply body into `reply`.
 *
 * Returns the length of the reply, or a promise of a reply of its own when the handler is asynchronous, or -1 when the
 * frame contains no message: close the connection then. Never throws, and the promise never rejects.
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
  fail: Fail<C> = (error) => ({ rv: returnValueOf(error), line: null }),
  witness: Witness<C> | null = null,
): DispatchFrame<C> => {
  const plans: (Plan<C> | undefined)[] = [];
  for (const [name, row] of Object.entries(calls) as [CallName, Call][]) {
    if (row.code !== 0) plans[row.code] = makePlan(name, row, handlers);
  }
  const reader = new Reader();
  const writer = new Writer();

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

  return (connection, dialect, request, length, reply) => {
    if (length < 8) return -1;
    reader.open(request, length, dialect);
    const plan = plans[reader.u32()];
    if (plan === undefined) return writeError(writer, reply, notSupported, dialect);
    const expected = plan.request;
    if (length < expected.length) return -1;
    for (let i = 4; i < expected.length; i++) if (request[i] !== expected[i]) return -1;
    reader.at = expected.length;
    if (plan.handler === undefined) return writeError(writer, reply, notSupported, dialect);
    try {
      const input = readInput(reader, plan, reply);
      witness?.before(connection, plan, input);
      const value = plan.handler(connection, input as never);
      if (value instanceof Promise) {
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
};
