// Keys that hash access_guids and came with snapshots, by the ids of their records.

import { serviceTenantId } from '../base/ids.ts';
import type { CryptoCore, KeyRef } from '../ports/crypto-core.ts';
import type { RecordPlace } from '../ports/records.ts';
import type { Repositories } from '../ports/store.ts';
import type { KeyRecords } from './key-records.ts';
import { mac } from './mac.ts';
import { secretAttributes } from './own-keys.ts';

export type AdoptedKeys = ReturnType<typeof createAdoptedKeys>;

const placeOf = (objectId: string): RecordPlace => ({
  tenantId: serviceTenantId,
  objectId,
  version: 1,
  class: 'adopted-token-hash',
  attributes: secretAttributes,
});

export const createAdoptedKeys = (core: CryptoCore, { seal, open }: KeyRecords) => {
  const adopted = new Map<string, KeyRef>();
  return {
    keys: (): Iterable<KeyRef> => adopted.values(),
    openStored: async (repositories: Repositories): Promise<void> => {
      for (const record of await repositories.records.listClass('adopted-token-hash'))
        if (!adopted.has(record.objectId))
          adopted.set(record.objectId, open({ ...record, ...placeOf(record.objectId) }));
    },
    retainStored: async (repositories: Repositories): Promise<void> => {
      const known = new Set((await repositories.records.listClass('adopted-token-hash')).map((each) => each.objectId));
      for (const [objectId, key] of adopted)
        if (!known.has(objectId)) {
          adopted.delete(objectId);
          core.release(key);
        }
    },
    clear: (): void => {
      for (const key of adopted.values()) core.release(key);
      adopted.clear();
    },
    /** `own`: the service's own key. */
    adopt: async (tx: Repositories, key: KeyRef, own: KeyRef): Promise<void> => {
      const probe = 'which key is this';
      const digest = mac(core, key, probe);
      if ([own, ...adopted.values()].some((each) => mac(core, each, probe) === digest)) return;
      // One place for one key, wherever it came from.
      const digits = mac(core, key, 'object id').slice(0, 32);
      const objectId = [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, digits);
      const record = seal(placeOf(objectId), key);
      await tx.records.put(record);
      adopted.set(objectId, open({ ...record, ...placeOf(objectId) }));
    },
  };
};
