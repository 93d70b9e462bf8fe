// Renames a vault. Keys are created by the name of their vault, and approvers know it by its name:
// under dual control, others must agree to another name as to another rule.

import { ServiceError } from '../../base/service-error.ts';
import type { Sound, Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findVault } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { renameVaultIn, requireNewVaultName } from '../shared/vault-names.ts';
import type { VaultOperations } from './vaults-operations.ts';

const findRenameable = async (
  from: Repositories,
  tenantId: string,
  id: string,
  newName: string,
): Promise<Sound<Vault>> => {
  const vault = await findVault(from, tenantId, id);
  if (vault.name !== newName && vault.kind === 'tde')
    throw new ServiceError('conflict', 'the vault belongs to a TDE group, whose name it has', {
      hint: 'rename the group: its vault is renamed with it',
    });
  return vault;
};

export const renameVault = (
  { directory }: Pick<Ports, 'directory'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<VaultOperations, 'rename' | 'planRename'> => {
  const governed = withApproval('vault.rename', {
    permission: 'vaults:manage',
    plan: async (from, tenantId, { id, newName }: { readonly id: string; readonly newName: string }) => {
      const vault = await findRenameable(from, tenantId, id, newName);
      const isSo = vault.name === newName;
      if (!isSo) await requireNewVaultName(from, vault, newName);
      return {
        tenantId: vault.tenantId,
        subject: { kind: 'vault', id, name: vault.name },
        vaults: isSo ? [] : [vault],
        impact: { newName },
        state: null,
      };
    },
    carryOut: async (tx, actor, { id, newName }) => {
      const before = await findRenameable(tx, actor.tenantId, id, newName);
      return {
        answer: before.name === newName ? before : await renameVaultIn(tx, actor, before, newName),
        afterCommit: () => directory.renew({ vaults: [id] }),
      };
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
