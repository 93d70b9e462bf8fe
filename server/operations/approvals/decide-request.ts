// The decision of an approver. The last one that is required carries the operation out, in its own
// transaction.

import { ServiceError } from '../../base/service-error.ts';
import { isAllowed } from '../../domain/access.ts';
import { serviceActor, type TenantActor } from '../../domain/actor.ts';
import {
  type Approval,
  type GovernedKind,
  type Identity,
  missingApprovals,
  missingFor,
} from '../../domain/approval.ts';
import { mayApprove } from '../../domain/dual-control.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { findIdentity, listIdentities, personOf, wasThereBefore } from '../access/identities.ts';
import { type ApprovalRequests, isOver } from './approval-requests.ts';
import type { GovernedOperation, Parameters } from './governed-operation.ts';

/** What a unit of work that has changed something still has to say. */
type Verdict = { readonly approval: Approval; readonly afterCommit?: () => Promise<void>; readonly refusal?: Error };

/**
 * Why a person cannot decide a request; `isOwn`: because it is theirs, or a token's that they made.
 */
interface Refusal {
  readonly error: ServiceError;
  readonly isOwn: boolean;
}
const refused = (code: 'forbidden' | 'conflict', text: string, hint: string): Refusal => ({
  error: new ServiceError(code, text, { hint }),
  isOwn: false,
});

const ownRequest = 'you cannot decide your own request';
const withdrawInstead = (): ServiceError =>
  new ServiceError('forbidden', ownRequest, { hint: 'withdraw it instead: dke approval withdraw' });

/**
 * Why an identity cannot decide a request that waits; null: it can. The decision asks this, and so
 * does what shows who can: nothing is offered that would only be refused.
 */
export const whyNot = async (
  from: Repositories,
  { id }: { readonly id: string },
  request: Approval,
  now: number,
): Promise<Refusal | null> => {
  const person = await personOf(from, id);
  if (person === (await personOf(from, request.requestedBy.id)))
    return { ...refused('forbidden', ownRequest, 'another approver must approve it'), isOwn: true };
  if (!request.rules.some((rule) => mayApprove(rule, id)))
    return refused(
      'forbidden',
      'you were not an approver for this vault when the request was made',
      'dke vault dual-control show lists the approvers; the requester can withdraw the request and repeat it',
    );
  const identity = await findIdentity(from, id, now);
  const mayNow =
    identity?.isEnrolled === true && isAllowed(identity.grants, 'approvals:decide', request.tenantId, null);
  if (!mayNow || !(await wasThereBefore(from, identity, request)))
    return refused(
      'forbidden',
      'you became an approver, or got a new password, after the request was made',
      'the requester can withdraw it and repeat it',
    );
  for (const { by } of request.decisions)
    if (person === (await personOf(from, by.id)))
      return refused(
        'conflict',
        'you have already approved this request: other approvers are required',
        'a user and the tokens that this user created are one person',
      );
  return null;
};

/** Who can decide it now, by name: those that were asked, and those of them that still may. */
export const ableToDecide = async (
  from: Repositories,
  request: Approval,
  now: number,
): Promise<readonly Identity[]> => {
  const able: Identity[] = [];
  for (const { id, name } of await listIdentities(from, 'approvals:decide', request.tenantId, now))
    if ((await whyNot(from, { id }, request, now)) === null) able.push({ id, name });
  return able;
};

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
    // In a deleted tenant, only a request to purge the tenant can be decided.
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
    const refusal = await whyNot(tx, actor, before, now);
    if (refusal !== null) throw decision === 'reject' && refusal.isOwn ? withdrawInstead() : refusal.error;
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
