// What databases do, through the agent.

import type {
  AeadParameters,
  CipherParameters,
  DeriveParameters,
  MacParameters,
  RsaEncryptionParameters,
  SignatureParameters,
  WrapParameters,
} from '../../../addon/core.ts';
import type { CompatibilitySwitch } from '../../base/compatibility-switches.ts';
import type { Actor } from '../../domain/actor.ts';
import type { KeyAlgorithm, KeyUsage } from '../../domain/key.ts';
import type { KeyRules } from '../../domain/key-custody.ts';
import type { ObjectClass, TdeApplication, TokenObject } from '../../domain/tde.ts';
import type { Recipient, SealedKey } from '../../ports/key-ring.ts';

/** What the agent says about the process that calls; names are cut to 255 characters. */
export interface InstanceDescription {
  readonly host: string;
  readonly pid: number;
  readonly process: string;
  readonly library: string;
  readonly agent: string;
  readonly osUser: string;
}

/**
 * A client certificate that a connection has shown, with proof that the caller has its private key.
 */
export interface ShownCertificate {
  /** SHA-256 of its DER: 32 bytes in hexadecimal digits and colons. */
  readonly fingerprint: string;
  readonly beginsAt: number;
  readonly endsAt: number;
}

/** Where a call comes from. */
export interface CallerFacts {
  readonly peer: string | null;
  /** Called only where the application requires a certificate. Null: none was shown. */
  readonly certificate?: (() => ShownCertificate | null) | undefined;
}

/** An authenticated application together with the instance that speaks for it. */
export interface TdeCaller {
  readonly actor: Actor;
  readonly application: TdeApplication;
  readonly accessGuidId: string;
  readonly appId: string;
  readonly instance: InstanceDescription;
  /** Under which key the request may be sent again, and the digest of what it asks for. */
  readonly once?: { readonly key: string; readonly fingerprint: string };
}

export interface TdeServiceInfo {
  readonly applicationId: string;
  readonly applicationName: string;
  readonly tokenLabel: string;
  readonly groupId: string;
  readonly tenantId: string;
  readonly serverVersion: string;
  readonly compatibility: readonly CompatibilitySwitch[];
  readonly epoch: number;
  /** What keys are sealed to on their way here. */
  readonly recipient: Recipient;
}

export type NewTokenObject = Pick<
  TokenObject,
  | 'class'
  | 'label'
  | 'algorithm'
  | 'bits'
  | 'usages'
  | 'sensitive'
  | 'extractable'
  | 'modifiable'
  | 'destroyable'
  | 'private'
  | 'attributes'
> & {
  /** Permanent. Absent: none. */
  readonly rules?: KeyRules | undefined;
};

/** A key becomes sensitive and stops being extractable, never the other way. */
export interface TokenObjectChange {
  readonly label?: string | undefined;
  readonly attributes?: string | undefined;
  readonly usages?: readonly KeyUsage[] | undefined;
  readonly sensitive?: true | undefined;
  readonly extractable?: false | undefined;
  /** A key that is changed to this is never wrapped again (`KeyRules`). */
  readonly wrapWithTrusted?: true | undefined;
  /** What the change was computed from. */
  readonly seen?: { readonly attributes: string; readonly usages: readonly KeyUsage[] } | undefined;
}

/** A token object as one application sees it. */
export interface VisibleObject extends TokenObject {
  readonly owned: boolean;
  /** The uses that `checkUse` would permit, where they were checked. */
  readonly admits?: readonly KeyUsage[];
}

/** A key of the token, or the value of one that the agent has (the caller wipes it). */
export type KeyToWrap =
  | { readonly from: 'token'; readonly handle: number }
  | {
      readonly from: 'session';
      readonly class: 'secret-key' | 'private-key';
      readonly sensitive: boolean;
      readonly key: SealedKey;
    };

/**
 * The client's own key, to which keys are sealed on their way out: an X25519 public key, and HPKE's
 * `info`.
 */
export interface SealTo {
  readonly recipient: Uint8Array;
  readonly info: Uint8Array;
}

/** Where a key goes that comes of another. */
export type KeyDestination =
  | { readonly on: 'token'; readonly object: NewTokenObject }
  | (SealTo & {
      readonly on: 'session';
      readonly class: 'secret-key' | 'private-key';
      readonly algorithm: KeyAlgorithm;
      readonly bits: number | null;
      readonly sensitive: boolean;
      readonly extractable: boolean;
    });

/** One of the two is there. */
export interface MadeKey {
  readonly object: VisibleObject | null;
  readonly sealed: Buffer | null;
}

/**
 * A part of a message whose other parts are in other requests. `state`: what the part before has
 * answered, sealed.
 */
export interface PartOfMessage {
  readonly state: Uint8Array;
  readonly last: boolean;
  readonly input: Uint8Array;
}

