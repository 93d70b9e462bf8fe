// Vaults: reading.

import type { Ports } from '../../ports/ports.ts';
import { showVault } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import type { VaultOperations } from './vaults-operations.ts';

export const readVaults = ({ store }: Pick<Ports, 'store'>): Pick<VaultOperations, 'list' | 'get'> => ({
  list: ({ tenantId }, query) => pageOf(query, (window) => store.read.vaults.list(tenantId, window), byId),
  get: ({ tenantId }, id) => showVault(store.read, tenantId, id),
});
