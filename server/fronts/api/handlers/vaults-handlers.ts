// Handlers of vaults.

import type { Operations, VaultDualControl } from '../../../operations/index.ts';
import { representPage, representVault } from '../represent.ts';
import type { Handlers } from './handler.ts';

const represent = ({ vault, approvers }: VaultDualControl) => ({
  vaultId: vault.id,
  rule: vault.dualControl,
  approvers,
});

export const vaultsHandlers = ({ vaults, dualControl }: Operations): Handlers['vaults'] => ({
  create: async ({ actor, body }) => {
    const vault = await vaults.create(actor, body);
    return { id: vault.id, answer: representVault(vault) };
  },
  list: async ({ actor, query }) => representPage(await vaults.list(actor, query), representVault),
  get: async ({ actor, path }) => representVault(await vaults.get(actor, path.id)),
  enable: async ({ actor, path }) => representVault(await vaults.enable(actor, path.id)),
  disable: async ({ actor, path }) => representVault(await vaults.disable(actor, path.id)),
  delete: async ({ actor, path, query }) => {
    if (query.dryRun !== true) return representVault(await vaults.delete(actor, path.id));
    return { ...representVault(await vaults.get(actor, path.id)), plan: await vaults.planDelete(actor, path.id) };
  },
  rename: async ({ actor, path, query, body }) => {
    if (query.dryRun !== true) return representVault(await vaults.rename(actor, path.id, body));
    const plan = await vaults.planRename(actor, path.id, body);
    return { ...representVault(await vaults.get(actor, path.id)), plan };
  },
  setProfile: async ({ actor, path, body }) => representVault(await vaults.setProfile(actor, path.id, body.profile)),
  dualControl: async ({ actor, path }) => represent(await dualControl.get(actor, path.id)),
  setDualControl: async ({ actor, path, query, body }) => {
    if (query.dryRun !== true) return represent(await dualControl.change(actor, path.id, body));
    return {
      ...represent(await dualControl.get(actor, path.id)),
      plan: await dualControl.planChange(actor, path.id, body),
    };
  },
  removeDualControl: async ({ actor, path, query }) => {
    if (query.dryRun !== true) return represent(await dualControl.change(actor, path.id, null));
    return {
      ...represent(await dualControl.get(actor, path.id)),
      plan: await dualControl.planChange(actor, path.id, null),
    };
  },
});
