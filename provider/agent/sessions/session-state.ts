// One session (PKCS#11 2.40, section 5.6): its flags, and one running operation of each kind with
// its life (section 5.2 and the text of every Init, Update and Final). A step takes the operation
// out of its session, and puts it back only if it continues. So an error ends it, and no other call
// can use it while the service is being asked. Login state belongs to the application, not to the
// session.

import { CKF, CKS } from '../../schema/constants.ts';
import { LengthOnly } from '../../schema/types.ts';
import type { SessionObject } from '../objects/object-view.ts';
import { operationActive, operationMissing } from '../return-values.ts';
import type { Later } from './later.ts';
import type {
  CipherOperation,
  MessageOperation,
  Operation,
  OperationKind,
  Operations,
  RecoverOperation,
  SearchOperation,
  SummaryOperation,
  VerifyOperation,
} from './operation.ts';
import type { Account } from './user-limits.ts';

const kinds = [
  'find',
  'encrypt',
  'decrypt',
  'digest',
  'sign',
  'signRecover',
  'verify',
  'verifyRecover',
  'messageEncrypt',
  'messageDecrypt',
] as const satisfies OperationKind[];

/** The application of a session, as far as the session itself needs it. */
interface Owner {
  readonly loggedIn: boolean;
  readonly account: Pick<Account, 'check' | 'note'>;
}

export class SessionState<A extends Owner> implements Operations {
  readonly handle: number;
  readonly application: A;
  readonly readWrite: boolean;
  /** The session objects that were made in it, and end with it. */
  readonly objects = new Set<SessionObject>();
  closed = false;
  readonly #cycles = new Map<OperationKind, number>();
  /** Bytes that running operations hold, as the account counts them. */
  readonly #held = new Map<OperationKind, number>();
  find: SearchOperation | null = null;
  encrypt: CipherOperation | null = null;
  decrypt: CipherOperation | null = null;
  digest: SummaryOperation | null = null;
  sign: SummaryOperation | null = null;
  signRecover: RecoverOperation | null = null;
  verify: VerifyOperation | null = null;
  verifyRecover: RecoverOperation | null = null;
  messageEncrypt: MessageOperation | null = null;
  messageDecrypt: MessageOperation | null = null;
  /**
   * Operations for which the service is being asked: taken out of their places, so that no other
   * call uses them in the meantime.
   */
  readonly #away = new Map<OperationKind, Operation>();

  constructor(handle: number, application: A, readWrite: boolean) {
    this.handle = handle;
    this.application = application;
    this.readWrite = readWrite;
  }

  get flags(): number {
    return CKF.SERIAL_SESSION | (this.readWrite ? CKF.RW_SESSION : 0);
  }

  get state(): number {
    if (this.readWrite) return this.application.loggedIn ? CKS.RW_USER_FUNCTIONS : CKS.RW_PUBLIC_SESSION;
    return this.application.loggedIn ? CKS.RO_USER_FUNCTIONS : CKS.RO_PUBLIC_SESSION;
  }

  isAway(kind: OperationKind): boolean {
    return this.#away.has(kind);
  }

  send(kind: OperationKind, operation: Operation): void {
    this.#away.set(kind, operation);
  }

  /** Whether the operation may continue: it was not cancelled in the meantime. */
  isBack(kind: OperationKind, operation: Operation): boolean {
    if (this.#away.get(kind) !== operation) return false;
    this.#away.delete(kind);
    return !this.closed;
  }

  /** Tells the account how many bytes the operation of a kind holds now. */
  settle(kind: OperationKind, held: number): void {
    if (held === 0 && this.#held.size === 0) return;
    this.application.account.note('memory', held - (this.#held.get(kind) ?? 0));
    if (held === 0) this.#held.delete(kind);
    else this.#held.set(kind, held);
  }

  /** Counts Inits and cancellations of a kind. */
  cycle(kind: OperationKind): number {
    return this.#cycles.get(kind) ?? 0;
  }

  nextCycle(kind: OperationKind): number {
    const cycle = this.cycle(kind) + 1;
    this.#cycles.set(kind, cycle);
    return cycle;
  }

  /** One that is away ends as soon as it is back. */
  cancel(kind: OperationKind): void {
    this.nextCycle(kind);
    const operation = this[kind];
    this[kind] = null;
    this.#away.delete(kind);
    operation?.cancel();
    this.settle(kind, 0);
  }

  /** The operation of a kind, also while the service is asked for it. */
  operationOf(kind: OperationKind): Operation | undefined {
    return this[kind] ?? this.#away.get(kind);
  }

  running(
    which: (operation: Operation) => boolean,
  ): readonly { readonly kind: OperationKind; readonly operation: Operation }[] {
    return kinds.flatMap((kind) => {
      const operation = this.operationOf(kind);
      return operation !== undefined && which(operation) ? [{ kind, operation }] : [];
    });
  }

  close(): void {
    this.closed = true;
    for (const { kind } of this.running(() => true)) this.cancel(kind);
  }
}

type Running<K extends OperationKind> = NonNullable<Operations[K]>;

const heldBy = ({ held = 0 }: Operation): number => held;
const mayHold = ({ held }: Operation): boolean => held !== undefined;

/**
 * Starts an operation unless one of its kind runs, or the session was closed in the meantime.
 * `cycle` is what `checkIdle` gave to an Init that has asked the service since. A session belongs
 * to one thread: when another Init of the kind has come, or the kind was cancelled, the caller has
 * given the first one up after its deadline, and it must not begin behind the caller's back.
 */
export const begin = <K extends OperationKind>(
  session: SessionState<Owner>,
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
export const checkIdle = (session: SessionState<Owner>, kind: OperationKind): number => {
  if (session[kind] !== null || session.isAway(kind)) throw operationActive();
  return session.nextCycle(kind);
};

const putBack = <K extends OperationKind>(
  session: SessionState<Owner>,
  kind: K,
  operation: Running<K>,
  goesOn: boolean,
): void => {
  if (goesOn && !session.closed && session[kind] === null) {
    (session as Operations)[kind] = operation;
    session.settle(kind, heldBy(operation));
  } else {
    operation.cancel();
    session.settle(kind, 0);
  }
};

/**
 * Takes an operation out of its place. What is away is active: there is one of each kind, and it is
 * at work.
 */
const takeOut = <K extends OperationKind>(session: SessionState<Owner>, kind: K): Running<K> => {
  const operation = session[kind] as Running<K> | null;
  if (operation === null) throw session.isAway(kind) ? operationActive() : operationMissing();
  (session as Operations)[kind] = null as Operations[K];
  return operation;
};

/**
 * One step. With `last` the operation ends with it, unless the answer is `LengthOnly`: then the
 * caller is expected back with more room.
 */
export const step = <K extends OperationKind, R>(
  session: SessionState<Owner>,
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
  session: SessionState<Owner>,
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

/**
 * The operations that an error does not end: a search lasts until its Final, and of messages only
 * the one under way ends.
 */
type LastingKind = 'find' | 'messageEncrypt' | 'messageDecrypt';

/** One step of an operation that continues whatever comes. */
export const stepOn = <K extends LastingKind, R>(
  session: SessionState<Owner>,
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
 * A whole message cannot end an operation that has taken parts. The refusal ends the operation, as
 * the standard has it for every call of this kind that is neither a length query nor given too
 * little room.
 */
export const checkWhole = (
  session: SessionState<Owner>,
  kind: 'encrypt' | 'decrypt' | 'digest' | 'sign' | 'verify',
): void => {
  if (session[kind]?.started !== true) return;
  session.cancel(kind);
  throw operationActive();
};
