// The files of snapshots of tenants, and how they are written and read (addon/FORMAT.md, section
// 5). The archive seals what it is given and cannot open it again: a reader supplies the snapshot's
// key, as a reference into the addon.

import type { RecoveryPublicKey } from '../base/recovery-key.ts';
import type { KeyRef } from './crypto-core.ts';

export type SnapshotValue = string | number | null | Uint8Array;
/** A row of a table, without its authentication code. */
export type SnapshotRow = { readonly [column: string]: SnapshotValue };

/** What a snapshot says about itself, unencrypted, from its first bytes on. */
export interface SnapshotPreface {
  readonly snapshotId: string;
  readonly tenantId: string;
  /** RFC 3339. */
  readonly at: string;
  /** Name of the newest change of the tables. */
  readonly schema: string;
  readonly recipients: readonly { readonly recoveryKeyId: string; readonly sealedKey: string }[];
}

/** What a snapshot says about itself at its end, signed. */
export interface SnapshotClosing {
  readonly format: 1;
  readonly snapshotId: string;
  /** SHA-256, Base64, over all that an erasure does not change. */
  readonly digest: string;
  readonly segments: number;
  readonly lines: number;
  /** Keys, contents and credentials: each can be erased separately. */
  readonly units: number;
  readonly materials: number;
  /** Rows of each table. */
  readonly rows: { readonly [table: string]: number };
  /** What did not open or was changed from outside when the snapshot was made: it is not in it. */
  readonly omitted: number;
  /** The audit log at that moment: records, and the newest checkpoint. */
  readonly audit: { readonly size: number; readonly checkpoint: string | null };
  /** Who signs: a verifier key. */
  readonly signer: string;
}

/** A key that is open, on its way into a snapshot. */
export interface SnapshotMaterial {
  readonly version: number;
  /** Classes of the records that it stood in. */
  readonly copies: readonly string[];
  /** Canonical text of the immutable attributes. */
  readonly attributes: string;
  readonly key: KeyRef;
}

export interface SnapshotWriter {
  /** `tampered`: it was changed from outside; that stays so when it is restored. */
  row(table: string, row: SnapshotRow, tampered?: boolean): Promise<void>;
  /** What hangs on one key of its own: its erasure takes all of it. */
  unit(id: string, materials: readonly SnapshotMaterial[]): Promise<void>;
  /** Signs and makes the file durable under its name. */
  finish(
    closing: Pick<SnapshotClosing, 'omitted' | 'audit' | 'signer'>,
    sign: (text: string) => Uint8Array,
  ): Promise<{ readonly closing: SnapshotClosing; readonly size: number }>;
  /** Removes what was written. */
  abandon(): Promise<void>;
}

export interface ErasedUnit {
  readonly id: string;
  readonly at: number;
}

/** What can be said of a file without its key. */
export interface SnapshotInspection {
  readonly preface: SnapshotPreface;
  readonly closing: SnapshotClosing;
  readonly size: number;
  readonly erased: readonly ErasedUnit[];
}

/** The content of a snapshot, in the order in which it was written. */
export type SnapshotItem =
  | { readonly kind: 'row'; readonly table: string; readonly row: SnapshotRow; readonly tampered: boolean }
  | {
      readonly kind: 'material';
      readonly unitId: string;
      readonly version: number;
      readonly copies: readonly string[];
      readonly attributes: string;
      /**
       * Identifies the key as it was when the snapshot was made: its check value, or the hash of
       * its public half. Hexadecimal.
       */
      readonly check: string;
      /** The caller releases it. Null: it was erased. */
      readonly key: KeyRef | null;
      readonly erasedAt: number | null;
    };

/** Signers that are trusted: Ed25519 public keys of 32 bytes. */
export type TrustedSigners = readonly Uint8Array[];

export interface SnapshotArchive {
  readonly directory: string;
  /** Makes the folder when it is missing, and removes what was cut off. */
  prepare(): void;
  /** Whether the folder is the one of the snapshots: a disk that is not mounted has none. */
  reached(): Promise<boolean>;
  /** Rejects with 'unavailable' where it is not. */
  require(): Promise<void>;
  /** What the folder is known by; undefined: it has no mark. */
  mark(): Promise<string | undefined>;
  /** Durable when it answers. */
  setMark(mark: string): Promise<void>;
  begin(
    preface: Omit<SnapshotPreface, 'recipients'>,
    recipients: readonly RecoveryPublicKey[],
  ): Promise<SnapshotWriter>;
  /** Reads the whole file. 'snapshot-damaged' with what is wrong with it. */
  inspect(id: string, trusted: TrustedSigners): Promise<SnapshotInspection>;
  /** Only the first bytes. */
  preface(id: string): Promise<SnapshotPreface>;
  /**
   * `key`: the snapshot's own, generic, 32 bytes. The signature is checked before;
   * 'snapshot-damaged' also when it is another's key, and when the file does not have the digest
   * that is given.
   */
  items(id: string, key: KeyRef, trusted: TrustedSigners, digest?: string): AsyncIterable<SnapshotItem>;
  checkOf(key: KeyRef): string;
  /**
   * Overwrites the units that `which` names of those of the file, part by part, in place and
   * durably. `found`: those that the file has, erased now or before; `total`: every erased one in
   * the file.
   */
  erase(
    id: string,
    which: (ids: readonly string[]) => Promise<ReadonlySet<string>>,
    at: number,
    signer: { readonly publicKey: Uint8Array; readonly sign: (text: string) => Uint8Array },
  ): Promise<{ readonly found: readonly string[]; readonly total: number }>;
  has(id: string): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  remove(id: string): Promise<void>;
  /** Stores a file from outside; 'validation' when it is too large. */
  receive(id: string, body: AsyncIterable<Uint8Array>): Promise<void>;
  content(id: string): Promise<AsyncIterable<Uint8Array>>;
}
