// An approval request: what would be done, by whose wish, under which rules, and who has agreed.
// Terminal in every state but `pending`.

import { Waiting } from '../base/waits-for-approval.ts';
import type { AuditValue, SubjectKind } from './audit-event.ts';
import { type DualControlRule, type GovernedAction, mayApprove } from './dual-control.ts';
import type { Integrity } from './vault.ts';

/** What can wait for approval. */
export const governedKinds = {
  'master-key.destroy': 'destroy',
  'key.delete': 'destroy',
  'vault.delete': 'destroy',
  /**
   * Out of a vault under a rule into one that is under a weaker one: for the keys it is a change of
   * the rule.
   */
  'application.move': 'rule',
  'dual-control.change': 'rule',
  /**
   * Under another name, the vault is not the one that people put keys in, and that approvers know:
   * a change like one of the rule.
   */
  'vault.rename': 'rule',
  /** Renames its vault. */
  'group.rename': 'rule',
  'snapshot.export': 'export',
  /** Who has the other half of it has every key of the snapshots that are made from then on. */
  'recovery-key.register': 'export',
  'snapshot.restore': 'restore',
  /**
   * Everything in it stops, and is purged when its retention ends: this is the action that is
   * approved.
   */
  'tenant.delete': 'destroy',
  /** Before its retention ends. */
  'tenant.purge': 'destroy',
} as const satisfies Record<string, GovernedAction | 'rule'>;
export type GovernedKind = keyof typeof governedKinds;
export const governedKindNames = Object.keys(governedKinds) as GovernedKind[];

/**
 * `approved`: what the requester carries out (an export goes to the requester), once, before the
 * request expires. `outdated`: what it was about has changed, so that the approvals do not cover
 * what would be done now.
 */
export const approvalStates = [
  'pending',
  'approved',
  'completed',
  'rejected',
  'withdrawn',
  'expired',
  'outdated',
] as const;
export type ApprovalState = (typeof approvalStates)[number];

export interface Identity {
  readonly id: string;
  readonly name: string;
}

export interface ApprovalDecision {
  readonly by: Identity;
  readonly decision: 'approve' | 'reject';
  readonly at: number;
  readonly comment: string | null;
}

/**
 * The rule of a vault as it was when the request was created, with the people who could approve it
 * at that time. The service's own rule has the service's id instead of a vault's, and says what it
 * is about.
 */
export type ApprovalRule = Pick<DualControlRule, 'required' | 'approvers'> & {
  readonly vaultId: string;
  readonly vaultName: string;
};

export interface Approval {
  readonly id: string;
  readonly tenantId: string;
  readonly kind: GovernedKind;
  readonly subject: { readonly kind: SubjectKind; readonly id: string; readonly name: string };
  /** What the operation is called with. No secrets. */
  readonly parameters: { readonly [name: string]: AuditValue };
  /** What it would mean, for those who decide. */
  readonly impact: { readonly [name: string]: AuditValue };
  /** Every one of them must be satisfied. */
  readonly rules: readonly ApprovalRule[];
  /** A hash of what the decision rests on: another value means that it has changed. */
  readonly fingerprint: string;
  readonly state: ApprovalState;
  readonly requestedBy: Identity;
  readonly requestedAt: number;
  readonly expiresAt: number;
  /** When it left `pending` (and `approved`). */
  readonly endedAt: number | null;
  readonly decisions: readonly ApprovalDecision[];
  /** How many more must agree. */
  readonly missing: number;
  readonly integrity: Integrity;
}

/** How many more must agree for one rule. `ids`: those who have agreed and still may. */
export const missingFor = (rule: ApprovalRule, ids: readonly string[]): number =>
  Math.max(0, rule.required - new Set(ids.filter((id) => mayApprove(rule, id))).size);

export const approversOf = ({ decisions }: Pick<Approval, 'decisions'>): readonly string[] =>
  decisions.filter(({ decision }) => decision === 'approve').map(({ by }) => by.id);

/** The most that any of its rules lacks. */
export const missingApprovals = (approval: Pick<Approval, 'rules' | 'decisions'>): number =>
  Math.max(0, ...approval.rules.map((rule) => missingFor(rule, approversOf(approval))));

/** The operation was not done: it waits for others to agree. */
export class ApprovalNeeded extends Waiting<Approval> {}
