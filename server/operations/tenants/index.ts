// Tenants, put together.

import type { Ports } from '../../ports/ports.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { changeTenant, type TenantRules } from './change-tenant.ts';
import { createTenant } from './create-tenant.ts';
import { purgeTenant } from './purge-tenant.ts';
import { readTenants } from './read-tenants.ts';
import type { TenantOperations } from './tenants-operations.ts';

export const createTenantOperations = (ports: Ports, approvals: Approvals, rules: TenantRules): TenantOperations => ({
  ...readTenants(ports),
  ...changeTenant(ports, rules, approvals),
  create: createTenant(ports),
  purge: purgeTenant(ports, approvals),
});
