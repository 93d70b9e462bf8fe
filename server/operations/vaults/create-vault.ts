// Makes a general vault.

import { newId } from '../../base/ids.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { requireFreeVaultName } from '../shared/vault-names.ts';
import type { VaultOperations } from './vaults-operations.ts';

export const createVault =
  ({ store, directory, clock }: Pick<Ports, 'store' | 'directory' | 'clock'>): VaultOperations['create'] =>
  async (actor, { name }) => {
    checkName(name);
    const { tenantId } = actor;
    const vault = await store.write(async (tx): Promise<Vault> => {
      await requireFreeVaultName(tx, tenantId, name);
      const now = clock.now();
      const made: Vault = {
        id: newId(now),
        tenantId,
        name,
        kind: 'general',
        state: 'enabled',
        createdAt: now,
        dualControl: null,
        profile: 'standard',
        integrity: 'ok',
      };
      await tx.vaults.insert(made);
      await recordEvent(tx, 'vault.created', actor, about('vault', made), { name, kind: made.kind });
      return made;
    });
    await directory.renew({ vaults: [vault.id] });
    return vault;
  };
