// The keys of endpoints in memory, with every version open in the addon.

import { idBytes } from '../../base/ids.ts';
import type { Key } from '../../domain/key.ts';
import { isExternalKey, refusalOfExternalKey, refusalOfState } from '../../domain/key-policy.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { OwnedRecord } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { XksKeyView } from '../../ports/xks-directory.ts';
import { keyOwner } from '../keys/key-records.ts';
import type { ReadChecks } from './read-checks.ts';

interface HeldKey {
  readonly key: Key;
  readonly view: XksKeyView;
}

export interface HeldKeys {
  readonly held: ReadonlyMap<string, HeldKey>;
  renew(id: string): Promise<void>;
  release(id: string): void;
}

/** `isWanted`: an endpoint has this key. */
export const createHeldKeys = (
  { store, core, ring, log }: Pick<Ports, 'store' | 'core' | 'ring' | 'log'>,
  { sound, alarm, knowKeks }: ReadChecks,
  isWanted: (id: string) => boolean,
): HeldKeys => {
  const keys = new Map<string, HeldKey>();

  const release = (id: string): void => {
    const held = keys.get(id);
    if (held === undefined) return;
    keys.delete(id);
    for (const reference of held.view.versions.values()) core.release(reference);
  };

  /**
   * Opens the versions of a key; versions that are already open stay open. Undefined: one of them
   * cannot be opened, and the key is released.
   */
  const openVersions = (
    key: Key,
    records: readonly OwnedRecord[],
    before: ReadonlyMap<number, KeyRef>,
  ): ReadonlyMap<number, KeyRef> | undefined => {
    const versions = new Map<number, KeyRef>();
    try {
      for (const record of records) versions.set(record.version, before.get(record.version) ?? ring.open(record));
      return versions;
    } catch (error) {
      for (const [version, reference] of versions) if (!before.has(version)) core.release(reference);
      release(key.id);
      alarm('key_records', key.id, key.tenantId);
      log.error('a key of an endpoint cannot be opened', { keyId: key.id, error });
      return undefined;
    }
  };

  const renew = async (id: string): Promise<void> => {
    const key = isWanted(id) ? await store.read.keys.stored(everyTenant, id) : undefined;
    if (key === undefined || !isExternalKey(key) || !sound('keys', key)) {
      release(id);
      return;
    }
    // Everything is read before anything is changed: in between, requests find the key as it was.
    const read = async () => {
      const records = await store.read.records.of(keyOwner(key)).list('vault-copy');
      await knowKeks(records);
      return { records, binding: await store.read.keyBindings.get(id) };
    };
    const { records, binding } = await read().catch((error: unknown) => {
      // A key that may no longer be used is not used until it can be read.
      if (refusalOfState(key) !== null) release(id);
      throw error;
    });
    const before = keys.get(id)?.view.versions ?? new Map<number, KeyRef>();
    const versions = openVersions(key, records, before);
    if (versions === undefined) return;
    keys.set(id, {
      key,
      view: {
        id,
        enabled: refusalOfState(key) === null,
        algorithm: key.algorithm,
        bits: key.bits,
        usages: key.usages,
        refusals: { encrypt: refusalOfExternalKey(key, 'encrypt'), decrypt: refusalOfExternalKey(key, 'decrypt') },
        currentVersion: key.currentVersion,
        versions,
        binding: binding ?? Buffer.concat([idBytes(key.tenantId), idBytes(key.id)]),
      },
    });
    for (const [version, reference] of before) if (!versions.has(version)) core.release(reference);
  };

  return { held: keys, renew, release };
};
