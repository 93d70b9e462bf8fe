// Roles that are given to a user or a token: completed, looked up, and named for the audit log.

import { type Grant, rowOf, type Scope } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { findApplication, findEndpoint, findTenant } from '../shared/find.ts';
import type { NewGrant } from './access-operations.ts';

/** 'not-found' when a role is given for something that is not there. */
const findScope = async (tx: Repositories, tenant: TenantScope, scope: Scope | null): Promise<void> => {
  if (scope?.kind === 'application') await findApplication(tx, tenant, scope.id);
  if (scope?.kind === 'endpoint') await findEndpoint(tx, tenant, scope.id);
};

/**
 * Completes grants that name no tenant. Where the actor names none and may act in any, the role is
 * given for the whole platform, unless it is one within a tenant.
 */
export const completeGrants = (actor: TenantActor, grants: readonly NewGrant[]): readonly Grant[] =>
  grants.map(({ role, scope, tenantId }) => {
    const within = actor.reach !== everyTenant || rowOf(role).reach === 'tenant';
    return { role, scope, tenantId: tenantId === undefined ? (within ? actor.tenantId : null) : tenantId };
  });

/** 'not-found' when a role is given within a tenant, or for a resource, that is not there. */
export const requireGrantable = async (tx: Repositories, grants: readonly Grant[]): Promise<void> => {
  for (const { scope, tenantId } of grants) {
    if (tenantId !== null) await findTenant(tx, tenantId);
    await findScope(tx, tenantId ?? everyTenant, scope);
  }
};

export const nameGrant = ({ role, scope, tenantId }: Grant): string =>
  [
    role,
    ...(scope === null ? [] : [`of ${scope.kind} ${scope.id}`]),
    ...(tenantId === null ? [] : [`in ${tenantId}`]),
  ].join(' ');
