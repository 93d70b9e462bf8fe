// The dual control of a vault: setting, changing, taking away. A change that allows anything that
// was not allowed before needs the agreement that the present rule asks for; one that makes it
// stricter is done at once.

import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import {
  type DualControlRule,
  databasesUnder,
  isWeaker,
  mayApprove,
  mostApprovals,
} from '../../domain/dual-control.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { type ActingIdentity, countPeople, listIdentities, personOf } from '../access/identities.ts';
import { findVault } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { DualControlOperations, VaultDualControl, WantedRule } from './approvals-operations.ts';
import type { Approvals, CarriedOut } from './governed-operation.ts';

/** Rules are written in one way, so that the same rule is the same text. */
const inOrder = (rule: WantedRule): DualControlRule => ({
  required: rule.required,
  approvers: rule.approvers === null ? null : [...new Set(rule.approvers)].sort(),
  actions: [...new Set(rule.actions)].sort(),
  databases: rule.databases ?? databasesUnder(rule.actions),
});

const plain = (rule: DualControlRule | null) =>
  rule === null ? null : { ...rule, approvers: rule.approvers, actions: rule.actions };

export const dualControl = (
  { store, directory, clock }: Pick<Ports, 'store' | 'directory' | 'clock'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): DualControlOperations => {
  const possible = async (
    from: Repositories,
    vault: Vault,
    rule: DualControlRule | null,
  ): Promise<readonly ActingIdentity[]> => {
    const all = await listIdentities(from, 'approvals:decide', vault.tenantId, clock.now());
    return rule === null ? all : all.filter(({ id }) => mayApprove(rule, id));
  };
  const view = async (from: Repositories, vault: Vault): Promise<VaultDualControl> => ({
    vault,
    approvers: (await possible(from, vault, vault.dualControl))
      .filter(({ isEnrolled }) => isEnrolled)
      .map(({ id, name }) => ({ id, name })),
  });

  const check = async (
    from: Repositories,
    actorId: string | null,
    vault: Vault,
    rule: DualControlRule,
  ): Promise<void> => {
    if (!Number.isInteger(rule.required) || rule.required < 1 || rule.required > mostApprovals)
      throw new ServiceError('validation', `a rule requires 1 to ${mostApprovals} approvals`);
    if (rule.actions.length === 0 && rule.databases === 'allowed')
      throw new ServiceError('validation', 'a rule must name an action', { hint: 'name destroy, export or restore' });
    const able = await possible(from, vault, rule);
    const known = new Set(able.map(({ id }) => id));
    const unknown = rule.approvers?.find((id) => !known.has(id));
    if (unknown !== undefined)
      throw new ServiceError('conflict', `${unknown} does not have the permission to approve`, {
        hint: 'first give the role key-approver (for a token: dke token create --role key-approver)',
      });
    const others = countPeople(able, actorId === null ? null : await personOf(from, actorId));
    if (others < rule.required)
      throw new ServiceError(
        'conflict',
        `this rule could never be satisfied: it requires ${rule.required} approvals, and there are ${others} eligible approvers other than the requester`,
        {
          hint: 'first give the role key-approver to more users, or require fewer approvals; a user and the tokens that this user created are one person',
        },
      );
  };

  const change = async (
    tx: Repositories,
    actor: TenantActor,
    vaultId: string,
    rule: DualControlRule | null,
  ): Promise<CarriedOut<VaultDualControl>> => {
    const before = await findVault(tx, actor.tenantId, vaultId);
    if (before.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
    if (rule !== null) await check(tx, actor.id, before, rule);
    const after: Vault = { ...before, dualControl: rule };
    await tx.vaults.update(after);
    await recordEvent(tx, 'dual-control.changed', actor, about('vault', { id: vaultId, tenantId: after.tenantId }), {
      name: after.name,
      before: plain(before.dualControl),
      after: plain(rule),
    });
    return { answer: await view(tx, after), afterCommit: () => directory.renew({ vaults: [vaultId] }) };
  };

  const governed = withApproval('dual-control.change', {
    permission: 'dual-control:manage',
    plan: async (
      from,
      tenantId,
      { vaultId, rule }: { readonly vaultId: string; readonly rule: ReturnType<typeof plain> },
    ) => {
      const vault = await findVault(from, tenantId, vaultId);
      if (vault.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
      if (rule !== null) await check(from, null, vault, rule);
      return {
        tenantId: vault.tenantId,
        subject: { kind: 'vault', id: vaultId, name: vault.name },
        vaults: isWeaker(vault.dualControl, rule) ? [vault] : [],
        impact: { before: plain(vault.dualControl), after: rule },
        state: { rule: plain(vault.dualControl), state: vault.state },
      };
    },
    carryOut: (tx, actor, { vaultId, rule }) => change(tx, actor, vaultId, rule),
  });

  /** The requester is told at once, also in a dry run, what would fail when it is carried out. */
  const parametersFor = async (actor: TenantActor, vaultId: string, wanted: WantedRule | null) => {
    const rule = wanted === null ? null : inOrder(wanted);
    if (rule !== null) await check(store.read, actor.id, await findVault(store.read, actor.tenantId, vaultId), rule);
    return { vaultId, rule };
  };
  return {
    get: async ({ tenantId }, vaultId) => view(store.read, await findVault(store.read, tenantId, vaultId)),
    change: async (actor, vaultId, rule) => governed.run(actor, await parametersFor(actor, vaultId, rule)),
    planChange: async (actor, vaultId, rule) => governed.plan(actor, await parametersFor(actor, vaultId, rule)),
  };
};
