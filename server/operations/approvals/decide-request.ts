// The decision of an approver. The last one that is required carries the operation out, in its own transaction.

import { ServiceError } from '../../base/errors.ts';
import { serviceActor, type TenantActor } from '../../domain/actor.ts';
import { type Approval, type GovernedKind, missingApprovals, missingFor } from '../../domain/approval.ts';
import { mayApprove } from '../../domain/dual-control.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { findIdentity, personOf, wasThereBefore } from '../access/identities.ts';
import { type ApprovalRequests, isOver } from './approval-requests.ts';
import type { GovernedOperation, Parameters } from './governed-operation.ts';

/** What a unit of work that has changed something still has to say. */
type Verdict = { readonly approval: Approval; readonly afterCommit?: () => Promise<void>; readonly refusal?: Error };

export const createDecide =
  (
    { load, end, currentPlan, audit, standing, requesterOf }: ApprovalRequests,
    {
      clock,
      operationOf,
    }: {
      readonly clock: Ports['clock'];
      readonly operationOf: (kind: GovernedKind) => GovernedOperation<Parameters, unknown>;
    },
  ) =>
  async (
    tx: Repositories,
    actor: TenantActor,
    id: string,
    decision: 'approve' | 'reject',
    comment: string | null,
  ): Promise<Verdict> => {
    const before = await load(tx, actor.reach, id);
    if (before.state !== 'pending') throw isOver(before);
    // Of a deleted tenant nothing is decided but how it ends.
    const stopped = before.kind === 'tenant.purge' ? null : (await tx.tenants.get(before.tenantId))?.state;
    if (stopped === 'deleted' || stopped === 'purged')
      throw new ServiceError('conflict', `the tenant is ${stopped}: nothing in it can be changed`, {
        hint: 'restore it first',
      });
    const now = clock.now();
    const service = serviceActor(actor.requestId);
    if (before.expiresAt <= now) {
      const approval = await end(tx, service, before, 'expired');
      return { approval, refusal: isOver(approval) };
    }
    const person = await personOf(tx, actor.id);
    if (person === (await personOf(tx, before.requestedBy.id)))
      throw new ServiceError('forbidden', 'you cannot decide your own request', {
        hint: decision === 'reject' ? 'withdraw it instead: dke approval withdraw' : 'another approver must approve it',
      });
    if (!before.rules.some((rule) => mayApprove(rule, actor.id)))
      throw new ServiceError('forbidden', 'you were not an approver for this vault when the request was made', {
        hint: 'dke vault dual-control show lists the approvers; the requester can withdraw the request and repeat it',
      });
    const identity = await findIdentity(tx, actor.id, now);
    if (identity === undefined || !(await wasThereBefore(tx, identity, before)))
      throw new ServiceError('forbidden', 'you became an approver, or got a new password, after the request was made', {
        hint: 'the requester can withdraw it and repeat it',
      });
    for (const { by } of before.decisions)
      if (person === (await personOf(tx, by.id)))
        throw new ServiceError('conflict', 'you have already approved this request: other approvers are required', {
          hint: 'a user and the tokens that this user created are one person',
        });
    const by = { id: actor.id, name: actor.name };
    const decisions = [...before.decisions, { by, decision, at: now, comment }];
    const decided: Approval = { ...before, decisions, missing: missingApprovals({ ...before, decisions }) };
    if (decision === 'reject') return { approval: await end(tx, actor, decided, 'rejected', { comment }) };
    if ((await currentPlan(tx, before)) === undefined) {
      const approval = await end(tx, service, before, 'outdated');
      return {
        approval,
        refusal: new ServiceError('conflict', 'the subject of the request has changed: nothing was done', {
          hint: 'repeat the request',
        }),
      };
    }
    await audit(tx, actor, 'approval.approved', decided, { comment, missing: decided.missing });
    const ids = await standing(tx, decided);
    if (decided.rules.some((rule) => missingFor(rule, ids) > 0)) {
      await tx.approvals.update(decided);
      return { approval: decided };
    }
    const operation = operationOf(decided.kind);
    if (operation.by === 'requester') {
      const approval: Approval = { ...decided, state: 'approved' };
      await tx.approvals.update(approval);
      return { approval };
    }
    const requester = await requesterOf(tx, decided, actor.requestId);
    if (requester === undefined) {
      const approval = await end(tx, service, decided, 'outdated');
      return {
        approval,
        refusal: new ServiceError('conflict', 'the requester no longer has the permission: nothing was done'),
      };
    }
    const { afterCommit } = await operation.carryOut(tx, requester, decided.parameters, undefined);
    const approvers = decided.decisions.map(({ by: { name } }) => name);
    return { approval: await end(tx, service, decided, 'completed', { approvers }), afterCommit };
  };
