// What can be done with vaults.

import type { TenantActor } from '../../domain/actor.ts';
import type { RotationProfile } from '../../domain/notification.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { Vault } from '../../domain/vault.ts';
import type { DryRun } from '../approvals/approvals-operations.ts';

export interface VaultOperations {
  /** Names are unique among the live vaults of a tenant: 'conflict'. */
  create(actor: TenantActor, input: { readonly name: string }): Promise<Vault>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<Vault>>;
  get(actor: TenantActor, id: string): Promise<Vault>;
  enable(actor: TenantActor, id: string): Promise<Vault>;
  disable(actor: TenantActor, id: string): Promise<Vault>;
  /**
   * The row stays with state 'deleted'; its keys are not found afterwards. A TDE vault with live
   * master keys: 'conflict'.
   */
  delete(actor: TenantActor, id: string): Promise<Vault>;
  /**
   * 'conflict' when another live vault has the name, and for a TDE vault, which is renamed with its
   * group. Under a rule, whatever actions it names, others must agree: `ApprovalNeeded`.
   */
  rename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<Vault>;
  planRename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<DryRun>;
  /** How often its keys are to be rotated. */
  setProfile(actor: TenantActor, id: string, profile: RotationProfile): Promise<Vault>;
  planDelete(actor: TenantActor, id: string): Promise<DryRun>;
}
