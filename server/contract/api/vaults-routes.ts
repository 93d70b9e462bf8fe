// Vaults hold keys. When one is disabled or deleted, look-ups of its keys fail.

import { z } from '@hono/zod-openapi';
import { waysBack } from '../../base/way-back.ts';
import type { mostApprovals as domainMost, GovernedAction } from '../../domain/dual-control.ts';
import type { RotationProfile } from '../../domain/notification.ts';
import type { VaultState } from '../../domain/vault.ts';
import { approvalNeeds, dryRunQuery } from './approvals-routes.ts';
import {
  displayName,
  identifier,
  integrity,
  moment,
  newName,
  orNull,
  pageOf,
  pageQuery,
  type RouteGroup,
} from './row.ts';

/** How many a rule may ask for. */
const mostApprovals = 10 satisfies typeof domainMost;

const identities = z.array(identifier).min(1).max(100).readonly();
const ruleShape = {
  required: z
    .int()
    .min(1)
    .max(mostApprovals)
    .openapi({ description: 'How many must approve, in addition to the requester.' }),
  approvers: identities
    .nullable()
    .openapi({ description: 'Ids of the tokens or users that may approve; null: everyone who has the permission.' }),
  actions: z
    .array(z.enum(['destroy', 'export', 'restore'] satisfies GovernedAction[]))
    .max(3)
    .readonly()
    .openapi({ description: 'destroy: destroying keys, and everything that ends their use permanently.' }),
  databases: z.enum(['allowed', 'refused']).openapi({
    description: 'Whether a database may destroy a master key directly.',
  }),
};
export const dualControlRule = z.strictObject(ruleShape).openapi('DualControlRule');
export type DualControlRule = z.output<typeof dualControlRule>;

const newRule = z
  .strictObject({
    ...ruleShape,
    approvers: ruleShape.approvers.default(null),
    databases: ruleShape.databases.optional().openapi({
      description: 'Whether a database may destroy a master key directly. Default: refused in a rule about destroy.',
    }),
  })
  .openapi('NewDualControlRule');

const vaultDualControl = z
  .strictObject({
    vaultId: identifier,
    rule: orNull(dualControlRule),
    approvers: z
      .array(z.strictObject({ id: identifier, name: z.string() }))
      .readonly()
      .openapi({ description: 'Eligible approvers.' }),
    plan: approvalNeeds.optional().openapi({ description: 'With dryRun=true: nothing was changed.' }),
  })
  .openapi('VaultDualControl');
export type VaultDualControl = z.output<typeof vaultDualControl>;

const profile = z.enum(['standard', 'high-security'] satisfies RotationProfile[]);

const vaultShape = {
  id: identifier,
  tenantId: identifier,
  name: z.string(),
  kind: z.enum(['general', 'tde']).openapi({ description: 'tde: belongs to a TDE group and contains its master keys' }),
  state: z.enum(['enabled', 'disabled', 'deleted'] satisfies VaultState[]),
  dualControl: orNull(dualControlRule).openapi({ description: 'null: one person is enough' }),
  profile: profile.openapi({ description: 'How often its keys should be rotated.' }),
  createdAt: moment,
  integrity,
};
export const vaultSchema = z.strictObject(vaultShape).openapi('Vault');
export type Vault = z.output<typeof vaultSchema>;

const newVault = z.strictObject({ name: displayName }).openapi('NewVault');

export const vaultRoutes = {
  create: {
    method: 'post',
    path: '/api/vaults',
    needs: 'vaults:manage',
    summary: 'Create a vault',
    description: 'Names must be unique among the vaults that are not deleted.',
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
    description: 'Its keys cannot be used until it is enabled again.',
    answer: vaultSchema,
    changes: 'get',
  },
  delete: {
    method: 'delete',
    path: '/api/vaults/{id}',
    needs: 'vaults:manage',
    summary: 'Delete a vault',
    description:
      `Its keys become unavailable. Its record stays with the state \`deleted\`. ${waysBack['vault-deleted'].way} ` +
      'Under dual control, others must approve.',
    query: dryRunQuery,
    answer: z.strictObject({ ...vaultShape, plan: approvalNeeds.optional() }).openapi('DeletedVault'),
    mayWait: true,
    changes: 'get',
  },
  rename: {
    method: 'put',
    path: '/api/vaults/{id}/name',
    needs: 'vaults:manage',
    summary: 'Rename a vault',
    description:
      'The rule for a new name applies. The vault of a TDE group is renamed with the group, and only with it. ' +
      'Under dual control, whatever actions its rule names, others must approve.',
    query: dryRunQuery,
    body: newName,
    answer: z.strictObject({ ...vaultShape, plan: approvalNeeds.optional() }).openapi('RenamedVault'),
    mayWait: true,
    changes: 'get',
  },
  setProfile: {
    method: 'put',
    path: '/api/vaults/{id}/profile',
    needs: 'vaults:manage',
    summary: 'Set the rotation profile of a vault',
    description:
      'standard: every 6 to 12 months; high-security: every 3 to 6 months. Notifications about rotation use it.',
    body: z.strictObject({ profile }).openapi('NewVaultProfile'),
    answer: vaultSchema,
    changes: 'get',
  },
  dualControl: {
    method: 'get',
    path: '/api/vaults/{id}/dual-control',
    needs: 'vaults:read',
    summary: 'Get the dual control of a vault',
    answer: vaultDualControl,
  },
  setDualControl: {
    method: 'put',
    path: '/api/vaults/{id}/dual-control',
    needs: 'dual-control:manage',
    summary: 'Set the dual control of a vault',
    description:
      'A stricter rule applies at once. A weaker one needs the approvals that the current rule requires. A rule that no user ' +
      'could satisfy is refused.',
    query: dryRunQuery,
    body: newRule,
    answer: vaultDualControl,
    mayWait: true,
    changes: 'dualControl',
  },
  removeDualControl: {
    method: 'delete',
    path: '/api/vaults/{id}/dual-control',
    needs: 'dual-control:manage',
    summary: 'Remove the dual control of a vault',
    description: 'Needs the approvals that the rule requires.',
    query: dryRunQuery,
    answer: vaultDualControl,
    mayWait: true,
    changes: 'dualControl',
  },
} as const satisfies RouteGroup;
