// Tenants: everything belongs to one. The default one is made at first start.

import { z } from '@hono/zod-openapi';
import { displayName, identifier, listOf, moment, type RouteGroup } from './row.ts';

export const tenantSchema = z.strictObject({ id: identifier, name: displayName, createdAt: moment }).openapi('Tenant');
export type Tenant = z.output<typeof tenantSchema>;

export const tenantRoutes = {
  list: {
    method: 'get',
    path: '/api/tenants',
    needs: 'tenants:read',
    tenancy: 'both',
    summary: 'List tenants',
    answer: listOf(tenantSchema),
  },
  get: {
    method: 'get',
    path: '/api/tenants/{id}',
    needs: 'tenants:read',
    tenancy: 'itself',
    summary: 'Get a tenant',
    answer: tenantSchema,
  },
} as const satisfies RouteGroup;
