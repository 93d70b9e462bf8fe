// What the working memory consists of, and how it follows the store: what was changed is read
// again, one change after the other.

import type { Changes } from '../../domain/changes.ts';
import { isVaultOpen } from '../../domain/key-policy.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Window } from '../../ports/window.ts';
import type { Directory } from '../../ports/working-memory.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { createHeldApplications } from './held-applications.ts';
import { createHeldEndpoints } from './held-endpoints.ts';
import { createHeldTenants } from './held-tenants.ts';
import { createObjectCache } from './object-cache.ts';
import { createReadChecks } from './read-checks.ts';
import { createUseMarks } from './use-marks.ts';

/** `mostObjects`: token objects that are kept with their opened keys. */
export const createWorkingMemory = (
  ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'log'>,
  mostObjects: number,
) => {
  const checks = createReadChecks(ports);
  const tenants = createHeldTenants(ports, checks);
  const vaults = new Map<string, Vault>();
  /** The vault of a key, for its use now; an alarm when its row was changed from outside. */
  const vaultOf = (id: string): Vault | undefined => {
    const vault = vaults.get(id);
    if (vault !== undefined) checks.sound('vaults', vault);
    return vault;
  };
  const uses = createUseMarks(ports, (endpointId) => endpoints.held.get(endpointId)?.endpoint.keyId);
  const endpoints = createHeldEndpoints(ports, checks, tenants.stopOf, uses.markOf);
  const applications = createHeldApplications(ports, checks);
  const objects = createObjectCache(ports, mostObjects, { ...checks, vault: vaultOf });
  return { checks, tenants, vaults, vaultOf, uses, endpoints, applications, objects };
};
export type WorkingMemory = ReturnType<typeof createWorkingMemory>;

const pages = async <T extends { readonly id: string }>(
  list: (window: Window) => Promise<readonly T[]>,
  renew: (item: T) => Promise<void>,
): Promise<void> => {
  for await (const item of each(list, byId, fewAtOnce)) await renew(item);
};

/** Reads what is stored, of every tenant or of one, and again what is in memory. */
const createLoads = (
  { store }: Pick<Ports, 'store'>,
  { vaults, endpoints, applications }: Pick<WorkingMemory, 'vaults' | 'endpoints' | 'applications'>,
) => {
  const { keys } = endpoints;
  const renewVault = async (id: string): Promise<void> => {
    const vault = await store.read.vaults.stored(everyTenant, id);
    if (vault === undefined) vaults.delete(id);
    else vaults.set(id, vault);
  };
  const loadOf = async (tenantId: TenantScope): Promise<void> => {
    await pages(
      (window) => store.read.vaults.list(tenantId, window),
      async (vault) => {
        vaults.set(vault.id, vault);
      },
    );
    await pages(
      (window) => store.read.endpoints.list(tenantId, window),
      (endpoint) => endpoints.renew(endpoint.id),
    );
    await pages(
      (window) => store.read.applications.list(tenantId, {}, window),
      (application) => applications.renew(application.id),
    );
  };
  /** What is in memory first: of what is stored no longer, it is not kept. */
  const renewHeld = async (isTheirs: (of: { readonly tenantId: string }) => boolean): Promise<void> => {
    for (const vault of [...vaults.values()]) if (isTheirs(vault)) await renewVault(vault.id);
    for (const { endpoint } of [...endpoints.held.values()]) if (isTheirs(endpoint)) await endpoints.renew(endpoint.id);
    for (const { key } of [...keys.held.values()]) if (isTheirs(key)) await keys.renew(key.id);
    for (const id of applications.ids()) {
      const application = applications.applicationById(id);
      if (application !== undefined && isTheirs(application)) await applications.renew(id);
    }
  };
  return { renewVault, loadOf, renewHeld };
};

