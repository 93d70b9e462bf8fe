// An operation that can be under a rule is written as a `GovernedOperation`: what it would do, read
// from what is stored (`plan`), and how it is done inside a transaction (`carryOut`). It is offered
// once, when the service is put together:
//
//     const destroy = approvals.withApproval('master-key.destroy', { permission, plan, carryOut });
//     await destroy.run(actor, { applicationId, keyId });  // does it, or throws ApprovalNeeded
//     await destroy.plan({ applicationId, keyId });        // for ?dryRun=true: impact and rules
//
// - `parameters` are what is kept while the request waits: ids and names, nothing secret, nothing
//   large.
// - `plan` names every vault concerned. The rules of all of them must be satisfied; without any
//   rule `run` carries out at once.
// - An approval covers what was shown: the subject's name, `plan().impact`, which other things are
//   concerned (`plan().named`) and `plan().state`. When one of them is another one at an approval,
//   the request is 'outdated' and nothing is done. Others are bound by their ids, so that who may
//   rename one of them cannot end the request. Times of use and copies that remain are `marks`:
//   approvers see those of now, and only fewer of what stays usable (`least`) outdate the request.
// - `carryOut` gets the requester as actor, with the request id of the last approval: records of
//   the audit log that belong together have the same one. It throws like any other unit of work,
//   and then the last approval has not happened either.
//
// What has to be delivered to a person (an export) cannot be done while an approver waits: such an
// operation says `by: 'requester'`. The request becomes 'approved' and stays it until it expires;
// the requester calls `run` again with the same parameters, and `carryOut` runs in the transaction
// that ends the approval: once. What such a requester brings along that must not be kept while it
// waits (a key) is given to `run` and reaches only `carryOut`.

import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/bytes.ts';
import { serviceTenantId } from '../../base/ids.ts';
import type { Permission } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { type Approval, type ApprovalRule, type GovernedKind, governedKinds } from '../../domain/approval.ts';
import type { AuditValue } from '../../domain/audit-event.ts';
import type { Sound, Vault } from '../../domain/vault.ts';
import type { Repositories } from '../../ports/store.ts';
import { countPeople, listIdentities, personOf } from '../access/identities.ts';
import type { ApprovalOperations, DryRun } from './approvals-operations.ts';

export type Parameters = { readonly [name: string]: AuditValue };

/** Something else that an operation concerns. */
export type Named = Approval['subject'];

export interface Plan {
  readonly tenantId: string;
  readonly subject: Approval['subject'];
  /** Whose keys are concerned; empty where no rule has a say. */
  readonly vaults: readonly Sound<Vault>[];
  /**
   * Ids of the vaults whose rule the operation may replace: the rule applies whatever actions it
   * names.
   */
  readonly ruled?: ReadonlySet<string>;
  /** What makes the service itself ask for a second person; null: nothing. */
  readonly second?: string | null;
  /**
   * What approvers are shown: numbers, states and what the requester wrote, without names of other
   * things. The request is about this: another one outdates it.
   */
  readonly impact: Approval['impact'];
  /**
   * The other things that it concerns: bound by their ids, shown by their names. Another thing
   * outdates the request, another name does not.
   */
  readonly named?: Readonly<Record<string, Named | readonly Named[]>>;
  /**
   * What they are shown as it is when they look: uses, and copies that remain. Another one outdates
   * nothing.
   */
  readonly marks?: Approval['impact'];
  /**
   * Names of marks: a number below the shown one makes the effect wider, and outdates the request.
   */
  readonly least?: readonly string[];
  /** What else the decision rests on. */
  readonly state: AuditValue;
}

const mostNamed = 100;

const eachOf = <T>(
  named: Plan['named'] = {},
  one: (thing: Named) => T,
  several: (things: readonly Named[]) => readonly T[],
): Readonly<Record<string, T | readonly T[]>> =>
  Object.fromEntries(
    Object.entries(named).map(([what, things]) => [what, 'id' in things ? one(things) : several(things)]),
  );
const nameOf = ({ name }: Named): string => name;
const idOf = ({ id }: Named): string => id;

/** What is shown, and kept with the request. */
export const shownOf = ({ impact, named, marks }: Plan): Approval['impact'] => ({
  ...impact,
  ...eachOf(named, nameOf, (things) => things.map(nameOf).toSorted().slice(0, mostNamed)),
  ...marks,
});

/** Every other thing whose name is shown. */
export const shownThings = ({ named = {} }: Plan): readonly Named[] =>
  Object.values(named).flatMap((things): readonly Named[] => ('id' in things ? [things] : things));

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
  readonly plan: (from: Repositories, tenantId: string, parameters: P, requesterId: string) => Promise<Plan>;
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

/**
 * What asks for a second person as soon as there is one: no setting has to be made when the service
 * gets its second administrator. Null: no one else can approve.
 */
export const secondIfAny = async (
  from: Pick<Repositories, 'tokens' | 'users' | 'audit'>,
  what: string,
  { tenantId, requesterId, now }: { readonly tenantId: string; readonly requesterId: string; readonly now: number },
): Promise<string | null> => {
  const able = await listIdentities(from, 'approvals:decide', tenantId, now);
  return countPeople(able, await personOf(from, requesterId)) > 0 ? what : null;
};

/** The rules that a plan must satisfy. */
export const rulesOf = (kind: GovernedKind, { vaults, ruled, second = null }: Plan): readonly ApprovalRule[] => {
  const action = governedKinds[kind];
  const own = second === null ? [] : [{ vaultId: serviceTenantId, vaultName: second, required: 1, approvers: null }];
  const ofVaults = vaults.flatMap(({ id, name, dualControl }): readonly ApprovalRule[] => {
    const governs = action === 'rule' || ruled?.has(id) === true || dualControl?.actions.includes(action);
    if (dualControl === null || !governs) return [];
    return [{ vaultId: id, vaultName: name, required: dualControl.required, approvers: dualControl.approvers }];
  });
  return [...own, ...ofVaults];
};

/** Whether an operation would do what was asked for, and no more than was shown. */
export const isAsAsked = (
  { kind, fingerprint, parameters: asked, impact: shown }: Approval,
  plan: Plan,
  parameters: Parameters = asked,
): boolean => {
  const { least = [], marks = {} } = plan;
  return (
    fingerprintOf(rulesOf(kind, plan), parameters, plan) === fingerprint &&
    least.every((name) => Number(marks[name] ?? 0) >= Number(shown[name] ?? 0))
  );
};

/** What the decision rests on. The only name in it is that of the subject. */
export const fingerprintOf = (
  rules: readonly ApprovalRule[],
  parameters: Parameters,
  { subject, impact, named, state }: Plan,
): string =>
  createHash('sha256')
    .update(
      canonicalJson({
        rules: rules.map(({ vaultId, required, approvers }) => ({ vaultId, required, approvers })),
        ...{ parameters, subject: { ...subject }, impact, state },
        named: eachOf(named, idOf, (things) => things.map(idOf).toSorted()),
      }),
    )
    .digest('hex');
