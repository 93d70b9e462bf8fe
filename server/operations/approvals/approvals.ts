// Dual control: what a vault's rule governs is not done at once but waits until m of n others have
// agreed, and is then carried out by the service, in the transaction of the last agreement.
//
// Who may agree: an identity that had `approvals:decide` when the request was made and still has
// it, that the rule admits, and that is not the requester; each once. One rejection ends the
// request.

import { ServiceError } from '../../base/service-error.ts';
import { serviceActor, type TenantActor } from '../../domain/actor.ts';
import { type Approval, ApprovalNeeded, type GovernedKind, type Identity } from '../../domain/approval.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { createApprovalRequests, isOver, missing } from './approval-requests.ts';
import type { ListedApproval } from './approvals-operations.ts';
import { ableToDecide, createDecide, whyNot } from './decide-request.ts';
import {
  type Approvals,
  type GovernedOperation,
  type Parameters,
  rulesOf,
  shownOf,
  type WithApproval,
} from './governed-operation.ts';
import { createSubmit } from './submit-request.ts';

export const createApprovals = (
  { store, clock, deadlines, usage }: Pick<Ports, 'store' | 'clock' | 'deadlines' | 'usage'>,
  limits: { readonly expireMs: number },
): Approvals => {
  const registry = new Map<GovernedKind, GovernedOperation<Parameters, unknown>>();
  const operationOf = (kind: GovernedKind): GovernedOperation<Parameters, unknown> => {
    const found = registry.get(kind);
    if (found === undefined) throw new ServiceError('unsupported', `this service does not support ${kind}`);
    return found;
  };

  const requests = createApprovalRequests(clock, operationOf);
  const { load, end } = requests;
  const submit = createSubmit(requests, { clock, ...limits });
  const decide = createDecide(requests, { clock, operationOf });
  const settle =
    (decision: 'approve' | 'reject') =>
    async (actor: TenantActor, id: string, comment: string | null): Promise<Approval> => {
      await usage.flush(false);
      const verdict = await store.write((tx) => decide(tx, actor, id, decision, comment));
      if (verdict.refusal !== undefined) throw verdict.refusal;
      await verdict.afterCommit?.();
      return verdict.approval;
    };

  const isOpen = ({ state, integrity, expiresAt }: Approval): boolean =>
    state === 'pending' && integrity === 'ok' && expiresAt > clock.now();
  /** A row that does not say who a person is decides nothing: then nothing is offered. */
  const offered = async <T>(approval: Approval, nothing: T, ask: (now: number) => Promise<T>): Promise<T> => {
    if (!isOpen(approval)) return nothing;
    try {
      return await ask(clock.now());
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'key-tampered') return nothing;
      throw error;
    }
  };
  const mayDecide = (actor: TenantActor, approval: Approval): Promise<boolean> =>
    offered(approval, false, async (now) => (await whyNot(store.read, actor, approval, now)) === null);

  return {
    withApproval: <P extends Parameters, R, B = undefined>(
      kind: GovernedKind,
      operation: GovernedOperation<P, R, B>,
    ): WithApproval<P, R, B> => {
      registry.set(kind, operation as unknown as GovernedOperation<Parameters, unknown>);
      return {
        run: async (actor, parameters, ...brought) => {
          // What is shown to approvers, and recorded, includes the uses of the last seconds.
          await usage.flush(false);
          const submitted = await store.write((tx) => submit(tx, kind, operation, actor, parameters, brought[0] as B));
          if ('waits' in submitted) throw new ApprovalNeeded(submitted.waits);
          await submitted.done.afterCommit();
          return submitted.done.answer;
        },
        plan: async ({ tenantId, id }, parameters) => {
          await usage.flush(false);
          const plan = await operation.plan(store.read, tenantId, parameters, id);
          return { impact: shownOf(plan), rules: rulesOf(kind, plan) };
        },
      };
    },

    operations: {
      list: async (actor, query) => {
        const page = await pageOf(query, (window) => store.read.approvals.list(actor.reach, query, window), byId);
        const items: ListedApproval[] = [];
        for (const approval of page.items) items.push({ ...approval, mayDecide: await mayDecide(actor, approval) });
        return { ...page, items };
      },
      get: async (actor, id) => {
        const approval = await store.read.approvals.get(actor.reach, id);
        if (approval === undefined) throw missing();
        return {
          ...approval,
          ...(await requests.seenNow(store.read, approval)),
          mayDecide: await mayDecide(actor, approval),
          able: await offered<readonly Identity[]>(approval, [], (now) => ableToDecide(store.read, approval, now)),
        };
      },
      approve: settle('approve'),
      reject: settle('reject'),
      withdraw: (actor, id) =>
        store.write(async (tx) => {
          // A request of the platform is in no tenant that its requester could name.
          const isOwn = (await tx.approvals.get(everyTenant, id))?.requestedBy.id === actor.id;
          const approval = await load(tx, isOwn ? everyTenant : actor.reach, id);
          if (approval.requestedBy.id !== actor.id)
            throw new ServiceError('forbidden', 'only the requester can withdraw a request', {
              hint: 'an approver can reject it: dke approval reject',
            });
          if (approval.endedAt !== null) throw isOver(approval);
          return end(tx, actor, approval, 'withdrawn');
        }),
    },

    expire: async () => {
      const now = await deadlines.now();
      const due = (await store.read.approvals.listOpen()).filter(
        ({ expiresAt, integrity }) => expiresAt <= now && integrity === 'ok',
      );
      for (const { id } of due)
        await store.write(async (tx) => {
          const approval = await load(tx, everyTenant, id);
          if (approval.endedAt === null) await end(tx, serviceActor('approvals'), approval, 'expired');
        });
    },
  };
};
