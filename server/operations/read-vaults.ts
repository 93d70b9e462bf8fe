// Vaults: reading.

import type { Ports } from '../ports/ports.ts';
import { findVault } from './find.ts';
import type { VaultOperations } from './index.ts';
import { byId, pageOf } from './paging.ts';

export const readVaults = ({ store }: Pick<Ports, 'store'>): Pick<VaultOperations, 'list' | 'get'> => ({
  list: (_actor, query) => pageOf(query, (window) => store.read.vaults.list(window), byId),
  get: (_actor, id) => findVault(store.read, id),
});
