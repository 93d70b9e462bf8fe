// Tenants in memory. One whose row was changed from outside is stopped: its state is not known.

import { isStopped, type Tenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Directory } from '../../ports/working-memory.ts';
import { findDefaultTenant } from '../shared/find.ts';
import type { ReadChecks } from './read-checks.ts';

type Stop = ReturnType<Directory['stopOf']>;

interface HeldTenants extends Pick<Directory, 'tenant' | 'defaultTenantId' | 'stopOf'> {
  renewDefault(): Promise<void>;
  /**
   * Answers why nothing of it was served before, and why nothing is now. Undefined: there is no
   * such tenant.
   */
  renew(id: string): Promise<{ readonly before: Stop; readonly after: Stop } | undefined>;
}

export const createHeldTenants = (
  { store }: Pick<Ports, 'store'>,
  { sound }: Pick<ReadChecks, 'sound'>,
): HeldTenants => {
  const tenants = new Map<string, Tenant>();
  /**
   * Why a tenant is not served, by its id; null: it is. Kept ready, because every request of the
   * data paths asks.
   */
  const stops = new Map<string, Stop>();
  let defaultTenant = '';
  const stopOf = (id: string): Stop => {
    const stop = stops.get(id);
    return stop === undefined ? 'deleted' : stop;
  };
  return {
    tenant: (idOrName) =>
      tenants.get(idOrName) ?? [...tenants.values()].find(({ name, state }) => name === idOrName && state !== 'purged'),
    defaultTenantId: () => defaultTenant,
    stopOf,
    renewDefault: async () => {
      defaultTenant = (await findDefaultTenant(store.read)).id;
    },
    renew: async (id) => {
      const tenant = await store.read.tenants.stored(id);
      if (tenant === undefined) {
        tenants.delete(id);
        stops.delete(id);
        return undefined;
      }
      sound('tenants', { ...tenant, tenantId: id });
      const before = stopOf(id);
      const after = isStopped(tenant);
      tenants.set(id, tenant);
      stops.set(id, after);
      return { before, after };
    },
  };
};
