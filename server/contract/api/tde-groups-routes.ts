// TDE groups: applications of one group can find and use each other's master keys, which cloning a
// PDB needs.

import { z } from '@hono/zod-openapi';
import { approvalNeeds, dryRunQuery } from './approvals-routes.ts';
import { displayName, identifier, integrity, moment, newName, pageOf, pageQuery, type RouteGroup } from './row.ts';

const groupShape = {
  id: identifier,
  tenantId: identifier,
  name: z.string(),
  vaultId: identifier,
  createdAt: moment,
  integrity,
};
export const tdeGroupSchema = z.strictObject(groupShape).openapi('TdeGroup');
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
  rename: {
    method: 'put',
    path: '/api/tde/groups/{id}/name',
    needs: 'applications:manage',
    summary: 'Rename a TDE group',
    description:
      'Its vault is renamed with it. The rule for a new name applies. If its vault is under dual control, whatever ' +
      'actions the rule names, others must approve.',
    query: dryRunQuery,
    body: newName,
    answer: z.strictObject({ ...groupShape, plan: approvalNeeds.optional() }).openapi('RenamedTdeGroup'),
    mayWait: true,
    changes: 'get',
  },
} as const satisfies RouteGroup;
