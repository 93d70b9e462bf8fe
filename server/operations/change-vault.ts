// Enables, disables or deletes a vault. What is already so stays so, without a record. A deleted vault stays deleted.

import { ServiceError } from '../base/errors.ts';
import type { TenantActor } from '../domain/actor.ts';
import type { Vault, VaultState } from '../domain/vault.ts';
import type { Ports } from '../ports/ports.ts';
import { findVault } from './find.ts';

const kinds = {
  enabled: 'vault.enabled',
  disabled: 'vault.disabled',
  deleted: 'vault.deleted',
} as const satisfies Record<VaultState, string>;

export const changeVault =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>, state: VaultState) =>
  async (actor: TenantActor, id: string): Promise<Vault> => {
    const vault = await store.write(async (tx): Promise<Vault> => {
      const before = await findVault(tx, actor.tenantId, id);
      if (before.state === state) return before;
      if (before.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
      if (state === 'deleted' && before.kind === 'tde' && (await tx.keys.countLive(id)) > 0)
        throw new ServiceError('conflict', 'the vault holds master keys of its group', {
          hint: 'destroy the master keys first',
        });
      const after: Vault = { ...before, state };
      await tx.vaults.update(after);
      await tx.audit.append({
        kind: kinds[state],
        actor,
        tenantId: after.tenantId,
        subject: { kind: 'vault', id },
        details: { name: after.name },
      });
      return after;
    });
    await directory.renew({ vaults: [id] });
    return vault;
  };
