// The service's working memory (ports/working-memory.ts). Vaults, endpoints, applications and
// access_guids are held whole: they are few. Token objects and their keys are a bounded cache
// (object-cache.ts). What is shown here follows a commit; a reference to a destroyed key is
// released in the step that learns of it, and a load that began before that step does not put it
// back. Here are the look-ups; what reads the store is in working-memory.ts.

import { isVaultOpen } from '../../domain/key-policy.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Directory } from '../../ports/working-memory.ts';
import { createRequestQueue } from '../requests/request-queue.ts';
import { createRenewals, createWorkingMemory, type WorkingMemory } from './working-memory.ts';

export interface DirectoryLimits {
  /** Token objects kept with their opened keys. */
  readonly objects: number;
  /** Request records waiting to be written; more are dropped and counted. */
  readonly requests: number;
}

/** What the XKS front asks about endpoints and their keys. */
const endpointLookUps = ({
  tenants: { stopOf },
  vaultOf,
  endpoints: { held, byPrefix, keys },
}: WorkingMemory): Pick<Directory, 'endpoint' | 'key' | 'endpoints' | 'endpointById'> => ({
  endpoint: (prefix) => {
    const view = byPrefix.get(prefix)?.view;
    return view !== undefined && stopOf(view.tenantId) === 'deleted' ? undefined : view;
  },
  key: (endpoint, externalKeyId) => {
    if (externalKeyId !== endpoint.externalKeyId) return undefined;
    const found = keys.held.get(externalKeyId);
    const configured = held.get(endpoint.id)?.endpoint;
    if (found === undefined || configured === undefined) return undefined;
    if (found.key.vaultId !== configured.vaultId || found.key.tenantId !== configured.tenantId) return undefined;
    return isVaultOpen(vaultOf(found.key.vaultId)) ? found.view : undefined;
  },
  endpoints: () => [...held.values()].map(({ endpoint }) => endpoint),
  endpointById: (id) => held.get(id)?.endpoint,
});

export const createDirectory = (
  ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'log'>,
  limits: DirectoryLimits,
): Directory => {
  const { clock, log } = ports;
  const memory = createWorkingMemory(ports, limits.objects);
  const { tenants, vaults, uses, endpoints, applications, objects } = memory;
  const requests = createRequestQueue(limits.requests);
  let healthy = true;

  return {
    ...createRenewals(ports, memory),
    ...endpointLookUps(memory),
    application: applications.application,
    formerApplication: applications.formerApplication,
    applicationById: applications.applicationById,
    findElsewhere: objects.findElsewhere,
    object: objects.object,
    findObjects: objects.findObjects,
    withObjectKeys: objects.withObjectKeys,
    fleetSize: () => 1,
    otherNodes: () => [],
    healthy: () => healthy,
    setHealthy: (value) => {
      healthy = value;
    },
    record: (entry, isOwnProbe) => {
      if (!isOwnProbe) uses.noteCredential(entry);
      requests.push(entry);
    },
    drainRequests: requests.take,
    putBackRequests: requests.putBack,
    countDropped: requests.drop,
    dropped: requests.dropped,
    droppedWritten: requests.droppedWritten,
    requestLog: requests.state,
    requestsAreFilling: requests.isFilling,
    drainCredentialUses: uses.drainCredentialUses,
    keyUses: uses.keyUses,
    keyUsesWritten: uses.keyUsesWritten,
    clientAuthorities: endpoints.clientAuthorities,
    onClientAuthorities: endpoints.onClientAuthorities,
    tenant: tenants.tenant,
    defaultTenantId: tenants.defaultTenantId,
    stopOf: tenants.stopOf,
    vault: (id) => vaults.get(id),
    close: () => {
      endpoints.onClientAuthorities(() => undefined);
      for (const id of [...endpoints.held.keys()]) endpoints.release(id);
      for (const id of [...endpoints.keys.held.keys()]) endpoints.keys.release(id);
      objects.clear();
      applications.clear();
      log.debug('the directory is empty', { at: clock.now() });
    },
  };
};
