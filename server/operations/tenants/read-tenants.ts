// Tenants: reading. They are few: a list is whole.

import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { findDefaultTenant, showTenant } from '../shared/find.ts';
import type { TenantOperations } from './tenants-operations.ts';

export const readTenants = ({ store }: Pick<Ports, 'store'>): Pick<TenantOperations, 'list' | 'get' | 'default'> => ({
  list: async ({ reach }) =>
    (await store.read.tenants.list()).filter(({ id }) => reach === everyTenant || id === reach),
  get: (_actor, id) => showTenant(store.read, id),
  default: () => findDefaultTenant(store.read),
});
