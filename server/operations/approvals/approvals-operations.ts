// What can be done with approvals, and with the dual control rules that ask for them.

import type { TenantActor } from '../../domain/actor.ts';
import type { Approval, ApprovalRule, ApprovalState, Identity } from '../../domain/approval.ts';
import type { SubjectKind } from '../../domain/audit-event.ts';
import type { DualControlRule } from '../../domain/dual-control.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { Vault } from '../../domain/vault.ts';

export interface ApprovalFilter extends PageRequest {
  readonly state?: ApprovalState | undefined;
  readonly subjectId?: string | undefined;
}

/** An approval request, as one caller sees it. */
export interface ListedApproval extends Approval {
  /** Whether the caller can decide it now; false once it has ended. */
  readonly mayDecide: boolean;
}

/** A name that a thing had, with the one that it has. */
export interface FormerName {
  readonly kind: SubjectKind;
  readonly id: string;
  readonly name: string;
  readonly formerName: string;
  /** When it was renamed, and by whom. */
  readonly until: number;
  readonly by: Identity;
}

export interface ShownApproval extends ListedApproval {
  /**
   * Former names of the last 90 days of what the request is about: its subject, the vaults of its
   * rules and the other things that it concerns. Empty once it has ended.
   */
  readonly formerNames: readonly FormerName[];
  /** How many former names are left out, at least. */
  readonly formerNamesOmitted: number;
  /**
   * Who can decide it now: enrolled people that are not the requester; empty once it is decided.
   */
  readonly able: readonly Identity[];
  /**
   * What would be done now, where that is not what was asked for: an approval would outdate the
   * request. Null: it is, or has ended.
   */
  readonly changed: Approval['impact'] | null;
}

/**
 * Requests that wait for approval by others (dual control). approvals.ts explains how an operation
 * comes under it.
 */
export interface ApprovalOperations {
  /** Newest first. */
  list(actor: TenantActor, query: ApprovalFilter): Promise<Page<ListedApproval>>;
  /** With what has changed since the request was made. */
  get(actor: TenantActor, id: string): Promise<ShownApproval>;
  /**
   * The last agreement carries out the operation. 'forbidden' for the requester, and for whom the
   * rule does not admit.
   */
  approve(actor: TenantActor, id: string, comment: string | null): Promise<Approval>;
  /** Ends it. */
  reject(actor: TenantActor, id: string, comment: string | null): Promise<Approval>;
  /** Withdraws a request. 'forbidden' for every caller but the requester. */
  withdraw(actor: TenantActor, id: string): Promise<Approval>;
}

export interface DryRun {
  readonly impact: Approval['impact'];
  /** Empty: it would be done at once. */
  readonly rules: readonly ApprovalRule[];
}

export interface VaultDualControl {
  readonly vault: Vault;
  /** Who could agree now. */
  readonly approvers: readonly Identity[];
}

/** Without `databases`: what is usual under a rule about these actions. */
export type WantedRule = Omit<DualControlRule, 'databases'> & {
  readonly databases?: DualControlRule['databases'] | undefined;
};

export interface DualControlOperations {
  get(actor: TenantActor, vaultId: string): Promise<VaultDualControl>;
  /**
   * Null takes the rule away. A weaker rule needs the agreement that the present one asks for:
   * `ApprovalNeeded`.
   */
  change(actor: TenantActor, vaultId: string, rule: WantedRule | null): Promise<VaultDualControl>;
  planChange(actor: TenantActor, vaultId: string, rule: WantedRule | null): Promise<DryRun>;
}
