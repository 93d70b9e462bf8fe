// Dual control: what a vault's rule governs is not done at once but waits until m of n others have agreed, and is then carried out by
// the service, in the transaction of the last agreement.
//
// An operation that can be under a rule is written as a `GovernedOperation`: what it would do, read from what is stored (`plan`), and how it
// is done inside a transaction (`carryOut`). It is offered once, when the service is put together:
//
//     const destroy = approvals.withApproval('master-key.destroy', { permission, plan, carryOut });
//     await destroy.run(actor, { applicationId, keyId });      // does it, or throws ApprovalNeeded
//     await destroy.plan({ applicationId, keyId });            // for ?dryRun=true: impact and rules
//
// - `parameters` are what is kept while the request waits: ids and names, nothing secret, nothing large.
// - `plan` names every vault concerned. The rules of all of them must be satisfied; without any rule `run` carries out at once.
// - `plan().state` is what the decision rests on. When it is another one at an approval, the request is 'outdated' and nothing is done.
// - `carryOut` gets the requester as actor, with the request id of the last approval: records of the audit log that belong together
//   have the same one. It throws like any other unit of work, and then the last approval has not happened either.
//
// What has to be delivered to a person (an export) cannot be done while an approver waits: such an operation says `by: 'requester'`. The request
// becomes 'approved' and stays it until it expires; the requester calls `run` again with the same parameters, and `carryOut` runs in the
// transaction that ends the approval: once. What such a requester brings along that must not be kept while it waits (a key) is given to `run`
// and reaches `carryOut` alone.
//
// Who may agree: an identity that had `approvals:decide` when the request was made and still has it, that the rule admits, and that is not the
// requester; each once. One refusal ends the request.

import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/bytes.ts';
import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { isAllowed, type Permission } from '../../domain/access.ts';
import { type Actor, inTenant, serviceActor, type TenantActor } from '../../domain/actor.ts';
import {
  type Approval,
  ApprovalNeeded,
  type ApprovalRule,
  approversOf,
  type GovernedKind,
  governedKinds,
  missingApprovals,
  missingFor,
} from '../../domain/approval.ts';
import type { AuditKind, AuditValue } from '../../domain/audit-event.ts';
import { mayApprove } from '../../domain/dual-control.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { findIdentity, listIdentities } from '../access/identities.ts';
import { byId, pageOf } from '../shared/paging.ts';
import type { ApprovalOperations, DryRun } from './interface.ts';

export type Parameters = { readonly [name: string]: AuditValue };

export interface Plan {
  readonly tenantId: string;
  readonly subject: Approval['subject'];
  /** Whose keys are concerned; empty where no rule has a say. */
  readonly vaults: readonly Vault[];
  /** Of these the rule itself may become another one: it has its say whatever it names. */
  readonly ruled?: ReadonlySet<string>;
  /** What makes the service itself ask for a second person; null: nothing. */
  readonly second?: string | null;
  readonly impact: Approval['impact'];
  readonly state: AuditValue;
}

export interface CarriedOut<R> {
  readonly answer: R;
  /** Renews what is in memory. */
  readonly afterCommit: () => Promise<void>;
}

export interface GovernedOperation<P extends Parameters, R, B = undefined> {
  /** What the requester needs when it is carried out, too. */
  readonly permission: Permission;
  /** Who carries it out when it is approved; the service when absent. */
  readonly by?: 'requester';
  /** Throws what `carryOut` would throw where the operation is not possible at all. */
  readonly plan: (from: Repositories, tenantId: string, parameters: P) => Promise<Plan>;
  readonly carryOut: (tx: Repositories, actor: TenantActor, parameters: P, brought: B) => Promise<CarriedOut<R>>;
}

export interface WithApproval<P extends Parameters, R, B = undefined> {
  /** Throws `ApprovalNeeded` when it waits. */
  run(actor: TenantActor, parameters: P, ...brought: B extends undefined ? [] : [B]): Promise<R>;
  plan(actor: TenantActor, parameters: P): Promise<DryRun>;
}

export interface Approvals {
  /** Each kind once. */
  withApproval<P extends Parameters, R, B = undefined>(
    kind: GovernedKind,
    operation: GovernedOperation<P, R, B>,
  ): WithApproval<P, R, B>;
  readonly operations: ApprovalOperations;
  /** Ends requests that were not decided in time. */
  expire(): Promise<void>;
}

