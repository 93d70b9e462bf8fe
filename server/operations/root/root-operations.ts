// What can be done with the root key.

import type { Actor } from '../../domain/actor.ts';
import type { RootBackup, RootWay } from '../../ports/root-provider.ts';

export interface RootView {
  readonly epoch: number;
  /** Set while a run is under way: both open. */
  readonly previousEpoch: number | null;
  /** A rotation was asked for or is under way. */
  readonly rotating: boolean;
  /** The newest that `dke root backup` made; null: none. */
  readonly backup: RootBackup | null;
  /** What keeps the old root key from being overwritten, where this node runs the erasure run. */
  readonly waitsFor: readonly string[];
  readonly providers: readonly RootWay[];
  readonly fileSystem: string;
  readonly overwritesInPlace: boolean;
}

export interface RootOperations {
  get(actor: Actor): Promise<RootView>;
  /**
   * Asks for a new root key and new keys of every tenant, or for a new key of one tenant; live
   * records are sealed again after it, while everything is served. Acknowledged is that it will be
   * done, also after a restart.
   */
  rotate(actor: Actor, tenantId?: string): Promise<RootView>;
  /**
   * A copy of the database that a run waits for will never become the database: it is no longer
   * waited for. Throws 'not-found'.
   */
  releaseCopy(actor: Actor, name: string): Promise<RootView>;
}
