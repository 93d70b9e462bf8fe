// The root key and the opened key encryption keys (KEKs) of tenants in memory. Their bytes stay in
// the addon; here are their references.

import { ServiceError } from '../../base/service-error.ts';
import type { CryptoCore, KekRef } from '../../ports/crypto-core.ts';
import type { RootProvider } from '../../ports/root-provider.ts';
import type { Repositories, StoredKek } from '../../ports/store.ts';
import { makeKek, type OpenKek, openKek } from './kek-records.ts';
import { createMessageKeys } from './message-keys.ts';

export type TenantKeks = ReturnType<typeof createTenantKeks>;

interface OuterKeks {
  openRoot(): RootProvider;
  find(tenantId: string, epoch: number): OpenKek | undefined;
  current(tenantId: string): OpenKek;
  held(): readonly string[];
}

const refuse = (isEnded: boolean): never => {
  throw isEnded
    ? new ServiceError('unavailable', 'an erasure run has replaced keys in the meantime: try again')
    : new ServiceError('key-tampered', 'a record names a key epoch that does not exist');
};

/** `outer`: what is not here is found there, and stays as it is. */
export const createTenantKeks = (core: CryptoCore, outer?: OuterKeks) => {
  /** Open KEKs by tenant, oldest epoch first; the last one seals. */
  const keks = new Map<string, OpenKek[]>();
  /** Tenants whose KEK was seen in the store: one that is no longer there was purged. */
  const persisted = new Set<string>();
  const messageKeys = createMessageKeys(core);
  const heldOutside = new Set(outer?.held());
  let root: RootProvider | undefined;

  const openRoot = (): RootProvider => {
    const found = root ?? outer?.openRoot();
    if (found === undefined) throw new ServiceError('unavailable', 'the service is not unsealed');
    return found;
  };
  const find = (tenantId: string, epoch: number): OpenKek | undefined =>
    keks.get(tenantId)?.find((kek) => kek.epoch === epoch) ?? outer?.find(tenantId, epoch);
  const current = (tenantId: string): OpenKek => {
    const found = keks.get(tenantId)?.at(-1) ?? outer?.current(tenantId);
    if (found === undefined) throw new ServiceError('internal', 'the tenant has no key encryption key');
    return found;
  };
  /** Where an epoch comes a second time, the former KEK is of a unit of work that was undone. */
  const keep = (tenantId: string, kek: OpenKek): void => {
    const list = keks.get(tenantId) ?? [];
    const isSame = (each: { readonly epoch: number }): boolean => each.epoch === kek.epoch;
    for (const former of list.filter(isSame)) core.release(former.key);
    keks.set(
      tenantId,
      [...list.filter((each) => !isSame(each)), kek].sort((a, b) => a.epoch - b.epoch),
    );
    messageKeys.drop((each) => each.tenantId === tenantId && isSame(each));
  };
  const drop = (goes: (tenantId: string, epoch: number) => boolean): void => {
    for (const [tenantId, open] of keks) {
      const rest = open.filter((kek) => !goes(tenantId, kek.epoch));
      for (const kek of open) {
        if (rest.includes(kek)) continue;
        try {
          if (rest.length > 0) messageKeys.of(tenantId, kek.epoch, kek);
        } finally {
          core.release(kek.key);
        }
      }
      if (rest.length > 0) keks.set(tenantId, rest);
      else {
        keks.delete(tenantId);
        messageKeys.drop((each) => each.tenantId === tenantId);
      }
    }
  };

  return {
    openRoot,
    find,
    current,
    messageKey: (tenantId: string, epoch: number) => messageKeys.of(tenantId, epoch, find(tenantId, epoch)),
    /** The KEK of a stored record. */
    of: (tenantId: string, epoch: number): KekRef =>
      find(tenantId, epoch)?.key ?? refuse(heldOutside.has(`${tenantId} ${epoch}`)),
    /** Tenants and epochs of all. */
    held: (): readonly string[] =>
      [...keks].flatMap(([tenantId, open]) => open.map(({ epoch }) => `${tenantId} ${epoch}`)),
    /** The epoch of each tenant's KEK that seals now. */
    epochs: (): ReadonlyMap<string, number> =>
      new Map([...keks.keys()].map((tenantId) => [tenantId, current(tenantId).epoch])),
    /** Makes and stores one. */
    add: async (tx: Repositories, tenantId: string, epoch: number): Promise<void> => {
      const { kek, stored } = makeKek(core, openRoot(), tenantId, epoch);
      try {
        await tx.keks.insert(stored);
      } catch (error) {
        core.release(kek.key);
        throw error;
      }
      keep(tenantId, kek);
    },

    /** Opens all that are stored, and answers how many. When it fails, `clear` follows. */
    unlock: async (read: Repositories, provider: RootProvider): Promise<number> => {
      const stored = await read.keks.list();
      for (const kek of stored) keep(kek.tenantId, openKek(core, provider, kek));
      root = provider;
      return stored.length;
    },
    /**
     * Opens those that another process has stored since, also in the place of one in memory whose
     * unit of work was undone: it is sealed differently. Undefined before `unlock`.
     */
    openStored: async (repositories: Repositories): Promise<readonly StoredKek[] | undefined> => {
      const provider = root;
      if (provider === undefined) return undefined;
      const stored = await repositories.keks.list();
      for (const kek of stored)
        if (find(kek.tenantId, kek.epoch)?.record.equals(kek.record) !== true)
          keep(kek.tenantId, openKek(core, provider, kek));
      return stored;
    },
    /** Takes those out of memory that another process has deleted. */
    dropDeleted: (stored: readonly StoredKek[]): void => {
      const newest = new Map<string, number>();
      for (const { tenantId, epoch } of stored) newest.set(tenantId, Math.max(epoch, newest.get(tenantId) ?? 0));
      for (const tenantId of newest.keys()) persisted.add(tenantId);
      const isStored = new Set(stored.map((kek) => `${kek.tenantId} ${kek.epoch}`));
      // Newer ones than are stored belong to a unit of work that is not committed yet.
      drop((tenantId, epoch) => {
        const last = newest.get(tenantId);
        return last === undefined ? persisted.has(tenantId) : epoch < last && !isStored.has(`${tenantId} ${epoch}`);
      });
    },
    clear: (): void => {
      root = undefined;
      persisted.clear();
      drop(() => true);
    },
    retainStored: async (repositories: Repositories): Promise<void> => {
      const stored = new Set((await repositories.keks.list()).map((kek) => `${kek.tenantId} ${kek.epoch}`));
      drop((tenantId, epoch) => !stored.has(`${tenantId} ${epoch}`));
    },
  };
};
