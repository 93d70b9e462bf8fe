// One session (PKCS#11 2.40, section 5.6): its flags, and one running operation of each kind. Login state belongs to the
// application, not to the session.
import type { KeyRef } from '../../addon/core.ts';
import { CKF, CKS } from '../schema/constants.ts';
import type { BytesOutput, OutBuffer } from '../schema/types.ts';
import type { Application } from './application.ts';
import type { FindOperation } from './operations/find.ts';

/** What every running operation can do: go away, wiping and releasing what it holds. */
export interface Operation {
  cancel(): void;
  /** Whether it uses a private object, and so ends with C_Logout. */
  readonly private: boolean;
}

export type Later<T> = T | Promise<T>;

/** A running encryption or decryption. Each step answers `LengthOnly` when it did nothing because the room is too small. */
export interface CipherOperation extends Operation {
  /** The session key that it works with; undefined when the service does the work. */
  readonly key?: KeyRef;
  /** Whether a part was taken: then a whole message is refused. */
  readonly started: boolean;
  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
  update(input: Uint8Array, out: OutBuffer): BytesOutput;
  final(out: OutBuffer): Later<BytesOutput>;
}

/** A running digest or signature: parts in, one result out. */
export interface SummaryOperation extends Operation {
  readonly started: boolean;
  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
  update(input: Uint8Array): void;
  final(out: OutBuffer): Later<BytesOutput>;
}

/** A running verification. Throws CKR_SIGNATURE_INVALID or CKR_SIGNATURE_LEN_RANGE. */
export interface VerifyOperation extends Operation {
  readonly started: boolean;
  whole(input: Uint8Array, signature: Uint8Array): Later<void>;
  update(input: Uint8Array): void;
  final(signature: Uint8Array): Later<void>;
}

export interface Operations {
  find: FindOperation | null;
  encrypt: CipherOperation | null;
  decrypt: CipherOperation | null;
  digest: SummaryOperation | null;
  sign: SummaryOperation | null;
  verify: VerifyOperation | null;
}
export type OperationKind = keyof Operations;
const kinds = ['find', 'encrypt', 'decrypt', 'digest', 'sign', 'verify'] as const satisfies OperationKind[];

export class Session implements Operations {
  readonly handle: number;
  readonly application: Application;
  readonly readWrite: boolean;
  closed = false;
  find: FindOperation | null = null;
  encrypt: CipherOperation | null = null;
  decrypt: CipherOperation | null = null;
  digest: SummaryOperation | null = null;
  sign: SummaryOperation | null = null;
  verify: VerifyOperation | null = null;

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

  cancel(kind: OperationKind): void {
    const operation = this[kind];
    this[kind] = null;
    operation?.cancel();
  }

  cancelAll(which: (operation: Operation) => boolean = () => true): void {
    for (const kind of kinds) {
      const operation = this[kind];
      if (operation !== null && which(operation)) this.cancel(kind);
    }
  }

  close(): void {
    this.closed = true;
    this.cancelAll();
  }
}
