// Makes a TDE group and the vault that holds the shared copies of its master keys.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { TdeGroup } from '../../domain/tde.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { requireFreeVaultName, vaultNameOfGroup } from '../shared/vault-names.ts';
import type { TdeGroupOperations } from './applications-operations.ts';

export const createGroup =
  ({ store, directory, clock }: Pick<Ports, 'store' | 'directory' | 'clock'>): TdeGroupOperations['create'] =>
  async (actor, { name }) => {
    checkName(name);
    const { tenantId } = actor;
    const group = await store.write(async (tx): Promise<TdeGroup> => {
      if ((await tx.groups.findByName(tenantId, name)) !== undefined)
        throw new ServiceError('conflict', 'a group with this name already exists');
      await requireFreeVaultName(tx, tenantId, vaultNameOfGroup(name));
      const now = clock.now();
      const vault: Vault = {
        id: newId(now),
        tenantId,
        name: vaultNameOfGroup(name),
        kind: 'tde',
        state: 'enabled',
        createdAt: now,
        dualControl: null,
        profile: 'standard',
        integrity: 'ok',
      };
      await tx.vaults.insert(vault);
      await recordEvent(tx, 'vault.created', actor, about('vault', vault), { name: vault.name, kind: vault.kind });
      const made: TdeGroup = { id: newId(now), tenantId, name, vaultId: vault.id, createdAt: now, integrity: 'ok' };
      await tx.groups.insert(made);
      await recordEvent(tx, 'group.created', actor, about('group', made), { name, vaultId: vault.id });
      return made;
    });
    await directory.renew({ vaults: [group.vaultId] });
    return group;
  };