export const createRenewals = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  memory: WorkingMemory,
): Pick<Directory, 'loadTenants' | 'load' | 'reload' | 'forget' | 'renew' | 'renewRefused' | 'epoch'> => {
  const { checks, tenants, vaults, endpoints, applications, objects } = memory;
  const { keys } = endpoints;
  const { renewVault, loadOf, renewHeld } = createLoads({ store }, memory);
  /** Changes with every renewal: agents see it as part of the epoch. */
  let generation = 0;
  /**
   * So that a restarted service does not show an epoch that an agent has seen for another state.
   */
  const epochBase = clock.now();
  let renewals: Promise<void> = Promise.resolve();
  /**
   * One after the other, so that what was read earlier never replaces what was read later. What
   * clients were told in the meantime may be the state before: the number changes again.
   */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const counted = (): Promise<void> =>
      work().finally(() => {
        generation += 1;
      });
    renewals = renewals.then(counted, counted);
    return renewals;
  };

  const releaseTenant = (id: string): void => {
    for (const { endpoint } of [...endpoints.held.values()])
      if (endpoint.tenantId === id) endpoints.release(endpoint.id);
    for (const { key } of [...keys.held.values()]) if (key.tenantId === id) keys.release(key.id);
    objects.dropOfTenants(new Set([id]));
  };
  const renewTenant = async (id: string): Promise<void> => {
    const stop = await tenants.renew(id);
    if (stop?.after === 'deleted') releaseTenant(id);
    // Nothing of a deleted tenant is held open; what is there again is read again.
    else if (stop?.before === 'deleted')
      await pages(
        (window) => store.read.endpoints.list(id, window),
        (endpoint) => endpoints.renew(endpoint.id),
      );
  };

  const loadTenantAgain = async (id: string): Promise<void> => {
    await renewTenant(id);
    await renewHeld(({ tenantId }) => tenantId === id);
    await loadOf(id);
    // Keys that were opened while older rows were still here.
    objects.dropOfTenants(new Set([id]));
  };

  const forget = (changes: Changes): void => {
    generation += 1;
    objects.forget(changes);
  };
  const renewNow = async (changes: Changes): Promise<void> => {
    for (const id of changes.tenants ?? []) await renewTenant(id);
    for (const id of changes.restored ?? []) await loadTenantAgain(id);
    for (const id of changes.vaults ?? []) await renewVault(id);
    // Keys that were opened while the vault was read are released, too.
    const closed = (changes.vaults ?? []).filter((id) => !isVaultOpen(vaults.get(id)));
    if (closed.length > 0) objects.dropOfVaults(new Set(closed));
    for (const id of changes.credentials ?? []) {
      const endpointId = endpoints.withCredential(id);
      if (endpointId !== undefined) await endpoints.renew(endpointId);
    }
    for (const id of changes.endpoints ?? []) await endpoints.renew(id);
    for (const id of changes.keys ?? []) await keys.renew(id);
    for (const id of changes.applications ?? []) await applications.renew(id);
  };

  const loadTenants = async (): Promise<void> => {
    await tenants.renewDefault();
    for (const { id } of await store.read.tenants.list()) await renewTenant(id);
  };
  const loadAll = async (): Promise<void> => {
    await loadTenants();
    await loadOf(everyTenant);
  };
  const loadAgain = async (): Promise<void> => {
    await renewHeld(() => true);
    await loadAll();
    objects.clear();
  };

  return {
    loadTenants: () => inTurn(loadTenants),
    load: () => inTurn(loadAll),
    reload: () => {
      forget({ vaults: [...vaults.keys()] });
      objects.clear();
      return inTurn(loadAgain);
    },
    forget,
    renew: (changes) => {
      // References go at once, before anything is awaited; what remains is read again in order.
      forget(changes);
      return inTurn(() => renewNow(changes));
    },
    renewRefused: async () => {
      const refused = checks.refused();
      if (Object.keys(refused).length > 0) await inTurn(() => renewNow(refused));
    },
    epoch: () => epochBase + generation,
  };
};
