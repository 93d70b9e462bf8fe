// One session (PKCS#11 2.40, section 5.6): its flags, and one running operation of each kind. Login state belongs to the
// application, not to the session.
import { CKF, CKS } from '../schema/constants.ts';
import type { SessionObject } from './object-view.ts';
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
  readonly account: { note(what: 'memory', bytes: number): void };
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
  /** Operations for which the service is being asked: taken out of their places, so that no other call uses them in the meantime. */
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