type Ended = Exclude<Approval['state'], 'pending' | 'approved'>;

const auditKindOf = {
  'carried-out': 'approval.carried-out',
  refused: 'approval.refused',
  withdrawn: 'approval.withdrawn',
  expired: 'approval.expired',
  outdated: 'approval.outdated',
} as const satisfies Record<Ended, AuditKind>;

const describe = ({ kind, subject, requestedBy }: Approval) => ({
  operation: kind,
  subjectKind: subject.kind,
  subjectId: subject.id,
  name: subject.name,
  requestedBy: requestedBy.name,
});

const rulesOf = (kind: GovernedKind, { vaults, ruled, second = null }: Plan): readonly ApprovalRule[] => {
  const action = governedKinds[kind];
  const own = second === null ? [] : [{ vaultId: serviceTenantId, vaultName: second, required: 1, approvers: null }];
  const ofVaults = vaults.flatMap(({ id, name, dualControl, integrity }): readonly ApprovalRule[] => {
    // A rule that was taken out of its row beside the service is still a rule: nothing is done until an operator has checked it.
    if (integrity !== 'ok')
      throw new ServiceError('key-tampered', `the stored vault ${name} was changed from outside`, {
        hint: 'compare the database with a backup; the audit log has an alarm that names the record',
      });
    const governs = action === 'rule' || ruled?.has(id) === true || dualControl?.actions.includes(action);
    if (dualControl === null || !governs) return [];
    return [{ vaultId: id, vaultName: name, required: dualControl.required, approvers: dualControl.approvers }];
  });
  return [...own, ...ofVaults];
};

const fingerprintOf = (rules: readonly ApprovalRule[], parameters: Parameters, { state }: Plan): string =>
  createHash('sha256').update(canonicalJson({ rules, parameters, state })).digest('hex');

const missing = (): ServiceError => new ServiceError('not-found', 'request for approval not found');

