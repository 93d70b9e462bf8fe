// What the store keeps of files that left the service and open its keys (domain/copies.ts).

import type { OutsideCopy, OutsideKind } from '../domain/copies.ts';
import type { Window } from './window.ts';

export interface OutsideCopyFilter {
  readonly tenantId?: string | undefined;
  readonly kind?: OutsideKind | undefined;
  readonly snapshotId?: string | undefined;
  /** Only those of which it is not confirmed that they are destroyed. */
  readonly left?: boolean | undefined;
}

export interface OutsideCopyRepository {
  get(id: string): Promise<OutsideCopy | undefined>;
  /** Newest first. */
  list(filter: OutsideCopyFilter, window: Window): Promise<readonly OutsideCopy[]>;
  /**
   * The copies that are not known to be destroyed, for conclusions: every row decides for itself. A
   * copy whose row was changed from outside is among them, and in a unit of work also one whose row
   * was removed, as a file that may have every key.
   */
  left(): Promise<readonly OutsideCopy[]>;
  insert(copy: OutsideCopy): Promise<void>;
  update(copy: OutsideCopy): Promise<void>;
  /** Moves the exports that earlier versions kept: those of snapshots. */
  adoptExports(): Promise<void>;
}
