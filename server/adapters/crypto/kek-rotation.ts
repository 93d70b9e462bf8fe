// New key encryption keys (KEKs) for tenants, and the end of old ones. When that is:
// operations/root/run-erasure.ts.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { StoredKek } from '../../ports/store.ts';
import { openKek } from './kek-records.ts';
import type { TenantKeks } from './tenant-keks.ts';

export const createKekRotation = (
  core: CryptoCore,
  { openRoot, current, add }: Pick<TenantKeks, 'openRoot' | 'current' | 'add'>,
): Pick<KeyRing, 'upToDate' | 'addKekEpoch' | 'prove' | 'dropOldKeks'> => ({
  upToDate: async (repositories) => {
    const newest = new Map((await repositories.keks.list()).map((kek) => [kek.tenantId, kek.rootEpoch]));
    return [...newest.values()].every((epoch) => epoch === openRoot().current.epoch);
  },
  addKekEpoch: async (tx, only) => {
    // Only tenants that are stored get a new epoch: a purged tenant may still be in memory for a
    // moment.
    const stored = new Set((await tx.keks.list()).map(({ tenantId }) => tenantId));
    const tenants = [...stored].filter((tenantId) => only === undefined || tenantId === only);
    for (const tenantId of tenants) await add(tx, tenantId, current(tenantId).epoch + 1);
    return tenants.length;
  },
  prove: async (tx) => {
    const provider = openRoot();
    const newest = new Map<string, StoredKek>();
    for (const kek of await tx.keks.list()) newest.set(kek.tenantId, kek);
    for (const [tenantId, kek] of newest) {
      if (kek.rootEpoch !== provider.current.epoch || kek.epoch !== current(tenantId).epoch)
        throw new ServiceError('internal', 'a tenant has no key encryption key under the new root');
      core.release(openKek(core, provider, kek).key);
    }
    // Memory says nothing here: it has the keys of a purged tenant a moment longer than the store.
    const living = (await tx.tenants.list()).filter(({ state }) => state !== 'purged');
    for (const tenantId of [serviceTenantId, ...living.map(({ id }) => id)])
      if (!newest.has(tenantId)) throw new ServiceError('internal', 'a tenant has lost its key encryption key');
  },
  dropOldKeks: async (tx) => {
    for (const kek of await tx.keks.list()) {
      const { epoch } = current(kek.tenantId);
      if (kek.epoch >= epoch) continue;
      if ((await tx.records.listOlder(kek.tenantId, epoch, 1)).length > 0)
        throw new ServiceError('internal', 'a key encryption key is still in use');
      await tx.keks.remove(kek.tenantId, kek.epoch);
    }
  },
});
