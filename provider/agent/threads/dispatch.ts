// From a frame to its handler and back: the chapters put together, each function behind its guard,
// and the one place where whatever a handler throws becomes a return value and a line in the log.
import { type CallName, calls, type Handlers } from '../../schema/calls.ts';
import { CKR, returnValueName } from '../../schema/return-values.ts';
import { type Call, CryptokiError } from '../../schema/types.ts';
import { LoggedError, ToldError } from '../causes.ts';
import { createDispatcher, type DispatchFrame, type Fail, writeRefusal } from '../codec/dispatcher.ts';
import { cipher } from '../functions/cipher.ts';
import { digest } from '../functions/digest.ts';
import { dual } from '../functions/dual.ts';
import { general } from '../functions/general.ts';
import { type GuardedHandlers, guards } from '../functions/guards.ts';
import { key } from '../functions/key.ts';
import { message } from '../functions/message.ts';
import { object } from '../functions/object.ts';
import { random } from '../functions/random.ts';
import { recover } from '../functions/recover.ts';
import { session } from '../functions/session.ts';
import { sign } from '../functions/sign.ts';
import { slot } from '../functions/slot.ts';
import { uniqueId } from '../objects/unique-id.ts';
import { notInitialized, returnValueFor } from '../return-values.ts';
import { ServiceCallError } from '../service/service-door.ts';
import type { Connection } from '../sessions/connection.ts';
import type { LogLevel } from '../settings/config.ts';
import { callWitness } from './call-trace.ts';

const chapters: GuardedHandlers = {
  ...general,
  ...slot,
  ...session,
  ...object,
  ...cipher,
  ...digest,
  ...sign,
  ...recover,
  ...dual,
  ...message,
  ...key,
  ...random,
};

type Handler = (context: unknown, input: unknown) => unknown;

/** Puts a handler behind its guard. The types were settled where the handlers were declared. */
const guarded = (name: CallName, handler: Handler): ((connection: Connection, input: unknown) => unknown) => {
  switch (guards[name]) {
    case 'connection':
      return handler;
    case 'application':
      return (connection, input) => {
        if (connection.application === null) throw notInitialized();
        return handler(connection.application, input);
      };
    case 'session':
      return (connection, input) => {
        if (connection.application === null) throw notInitialized();
        return handler(connection.application.session((input as { session: number }).session), input);
      };
  }
};

/** Every function the agent carries, behind its guard. */
export const handlers = Object.fromEntries(
  Object.entries(chapters).map(([name, handler]) => [name, guarded(name as CallName, handler as Handler)]),
) as Handlers<Connection>;

/**
 * Answers that belong to normal use: probing for attributes, for state, for room. Logged only when
 * asked for.
 */
const everyday: ReadonlySet<number> = new Set([
  CKR.BUFFER_TOO_SMALL,
  CKR.ATTRIBUTE_SENSITIVE,
  CKR.ATTRIBUTE_TYPE_INVALID,
  CKR.USER_ALREADY_LOGGED_IN,
  CKR.CRYPTOKI_ALREADY_INITIALIZED,
  CKR.OPERATION_NOT_INITIALIZED,
  CKR.SIGNATURE_INVALID,
  CKR.MECHANISM_INVALID,
  CKR.NO_EVENT,
]);

const levelOf = (rv: number): LogLevel => (everyday.has(rv) ? 'debug' : rv === CKR.GENERAL_ERROR ? 'error' : 'warn');

const atLeastWarn = (level: LogLevel): LogLevel => (level === 'debug' ? 'warn' : level);

/** Errors of ours have messages without data; of anything else only the kind is told. */
const describe = (error: unknown): string => {
  if (error instanceof CryptokiError || error instanceof ServiceCallError) return error.message;
  if (!(error instanceof Error)) return 'the thrown value is not an error';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? `${error.name} ${code}` : error.name;
};

const fail: Fail<Connection> = (thrown, call, connection) => {
  const rv = returnValueFor(thrown, call);
  // What the service said is told, also where the agent has named it otherwise.
  const error = thrown instanceof CryptokiError && thrown.cause instanceof ServiceCallError ? thrown.cause : thrown;
  const id = error instanceof ServiceCallError ? error.requestId : uniqueId();
  const told = error instanceof ServiceCallError || error instanceof ToldError ? error.told : null;
  const label = error instanceof ServiceCallError ? connection.application?.labelOf(error.handle) : undefined;
  const fields = {
    id,
    call: call ?? 'unknown',
    rv: returnValueName(rv),
    ...(told === null ? {} : { cause: told }),
    ...(label === undefined ? {} : { label }),
  };
  // A cause is always worth a line.
  connection.log(told === null ? levelOf(rv) : atLeastWarn(levelOf(rv)), fields, describe(error));
  return { rv, line: told === null ? (error instanceof LoggedError ? error.line : null) : describe(error) };
};

const callsByCode = new Map((Object.entries(calls) as [CallName, Call][]).map(([name, { code }]) => [code, name]));

/**
 * Answers a frame that is not carried out because the user of its connection holds too much memory:
 * CKR_DEVICE_MEMORY, which ends the operation that the call would have continued.
 * `request[0..length)` is the beginning of the frame's body. The answer's length.
 */
export const refuseFrame = (connection: Connection, request: Buffer, length: number, reply: Buffer): number => {
  const name = length < 8 ? undefined : callsByCode.get(request.readUInt32BE(0));
  const at = length < 8 ? 0 : 8 + request.readUInt32BE(4);
  if (name !== undefined && guards[name] === 'session' && length >= at + 8) {
    const session = connection.application?.sessions.get(Number(request.readBigUInt64BE(at)));
    const { ends, continues = [] }: Call = calls[name];
    for (const kind of ends === undefined ? continues : [ends]) session?.cancel(kind);
  }
  return writeRefusal(reply, fail(connection.account.exceeded('memory'), name ?? null, connection), connection.dialect);
};

/** The dispatcher of the agent: one for all connections of a thread. */
export const createAgentDispatcher = (): DispatchFrame<Connection> => createDispatcher(handlers, fail, callWitness);
