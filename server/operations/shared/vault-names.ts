// The name of a vault is unique among the live vaults of its tenant, whether a user makes it or a group does
// for its master keys.

import { ServiceError } from '../../base/errors.ts';
import type { Repositories } from '../../ports/store.ts';

export const requireFreeVaultName = async (tx: Repositories, tenantId: string, name: string): Promise<void> => {
  if ((await tx.vaults.findByName(tenantId, name)) !== undefined)
    throw new ServiceError('conflict', `a vault with the name ${name} already exists`, { hint: 'choose another name' });
};
