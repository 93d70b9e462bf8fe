// Tenants: reading. The default tenant is made by set-up.

import type { Ports } from '../ports/ports.ts';
import { findDefaultTenant, findTenant } from './find.ts';
import type { TenantOperations } from './index.ts';

export const readTenants = ({ store }: Pick<Ports, 'store'>): TenantOperations => ({
  list: () => store.read.tenants.list(),
  get: (_actor, id) => findTenant(store.read, id),
  default: () => findDefaultTenant(store.read),
});
