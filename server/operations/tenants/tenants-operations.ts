// What can be done with tenants.

import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { Tenant, TenantEvent } from '../../domain/tenant.ts';
import type { TenantContents } from '../../ports/store.ts';

export interface TenantOperations {
  /** Sorted by id, purged tenants included. An actor within one tenant sees only that tenant. */
  list(actor: TenantActor): Promise<readonly Tenant[]>;
  get(actor: TenantActor, id: string): Promise<Tenant>;
  /**
   * With a KEK of its own, and nothing else. Names are unique among those that are not purged:
   * 'conflict'.
   */
  create(actor: Actor, input: { readonly name: string }): Promise<Tenant>;
  /** 'conflict' when the name is taken, or the tenant deleted. */
  rename(actor: TenantActor, id: string, input: { readonly name: string }): Promise<Tenant>;
  /**
   * Everything in it stops before this resolves: endpoints, databases (open sessions too), tokens.
   */
  suspend(actor: TenantActor, id: string): Promise<Tenant>;
  resume(actor: TenantActor, id: string): Promise<Tenant>;
  /**
   * Stops the tenant as `suspend` does; it can be restored until `purgeAt`. 'conflict' for the
   * default tenant.
   */
  delete(actor: TenantActor, id: string): Promise<Tenant>;
  /**
   * Returns a deleted tenant to its state before the deletion; destroyed keys stay destroyed.
   * 'conflict' after its retention.
   */
  restore(actor: TenantActor, id: string): Promise<Tenant>;
  /**
   * Purges a deleted tenant, also before its retention is over. Terminal; an erasure run follows on
   * its own.
   */
  purge(actor: TenantActor, id: string): Promise<Tenant>;
  /** What is in the tenant; 'conflict' where its state refuses the event. */
  impact(
    actor: TenantActor,
    id: string,
    event: TenantEvent,
  ): Promise<{ readonly tenant: Tenant; readonly contents: TenantContents }>;
  /** The tenant that those act in who may act in any and name none. */
  default(): Promise<Tenant>;
}
