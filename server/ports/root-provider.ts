// The source of the root key. A root has epochs; during an erasure run two are open, the older as
// `previous`.

import type { BackupReceipt } from '../domain/backup-receipt.ts';
import type { KekRef } from './crypto-core.ts';

export interface RootKey {
  readonly epoch: number;
  /** A KEK in the addon. */
  readonly key: KekRef;
}

/** One of the ways to open the root: each one is sufficient. */
export interface RootWay {
  readonly name: string;
  readonly type: 'file' | 'passphrase' | 'pkcs11';
  /** Milliseconds since the epoch; null: unknown. */
  readonly createdAt: number | null;
  /** Whether this way opened the root at this start. */
  readonly opened: boolean;
}

/** A backup of the root key, as its receipt says. */
export interface RootBackup {
  /** Epoch of the newest root key in the backup. */
  readonly epoch: number;
  readonly at: number;
}

export interface ProviderChange {
  readonly name: string;
  readonly type: RootWay['type'];
  /**
   * Seals the root key again: the provider's former key no longer opens it. Once; the request is
   * erased. Throws CoreError.
   */
  apply(): void;
  /** Erases the request. */
  drop(): void;
}

export interface RootProvider {
  readonly name: string;
  readonly ways: readonly RootWay[];
  readonly current: RootKey;
  readonly previous: RootKey | undefined;
  /**
   * What an erasure is worth here: the file system's name and whether overwriting in place leaves
   * nothing behind.
   */
  readonly erasure: { readonly fileSystem: string; readonly overwritesInPlace: boolean };
  /**
   * Adds a root key, durable before it returns: a fresh one with the next epoch, or the one given,
   * of another node, whose reference is the caller's to release. It becomes `current`, the other
   * `previous`.
   */
  addEpoch(given?: RootKey): void;
  /**
   * Call it before anything relies on a `current` that was found together with a `previous` one:
   * makes it durable again. An earlier process may have ended because its sync failed; then what
   * can be read may be only in the cache.
   */
  settle(): void;
  /** Rejects while its disk does not answer: asked before each of the calls that wait for it. */
  reach(): Promise<void>;
  /**
   * Overwrites the older root key permanently and releases it. Does nothing when there is no
   * previous one.
   */
  erasePrevious(): void;
  /**
   * The newest checkpoint of the audit log, stored outside the database: it shows when an older
   * database has been put back. `read` returns undefined when none has been written yet; `write` is
   * durable before it returns.
   */
  readonly anchor: {
    read(): string | undefined;
    write(note: string): void;
    /** The file, and when it was written, for reports. */
    place(): string;
  };
  /** A new key for a provider, which `dke root rewrap` has left while the service runs. */
  pendingChange(): ProviderChange | undefined;
  /** Receipts of the backups that were made on this host, the oldest first. */
  backups(): readonly BackupReceipt[];
  /**
   * Checks the root's file again: throws when it can no longer be read. Cheap: used by the health
   * check.
   */
  check(): void | Promise<void>;
  /** Gives its keys back. */
  release(): void;
}
