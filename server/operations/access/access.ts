// The role table as fronts ask it: in which tenant a caller acts, what they may do, and which roles
// they may give.

import { command } from '../../base/command-line.ts';
import { ServiceError } from '../../base/service-error.ts';
import {
  effectiveGrants,
  effectivePermissions,
  type Grant,
  isAllowed,
  roleNames,
  rolesWith,
  rowOf,
} from '../../domain/access.ts';
import { acrossTenants, inTenant } from '../../domain/actor.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { AccessOperations } from './access-operations.ts';

const noSuchTenant = (): ServiceError => new ServiceError('not-found', 'tenant not found');

const refuseGone = (tenant: Pick<Tenant, 'id' | 'state'> | undefined): void => {
  if (tenant?.state === 'deleted')
    throw new ServiceError('conflict', 'the tenant is deleted: nothing in it can be changed', {
      hint: `restore it first: ${command`dke tenant restore ${tenant.id}`}`,
    });
  if (tenant === undefined || tenant.state === 'purged')
    throw new ServiceError('conflict', 'the tenant is purged: nothing in it can be changed');
};

/**
 * The one that is meant where none is named: the default one for those who may act in it, else the
 * first of theirs that is served.
 */
const ownTenant = (
  { defaultTenantId, stopOf }: Pick<Ports['directory'], 'defaultTenantId' | 'stopOf'>,
  grants: readonly Grant[],
): string => {
  const own = [...new Set(grants.map(({ tenantId }) => tenantId ?? defaultTenantId()))].sort();
  if (own.length === 0 || own.includes(defaultTenantId())) return defaultTenantId();
  return own.find((id) => stopOf(id) === null) ?? own[0] ?? defaultTenantId();
};

export const createAccess = ({
  store,
  directory,
}: {
  readonly store: Pick<Ports['store'], 'read'>;
  readonly directory: Pick<Ports['directory'], 'tenant' | 'defaultTenantId' | 'stopOf'>;
}): AccessOperations => ({
  actIn: (actor, grants, named) => {
    const tenant = directory.tenant(named ?? ownTenant(directory, grants));
    // Who has no role at all is refused by what they ask for.
    const reached = grants.length === 0 || grants.some(({ tenantId }) => tenantId === null || tenantId === tenant?.id);
    if (named === undefined && tenant === undefined)
      throw new ServiceError('unauthenticated', 'the tenant no longer exists', { reason: 'deleted' });
    if (tenant === undefined || !reached) throw noSuchTenant();
    const stopped = directory.stopOf(tenant.id);
    if (stopped !== null && !grants.some(({ tenantId }) => tenantId === null))
      throw new ServiceError('unauthenticated', `the tenant is ${stopped}`, {
        hint: 'ask a platform operator to resume or restore it',
        reason: stopped,
      });
    return inTenant(actor, tenant.id);
  },
  reaching: (actor, grants, permission) =>
    isAllowed(grants, permission, null, null) ? acrossTenants(actor, actor.tenantId) : actor,
  requireAsMuch: (now, before) => {
    const kept = effectiveGrants(before.grants, now.grants);
    if (now.actor.tenantId === before.actor.tenantId && kept.length === before.grants.length) return;
    throw new ServiceError('forbidden', 'your roles changed during the request', {
      hint: 'repeat the request: your current roles then decide',
    });
  },
  requireTenant: (grants, permission, tenantId) => {
    const known = grants.some((grant) => grant.tenantId === null || grant.tenantId === tenantId);
    // Who may do so somewhere learns nothing of other tenants; who may nowhere is told just that.
    if (!known && grants.some(({ role }) => rowOf(role).permissions.includes(permission))) throw noSuchTenant();
  },
  requireChangeable: ({ tenantId }) => {
    refuseGone(directory.tenant(tenantId));
  },
  requireStillChangeable: async ({ tenantId }) => {
    refuseGone(await store.read.tenants.stored(tenantId));
  },
  check: (grants, permission, tenantId, scope) => {
    if (isAllowed(grants, permission, tenantId, scope)) return;
    throw new ServiceError('forbidden', `this requires the permission ${permission}`, {
      hint: `roles that have it: ${rolesWith(permission).join(', ')}; GET /api/session (dke token whoami) shows what you may do`,
    });
  },
  effective: effectivePermissions,
  roles: () =>
    roleNames.map((role) => {
      const { description, permissions, scoped = false, reach = null } = rowOf(role);
      return { role, description, scoped, reach, permissions };
    }),
});
