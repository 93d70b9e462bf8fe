// Master keys of an application: history, one key, and what its destruction would hit.

import type { Ports } from '../../ports/ports.ts';
import { showApplication } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { findBlastRadius } from './blast-radius.ts';
import type { MasterKeyOperations } from './keys-operations.ts';
import { findMasterKey, viewMasterKeys } from './master-key-view.ts';

export const readMasterKeys = ({
  store,
  usage,
}: Pick<Ports, 'store' | 'usage'>): Pick<MasterKeyOperations, 'list' | 'get' | 'blastRadius'> => ({
  list: async ({ tenantId }, applicationId, query) => {
    await showApplication(store.read, tenantId, applicationId);
    await usage.flush(false);
    const filter = { applicationId, kind: 'master' } as const;
    const page = await pageOf(query, (window) => store.read.keys.list(tenantId, filter, window), byId);
    return { items: await viewMasterKeys(store.read, applicationId, page.items), next: page.next };
  },
  get: async ({ tenantId }, applicationId, keyId) => {
    await showApplication(store.read, tenantId, applicationId);
    await usage.flush(false);
    return findMasterKey(store.read, applicationId, await store.read.keys.stored(tenantId, keyId));
  },
  blastRadius: async ({ tenantId, reach }, applicationId, keyId) => {
    const application = await showApplication(store.read, tenantId, applicationId);
    await usage.flush(false);
    const key = await findMasterKey(store.read, applicationId, await store.read.keys.stored(tenantId, keyId));
    return findBlastRadius(store.read, application, key, reach);
  },
});
