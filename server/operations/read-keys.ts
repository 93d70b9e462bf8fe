// Keys: reading. Destroyed ones are shown too.

import type { Ports } from '../ports/ports.ts';
import { findKey } from './find.ts';
import type { KeyOperations } from './index.ts';
import { findKeyUse } from './key-use.ts';
import { byId, pageOf } from './paging.ts';

export const readKeys = ({
  store,
  usage,
}: Pick<Ports, 'store' | 'usage'>): Pick<KeyOperations, 'list' | 'get' | 'versions' | 'use'> => ({
  list: ({ tenantId }, query) => pageOf(query, (window) => store.read.keys.list(tenantId, query, window), byId),
  get: ({ tenantId }, id) => findKey(store.read, tenantId, id),
  versions: async ({ tenantId }, id) => {
    await findKey(store.read, tenantId, id);
    return store.read.keys.versions(id);
  },
  use: async ({ tenantId }, id) => {
    await usage.flush(false);
    return findKeyUse(store.read, await findKey(store.read, tenantId, id));
  },
});