const isOver = ({ state }: Approval): ServiceError =>
  new ServiceError('conflict', `the request for approval has ended: ${state}`);

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

  const audit = (tx: Repositories, actor: Actor, kind: AuditKind, approval: Approval, more: object = {}) =>
    tx.audit.append({
      kind,
      actor,
      tenantId: approval.tenantId,
      subject: { kind: 'approval', id: approval.id },
      details: { ...describe(approval), ...more },
    });

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

  /** What would be done now; undefined when it is not what the request was about, or not possible any more. */
  const currentPlan = async (tx: Repositories, approval: Approval): Promise<Plan | undefined> => {
    const operation = operationOf(approval.kind);
    try {
      const plan = await operation.plan(tx, approval.tenantId, approval.parameters);
      const rules = rulesOf(approval.kind, plan);
      return fingerprintOf(rules, approval.parameters, plan) === approval.fingerprint ? plan : undefined;
    } catch (error) {
      if (error instanceof ServiceError && error.code !== 'unavailable' && error.code !== 'key-tampered')
        return undefined;
      throw error;
    }
  };

  const load = async (from: Pick<Repositories, 'approvals'>, tenant: TenantScope, id: string): Promise<Approval> => {
    const approval = await from.approvals.get(tenant, id);
    if (approval === undefined) throw missing();
    if (approval.integrity !== 'ok')
      throw new ServiceError('key-tampered', 'the stored request for approval was changed from outside', {
        hint: 'repeat the request',
      });
    return approval;
  };

  /** Of those who agreed, who still may. */
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
      if (same !== undefined) return same;
    }
    return undefined;
  };

  type Submitted<R> = { readonly done: CarriedOut<R> } | { readonly waits: Approval };

  const submit = async <P extends Parameters, R, B>(
    tx: Repositories,
    kind: GovernedKind,
    operation: GovernedOperation<P, R, B>,
    actor: TenantActor,
    parameters: P,
    brought: B,
  ): Promise<Submitted<R>> => {
    const plan = await operation.plan(tx, actor.tenantId, parameters);
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
          hint: `run dke approval show ${open.id}; the requester can withdraw it`,
        });
      else if (open.fingerprint !== fingerprint) await end(tx, service, open, 'outdated');
      else if (open.state === 'pending') return { waits: open };
      else {
        const ids = await standing(tx, open);
        if (open.rules.some((rule) => missingFor(rule, ids) > 0)) await end(tx, service, open, 'outdated');
        else {
          const done = await operation.carryOut(tx, actor, parameters, brought);
          await end(tx, actor, open, 'carried-out', { approvers: open.decisions.map(({ by }) => by.name) });
          return { done };
        }
      }
    }
    // The eligible approvers are fixed now: a role that is given later does not count for this request.
    const able = (await listIdentities(tx, 'approvals:decide', plan.tenantId, now)).filter(({ id }) => id !== actor.id);
    const asked = {
      id: newId(now),
      tenantId: plan.tenantId,
      kind,
      subject: plan.subject,
      parameters,
      impact: plan.impact,
      rules: rules.map((rule) => ({
        ...rule,
        approvers: able.filter(({ id }) => mayApprove(rule, id)).map(({ id }) => id),
      })),
      fingerprint,
      state: 'pending',
      requestedBy: { id: actor.id, name: actor.name },
      requestedAt: now,
      expiresAt: now + limits.expireMs,
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

  /** What a unit of work that has changed something still has to say. */
  type Verdict = { readonly approval: Approval; readonly afterCommit?: () => Promise<void>; readonly refusal?: Error };

  const decide = async (
    tx: Repositories,
    actor: TenantActor,
    id: string,
    decision: 'approve' | 'refuse',
    comment: string | null,
  ): Promise<Verdict> => {
    const before = await load(tx, actor.tenantId, id);
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
    if (before.requestedBy.id === actor.id)
      throw new ServiceError('forbidden', 'you cannot decide your own request', {
        hint: decision === 'refuse' ? 'withdraw it instead: dke approval withdraw' : 'another approver must approve it',
      });
    if (!before.rules.some((rule) => mayApprove(rule, actor.id)))
      throw new ServiceError('forbidden', 'you were not an approver for this vault when the request was made', {
        hint: 'dke vault dual-control show lists the approvers; the requester can withdraw the request and repeat it',
      });
    const identity = await findIdentity(tx, actor.id, now);
    if (identity === undefined || identity.since >= before.requestedAt)
      throw new ServiceError('forbidden', 'you became an approver, or got a new password, after the request was made', {
        hint: 'the requester can withdraw it and repeat it',
      });
    if (before.decisions.some(({ by }) => by.id === actor.id))
      throw new ServiceError('conflict', 'you have already approved this request: other approvers are required');
    const by = { id: actor.id, name: actor.name };
    const decisions = [...before.decisions, { by, decision, at: now, comment }];
    const decided: Approval = { ...before, decisions, missing: missingApprovals({ ...before, decisions }) };
    if (decision === 'refuse') return { approval: await end(tx, actor, decided, 'refused', { comment }) };
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
    return { approval: await end(tx, service, decided, 'carried-out', { approvers }), afterCommit };
  };

  const settle =
    (decision: 'approve' | 'refuse') =>
    async (actor: TenantActor, id: string, comment: string | null): Promise<Approval> => {
      await usage.flush(false);
      const verdict = await store.write((tx) => decide(tx, actor, id, decision, comment));
      if (verdict.refusal !== undefined) throw verdict.refusal;
      await verdict.afterCommit?.();
      return verdict.approval;
    };

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
        plan: async ({ tenantId }, parameters) => {
          await usage.flush(false);
          const plan = await operation.plan(store.read, tenantId, parameters);
          return { impact: plan.impact, rules: rulesOf(kind, plan) };
        },
      };
    },

    operations: {
      list: ({ tenantId }, query) =>
        pageOf(query, (window) => store.read.approvals.list(tenantId, query, window), byId),
      get: async ({ tenantId }, id) => {
        const approval = await store.read.approvals.get(tenantId, id);
        if (approval === undefined) throw missing();
        return approval;
      },
      approve: settle('approve'),
      refuse: settle('refuse'),
      withdraw: (actor, id) =>
        store.write(async (tx) => {
          const approval = await load(tx, actor.tenantId, id);
          if (approval.requestedBy.id !== actor.id)
            throw new ServiceError('forbidden', 'only the requester can withdraw a request', {
              hint: 'an approver can reject it: dke approval refuse',
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
