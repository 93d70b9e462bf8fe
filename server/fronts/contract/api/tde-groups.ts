// TDE groups: applications of one group can find and use each other's master keys, which cloning a PDB needs.

import { z } from '@hono/zod-openapi';
import { displayName, identifier, integrity, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

export const tdeGroupSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    name: z.string(),
    vaultId: identifier,
    createdAt: moment,
    integrity,
  })
  .openapi('TdeGroup');
export type TdeGroup = z.output<typeof tdeGroupSchema>;

export const tdeGroupRoutes = {
  create: {
    method: 'post',
    path: '/api/tde/groups',
    needs: 'applications:manage',
    summary: 'Create a TDE group',
    description: 'Also creates the vault for its master keys.',
    body: z.strictObject({ name: displayName }).openapi('NewTdeGroup'),
    answer: tdeGroupSchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/tde/groups',
    needs: 'applications:read',
    summary: 'List TDE groups',
    query: pageQuery,
    answer: pageOf(tdeGroupSchema),
  },
  get: {
    method: 'get',
    path: '/api/tde/groups/{id}',
    needs: 'applications:read',
    summary: 'Get a TDE group',
    answer: tdeGroupSchema,
  },
} as const satisfies RouteGroup;
