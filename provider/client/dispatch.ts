// From a frame to its handler and back: the chapters put together, each function behind its guard, and the one place where
// whatever a handler throws becomes a return value and a line in the log.
import { randomUUID } from 'node:crypto';
import type { CallName, Handlers } from '../schema/calls.ts';
import { CKR, returnValueName } from '../schema/return-values.ts';
import { CryptokiError } from '../schema/types.ts';
import { ToldError } from './causes.ts';
import { createDispatcher, type DispatchFrame, type Fail } from './codec.ts';
import type { LogLevel } from './config.ts';
import type { Connection } from './connection.ts';
import { notInitialized, returnValueFor } from './errors.ts';
import { cipher } from './functions/cipher.ts';
import { digest } from './functions/digest.ts';
import { dual } from './functions/dual.ts';
import { general } from './functions/general.ts';
import { key } from './functions/key.ts';
import { message } from './functions/message.ts';
import { object } from './functions/object.ts';
import { random } from './functions/random.ts';
import { recover } from './functions/recover.ts';
import { session } from './functions/session.ts';
import { sign } from './functions/sign.ts';
import { slot } from './functions/slot.ts';
import { type GuardedHandlers, guards } from './guards.ts';
import { routineWitness } from './routines.ts';
import { ServiceCallError } from './service.ts';

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

/** Answers that belong to normal use: probing for attributes, for state, for room. Logged only when asked for. */
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

/** Errors of ours have messages without data; of anything else only the kind is told. */
const describe = (error: unknown): string => {
  if (error instanceof CryptokiError || error instanceof ServiceCallError) return error.message;
  if (!(error instanceof Error)) return 'something was thrown that is not an error';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? `${error.name} ${code}` : error.name;
};

const fail: Fail<Connection> = (error, call, connection) => {
  const rv = returnValueFor(error, call);
  const id = error instanceof ServiceCallError ? error.requestId : randomUUID();
  const told = error instanceof ServiceCallError || error instanceof ToldError ? error.told : null;
  const label = error instanceof ServiceCallError ? connection.application?.labelOf(error.handle) : undefined;
  const fields = {
    id,
    call: call ?? 'unknown',
    rv: returnValueName(rv),
    ...(told === null ? {} : { cause: told }),
    ...(label === undefined ? {} : { label }),
  };
  connection.log(levelOf(rv), fields, describe(error));
  return rv;
};

/** The dispatcher of the agent: one for all connections of a thread. */
export const createAgentDispatcher = (): DispatchFrame<Connection> => createDispatcher(handlers, fail, routineWitness);
