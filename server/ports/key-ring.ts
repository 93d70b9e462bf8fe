// Seals and opens key records, and authenticates stored rows and bearer tokens: everything that
// hangs on the root key. Root R[e] seals the tenants' KEKs T[t]; a KEK seals key material. The ring
// has references to opened KEKs, never their bytes.

import type { LogKey, NoteSigner } from '../base/checkpoint.ts';
import type { RowAuthenticator } from '../base/row-jobs.ts';
import type { KeyRef, SealedPart, UnwrappedKind } from './crypto-core.ts';
import type { OwnedRecord, RecordClass, RecordOwner, StoredRecord } from './key-record.ts';
import type { RootProvider } from './root-provider.ts';
import type { Repositories, Store } from './store.ts';

export type BearerPurpose = 'access-guid' | 'api-token' | 'metrics-token' | 'invitation';
/** The keys for bearer values that are rotated. */
export type HashKey = 'session-hash' | 'api-token-hash';
/** What a hash is for: the same text has different hashes for different purposes. */
export type TokenPurpose = BearerPurpose | 'session' | 'recovery-code' | 'sign-in-attempt' | 'sign-in-failures';

/**
 * The public key that clients seal keys of a tenant to (HPKE, RFC 9180). Every node of the service
 * has the private half.
 */
export interface Recipient {
  /** That of the tenant's KEK from which the pair follows: it ends with that KEK. */
  readonly epoch: number;
  /** X25519, 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** A key on its way in: what it was sealed to, and what the sender must have bound to it. */
export interface SealedKey {
  readonly recipient: Recipient;
  readonly sealed: Uint8Array;
  /** HPKE's `info` and `aad`. */
  readonly info: Uint8Array;
  readonly bound: Uint8Array;
}

/** Whose message it is that comes in parts. */
export interface MessageOwner {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly objectId: string;
}

/** What one part of a message is done with. */
export interface MessageSeal {
  readonly part: Pick<SealedPart, 'kek' | 'owner' | 'state'>;
  /** The state as it goes to the caller; empty after the last part. */
  carry(sealed: Uint8Array): Buffer;
}

/**
 * `store` puts it into the place of the present one, whose record is overwritten; `refreshAuditKey`
 * follows the commit. The caller releases it.
 */
export interface NextAuditKey extends NoteSigner {
  readonly publicKey: Buffer;
  sign(text: string): Buffer;
  store(tx: Repositories, until: { readonly origin: string; readonly size: number }, now: number): Promise<void>;
  release(): void;
}

/** What a restore needs of a ring. */
export type RestoreRing = Pick<KeyRing, 'seal' | 'open' | 'hashNeedsKey' | 'addTenant' | 'adoptTokenHashKey'>;

export interface KeyRing {
  /**
   * Opens every KEK and the service's own keys, or makes them in an empty store. Throws
   * `RootKeyError` when the root key does not open what is there; nothing is written then.
   */
  unlock(store: Store, root: RootProvider): Promise<void>;
  /** Wipes every key from memory. */
  close(): void;
  /**
   * A ring for work that is not kept (Store.tryOut): what it makes is in no other memory, and goes
   * when it is closed.
   */
  aside(): RestoreRing & { close(): void };
  /** Makes and stores the KEK of a new tenant. */
  addTenant(tx: Repositories, tenantId: string): Promise<void>;
  /**
   * Overwrites and removes the stored KEKs of a tenant: what is sealed under them cannot be opened.
   * `retainStored` follows the commit.
   */
  dropTenant(tx: Repositories, tenantId: string): Promise<void>;
  /**
   * Takes KEKs that are not stored out of memory: after a transaction that failed, and at the end
   * of an erasure run. Within a unit of work of its own: one that is under way elsewhere has KEKs
   * that only it sees stored.
   */
  retainStored(repositories: Repositories): Promise<void>;
  /**
   * Opens KEKs that another process has stored since, and removes deleted ones from memory. Does
   * nothing before `unlock`.
   */
  refresh(repositories: Repositories): Promise<void>;
  /** Whether a record of this KEK could be opened. */
  knows(record: Pick<StoredRecord, 'tenantId' | 'epoch'>): boolean;
  seal(owner: RecordOwner, version: number, recordClass: RecordClass, key: KeyRef): OwnedRecord;
  /** The caller releases the reference. 'key-tampered' when it does not authenticate. */
  open(record: OwnedRecord): KeyRef;
  /**
   * Whether a record opens where it stands, with or without an owner. The key is not handed out.
   */
  opens(record: StoredRecord): boolean;
  /** The recipient of keys for this tenant, as of now. */
  recipient(tenantId: string): Recipient;
  /**
   * Opens a key that was sealed to a recipient of the tenant; the caller releases it. Null when
   * this node has no such recipient (see `refresh`), 'invalid-ciphertext' when it does not open, or
   * is not a key of the kind.
   */
  openSealed(tenantId: string, key: SealedKey, kind: UnwrappedKind): Promise<KeyRef | null>;
  /**
   * What seals the state of a message. `state`: as the caller brought it back; empty for the first
   * part. Null when this node has no such key (see `refresh`): an erasure run has ended it.
   */
  messageSeal(owner: MessageOwner, state: Uint8Array): MessageSeal | null;
  /** 64 hexadecimal digits over a text, under the key of this job. */
  readonly authenticateRow: RowAuthenticator;
  /**
   * 64 hexadecimal digits, after the version of the key for an API token; look-ups go by this
   * value, so that no comparison sees the token. Text where HTTP has made it text already; bytes
   * are the caller's to wipe.
   */
  hashToken(purpose: TokenPurpose, token: string | Uint8Array): string;
  /**
   * `hashToken` under the other keys that count for this purpose: for an API token the former ones,
   * for an access_guid the key of earlier versions and the keys that came with snapshots.
   */
  formerHashes(purpose: TokenPurpose, token: string | Uint8Array): readonly string[];
  /**
   * Whether an access_guid with this hash is checked with a key of the service, which never leaves
   * it: an earlier version issued it.
   */
  hashNeedsKey(hash: string): boolean;
  /** 64 hexadecimal digits over the text of a sign-in that is under way. */
  authenticateAttempt(text: string): string;
  /** Whether an API token is stored under a former key. */
  isFormerTokenHash(hash: string): boolean;
  /**
   * Stores a new key. For sessions, the record of the current key is overwritten: every session
   * becomes unknown. For API tokens it becomes a former one, until `wipeFormerTokenKeys`.
   * `refreshHashKey` follows the commit.
   */
  rotateHashKey(tx: Repositories, name: HashKey, now: number): Promise<void>;
  /**
   * Overwrites the records of all former keys of API tokens. Returns how many. `refreshHashKey`
   * follows the commit.
   */
  wipeFormerTokenKeys(tx: Repositories): Promise<number>;
  /**
   * Takes the keys that the store has now, and wipes those from memory that it no longer has.
   * Returns whether any changed.
   */
  refreshHashKey(store: Pick<Store, 'read'>, name: HashKey): Promise<boolean>;
  /**
   * `refreshHashKey` with what a unit of work sees: `retainStored` undoes what was not committed.
   */
  followHashKey(tx: Repositories, name: HashKey): Promise<boolean>;
  /**
   * Since when the present key hashes (null: since the service began), and how many former ones are
   * still accepted.
   */
  hashKey(name: HashKey): { readonly since: number | null; readonly former: number };
  /**
   * Takes over a key that hashes tokens, unless it is known. The caller keeps the reference.
   * `retainStored` undoes what was not committed.
   */
  adoptTokenHashKey(tx: Repositories, key: KeyRef): Promise<void>;
  /** Ed25519 (RFC 8032) under the audit log's own key: 64 bytes. */
  signAudit(text: string): Buffer;
  /** That key's public half, 32 bytes. */
  auditPublicKey(): Buffer;
  /** The public halves of this key and of all before it, newest first. */
  auditKeys(): readonly LogKey[];
  /** Since when the present key signs; null: since the log began. */
  auditKeySince(): number | null;
  /** A new key for the audit log, which signs nothing yet. */
  makeAuditKey(): NextAuditKey;
  /**
   * Takes the key that the store has by now, and wipes the former one from memory: after a
   * rotation, by this node or another one.
   */
  refreshAuditKey(store: Pick<Store, 'read'>): Promise<void>;
  /**
   * `refreshAuditKey` with what a unit of work sees: `retainStored` undoes what was not committed.
   */
  followAuditKey(tx: Repositories): Promise<void>;
  /** A round trip on the service's own test key. Throws when it fails. */
  selfTest(): void;

