// The life of a running operation (PKCS#11 2.40, section 5.2 and the text of every Init, Update and Final): a step takes the
// operation out of its session, and puts it back only if it continues. So an error ends it, and no other call can use it while
// the service is being asked.
import { LengthOnly } from '../../schema/types.ts';
import { operationActive, operationMissing } from '../errors.ts';
import type { Later } from '../later.ts';
import type { Operation, OperationKind, Operations } from '../operation.ts';
import type { Session } from '../session.ts';

type Running<K extends OperationKind> = NonNullable<Operations[K]>;

const heldBy = ({ held = 0 }: Operation): number => held;
const mayHold = ({ held }: Operation): boolean => held !== undefined;

/**
 * Starts an operation unless one of its kind runs, or the session was closed in the meantime. `cycle` is what `checkIdle` gave to an
 * Init that has asked the service since. A session belongs to one thread: when another Init of the kind has come, or the kind was
 * cancelled, the caller has given the first one up after its deadline, and it must not begin behind the caller's back.
 */
export const begin = <K extends OperationKind>(
  session: Session,
  kind: K,
  operation: Running<K>,
  cycle = session.cycle(kind),
): void => {
  if (session.closed || session[kind] !== null || session.isAway(kind) || session.cycle(kind) !== cycle) {
    operation.cancel();
    throw operationActive();
  }
  const held = heldBy(operation);
  if (held > 0) {
    try {
      session.application.account.check('memory');
    } catch (error) {
      operation.cancel();
      throw error;
    }
    session.settle(kind, held);
  }
  (session as Operations)[kind] = operation;
};

/** Refuses an Init while an operation of its kind runs. Answers the Init's cycle. */
export const checkIdle = (session: Session, kind: OperationKind): number => {
  if (session[kind] !== null || session.isAway(kind)) throw operationActive();
  return session.nextCycle(kind);
};

const putBack = <K extends OperationKind>(session: Session, kind: K, operation: Running<K>, goesOn: boolean): void => {
  if (goesOn && !session.closed && session[kind] === null) {
    (session as Operations)[kind] = operation;
    session.settle(kind, heldBy(operation));
  } else {
    operation.cancel();
    session.settle(kind, 0);
  }
};

/** Takes an operation out of its place. What is away is active: there is one of each kind, and it is at work. */
const takeOut = <K extends OperationKind>(session: Session, kind: K): Running<K> => {
  const operation = session[kind] as Running<K> | null;
  if (operation === null) throw session.isAway(kind) ? operationActive() : operationMissing();
  (session as Operations)[kind] = null as Operations[K];
  return operation;
};

/**
 * One step. With `last` the operation ends with it, unless the answer is `LengthOnly`: then the caller is expected back
 * with more room.
 */
export const step = <K extends OperationKind, R>(
  session: Session,
  kind: K,
  last: boolean,
  work: (operation: Running<K>) => Later<R>,
): Later<R> => {
  const operation = takeOut(session, kind);
  let goesOn = false;
  let later = false;
  try {
    if (!last && mayHold(operation)) session.application.account.check('memory');
    const result = work(operation);
    if (result instanceof Promise) {
      later = true;
      session.send(kind, operation);
      return finishLater(session, kind, operation, result, (value) => !last || value instanceof LengthOnly, false);
    }
    goesOn = !last || result instanceof LengthOnly;
    return result;
  } finally {
    if (!later) putBack(session, kind, operation, goesOn);
  }
};

const finishLater = async <K extends OperationKind, R>(
  session: Session,
  kind: K,
  operation: Running<K>,
  result: Promise<R>,
  goesOnWith: (value: R) => boolean,
  survives: boolean,
): Promise<R> => {
  let goesOn = survives;
  try {
    const value = await result;
    goesOn = goesOnWith(value);
    return value;
  } finally {
    putBack(session, kind, operation, session.isBack(kind, operation) && goesOn);
  }
};

/** The operations that an error does not end: a search lasts until its Final, and of messages only the one under way ends. */
type LastingKind = 'find' | 'messageEncrypt' | 'messageDecrypt';

/** One step of an operation that continues whatever comes. */
export const stepOn = <K extends LastingKind, R>(
  session: Session,
  kind: K,
  work: (operation: Running<K>) => Later<R>,
): Later<R> => {
  const operation = session[kind] as Running<K> | null;
  if (operation === null) throw session.isAway(kind) ? operationActive() : operationMissing();
  if (mayHold(operation)) session.application.account.check('memory');
  const result = work(operation);
  if (!(result instanceof Promise)) {
    session.settle(kind, heldBy(operation));
    return result;
  }
  (session as Operations)[kind] = null as Operations[K];
  session.send(kind, operation);
  return finishLater(session, kind, operation, result, () => true, true);
};

/**
 * A whole message cannot end an operation that has taken parts. The refusal ends the operation, as the standard has it for every call of
 * this kind that is neither a length query nor given too little room.
 */
export const checkWhole = (session: Session, kind: 'encrypt' | 'decrypt' | 'digest' | 'sign' | 'verify'): void => {
  if (session[kind]?.started !== true) return;
  session.cancel(kind);
  throw operationActive();
};
