// Vaults hold keys. When one is disabled or deleted, look-ups of its keys fail.

import { z } from '@hono/zod-openapi';
import type { VaultState } from '../../../domain/vault.ts';
import { displayName, identifier, integrity, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

export const vaultSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    name: z.string(),
    kind: z.enum(['general', 'tde']).openapi({ description: 'tde: belongs to a TDE group and holds its master keys' }),
    state: z.enum(['enabled', 'disabled', 'deleted'] satisfies VaultState[]),
    createdAt: moment,
    integrity,
  })
  .openapi('Vault');
export type Vault = z.output<typeof vaultSchema>;

const newVault = z.strictObject({ name: displayName }).openapi('NewVault');

export const vaultRoutes = {
  create: {
    method: 'post',
    path: '/api/vaults',
    needs: 'vaults:manage',
    summary: 'Create a vault',
    description: 'Names are unique among the vaults that are not deleted.',
    body: newVault,
    answer: vaultSchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/vaults',
    needs: 'vaults:read',
    summary: 'List vaults',
    query: pageQuery,
    answer: pageOf(vaultSchema),
  },
  get: { method: 'get', path: '/api/vaults/{id}', needs: 'vaults:read', summary: 'Get a vault', answer: vaultSchema },
  enable: {
    method: 'post',
    path: '/api/vaults/{id}/enable',
    needs: 'vaults:manage',
    summary: 'Enable a vault',
    answer: vaultSchema,
    changes: 'get',
  },
  disable: {
    method: 'post',
    path: '/api/vaults/{id}/disable',
    needs: 'vaults:manage',
    summary: 'Disable a vault',
    description: 'Look-ups of its keys fail until it is enabled again.',
    answer: vaultSchema,
    changes: 'get',
  },
  delete: {
    method: 'delete',
    path: '/api/vaults/{id}',
    needs: 'vaults:manage',
    summary: 'Delete a vault',
    description: 'The row stays with state deleted; its keys are found no more.',
    answer: vaultSchema,
    changes: 'get',
  },
} as const satisfies RouteGroup;
