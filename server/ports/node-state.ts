// What a node keeps on its own disk, because a decision rests on it that no restart may end: the
// last position of the database that it has confirmed, that it is in quarantine and why, and that
// its root key was restored.
//
// Who can choose it: the user of the service, who has the root key anyway. It is written before the
// answer that relies on it, and read at the start. Lost (a new disk): then the node knows nothing,
// and the checkpoint next to the root key remains. Older (a copy of the directory): it asks for
// less than was confirmed. It is cleared only by a confirmation that is in the audit log.

import type { ServiceError } from '../base/service-error.ts';
import type { Unsound } from '../domain/audit-finding.ts';
import type { StorePosition } from '../domain/change-protocol.ts';

export interface RecordedQuarantine {
  readonly finding: Unsound;
  readonly since: number;
}

export interface NodeState {
  /** The position of the store that was found at the start; undefined: not known. */
  readonly position: StorePosition | undefined;
  /** The file of the position, and when it was written. */
  positionPlace(): string;
  /** The newest position: written and synced behind the call, several in one write. */
  note(position: StorePosition): void;
  /**
   * Resolves when everything that was noted is on the disk. Throws `unconfirmed` when the disk
   * refuses it.
   */
  kept(): Promise<void>;
  /**
   * Why this node may make no change now: the disk refuses the position. Tried again until it is
   * written.
   */
  refusal(): ServiceError | undefined;
  /**
   * The quarantine that was found at the start; undefined: none. Throws StartError when it cannot
   * be read.
   */
  readonly quarantine: RecordedQuarantine | undefined;
  /** Durable before it returns. */
  recordQuarantine(quarantine: RecordedQuarantine): void;
  /**
   * When the root key was restored without a checkpoint beside it; undefined: nothing has to be
   * proved.
   */
  readonly rootRestoredAt: string | undefined;
  /** The database is accepted, or proved to be the newest: nothing of the above is kept. */
  clear(): void;
  close(): Promise<void>;
}