  // --- the erasure run ---------------------------------------------------------------------------
  /** Whether every tenant's newest KEK is sealed under the current root epoch. */
  upToDate(repositories: Repositories): Promise<boolean>;
  /**
   * Fresh KEKs for every tenant, or for one, sealed under the current root epoch. Returns how many.
   */
  addKekEpoch(tx: Repositories, only?: string): Promise<number>;
  /** The epoch of each tenant's KEK that seals now. */
  epochs(): ReadonlyMap<string, number>;
  /**
   * Seals the content of a record under the current KEK, where it stands, without opening the key;
   * the service's own keys are sealed from memory. 'key-tampered' as `open`. It needs no owner: no
   * caller gets a key by it, and a key whose row was changed from outside must not be lost.
   */
  reseal(record: StoredRecord): StoredRecord;
  /**
   * Opens every current KEK from its stored record under the current root; every tenant that is not
   * purged has one. Throws when one does not. Call it in a unit of work, because tenants are
   * created and purged at the same time.
   */
  prove(tx: Repositories): Promise<void>;
  /** Deletes the KEKs that no longer protect a record. */
  dropOldKeks(tx: Repositories): Promise<void>;
}

/** The root key and the store do not belong together. */
export class RootKeyError extends Error {
  override readonly name = 'RootKeyError';
}
