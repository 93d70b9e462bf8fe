// Tenants: everything belongs to one. The default one is made at first start. They are few: the list is whole.

import { z } from '@hono/zod-openapi';
import type { TenantState } from '../../../domain/tenant.ts';
import { displayName, identifier, integrity, listOf, moment, type RouteGroup } from './row.ts';

export const tenantSchema = z
  .strictObject({
    id: identifier,
    name: z.string(),
    state: z.enum(['active', 'suspended', 'deleted', 'purged'] satisfies TenantState[]),
    createdAt: moment,
    suspendedAt: moment
      .nullable()
      .openapi({ description: 'Kept while it is deleted: restored, it is suspended again.' }),
    deletedAt: moment.nullable(),
    purgeAt: moment.nullable().openapi({ description: 'Until then a deleted tenant can be restored.' }),
    purgedAt: moment.nullable(),
    unrecoverableAt: moment
      .nullable()
      .openapi({ description: 'From here old pages, logs and backups of the database open nothing of it.' }),
    integrity,
  })
  .openapi('Tenant');
export type Tenant = z.output<typeof tenantSchema>;

const impactSchema = z
  .strictObject({
    vaults: z.int(),
    keys: z.int().openapi({ description: 'Not destroyed, master keys of databases included.' }),
    endpoints: z.int().openapi({ description: 'Key store endpoints that are enabled.' }),
    applications: z.int().openapi({ description: 'Applications of databases that are enabled.' }),
    tokens: z.int().openapi({ description: 'API tokens that are neither revoked nor expired.' }),
    exportedCopies: z.int().openapi({
      description: 'Exports of its snapshots. No purge reaches these copies: with a recovery key they still open.',
    }),
  })
  .openapi('TenantImpact');
export type TenantImpact = z.output<typeof impactSchema>;

const dryRunQuery = z.strictObject({
  dryRun: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .openapi({ type: 'boolean', default: false, description: 'Shows what it would stop and changes nothing.' }),
});
const changedTenant = z
  .strictObject({
    dryRun: z.boolean(),
    tenant: tenantSchema,
    impact: impactSchema.openapi({ description: 'What is in the tenant: what stops, or is gone for good.' }),
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
      'With a key encryption key of its own and nothing in it. Names are unique among those that are not purged.',
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
    description: 'Purged ones too. Who has a role within one tenant sees that one.',
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
      'Everything in it stops at once; under the dual control of any of its vaults (`destroy`) only when others have agreed. Until `purgeAt` it can be restored; then it is purged. The default tenant is not deleted.',
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
    description: 'As it was when it was deleted: what was suspended or disabled still is, what was destroyed stays so.',
    answer: tenantSchema,
    changes: 'get',
  },
  purge: {
    method: 'post',
    path: '/api/tenants/{id}/purge',
    needs: 'tenants:purge',
    tenancy: 'itself',
    summary: 'Purge a deleted tenant, for good',
    description:
      'Its key encryption key is erased: none of its data can be read again. This cannot be undone. Under the dual control of any of its ' +
      'vaults only when others have agreed; when its retention is over, it is purged in any case.',
    query: dryRunQuery,
    body: z
      .strictObject({
        confirm: z
          .string()
          .optional()
          .openapi({ description: 'The name of the tenant, exactly. Not needed with dryRun=true.' }),
      })
      .openapi('PurgeTenant'),
    answer: changedTenant,
    mayWait: true,
    changes: 'get',
  },
} as const satisfies RouteGroup;
