// An approval request in the store: read, ended, and compared with what it would do now.

import { ServiceError } from '../../base/service-error.ts';
import { isAllowed } from '../../domain/access.ts';
import { type Actor, inTenant, type TenantActor } from '../../domain/actor.ts';
import { type Approval, approversOf, type GovernedKind } from '../../domain/approval.ts';
import type { AuditKind } from '../../domain/audit-event.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { findIdentity } from '../access/identities.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ShownApproval } from './approvals-operations.ts';
import { formerNamesOf } from './former-names.ts';
import {
  type GovernedOperation,
  isAsAsked,
  type Named,
  type Parameters,
  type Plan,
  shownOf,
  shownThings,
} from './governed-operation.ts';

type Ended = Exclude<Approval['state'], 'pending' | 'approved'>;

const auditKindOf = {
  completed: 'approval.completed',
  rejected: 'approval.rejected',
  withdrawn: 'approval.withdrawn',
  expired: 'approval.expired',
  outdated: 'approval.outdated',
} as const satisfies Record<Ended, AuditKind>;

const endings: ReadonlySet<AuditKind> = new Set(Object.values(auditKindOf));

const describe = ({ kind, subject, requestedBy }: Approval) => ({
  operation: kind,
  subjectKind: subject.kind,
  subjectId: subject.id,
  name: subject.name,
  requestedBy: requestedBy.name,
});

export const missing = (): ServiceError => new ServiceError('not-found', 'approval request not found');

export const isOver = ({ state }: Approval): ServiceError =>
  new ServiceError('conflict', `the approval request has ended: ${state}`);

/**
 * Before a request is decided, used or ended. That it has ended is in its row, and in the audit log
 * since the same commit: an older row that was put back opens nothing a second time, also on a node
 * that has never read the newer one. Who removes the record as well breaks the log.
 */
const requireOpen = async ({ audit: log }: Pick<Repositories, 'audit'>, { id }: Approval): Promise<void> => {
  const mostInPage = 100;
  for (let after: string | undefined; ; ) {
    const window = { ...(after === undefined ? {} : { after }), limit: mostInPage };
    const page = await log.list(everyTenant, { subjectId: id, order: 'newest' }, window);
    if (page.some(({ kind }) => endings.has(kind)))
      throw new ServiceError('key-tampered', `the approval request ${id} has ended: an older row was put back`, {
        hint: 'repeat the request; compare the database with a backup: dke verify names what differs',
      });
    const last = page.at(-1);
    if (page.length < mostInPage || last === undefined) return;
    after = String(last.sequence);
  }
};

export type ApprovalRequests = ReturnType<typeof createApprovalRequests>;

