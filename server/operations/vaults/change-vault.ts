// Enables, disables or deletes a vault. What is already so stays so, without a record. A
// deleted vault stays deleted, and lists do not show its keys again: under dual control others must
// agree to that.

import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Vault, VaultState } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals, Named } from '../approvals/governed-operation.ts';
import { findKeyUse, lastUse } from '../keys/key-use.ts';
import { findVault } from '../shared/find.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { VaultOperations } from './vaults-operations.ts';

const kinds = {
  enabled: 'vault.enabled',
  disabled: 'vault.disabled',
  deleted: 'vault.deleted',
} as const satisfies Record<VaultState, string>;

const change = async (tx: Repositories, actor: TenantActor, id: string, state: VaultState): Promise<Vault> => {
  const before = await findVault(tx, actor.tenantId, id);
  if (before.state === state) return before;
  if (before.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
  if (state === 'deleted' && before.kind === 'tde' && (await tx.keys.countLive(id)) > 0)
    throw new ServiceError('conflict', 'the vault contains master keys of its group', {
      hint: 'destroy the master keys first',
    });
  const after: Vault = { ...before, state };
  await tx.vaults.update(after);
  await recordEvent(tx, kinds[state], actor, about('vault', after), { name: after.name });
  return after;
};

export const changeVault =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>, state: Exclude<VaultState, 'deleted'>) =>
  async (actor: TenantActor, id: string): Promise<Vault> => {
    const vault = await store.write((tx) => change(tx, actor, id, state));
    await directory.renew({ vaults: [id] });
    return vault;
  };

export const setVaultProfile =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): VaultOperations['setProfile'] =>
  async (actor, id, profile) => {
    const vault = await store.write(async (tx): Promise<Vault> => {
      const before = await findVault(tx, actor.tenantId, id);
      if (before.profile === profile) return before;
      if (before.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
      const after: Vault = { ...before, profile };
      await tx.vaults.update(after);
      await recordEvent(tx, 'vault.profile-changed', actor, about('vault', after), { name: after.name, profile });
      return after;
    });
    await directory.renew({ vaults: [id] });
    return vault;
  };

export const deleteVault = (
  { directory, usage }: Pick<Ports, 'directory' | 'usage'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<VaultOperations, 'delete' | 'planDelete'> => {
  const governed = withApproval('vault.delete', {
    permission: 'vaults:manage',
    plan: async (from, tenantId, { id }: { readonly id: string }) => {
      const vault = await findVault(from, tenantId, id);
      // The number of keys does not show that some were replaced: the newest key does.
      const [newest] = await from.keys.list(tenantId, { vaultId: id }, { limit: 1 });
      const endpoints: Named[] = [];
      for await (const endpoint of each((window) => from.endpoints.list(tenantId, window), byId, fewAtOnce))
        if (endpoint.vaultId === id) endpoints.push({ kind: 'endpoint', id: endpoint.id, name: endpoint.name });
      const lastUsed = await from.keys.lastUsedIn(id);
      const use = lastUsed && (await findKeyUse(from, lastUsed));
      return {
        tenantId: vault.tenantId,
        subject: { kind: 'vault', id, name: vault.name },
        vaults: vault.state === 'deleted' ? [] : [vault],
        impact: { keys: await from.keys.countLive(id) },
        named: { endpoints },
        marks:
          use === undefined
            ? { lastUsedAt: null, lastUsedBy: null, lastUsedKey: null }
            : { ...lastUse(use), lastUsedKey: lastUsed?.name ?? null },
        state: { state: vault.state, newestKey: newest?.id ?? null },
      };
    },
    carryOut: async (tx, actor, { id }) => ({
      answer: await change(tx, actor, id, 'deleted'),
      afterCommit: () => directory.renew({ vaults: [id] }),
    }),
  });
  return {
    delete: (actor, id) => governed.run(actor, { id }),
    planDelete: async (actor, id) => {
      await usage.flush(false);
      return governed.plan(actor, { id });
    },
  };
};
