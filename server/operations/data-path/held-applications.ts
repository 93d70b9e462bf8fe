// Applications in memory, with the hashes of their access_guids.

import type { TdeApplication } from '../../domain/tde.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredAccessGuid } from '../../ports/tde-repositories.ts';
import type { Directory } from '../../ports/working-memory.ts';
import type { ReadChecks } from './read-checks.ts';

interface HeldApplications extends Pick<Directory, 'application' | 'formerApplication' | 'applicationById'> {
  ids(): readonly string[];
  renew(id: string): Promise<void>;
  /** No access_guid is known afterwards. */
  clear(): void;
}

export const createHeldApplications = (
  { store }: Pick<Ports, 'store'>,
  { sound }: Pick<ReadChecks, 'sound'>,
): HeldApplications => {
  const applications = new Map<string, TdeApplication>();
  /** Live access_guids by their keyed hash. */
  const accessGuids = new Map<string, StoredAccessGuid>();
  /**
   * Application ids by the keyed hash of a removed access_guid: a caller who still presents one is
   * told that it was removed.
   */
  const formerGuids = new Map<string, string>();
  return {
    application: (hash) => {
      const accessGuid = accessGuids.get(hash);
      const application = accessGuid === undefined ? undefined : applications.get(accessGuid.applicationId);
      return accessGuid === undefined || application === undefined
        ? undefined
        : { application, accessGuidId: accessGuid.id };
    },
    formerApplication: (hash) => applications.get(formerGuids.get(hash) ?? ''),
    applicationById: (id) => applications.get(id),
    ids: () => [...applications.keys()],
    renew: async (id) => {
      const application = await store.read.applications.stored(everyTenant, id);
      const own = application === undefined ? [] : await store.read.accessGuids.list(id);
      // From here on in one step: a caller who comes while the change is read is known before and
      // afterwards.
      for (const [hash, accessGuid] of accessGuids) if (accessGuid.applicationId === id) accessGuids.delete(hash);
      if (application === undefined || !sound('tde_applications', application)) {
        applications.delete(id);
        return;
      }
      applications.set(id, application);
      for (const accessGuid of own) {
        if (!sound('access_guids', { ...accessGuid, tenantId: application.tenantId })) continue;
        if (accessGuid.removedAt === null) accessGuids.set(accessGuid.hash, accessGuid);
        else formerGuids.set(accessGuid.hash, id);
      }
    },
    clear: () => {
      accessGuids.clear();
      formerGuids.clear();
    },
  };
};
