// What the store keeps of snapshots and recovery keys; the snapshots themselves are files
// (snapshot-archive.ts).

import type { RecoveryKey, Snapshot } from '../domain/snapshot.ts';
import type { Window } from './window.ts';

export interface SnapshotFilter {
  readonly tenantId?: string | undefined;
  readonly state?: Snapshot['state'] | undefined;
}

export interface SnapshotRepository {
  get(id: string): Promise<Snapshot | undefined>;
  /** Newest first. */
  list(filter: SnapshotFilter, window: Window): Promise<readonly Snapshot[]>;
  /**
   * All whose files may be there, whatever a row says that was changed from outside; and, in a unit
   * of work, the ids of those that the database no longer shows. No row is ever removed.
   */
  held(): Promise<{ readonly rows: readonly Snapshot[]; readonly hidden: readonly string[] }>;
  insert(snapshot: Snapshot): Promise<void>;
  update(snapshot: Snapshot): Promise<void>;
}

export interface RecoveryKeyRepository {
  get(id: string): Promise<RecoveryKey | undefined>;
  /** Every recovery key, the oldest first. */
  list(): Promise<readonly RecoveryKey[]>;
  insert(key: RecoveryKey): Promise<void>;
  update(key: RecoveryKey): Promise<void>;
}

/** Who may open which snapshot, once. Its key is a record of class 'snapshot-opening'. */
export interface StoredOpening {
  readonly id: string;
  readonly snapshotId: string;
  readonly actorId: string;
  readonly expiresAt: number;
}

export interface OpeningRepository {
  insert(opening: StoredOpening): Promise<void>;
  get(id: string): Promise<StoredOpening | undefined>;
  remove(id: string): Promise<void>;
}

/**
 * What a key was bound to before it came here from a snapshot of another tenant: 32 bytes; XKS
 * ciphertexts have it.
 */
export interface KeyBindingRepository {
  get(keyId: string): Promise<Buffer | undefined>;
}