export interface TdeOperations {
  /**
   * Throws 'unauthenticated' (unknown, removed, or of a disabled application) in one message.
   * Counts the instance's use.
   */
  authenticate(
    input: {
      readonly accessGuid: string;
      readonly appId: string;
      readonly instance: InstanceDescription;
      readonly requestId: string;
    } & CallerFacts,
  ): Promise<TdeCaller>;
  info(caller: TdeCaller): Promise<TdeServiceInfo>;
  generateKey(caller: TdeCaller, input: NewTokenObject): Promise<VisibleObject>;
  /** Makes both halves in one transaction. Without `publicKey` only the private half is kept. */
  generateKeyPair(
    caller: TdeCaller,
    input: { readonly privateKey: NewTokenObject; readonly publicKey: NewTokenObject | null },
  ): Promise<{ readonly privateKey: VisibleObject; readonly publicKey: VisibleObject | null }>;
  /** Data, a certificate or a public key. `value` stays the caller's. */
  createObject(caller: TdeCaller, input: NewTokenObject, value: Uint8Array): Promise<VisibleObject>;
  /**
   * A secret or a private key. 'conflict' with the reason `recipient-changed` when it was sealed to
   * a public key that is no longer in use: nothing was done.
   */
  importKey(caller: TdeCaller, input: NewTokenObject, key: SealedKey): Promise<VisibleObject>;
  findObjects(
    caller: TdeCaller,
    query: {
      readonly label?: string | undefined;
      readonly class?: ObjectClass | undefined;
      readonly after: number;
      readonly limit: number;
    },
  ): Promise<{ readonly objects: readonly VisibleObject[]; readonly more: boolean }>;
  getObject(caller: TdeCaller, handle: number): Promise<VisibleObject>;
  /**
   * The caller wipes the buffer. 'forbidden' for a sensitive or unextractable key. A key's value is
   * sealed `to` the caller's key where one is given.
   */
  readValue(caller: TdeCaller, handle: number, to?: SealTo): Promise<Buffer>;
  /**
   * 'conflict' where the object is not as the caller has `seen` it. `value`: the new value of a
   * data object; it stays the caller's, which wipes it.
   */
  updateObject(
    caller: TdeCaller,
    handle: number,
    change: TokenObjectChange,
    value?: Uint8Array,
  ): Promise<VisibleObject>;
  destroyObject(caller: TdeCaller, handle: number): Promise<void>;
  /** Withdraws the caller's request with this Idempotency-Key; see tde/withdraw-request.ts. */
  withdraw(caller: TdeCaller, key: string): Promise<'not-carried-out' | 'undone' | 'kept'>;
  /**
   * In the order of what is held: the uses that `checkUse` would permit, and whether the object is
   * there in this version.
   */
  refresh(
    caller: TdeCaller,
    held: readonly { readonly handle: number; readonly uses: readonly KeyUsage[]; readonly version: number }[],
  ): Promise<readonly { readonly uses: readonly KeyUsage[]; readonly same: boolean }[]>;
  /**
   * Values of data objects, as far as the caller may read them; with those that fit into so many
   * bytes. The caller wipes them.
   */
  readValues(
    caller: TdeCaller,
    handles: readonly number[],
    mostBytes: number,
  ): Promise<readonly { readonly handle: number; readonly version: number; readonly value: Buffer }[]>;
  checkUse(caller: TdeCaller, handle: number, usage: KeyUsage): Promise<void>;
  /** The caller wipes input and answer. */
  encrypt(caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array): Promise<Buffer>;
  decrypt(caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array): Promise<Buffer>;
  /** RSA-OAEP with a private key. The caller wipes the answer. */
  /** With a private RSA key. PKCS#1 v1.5 padding needs a compatibility switch. */
  decryptWithPrivateKey(
    caller: TdeCaller,
    handle: number,
    parameters: RsaEncryptionParameters,
    input: Uint8Array,
  ): Promise<Buffer>;
  sign(caller: TdeCaller, handle: number, parameters: MacParameters, input: Uint8Array): Promise<Buffer>;
  /**
   * A part of a message under GCM or CCM; 'invalid-ciphertext' with the last one when the tag is
   * wrong. The caller wipes input and output.
   */
  cipherPart(
    caller: TdeCaller,
    handle: number,
    use: 'encrypt' | 'decrypt' | 'check',
    parameters: AeadParameters,
    part: PartOfMessage,
  ): Promise<{ readonly state: Buffer; readonly output: Buffer }>;
  /** The MAC with the last part, else the state. */
  signPart(caller: TdeCaller, handle: number, parameters: MacParameters, part: PartOfMessage): Promise<Buffer>;
  /**
   * The state; nothing after the last part, which brings the signature. A wrong one throws
   * 'invalid-ciphertext'.
   */
  verifyPart(
    caller: TdeCaller,
    handle: number,
    parameters: MacParameters,
    part: PartOfMessage,
    signature: Uint8Array | null,
    length?: number,
  ): Promise<Buffer>;
  /** A signature by a private key, over what is hashed already. */
  signWithPrivateKey(
    caller: TdeCaller,
    handle: number,
    parameters: SignatureParameters,
    input: Uint8Array,
  ): Promise<Buffer>;
  /**
   * A wrong signature throws 'invalid-ciphertext'. It is the whole MAC, or its first `length`
   * bytes.
   */
  verify(
    caller: TdeCaller,
    handle: number,
    parameters: MacParameters,
    input: Uint8Array,
    signature: Uint8Array,
    length?: number,
  ): Promise<void>;
  /** 'forbidden' where the key, or this wrapping key, is none for it. */
  wrap(caller: TdeCaller, handle: number, mechanism: WrapParameters, key: KeyToWrap): Promise<Buffer>;
  /** 'invalid-ciphertext' for whatever is wrong with the wrapped key. */
  unwrap(
    caller: TdeCaller,
    handle: number,
    mechanism: WrapParameters,
    wrapped: Uint8Array,
    into: KeyDestination,
  ): Promise<MadeKey>;
  derive(caller: TdeCaller, handle: number, mechanism: DeriveParameters, into: KeyDestination): Promise<MadeKey>;
}
