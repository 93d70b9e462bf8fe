// TDE applications: reading. Instances include what has not been written yet.

import type { Ports } from '../../ports/ports.ts';
import { showApplication } from '../shared/find.ts';
import { byId, pageOf, withTotal } from '../shared/paging.ts';
import type { ApplicationOperations } from './applications-operations.ts';

export const readApplications = ({
  store,
  usage,
}: Pick<Ports, 'store' | 'usage'>): Pick<ApplicationOperations, 'list' | 'get' | 'accessGuids' | 'instances'> => ({
  list: async ({ tenantId }, query) =>
    withTotal(
      query,
      await pageOf(
        query,
        (window) => store.read.applications.list(tenantId, query, window),
        byId,
        ({ callers }) => callers.certificates.reduce((sum, { length }) => sum + length, 0),
      ),
      (most) => store.read.applications.count(tenantId, query, most),
    ),
  get: ({ tenantId }, id) => showApplication(store.read, tenantId, id),
  accessGuids: async ({ tenantId }, id) => {
    await showApplication(store.read, tenantId, id);
    await usage.flush(false);
    return (await store.read.accessGuids.list(id)).map(({ hash: _hash, ...record }) => record);
  },
  instances: async ({ tenantId }, id) => {
    await showApplication(store.read, tenantId, id);
    await usage.flush(false);
    return store.read.instances.list(id);
  },
});
