// Keys: reading. Destroyed ones are shown too.

import type { Ports } from '../ports/ports.ts';
import { findKey } from './find.ts';
import type { KeyOperations } from './index.ts';
import { byId, pageOf } from './paging.ts';

export const readKeys = ({ store }: Pick<Ports, 'store'>): Pick<KeyOperations, 'list' | 'get' | 'versions'> => ({
  list: (_actor, query) => pageOf(query, (window) => store.read.keys.list(query, window), byId),
  get: (_actor, id) => findKey(store.read, id),
  versions: async (_actor, id) => {
    await findKey(store.read, id);
    return store.read.keys.versions(id);
  },
});
