// Who does something. Every audit record names one.

import { everyTenant, type TenantScope } from './tenant.ts';

export interface Actor {
  readonly kind: 'user' | 'administrator' | 'application' | 'service';
  /** User id, token id, application id, or 'service'. Never a credential. */
  readonly id: string;
  readonly name: string;
  /** The id of the request, echoed to the caller and borne by the audit record. */
  readonly requestId: string;
  /** Address of the peer, where there is one. */
  readonly peer: string | null;
}

/** A caller who acts in a tenant through the API. */
export interface TenantActor extends Actor {
  /** The tenant acted in: what is made belongs to it, and nothing of another one is found. */
  readonly tenantId: string;
  /**
   * What lists and logs show that the platform has as well as its tenants: the tenant acted in, or
   * everything for those who have the right for the whole platform and named no tenant.
   */
  readonly reach: TenantScope;
}

/** The actor, in one tenant and nowhere else. */
export const inTenant = (actor: Actor, tenantId: string): TenantActor => ({ ...actor, tenantId, reach: tenantId });

/**
 * The actor with the right to see what every tenant and the platform has; what is made is the
 * platform's, or this tenant's.
 */
export const acrossTenants = (actor: Actor, tenantId: string): TenantActor => ({
  ...actor,
  tenantId,
  reach: everyTenant,
});

/** The service acting automatically: start, erasure run, summaries. */
export const serviceActor = (requestId: string): Actor => ({
  kind: 'service',
  id: 'service',
  name: 'service',
  requestId,
  peer: null,
});
