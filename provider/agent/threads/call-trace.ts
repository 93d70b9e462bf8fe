// What a debug trace tells of each call of a process: its name, handles, the attributes that it
// gives, lengths. It is how a person learns which calls a database makes. Of bytes, only the length
// is told: a label, a value, data, a PIN or an IV is never in a line. Numbers and flags are told as
// they are; none of them is a secret. A line has no `=` and no `:`, so that what hides secrets in
// logs leaves it alone.
//
// The process chooses every argument, and how often it calls. A line has a bounded length and
// contains names and numbers only; of each user, so many calls a second are told, and the others
// counted, so that the lines that wait to be written stay few. Calls that the library answers on
// its own are not told. The socket loop repeats no call of a traced process on its own
// (replays.ts), so that each one is told.
import { attributeName } from '../../schema/attributes.ts';
import { type CallName, calls } from '../../schema/calls.ts';
import { mechanismName } from '../../schema/mechanisms.ts';
import type { Arg, Attribute, AttributeQuery, Mechanism } from '../../schema/types.ts';
import type { Witness } from '../codec/dispatcher.ts';
import type { Connection } from '../sessions/connection.ts';
import { replayWitness } from '../sessions/replays.ts';
import type { Account } from '../sessions/user-limits.ts';

/** Attributes of a template that a line tells. */
const most = 64;

const valueText = (value: unknown): string => {
  if (typeof value === 'boolean' || typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (value === null || value === undefined) return 'without a value';
  const { length } = value as { readonly length?: number };
  return Array.isArray(value) ? `${length} rows` : `${length} bytes`;
};

const rowsText = (rows: readonly { readonly type: number }[], text: (row: never) => string): string => {
  const told = rows.slice(0, most).map((row) => `${attributeName(row.type).replace('CKA_', '')} ${text(row as never)}`);
  return `[${[...told, ...(rows.length > most ? [`${rows.length} in all`] : [])].join(', ')}]`;
};

const mechanismText = ({ type, parameter }: Mechanism): string => {
  const { kind: _, ...members } = parameter ?? {};
  const told = Object.entries(members).map(([name, value]) => `${name} ${valueText(value)}`);
  return [mechanismName(type).replace('CKM_', ''), ...(told.length === 0 ? [] : [`(${told.join(', ')})`])].join(' ');
};

const argumentText = ({ kind, name }: Arg, value: unknown): string | null => {
  switch (kind) {
    case 'template':
      return `${name} ${rowsText(value as readonly Attribute[], (row: Attribute) => valueText(row.value))}`;
    case 'query':
      return `${name} ${rowsText(value as readonly AttributeQuery[], ({ capacity }: AttributeQuery) =>
        capacity === null ? 'length' : `room ${capacity}`,
      )}`;
    case 'mechanism':
    case 'messageMechanism':
      return `mechanism ${value === null ? 'none' : mechanismText(value as Mechanism)}`;
    case 'bytes':
    case 'data':
      // Not even the length of a PIN is told.
      return /pin$/i.test(name) ? null : `${name} ${valueText(value)}`;
    case 'out':
    case 'fill': {
      const { capacity } = value as { readonly capacity: number | null };
      return `${name} ${capacity === null ? 'length' : `room ${capacity}`}`;
    }
    case 'ulong':
    case 'flag':
    case 'list':
    case 'batch':
      return `${name} ${valueText(value)}`;
    default:
      return null;
  }
};

/** The arguments of a call as a line tells them. */
export const callText = (name: CallName, input: Readonly<Record<string, unknown>>): string =>
  calls[name].args.flatMap((arg) => (arg.name in input ? (argumentText(arg, input[arg.name]) ?? []) : [])).join(', ');

/**
 * Calls of a user that are told in a second: several times those of a heartbeat of a thousand keys.
 */
const mostInSecond = 10_000;
const seconds = new WeakMap<Account, { begunAt: number; told: number; left: number }>();

const tell = (connection: Connection, name: CallName, input: Readonly<Record<string, unknown>>): void => {
  const now = performance.now();
  let second = seconds.get(connection.account);
  if (second === undefined || now - second.begunAt >= 1000) {
    if (second !== undefined && second.left > 0)
      connection.log('debug', { count: second.left }, 'calls were left out: there were too many');
    second = { begunAt: now, told: 0, left: 0 };
    seconds.set(connection.account, second);
  }
  if (second.told === mostInSecond) {
    second.left += 1;
    return;
  }
  second.told += 1;
  connection.log('debug', { call: name, arguments: callText(name, input) }, 'called');
};

/**
 * Tells each call of a traced process before it is carried out. A failure has a line of its own.
 */
export const callWitness: Witness<Connection> = {
  before(connection, call, input) {
    replayWitness.before(connection, call, input);
    if (connection.isTraced) tell(connection, call.name, input);
  },
  after(connection, call, input, message, length) {
    if (!connection.isTraced) replayWitness.after(connection, call, input, message, length);
  },
  waits(connection, call, over) {
    replayWitness.waits(connection, call, over);
  },
};
