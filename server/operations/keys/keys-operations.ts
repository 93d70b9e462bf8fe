// What can be done with keys and master keys.

import type { TenantActor } from '../../domain/actor.ts';
import type { KeyUse, KeyVersion, ShownKey } from '../../domain/key.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { BlastRadius, MasterKey } from '../../domain/tde.ts';
import type { KeyListFilter } from '../../ports/store.ts';
import type { DryRun } from '../approvals/approvals-operations.ts';

/** Without `usedAfter` and `usedBefore` newest first, with one of them longest unused first. */
export type KeyFilter = PageRequest & Omit<KeyListFilter, 'applicationId'>;

export type KeyInventoryFilter = Omit<KeyListFilter, 'applicationId'>;

export interface KeyOperations {
  /**
   * An AES-256 key for encrypt and decrypt, made inside the addon. The name is for people and need
   * not be unique.
   */
  create(
    actor: TenantActor,
    input: { readonly name: string; readonly vaultId: string; readonly tags?: readonly string[] | undefined },
  ): Promise<ShownKey>;
  /** Its name and its tags, whole. A master key's name stays: 'conflict'. */
  change(
    actor: TenantActor,
    id: string,
    input: { readonly name: string; readonly tags: readonly string[] },
  ): Promise<ShownKey>;
  list(actor: TenantActor, query: KeyFilter): Promise<Page<ShownKey>>;
  /** All keys that the actor reaches, of every tenant too; newest first. Audited. */
  export(actor: TenantActor, filter: KeyInventoryFilter, format: string): Promise<AsyncIterable<readonly ShownKey[]>>;
  /** Any state, destroyed ones too: a tombstone outlives its key. */
  get(actor: TenantActor, id: string): Promise<ShownKey>;
  versions(actor: TenantActor, id: string): Promise<readonly KeyVersion[]>;
  /** Who uses it, and when it was last used. */
  use(actor: TenantActor, id: string): Promise<KeyUse>;
  enable(actor: TenantActor, id: string): Promise<ShownKey>;
  disable(actor: TenantActor, id: string): Promise<ShownKey>;
  /**
   * Soft deletion, for general and master keys: the row stays, the vault copy is cleared.
   * `vaultCopyCleared` false means that clearing failed (best effort) while the state did change.
   */
  softDelete(actor: TenantActor, id: string): Promise<{ readonly key: ShownKey; readonly vaultCopyCleared: boolean }>;
  planSoftDelete(actor: TenantActor, id: string): Promise<DryRun>;
  /**
   * Adds a version; older versions still open what they sealed. General keys only: 'conflict' for
   * master keys.
   */
  rotate(actor: TenantActor, id: string): Promise<KeyVersion>;
}

export interface MasterKeyOperations {
  /** The history of an application: newest first, destroyed ones included. */
  list(actor: TenantActor, applicationId: string, query: PageRequest): Promise<Page<MasterKey>>;
  get(actor: TenantActor, applicationId: string, keyId: string): Promise<MasterKey>;
  blastRadius(actor: TenantActor, applicationId: string, keyId: string): Promise<BlastRadius>;
  /**
   * Allows a database's key that encrypts and cannot decrypt to decrypt from now on. 'conflict' for
   * other keys.
   */
  allowDecryption(actor: TenantActor, applicationId: string, keyId: string): Promise<MasterKey>;
  /**
   * Terminal. Both copies are overwritten in the transaction of the marker; an erasure run follows
   * on its own.
   */
  destroy(
    actor: TenantActor,
    applicationId: string,
    keyId: string,
  ): Promise<{ readonly key: MasterKey; readonly blastRadius: BlastRadius }>;
  destroyNeeds(actor: TenantActor, applicationId: string, keyId: string): Promise<DryRun>;
}
