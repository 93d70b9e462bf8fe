// Token objects that were used lately, with their opened keys, and the answers of searches by
// label. A call that has read while something changed reads again. What another cache holds, as the
// vault of a key, is not copied here: it is looked up at each use, so that it is never older than
// there.

import { ServiceError } from '../../base/service-error.ts';
import type { Changes } from '../../domain/changes.ts';
import type { Vault } from '../../domain/vault.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import type { Directory, LoadedObject } from '../../ports/working-memory.ts';
import { keyOwner } from '../keys/key-records.ts';
import { type ObjectPage, readObjectPage } from '../shared/object-pages.ts';
import type { ReadChecks } from './read-checks.ts';

/** Searches by label whose answers are kept, and objects in one of them. */
const mostSearches = 2000;
const mostFoundKept = 16;

interface CachedObject {
  readonly loaded: LoadedObject;
  reference: KeyRef | undefined;
}

type OpenObject = CachedObject & { readonly reference: KeyRef };
const isOpen = (cached: CachedObject): cached is OpenObject => cached.reference !== undefined;

export interface ObjectCache extends Pick<Directory, 'object' | 'findObjects' | 'findElsewhere' | 'withObjectKeys'> {
  /** Drops what these changes are about, and every answer of a search. References go at once. */
  forget(changes: Changes): void;
  dropOfVaults(ids: ReadonlySet<string>): void;
  dropOfTenants(ids: ReadonlySet<string>): void;
  clear(): void;
}

/**
 * The answers of searches by label: databases look for a label again and again. `generation`
 * changes when an answer may have changed.
 */
const createSearchCache = (
  { store }: Pick<Ports, 'store'>,
  generation: () => number,
): Pick<Directory, 'findObjects' | 'findElsewhere'> & { clear(): void } => {
  const found = new Map<string, ObjectPage>();
  const foundElsewhere = new Map<string, StoredObject | undefined>();
  return {
    findElsewhere: async (tenantId, groupId, label) => {
      const name = JSON.stringify([groupId, label]);
      if (foundElsewhere.has(name)) return foundElsewhere.get(name);
      const before = generation();
      const object = await store.read.objects.findElsewhere(tenantId, groupId, label);
      if (before === generation()) {
        if (foundElsewhere.size >= mostSearches) foundElsewhere.clear();
        foundElsewhere.set(name, object);
      }
      return object;
    },
    findObjects: async (filter, limit) => {
      // A list of everything is read once.
      if (filter.label === undefined) return readObjectPage(store.read, filter, limit);
      const name = JSON.stringify([filter.groupId, filter.label, filter.class, filter.after, limit]);
      const known = found.get(name);
      if (known !== undefined) return known;
      const before = generation();
      const page = await readObjectPage(store.read, filter, limit);
      if (before === generation() && page.objects.length <= mostFoundKept) {
        if (found.size >= mostSearches) found.clear();
        found.set(name, page);
      }
      return page;
    },
    clear: () => {
      found.clear();
      foundElsewhere.clear();
    },
  };
};

export const createObjectCache = (
  { store, core, ring }: Pick<Ports, 'store' | 'core' | 'ring'>,
  most: number,
  directory: ReadChecks & { vault(id: string): Vault | undefined },
): ObjectCache => {
  const objects = new Map<number, CachedObject>();
  /** Changes with each `forget`: a load that was under way starts again. */
  let generation = 0;
  const searches = createSearchCache({ store }, () => generation);

  const dropObject = (handle: number): void => {
    const cached = objects.get(handle);
    if (cached === undefined) return;
    objects.delete(handle);
    if (cached.reference !== undefined) core.release(cached.reference);
  };
  const cacheObject = (handle: number, cached: CachedObject): void => {
    objects.delete(handle);
    objects.set(handle, cached);
    const [oldest] = objects.keys();
    if (objects.size > most && oldest !== undefined) dropObject(oldest);
  };

  const dropWhere = (isDropped: (loaded: LoadedObject) => boolean): void => {
    for (const [handle, { loaded }] of objects) if (isDropped(loaded)) dropObject(handle);
  };
  const dropOfTenants = (ids: ReadonlySet<string>): void => dropWhere(({ object }) => ids.has(object.tenantId));
  const dropOfVaults = (ids: ReadonlySet<string>): void =>
    dropWhere(({ key }) => key !== undefined && ids.has(key.vaultId));
  const clear = (): void => dropWhere(() => true);

  const load = async (handle: number): Promise<CachedObject | undefined> => {
    for (;;) {
      const cached = objects.get(handle);
      if (cached !== undefined) {
        cacheObject(handle, cached);
        return cached;
      }
      const before = generation;
      const object = await store.read.objects.get(handle);
      const key =
        object === undefined ||
        object.class === 'data' ||
        object.class === 'certificate' ||
        object.class === 'public-key'
          ? undefined
          : await store.read.keys.stored(object.tenantId, object.id);
      if (before !== generation) continue;
      if (object === undefined || object.destroyedAt !== null) return undefined;
      directory.sound('tde_objects', object);
      if (key !== undefined) directory.sound('keys', key);
      const loaded: LoadedObject = {
        object,
        key,
        get vault() {
          return key === undefined ? undefined : directory.vault(key.vaultId);
        },
      };
      const entry: CachedObject = { loaded, reference: undefined };
      cacheObject(handle, entry);
      return entry;
    }
  };

  /**
   * The object with its key open. Undefined when the key is gone. After awaiting this, check
   * whether it is still so.
   */
  const open = async (handle: number): Promise<OpenObject | undefined> => {
    for (;;) {
      const cached = await load(handle);
      if (cached?.loaded.key === undefined) return undefined;
      if (isOpen(cached)) return cached;
      const before = generation;
      const { key } = cached.loaded;
      const record = await store.read.records.of(keyOwner(key)).get(key.currentVersion, 'sealed-copy');
      if (record !== undefined) await directory.knowKeks([record]);
      if (before !== generation || objects.get(handle) !== cached) continue;
      if (record === undefined) return undefined;
      // Another call may have opened it in the meantime; one reference is enough.
      try {
        cached.reference ??= ring.open(record);
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'key-tampered')
          directory.alarm('key_records', key.id, key.tenantId);
        throw error;
      }
    }
  };

  return {
    object: async (handle) => (await load(handle))?.loaded,
    findElsewhere: searches.findElsewhere,
    findObjects: searches.findObjects,
    withObjectKeys: async (handles, use) => {
      for (;;) {
        const opened: OpenObject[] = [];
        for (const handle of handles) {
          const cached = await open(handle);
          if (cached === undefined) return undefined;
          opened.push(cached);
        }
        // Since each was opened it may have been destroyed, changed, or pushed out: its reference
        // is released then.
        if (opened.every((cached, at) => objects.get(handles[at] ?? 0) === cached)) return { value: use(opened) };
      }
    },
    forget: (changes) => {
      generation += 1;
      searches.clear();
      const tenants = new Set([...(changes.tenants ?? []), ...(changes.restored ?? [])]);
      if (tenants.size > 0) dropOfTenants(tenants);
      const vaults = new Set(changes.vaults);
      const keys = new Set(changes.keys);
      if (vaults.size + keys.size > 0)
        dropWhere(({ object, key }) => keys.has(object.id) || (key !== undefined && vaults.has(key.vaultId)));
      for (const handle of changes.objects ?? []) dropObject(handle);
    },
    dropOfVaults,
    dropOfTenants,
    clear,
  };
};
