// What comparing the database with what this service has signed or confirmed can find.

import type { StorePosition } from './change-protocol.ts';
import type { Differences } from './difference.ts';

interface Compared {
  /** What was compared with what. */
  readonly differences: Differences;
  /**
   * Where what the database must have is known to this process alone: with this, a later start
   * compares again.
   */
  readonly atLeast?: Partial<StorePosition> | undefined;
}

/** The result of comparing the database with the checkpoint stored with the root key. */
export type AuditFinding =
  | { readonly state: 'intact' }
  /** Records are missing: an older copy was put back, or the end was cut off. */
  | (Compared & { readonly state: 'older'; readonly size: number; readonly expected: number })
  /**
   * The database lacks changes that were confirmed: its log is damaged or was removed, or an older
   * copy was put in its place.
   */
  | (Compared & { readonly state: 'incomplete'; readonly size: number; readonly expected: number })
  /**
   * The records differ from those that were signed, or the checkpoint stored with the root key is
   * of another log.
   */
  | (Compared & { readonly state: 'changed'; readonly size: number })
  /**
   * Policy rows were restored to an older version, removed or added. `older`: some of the restored
   * rows, where they are known.
   */
  | (Compared & { readonly state: 'rows-changed'; readonly size: number; readonly older: readonly string[] })
  /**
   * A backup of the whole service was restored: what was changed since is missing, whatever it is.
   * `at` is null when only the root key was restored, and nothing tells how new the database must
   * be.
   */
  | (Compared & { readonly state: 'restored'; readonly size: number; readonly at: string | null })
  /**
   * The data directory was used on another host: the service there may still run, under the same
   * name of its log.
   */
  | (Compared & { readonly state: 'copied'; readonly size: number })
  /**
   * Changes that this node has already received are missing: the database returned to an earlier
   * state while the service ran.
   */
  | (Compared & { readonly state: 'lost-changes' });

export type Unsound = Exclude<AuditFinding, { readonly state: 'intact' }>;
