// What is asked for and is under a rule: it waits, unless the requester's own request was approved,
// and is carried out then.

import { command } from '../../base/command-line.ts';
import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { serviceActor, type TenantActor } from '../../domain/actor.ts';
import { type Approval, type GovernedKind, missingApprovals, missingFor } from '../../domain/approval.ts';
import { mayApprove } from '../../domain/dual-control.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { listIdentities, personOf } from '../access/identities.ts';
import type { ApprovalRequests } from './approval-requests.ts';
import {
  type CarriedOut,
  fingerprintOf,
  type GovernedOperation,
  isAsAsked,
  type Parameters,
  rulesOf,
  shownOf,
} from './governed-operation.ts';

type Submitted<R> = { readonly done: CarriedOut<R> } | { readonly waits: Approval };

export const createSubmit =
  (
    { end, standing, openFor, audit }: ApprovalRequests,
    { clock, expireMs }: { readonly clock: Ports['clock']; readonly expireMs: number },
  ) =>
  async <P extends Parameters, R, B>(
    tx: Repositories,
    kind: GovernedKind,
    operation: GovernedOperation<P, R, B>,
    actor: TenantActor,
    parameters: P,
    brought: B,
  ): Promise<Submitted<R>> => {
    const plan = await operation.plan(tx, actor.tenantId, parameters, actor.id);
    const rules = rulesOf(kind, plan);
    if (rules.length === 0) return { done: await operation.carryOut(tx, actor, parameters, brought) };
    const fingerprint = fingerprintOf(rules, parameters, plan);
    const now = clock.now();
    const open = await openFor(tx, plan.tenantId, kind, plan.subject.id);
    if (open !== undefined) {
      const service = serviceActor(actor.requestId);
      if (open.expiresAt <= now) await end(tx, service, open, 'expired');
      else if (open.requestedBy.id !== actor.id)
        throw new ServiceError('conflict', `${open.requestedBy.name} has already requested this`, {
          hint: `run ${command`dke approval show ${open.id}`}; the requester can withdraw it`,
        });
      else if (!isAsAsked(open, plan, parameters)) await end(tx, service, open, 'outdated');
      else if (open.state === 'pending') return { waits: open };
      else {
        const ids = await standing(tx, open);
        if (open.rules.some((rule) => missingFor(rule, ids) > 0)) await end(tx, service, open, 'outdated');
        else {
          const done = await operation.carryOut(tx, actor, parameters, brought);
          await end(tx, actor, open, 'completed', { approvers: open.decisions.map(({ by }) => by.name) });
          return { done };
        }
      }
    }
    // The eligible approvers are fixed now: a role that is given later does not count for this
    // request.
    const person = await personOf(tx, actor.id);
    const all = await listIdentities(tx, 'approvals:decide', plan.tenantId, now);
    const able = all.filter(({ personId, isEnrolled }) => isEnrolled && personId !== person);
    const asked = {
      id: newId(now),
      tenantId: plan.tenantId,
      kind,
      subject: plan.subject,
      parameters,
      impact: shownOf(plan),
      rules: rules.map((rule) => ({
        ...rule,
        approvers: able.filter(({ id }) => mayApprove(rule, id)).map(({ id }) => id),
      })),
      fingerprint,
      state: 'pending',
      requestedBy: { id: actor.id, name: actor.name },
      requestedAt: now,
      expiresAt: now + expireMs,
      endedAt: null,
      decisions: [],
      integrity: 'ok',
    } as const;
    const approval: Approval = { ...asked, missing: missingApprovals(asked) };
    await tx.approvals.insert(approval);
    await audit(tx, actor, 'approval.requested', approval, {
      vaults: rules.map(({ vaultName }) => vaultName),
      required: approval.missing,
      expiresAt: toRfc3339(approval.expiresAt),
    });
    return { waits: approval };
  };
