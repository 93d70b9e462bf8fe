// Handlers of vaults.

import type { Operations } from '../../../operations/index.ts';
import { representPage, representVault } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const vaultsHandlers = ({ vaults }: Operations): Handlers['vaults'] => ({
  create: async ({ actor, body }) => {
    const vault = await vaults.create(actor, body);
    return { id: vault.id, answer: representVault(vault) };
  },
  list: async ({ actor, query }) => representPage(await vaults.list(actor, query), representVault),
  get: async ({ actor, path }) => representVault(await vaults.get(actor, path.id)),
  enable: async ({ actor, path }) => representVault(await vaults.enable(actor, path.id)),
  disable: async ({ actor, path }) => representVault(await vaults.disable(actor, path.id)),
  delete: async ({ actor, path }) => representVault(await vaults.delete(actor, path.id)),
});
