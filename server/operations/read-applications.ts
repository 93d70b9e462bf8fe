// TDE applications: reading. Instances include what has not been written yet.

import type { Ports } from '../ports/ports.ts';
import { findApplication } from './find.ts';
import type { ApplicationOperations } from './index.ts';
import { byId, pageOf } from './paging.ts';

export const readApplications = ({
  store,
  usage,
}: Pick<Ports, 'store' | 'usage'>): Pick<ApplicationOperations, 'list' | 'get' | 'accessGuids' | 'instances'> => ({
  list: (_actor, query) => pageOf(query, (window) => store.read.applications.list(query, window), byId),
  get: (_actor, id) => findApplication(store.read, id),
  accessGuids: async (_actor, id) => {
    await findApplication(store.read, id);
    await usage.flush(false);
    return (await store.read.accessGuids.list(id)).map(({ hash: _hash, ...record }) => record);
  },
  instances: async (_actor, id) => {
    await findApplication(store.read, id);
    await usage.flush(false);
    return store.read.instances.list(id);
  },
});
