// A call of calls.ts as the codec executes it: the signatures of its messages, and how its arguments are read and its results written.
// Prepared once for each call, so that a `hot` call allocates neither an input object nor a view while lengths repeat.
import type { CallName, Handlers } from '../../schema/calls.ts';
import { type StructName, structs } from '../../schema/structs.ts';
import {
  type Arg,
  type AttributeAnswers,
  type AttributeQuery,
  type BytesOutput,
  type Call,
  LengthOnly,
  type MessageResult,
} from '../../schema/types.ts';
import { type Reader, readMechanism, readMessageParameter, readQueries, readTemplate, Space, View } from './reader.ts';
import { allOnes, malformed } from './wire.ts';
import { type Writer, writeAnswers, writeBytes, writeList, writeMessageResult, writeStruct } from './writer.ts';

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

export const prefix = (code: number, signature: string): Buffer => {
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

export interface Plan<C> {
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
  };
};

/** Bytes between the start of an `ay` and its content: the byte that says "present", and the length. */
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
        // A handler of a call that is not hot may read the capacity after waiting, when the slot serves another caller.
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

/** What of a call its late reply still needs: the slots themselves serve other calls in the meantime. */
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
