// Vaults: reading.

import type { Ports } from '../ports/ports.ts';
import { findVault } from './find.ts';
import type { VaultOperations } from './index.ts';
import { byId, pageOf } from './paging.ts';

export const readVaults = ({ store }: Pick<Ports, 'store'>): Pick<VaultOperations, 'list' | 'get'> => ({
  list: ({ tenantId }, query) => pageOf(query, (window) => store.read.vaults.list(tenantId, window), byId),
  get: ({ tenantId }, id) => findVault(store.read, tenantId, id),
});
