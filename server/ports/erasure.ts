// Requests an erasure run. Destructions within a short time share one.

import type { RecordClass } from './key-record.ts';

/**
 * Why the run cannot finish: records that do not open, because only the old root key may still open
 * them; nodes that have not received the new root key or not erased the old one; copies of the
 * database that have not stored the re-sealed records; or missing files of snapshots that may
 * contain destroyed keys.
 */
export interface ErasureBlockers {
  readonly since: number;
  readonly records: readonly {
    readonly kind: 'key' | 'object' | 'credential' | 'other';
    readonly id: string;
    readonly name: string | null;
    readonly version: number;
    readonly copy: RecordClass;
  }[];
  /** Their names. */
  readonly nodes: readonly string[];
  /** Standbys, replication slots and the archive of the database's log that are behind, by name. */
  readonly standbys: readonly string[];
  /** Ids of snapshots whose files are missing. */
  readonly snapshots: readonly string[];
}

export interface ErasureState {
  readonly state: 'idle' | 'waiting' | 'running' | 'blocked' | 'failed';
  /** Where `state` is `blocked`. */
  readonly blockers: ErasureBlockers | null;
  /** Where `state` is `failed`: why the last try ended. It is tried again. */
  readonly failure: string | null;
  /**
   * Where `state` is `waiting`: for other destructions, which share a run; for copies of the
   * database that it does not show; or for the node that has the duty.
   */
  readonly waitsFor: 'destructions' | 'copies' | 'node' | null;
}

export interface ErasureRuns {
  /** A key was destroyed: its run comes, together with that of others. */
  schedule(): void;
  /** The state of the run on the node that has the duty; every node answers it. */
  state(): Promise<ErasureState>;
}
