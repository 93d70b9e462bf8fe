// One session (PKCS#11 2.40, section 5.6): its flags, and one running operation of each kind. Login state belongs to the
// application, not to the session.
import type { CipherParameters, Direction, IvUser, KeyRef, MacParameters } from '../../addon/core.ts';
import { CKF, CKS } from '../schema/constants.ts';
import type { BytesOutput, MessageParameter, MessageResult, OutBuffer } from '../schema/types.ts';
import type { Application } from './application.ts';
import type { ReadonlyAttributes } from './attribute-blob.ts';
import type { SessionObject } from './object-view.ts';
import type { FindOperation } from './operations/find.ts';

/** What every running operation can do: go away, wiping and releasing what it holds. */
export interface Operation {
  cancel(): void;
  /** Whether it uses a private object, and so ends with C_Logout. */
  readonly private: boolean;
  /** Bytes that it keeps until its end; absent where that is at most a block. */
  readonly held?: number;
}

export type Later<T> = T | Promise<T>;
/** Goes on with a value, at once where it is there already. */
export const andThen = <T, R>(later: Later<T>, next: (value: T) => Later<R>): Later<R> =>
  later instanceof Promise ? later.then(next) : next(later);

/** What the addon needs to do the same again: see replays.ts. */
export type Repeatable = { readonly key: KeyRef; readonly unit: number } & (
  | { readonly direction: Direction; readonly cipher: CipherParameters; readonly usedIvs?: IvUser | undefined }
  | { readonly mac: MacParameters; readonly macLength: number }
);

/** A running encryption or decryption. Each step answers `LengthOnly` when it did nothing because the room is too small. */
export interface CipherOperation extends Operation {
  /** Attributes of the session key that it works with; undefined when the service does the work. */
  readonly keyAttributes?: ReadonlyAttributes;
  /** Null when its whole messages have more to them than a cipher, a key and an IV that is not checked. */
  readonly repeatable?: Repeatable | null;
  /** Whether a part was taken: then a whole message is refused. */
  readonly started: boolean;
  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
  /**
   * A whole message of so many bytes, which follow in parts: 0 when it is as long as it may be and its result fits. The parts come with
   * `update`, and `final` ends them; what `final` answers with `LengthOnly` although it fits is to be sent once more from its
   * beginning, and comes back then. A message may be announced again, and then starts again.
   */
  announce(length: number, out: OutBuffer): BytesOutput;
  update(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
  /** A part of so many bytes, which follow in smaller ones: 0 when its result fits. */
  announcePart(length: number, out: OutBuffer): BytesOutput;
  final(out: OutBuffer): Later<BytesOutput>;
}

/** A running digest or signature: parts in, one result out. */
export interface SummaryOperation extends Operation {
  readonly repeatable?: Repeatable | null;
  readonly started: boolean;
  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
  /** As with ciphers. */
  announce(length: number, out: OutBuffer): BytesOutput;
  /** The input is read before this returns. */
  update(input: Uint8Array): Later<void>;
  final(out: OutBuffer): Later<BytesOutput>;
}

/** A running signature with recovery, or its verification: data in one piece, and one result. */
export interface RecoverOperation extends Operation {
  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
}

/** A running verification. Throws CKR_SIGNATURE_INVALID or CKR_SIGNATURE_LEN_RANGE. */
export interface VerifyOperation extends Operation {
  readonly started: boolean;
  whole(input: Uint8Array, signature: Uint8Array): Later<void>;
  /** A message of so many bytes, which follow in parts. Throws what can be said before. */
  announce(length: number, signature: Uint8Array): void;
  update(input: Uint8Array): Later<void>;
  final(signature: Uint8Array): Later<void>;
}

/** What one step of a message gives out: data, and for an encryption what goes back through its parameter. */
export interface MessageStep {
  readonly data: BytesOutput;
  readonly result: MessageResult;
}

/**
 * Message after message with one key (3.0, sections 5.9 and 5.11). An error ends the message, and not the operation. Without a parameter
 * every step throws CKR_MECHANISM_PARAM_INVALID.
 */
export interface MessageOperation extends Operation {
  /** Attributes of the session key that it decrypts with. */
  readonly keyAttributes?: ReadonlyAttributes | undefined;
  /** Whether a message was begun and has not come to its end. */
  readonly inMessage: boolean;
  whole(parameter: MessageParameter | null, aad: Uint8Array, input: Uint8Array, out: OutBuffer): Later<MessageStep>;
  /** A whole message of so many bytes, as with ciphers: its parts come with `begin` and `next`. */
  announce(parameter: MessageParameter | null, length: number, out: OutBuffer): BytesOutput;
  begin(parameter: MessageParameter | null, aad: Uint8Array): MessageResult;
  announcePart(length: number, out: OutBuffer, last: boolean): BytesOutput;
  next(parameter: MessageParameter | null, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep>;
}

export interface Operations {
  find: FindOperation | null;
  encrypt: CipherOperation | null;
  decrypt: CipherOperation | null;
  digest: SummaryOperation | null;
  sign: SummaryOperation | null;
  signRecover: RecoverOperation | null;
  verify: VerifyOperation | null;
  verifyRecover: RecoverOperation | null;
  messageEncrypt: MessageOperation | null;
  messageDecrypt: MessageOperation | null;
}
export type OperationKind = keyof Operations;
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

export class Session implements Operations {
  readonly handle: number;
  readonly application: Application;
  readonly readWrite: boolean;
  /** The session objects that were made in it, and end with it. */
  readonly objects = new Set<SessionObject>();
  closed = false;
  readonly #cycles = new Map<OperationKind, number>();
  /** Bytes that running operations hold, as the account counts them. */
  readonly #held = new Map<OperationKind, number>();
  find: FindOperation | null = null;
  encrypt: CipherOperation | null = null;
  decrypt: CipherOperation | null = null;
  digest: SummaryOperation | null = null;
  sign: SummaryOperation | null = null;
  signRecover: RecoverOperation | null = null;
  verify: VerifyOperation | null = null;
  verifyRecover: RecoverOperation | null = null;
  messageEncrypt: MessageOperation | null = null;
  messageDecrypt: MessageOperation | null = null;
  /** Operations for which the service is being asked: taken out of their places, so that no other call uses them meanwhile. */
  readonly #away = new Map<OperationKind, Operation>();

  constructor(handle: number, application: Application, readWrite: boolean) {
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

  /** Whether the operation may go on: it was not cancelled meanwhile. */
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
