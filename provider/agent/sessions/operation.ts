// The operations that can run in a session, one of each kind: what each takes, gives out and holds.
import type { CipherParameters, Direction, IvUser, KeyRef, MacParameters } from '../../../addon/core.ts';
import type { BytesOutput, MessageParameter, MessageResult, OutBuffer } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import type { Later } from './later.ts';

/** What every running operation can do: go away, wiping and releasing what it holds. */
export interface Operation {
  cancel(): void;
  /** Whether it uses a private object, and so ends with C_Logout. */
  readonly private: boolean;
  /** Bytes that it keeps until its end; absent where that is at most a block. */
  readonly held?: number;
}

/** What the addon needs to do the same again: see replays.ts. */
export type Repeatable = { readonly key: KeyRef; readonly unit: number } & (
  | { readonly direction: Direction; readonly cipher: CipherParameters; readonly usedIvs?: IvUser | undefined }
  | { readonly mac: MacParameters; readonly macLength: number }
);

/**
 * A running encryption or decryption. Each step answers `LengthOnly` when it did nothing because
 * the room is too small.
 */
export interface CipherOperation extends Operation {
  /** Attributes of the session key that it works with; undefined when the service does the work. */
  readonly keyAttributes?: ReadonlyAttributes;
  /**
   * Null when its whole messages have more to them than a cipher, a key and an IV that is not
   * checked.
   */
  readonly repeatable?: Repeatable | null;
  /** Whether a part was taken: then a whole message is refused. */
  readonly started: boolean;
  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput>;
  /**
   * A whole message of so many bytes, which follow in parts: 0 when it is as long as it may be and
   * its result fits. The parts come with `update`, and `final` ends them; what `final` answers with
   * `LengthOnly` although it fits is to be sent again from its beginning, and comes back then. A
   * message may be announced again, and then starts again.
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
  /** Announces a whole message, as in CipherOperation. */
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

/**
 * What one step of a message gives out: data, and for an encryption what goes back through its
 * parameter.
 */
export interface MessageStep {
  readonly data: BytesOutput;
  readonly result: MessageResult;
}

/**
 * Message after message with one key (3.0, sections 5.9 and 5.11). An error ends the message, and
 * not the operation. Without a parameter every step throws CKR_MECHANISM_PARAM_INVALID.
 */
export interface MessageOperation extends Operation {
  /** Attributes of the session key that it decrypts with. */
  readonly keyAttributes?: ReadonlyAttributes | undefined;
  /** Whether a message was started and has not complete. */
  readonly inMessage: boolean;
  whole(parameter: MessageParameter | null, aad: Uint8Array, input: Uint8Array, out: OutBuffer): Later<MessageStep>;
  /** A whole message of so many bytes, as with ciphers: its parts come with `begin` and `next`. */
  announce(parameter: MessageParameter | null, length: number, out: OutBuffer): BytesOutput;
  begin(parameter: MessageParameter | null, aad: Uint8Array): MessageResult;
  announcePart(length: number, out: OutBuffer, last: boolean): BytesOutput;
  next(parameter: MessageParameter | null, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep>;
}

/** A running search. */
export interface SearchOperation extends Operation {
  /** Up to `most` handles; none means that all were returned. */
  take(most: number): Later<readonly number[]>;
}

export interface Operations {
  find: SearchOperation | null;
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
