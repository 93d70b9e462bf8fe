// What can be done with snapshots and recovery keys, for fronts and the command.

import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { KeyCopies, OutsideCopy } from '../../domain/copies.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { ListedRecoveryKey, Snapshot } from '../../domain/snapshot.ts';
import type { SnapshotFilter } from '../../ports/snapshots.ts';
import type { Opening } from './openings.ts';
import type { RestoreOutcome } from './restore-rows.ts';
import type { RestoreRequest, RuledRestore } from './restore-snapshot.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';

export type { Opening, RestoreOutcome, RestoreRequest, RuledRestore, SnapshotSettings };

/** A snapshot's key on its way: what the holder of a recovery key answers an opening with. */
export interface OpeningAnswer {
  readonly openingId: string;
  /** Base64. */
  readonly sealedKey: string;
}

export interface SnapshotOperations {
  /**
   * Makes a snapshot of one tenant; null: the one acted in, for the whole platform the default one.
   * 'not-found' for a tenant that is not the actor's; 'conflict' when no recovery key is
   * registered.
   */
  create(actor: TenantActor, tenantId: string | null): Promise<Snapshot>;
  /**
   * Snapshots of the tenant acted in, or of all tenants. Where a `TenantActor` acts in one tenant,
   * snapshots of other tenants are not found.
   */
  list(actor: TenantActor, query: PageRequest & SnapshotFilter): Promise<Page<Snapshot>>;
  get(actor: TenantActor, id: string): Promise<Snapshot>;
  exports(actor: TenantActor, id: string): Promise<readonly OutsideCopy[]>;
  /** Undone by `undelete` within the configured days. */
  delete(actor: TenantActor, id: string): Promise<Snapshot>;
  undelete(actor: TenantActor, id: string): Promise<Snapshot>;
  /** Recorded before the first byte. */
  export(actor: Actor, id: string): Promise<AsyncIterable<Uint8Array>>;
  import(actor: Actor, body: AsyncIterable<Uint8Array>, signer: string | undefined): Promise<Snapshot>;
  beginOpening(actor: Actor, id: string, recoveryKeyId: string | undefined): Promise<Opening>;
  /** Without an answer to an opening: all that can be seen without the key. */
  verify(actor: TenantActor, id: string, answer: OpeningAnswer | null): Promise<Snapshot>;
  /** A dry run tells whose rules have a say, too. */
  restore(actor: Actor, id: string, answer: OpeningAnswer, request: RestoreRequest): Promise<RuledRestore>;
  schedule(): Promise<{ readonly settings: SnapshotSettings; readonly next: number | null }>;
  /** Every copy of a key that the service knows. */
  ofKey(actor: TenantActor, keyId: string): Promise<KeyCopies>;
}

export interface RecoveryKeyOperations {
  list(actor: Actor): Promise<readonly ListedRecoveryKey[]>;
  /** `publicKey`: as dke recovery-key create prints it. */
  register(actor: Actor, input: { readonly name: string; readonly publicKey: string }): Promise<ListedRecoveryKey>;
  /** 'conflict' for the last one while a schedule creates snapshots, unless forced. */
  remove(actor: Actor, id: string, force: boolean): Promise<ListedRecoveryKey>;
}
