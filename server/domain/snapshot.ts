// Snapshots of tenants and the recovery keys that they are sealed to. The service creates and
// stores them, and cannot open them.

import type { Integrity } from './vault.ts';

/**
 * creating -> available -> deleted -> purged; creating -> failed; deleted -> available. 'deleted'
 * is restorable until its retention ends; 'missing': the file no longer exists, although the
 * service did not remove it.
 */
export type SnapshotState = 'creating' | 'available' | 'deleted' | 'purged' | 'failed' | 'missing';
export type SnapshotOrigin = 'requested' | 'scheduled' | 'imported';

/**
 * What was checked: without a recovery key everything but what the keys are; 'opened': each key, by
 * its check value.
 */
export type VerificationDepth = 'sealed' | 'opened';

export interface Verification {
  readonly at: number;
  readonly depth: VerificationDepth;
  readonly valid: boolean;
  /** What is wrong, for people. */
  readonly finding: string | null;
}

export interface SnapshotCounts {
  readonly rows: { readonly [table: string]: number };
  readonly units: number;
  readonly materials: number;
  /** Rows or keys that were found damaged when it was made. */
  readonly omitted: number;
  readonly erased: number;
}

export interface Snapshot {
  readonly id: string;
  readonly tenantId: string;
  readonly origin: SnapshotOrigin;
  readonly state: SnapshotState;
  /** The time of the state that it contains. */
  readonly createdAt: number;
  /** Records of the audit log at that moment; of an imported one, 0: the log is another's. */
  readonly auditSize: number;
  /** Bytes; null while it is being made. */
  readonly size: number | null;
  readonly counts: SnapshotCounts | null;
  readonly recoveryKeyIds: readonly string[];
  /** The verifier key that signed it; null while it is being made. */
  readonly signer: string | null;
  /** The last look, and the last that found it sound. */
  readonly verification: Verification | null;
  readonly verifiedAt: number | null;
  readonly deletedAt: number | null;
  readonly purgedAt: number | null;
  /** Why it failed. */
  readonly failure: string | null;
  readonly integrity: Integrity;
}

/** With the ids of the snapshots that still open with it, also after it was removed. */
export interface ListedRecoveryKey extends RecoveryKey {
  readonly snapshots: readonly string[];
}

export interface RecoveryKey {
  /** 16 hexadecimal digits. */
  readonly id: string;
  readonly name: string;
  /** Base64 of 32 bytes. */
  readonly publicKey: string;
  readonly createdAt: number;
  readonly removedAt: number | null;
  readonly integrity: Integrity;
}