/** `operationOf`: what a request would carry out. */
export const createApprovalRequests = (
  clock: Ports['clock'],
  operationOf: (kind: GovernedKind) => GovernedOperation<Parameters, unknown>,
) => {
  const audit = (tx: Repositories, actor: Actor, kind: AuditKind, approval: Approval, more: object = {}) =>
    recordEvent(tx, kind, actor, about('approval', approval), { ...describe(approval), ...more });

  const end = async (
    tx: Repositories,
    actor: Actor,
    approval: Approval,
    state: Ended,
    more: object = {},
  ): Promise<Approval> => {
    const after: Approval = { ...approval, state, endedAt: clock.now() };
    await tx.approvals.update(after);
    await audit(tx, actor, auditKindOf[state], after, more);
    return after;
  };

  /**
   * What would be done now; undefined when it is no longer what the request was about, or not
   * possible.
   */
  const currentPlan = async (tx: Repositories, approval: Approval): Promise<Plan | undefined> => {
    const operation = operationOf(approval.kind);
    try {
      const plan = await operation.plan(tx, approval.tenantId, approval.parameters, approval.requestedBy.id);
      return isAsAsked(approval, plan) ? plan : undefined;
    } catch (error) {
      if (error instanceof ServiceError && error.code !== 'unavailable' && error.code !== 'key-tampered')
        return undefined;
      throw error;
    }
  };

  /**
   * What approvers see: the marks and names of now, former names, and what was done since.
   * `changed`: the present impact, where it is another one; empty where it is no longer possible.
   */
  const seenNow = async (
    from: Repositories,
    approval: Approval,
  ): Promise<Pick<ShownApproval, 'impact' | 'changed' | 'formerNames' | 'formerNamesOmitted'>> => {
    const { kind, tenantId, parameters, requestedBy, impact, subject, rules } = approval;
    if (approval.endedAt !== null || approval.integrity !== 'ok')
      return { impact, changed: null, formerNames: [], formerNamesOmitted: 0 };
    const vaults = rules.map(({ vaultId, vaultName }): Named => ({ kind: 'vault', id: vaultId, name: vaultName }));
    const namesBefore = (...now: readonly Named[]) => formerNamesOf(from, [subject, ...vaults, ...now], clock.now());
    try {
      const plan = await operationOf(kind).plan(from, tenantId, parameters, requestedBy.id);
      const ruled = plan.vaults.map(({ id, name }): Named => ({ kind: 'vault', id, name }));
      const former = await namesBefore(...ruled, plan.subject, ...shownThings(plan));
      return isAsAsked(approval, plan)
        ? { impact: shownOf(plan), changed: null, ...former }
        : { impact, changed: { name: plan.subject.name, ...shownOf(plan) }, ...former };
    } catch (error) {
      if (error instanceof ServiceError && error.code !== 'unavailable')
        return { impact, changed: {}, ...(await namesBefore()) };
      throw error;
    }
  };

  const load = async (
    from: Pick<Repositories, 'approvals' | 'audit'>,
    tenant: TenantScope,
    id: string,
  ): Promise<Approval> => {
    const approval = await from.approvals.get(tenant, id);
    if (approval === undefined) throw missing();
    if (approval.integrity !== 'ok')
      throw new ServiceError('key-tampered', 'the stored approval request was changed from outside', {
        hint: 'repeat the request',
      });
    if (approval.endedAt === null) await requireOpen(from, approval);
    return approval;
  };

  /** Ids of the approvers who still have the right to approve: only their approvals count. */
  const standing = async (tx: Repositories, approval: Approval): Promise<readonly string[]> => {
    const ids: string[] = [];
    for (const id of approversOf(approval)) {
      const identity = await findIdentity(tx, id, clock.now());
      if (identity !== undefined && isAllowed(identity.grants, 'approvals:decide', approval.tenantId, null))
        ids.push(id);
    }
    return ids;
  };

  /** The requester, as long as they may ask for it. */
  const requesterOf = async (
    tx: Repositories,
    approval: Approval,
    requestId: string,
  ): Promise<TenantActor | undefined> => {
    const identity = await findIdentity(tx, approval.requestedBy.id, clock.now());
    const { permission } = operationOf(approval.kind);
    if (identity === undefined || !isAllowed(identity.grants, permission, approval.tenantId, null)) return undefined;
    const { kind, id, name } = identity;
    return inTenant({ kind, id, name, requestId, peer: null }, approval.tenantId);
  };

  /** One that waits already, or is approved, for the same subject. */
  const openFor = async (
    tx: Repositories,
    tenantId: string,
    kind: GovernedKind,
    subjectId: string,
  ): Promise<Approval | undefined> => {
    for (const state of ['pending', 'approved'] as const) {
      const found = await tx.approvals.list(tenantId, { state, subjectId }, { limit: 100 });
      const same = found.find((each) => each.kind === kind && each.integrity === 'ok');
      if (same === undefined) continue;
      await requireOpen(tx, same);
      return same;
    }
    return undefined;
  };

  return { audit, end, load, currentPlan, seenNow, standing, requesterOf, openFor };
};
