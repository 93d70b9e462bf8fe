// Makes a general vault.

import { ServiceError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import type { Vault } from '../domain/vault.ts';
import type { Ports } from '../ports/ports.ts';
import { findDefaultTenant } from './find.ts';
import type { VaultOperations } from './index.ts';
import { checkName } from './names.ts';

export const createVault =
  ({ store, directory, clock }: Pick<Ports, 'store' | 'directory' | 'clock'>): VaultOperations['create'] =>
  async (actor, { name }) => {
    checkName(name);
    const vault = await store.write(async (tx): Promise<Vault> => {
      const tenant = await findDefaultTenant(tx);
      if ((await tx.vaults.findByName(tenant.id, name)) !== undefined)
        throw new ServiceError('conflict', 'a vault of this name exists');
      const now = clock.now();
      const made: Vault = {
        id: newId(now),
        tenantId: tenant.id,
        name,
        kind: 'general',
        state: 'enabled',
        createdAt: now,
        integrity: 'ok',
      };
      await tx.vaults.insert(made);
      await tx.audit.append({
        kind: 'vault.created',
        actor,
        tenantId: tenant.id,
        subject: { kind: 'vault', id: made.id },
        details: { name, kind: made.kind },
      });
      return made;
    });
    await directory.renew({ vaults: [vault.id] });
    return vault;
  };
