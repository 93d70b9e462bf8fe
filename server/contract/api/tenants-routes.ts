// Tenants: everything belongs to one. The default one is made at first start. They are few: the
// list is whole.

import { z } from '@hono/zod-openapi';
import { unrecoverableMeans } from '../../domain/copies.ts';
import type { TenantState } from '../../domain/tenant.ts';
import { displayName, identifier, integrity, listOf, moment, type RouteGroup } from './row.ts';

export const tenantSchema = z
  .strictObject({
    id: identifier,
    name: z.string(),
    state: z.enum(['active', 'suspended', 'deleted', 'purged'] satisfies TenantState[]),
    createdAt: moment,
    suspendedAt: moment
      .nullable()
      .openapi({ description: 'Kept while the tenant is deleted: after a restore, it is suspended again.' }),
    deletedAt: moment.nullable(),
    purgeAt: moment.nullable().openapi({ description: 'Until then, the deleted tenant can be restored.' }),
    purgedAt: moment.nullable(),
    unrecoverableAt: moment.nullable().openapi({ description: `For its keys: ${unrecoverableMeans}` }),
    integrity,
  })
  .openapi('Tenant');
export type Tenant = z.output<typeof tenantSchema>;

const impactSchema = z
  .strictObject({
    vaults: z.int(),
    keys: z.int().openapi({ description: 'Keys that are not destroyed, including master keys of databases.' }),
    endpoints: z.int().openapi({ description: 'Key store endpoints that are enabled.' }),
    applications: z.int().openapi({ description: 'Applications of databases that are enabled.' }),
    tokens: z.int().openapi({ description: 'API tokens that are neither revoked nor expired.' }),
    copies: z.int().openapi({
      description:
        'Files that left the service with its keys (`GET /api/copies`): exported snapshots and backups. A purge does not reach them.',
    }),
  })
  .openapi('TenantImpact');
export type TenantImpact = z.output<typeof impactSchema>;

const dryRunQuery = z.strictObject({
  dryRun: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .openapi({ type: 'boolean', default: false, description: 'true: shows what would stop and changes nothing.' }),
});
const changedTenant = z
  .strictObject({
    dryRun: z.boolean(),
    tenant: tenantSchema,
    impact: impactSchema.openapi({ description: 'Contents of the tenant that stop, or are destroyed.' }),
  })
  .openapi('ChangedTenant');
export type ChangedTenant = z.output<typeof changedTenant>;

const nameBody = z.strictObject({ name: displayName });

export const tenantRoutes = {
  create: {
    method: 'post',
    path: '/api/tenants',
    needs: 'tenants:manage',
    tenancy: 'platform',
    summary: 'Create a tenant',
    description:
      'The new tenant is empty and has its own key encryption key. Names must be unique among tenants that are not purged.',
    body: nameBody.openapi('NewTenant'),
    answer: tenantSchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/tenants',
    needs: 'tenants:read',
    tenancy: 'both',
    summary: 'List tenants',
    description: 'Includes purged tenants. With a role within one tenant, you see only that tenant.',
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
  rename: {
    method: 'put',
    path: '/api/tenants/{id}',
    needs: 'tenants:manage',
    tenancy: 'itself',
    summary: 'Rename a tenant',
    body: nameBody.openapi('RenameTenant'),
    answer: tenantSchema,
    changes: 'get',
  },
  suspend: {
    method: 'post',
    path: '/api/tenants/{id}/suspend',
    needs: 'tenants:manage',
    tenancy: 'itself',
    summary: 'Suspend a tenant',
    description: 'Its key store endpoints, databases and API tokens stop at once, until it is resumed.',
    query: dryRunQuery,
    answer: changedTenant,
    changes: 'get',
  },
  resume: {
    method: 'post',
    path: '/api/tenants/{id}/resume',
    needs: 'tenants:manage',
    tenancy: 'itself',
    summary: 'Resume a suspended tenant',
    answer: tenantSchema,
    changes: 'get',
  },
  delete: {
    method: 'delete',
    path: '/api/tenants/{id}',
    needs: 'tenants:manage',
    tenancy: 'itself',
    summary: 'Delete a tenant',
    description:
      'Everything in it stops at once. If any of its vaults has dual control (`destroy`), others must approve first. It can be restored until `purgeAt`; then it is purged. The default tenant cannot be deleted.',
    query: dryRunQuery,
    answer: changedTenant,
    mayWait: true,
    changes: 'get',
  },
  restore: {
    method: 'post',
    path: '/api/tenants/{id}/restore',
    needs: 'tenants:manage',
    tenancy: 'itself',
    summary: 'Restore a deleted tenant',
    description:
      'Restores it to its state before deletion: what was suspended or disabled still is, and what was destroyed stays destroyed.',
    answer: tenantSchema,
    changes: 'get',
  },
  purge: {
    method: 'post',
    path: '/api/tenants/{id}/purge',
    needs: 'tenants:purge',
    tenancy: 'itself',
    summary: 'Purge a deleted tenant',
    description:
      'Erases its key encryption key: none of its data can be read again. This cannot be undone. If any of its vaults has dual control, ' +
      'others must approve first. When its retention has ended, it is purged in any case.',
    query: dryRunQuery,
    body: z
      .strictObject({
        confirm: z
          .string()
          .optional()
          .openapi({ description: 'The exact name of the tenant. Not needed with dryRun=true.' }),
      })
      .openapi('PurgeTenant'),
    answer: changedTenant,
    mayWait: true,
    changes: 'get',
  },
} as const satisfies RouteGroup;
