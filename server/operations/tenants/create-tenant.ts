// Creates a tenant with its KEK. `createTenantIn` is the step within a transaction that the caller
// has opened: first start, restore.

import { isId, newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { RestoreRing } from '../../ports/key-ring.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { TenantOperations } from './tenants-operations.ts';

/**
 * A tenant is named where an id could stand as well: a name that looks like one would hide the
 * other's.
 */
export const checkTenantName = (name: string): string => {
  checkName(name);
  if (isId(name)) throw new ServiceError('validation', 'the name of a tenant must not look like an identifier');
  return name;
};

export const newTenant = (name: string, now: number): Tenant => ({
  id: newId(now),
  name,
  state: 'active',
  createdAt: now,
  suspendedAt: null,
  deletedAt: null,
  purgeAt: null,
  purgedAt: null,
  clearedAt: null,
  unrecoverableAt: null,
  integrity: 'ok',
});

/** 'conflict' when the name is taken. */
export const createTenantIn = async (
  { ring }: { readonly ring: Pick<RestoreRing, 'addTenant'> },
  tx: Repositories,
  actor: Actor,
  tenant: Tenant,
): Promise<void> => {
  if ((await tx.tenants.findByName(tenant.name)) !== undefined)
    throw new ServiceError('conflict', 'a tenant with this name already exists', {
      hint: 'choose another name: dke tenant list shows all tenants, including deleted ones',
    });
  await tx.tenants.insert(tenant);
  await ring.addTenant(tx, tenant.id);
  await recordEvent(tx, 'tenant.created', actor, about('tenant', { id: tenant.id, tenantId: tenant.id }), {
    name: tenant.name,
  });
};

export const createTenant =
  (ports: Pick<Ports, 'store' | 'ring' | 'directory' | 'clock'>): TenantOperations['create'] =>
  async (actor, { name }) => {
    const { store, directory, clock } = ports;
    const tenant = newTenant(checkTenantName(name), clock.now());
    await store.write((tx) => createTenantIn(ports, tx, actor, tenant));
    await directory.renew({ tenants: [tenant.id] });
    return tenant;
  };
