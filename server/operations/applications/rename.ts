// Renames a TDE application or a group. Its id, its credentials, its app_id and the label of its
// token stay: databases notice nothing. The vault of a group is renamed with it, unless it is
// deleted.

import { ServiceError } from '../../base/service-error.ts';
import type { TdeApplication, TdeGroup } from '../../domain/tde.ts';
import type { Sound, Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findApplication, findGroup, findVault } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { renameVaultIn, requireNewVaultName, vaultNameOfGroup } from '../shared/vault-names.ts';
import type { ApplicationOperations, TdeGroupOperations } from './applications-operations.ts';

export const renameApplication =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): ApplicationOperations['rename'] =>
  async (actor, id, { name }) => {
    checkName(name);
    const application = await store.write(async (tx): Promise<TdeApplication> => {
      const before = await findApplication(tx, actor.tenantId, id);
      if (before.name === name) return before;
      if ((await tx.applications.findByName(before.tenantId, name)) !== undefined)
        throw new ServiceError('conflict', 'an application with this name already exists', {
          hint: 'choose another name',
        });
      const after: TdeApplication = { ...before, name };
      await tx.applications.update(after);
      await recordEvent(tx, 'application.renamed', actor, about('application', after), { name, from: before.name });
      return after;
    });
    await directory.renew({ applications: [id] });
    return application;
  };

/** The group, and its vault unless that is deleted; throws where they cannot have the name. */
const findRenameable = async (
  from: Repositories,
  tenantId: string,
  id: string,
  newName: string,
): Promise<{ readonly group: TdeGroup; readonly vault: Sound<Vault> | null }> => {
  const group = await findGroup(from, tenantId, id);
  if (group.name === newName) return { group, vault: null };
  if ((await from.groups.findByName(group.tenantId, newName)) !== undefined)
    throw new ServiceError('conflict', 'a group with this name already exists', { hint: 'choose another name' });
  const vault = await findVault(from, group.tenantId, group.vaultId);
  if (vault.state === 'deleted') return { group, vault: null };
  await requireNewVaultName(from, vault, vaultNameOfGroup(newName));
  return { group, vault };
};

/** Approvers know the vault of a group by its name: its dual control governs another one. */
export const renameGroup = (
  { directory }: Pick<Ports, 'directory'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<TdeGroupOperations, 'rename' | 'planRename'> => {
  const governed = withApproval('group.rename', {
    permission: 'applications:manage',
    plan: async (from, tenantId, { id, newName }: { readonly id: string; readonly newName: string }) => {
      const { group, vault } = await findRenameable(from, tenantId, id, newName);
      return {
        tenantId: group.tenantId,
        subject: { kind: 'group', id, name: group.name },
        vaults: vault === null ? [] : [vault],
        impact: { newName },
        state: { vaultId: group.vaultId },
      };
    },
    carryOut: async (tx, actor, { id, newName }) => {
      const { group: before, vault } = await findRenameable(tx, actor.tenantId, id, newName);
      const after: TdeGroup = { ...before, name: newName };
      if (before.name !== newName) {
        if (vault !== null) await renameVaultIn(tx, actor, vault, vaultNameOfGroup(newName));
        await tx.groups.update(after);
        await recordEvent(tx, 'group.renamed', actor, about('group', after), { name: newName, from: before.name });
      }
      return { answer: after, afterCommit: () => directory.renew({ vaults: [after.vaultId] }) };
    },
  });
  const parametersFor = (id: string, { name }: { readonly name: string }) => {
    checkName(name);
    return { id, newName: name };
  };
  return {
    rename: async (actor, id, input) => governed.run(actor, parametersFor(id, input)),
    planRename: async (actor, id, input) => governed.plan(actor, parametersFor(id, input)),
  };
};
