// The service's own keys in memory, and the places of their records.

import { ServiceError } from '../base/errors.ts';
import { serviceTenantId } from '../base/ids.ts';
import type { CryptoCore, KeyRef } from '../ports/crypto-core.ts';
import type { RecordPlace, StoredRecord } from '../ports/records.ts';
import type { Repositories } from '../ports/store.ts';
import type { KeyRecords } from './key-records.ts';
import { type OwnKey, ownAttributes, ownKeys } from './own-keys.ts';

export type HeldOwnKeys = ReturnType<typeof createHeldOwnKeys>;

const names = Object.keys(ownKeys) as OwnKey[];

export const createHeldOwnKeys = (core: CryptoCore, { seal, open }: KeyRecords) => {
  const keys = new Map<OwnKey, KeyRef>();
  /** Of those in memory that have been replaced. */
  const replaced = new Map<OwnKey, Pick<RecordPlace, 'version' | 'attributes'>>();

  const placeOf = (name: OwnKey): RecordPlace => ({
    tenantId: serviceTenantId,
    objectId: ownKeys[name],
    class: name,
    ...(replaced.get(name) ?? { version: 1, attributes: ownAttributes[name] }),
  });
  const make = (name: OwnKey): KeyRef => {
    if (name === 'audit-signature') return core.generateEc('ed25519');
    return name === 'self-test' ? core.generateAes(256) : core.generateGeneric(32);
  };
  return {
    has: (name: OwnKey): boolean => keys.has(name),
    key: (name: OwnKey): KeyRef => {
      const key = keys.get(name);
      if (key === undefined) throw new ServiceError('unavailable', 'the service is not unsealed');
      return key;
    },
    /** Of the record of the one in memory. */
    placeOf,
    make,
    /** Makes and stores the first ones. */
    makeAll: async (tx: Repositories): Promise<void> => {
      for (const name of names) {
        const key = make(name);
        keys.set(name, key);
        await tx.records.put(seal(placeOf(name), key));
      }
    },
    /** Opens those that are never replaced. */
    openOthers: async (read: Repositories): Promise<void> => {
      for (const name of names) {
        if (keys.has(name)) continue;
        const record = await read.records.get(ownKeys[name], 1, name);
        if (record === undefined) throw new ServiceError('key-tampered', `the store has lost its ${name} key`);
        keys.set(name, open({ ...record, ...placeOf(name) }));
      }
    },
    clear: (): void => {
      for (const key of keys.values()) core.release(key);
      keys.clear();
      replaced.clear();
    },
    /** Puts the key of this record into the place of the one in memory. */
    take: (name: OwnKey, record: StoredRecord): void => {
      const { version, attributes } = record;
      const key = open({ ...record, ...placeOf(name), version, attributes });
      const former = keys.get(name);
      keys.set(name, key);
      replaced.set(name, { version, attributes });
      if (former !== undefined) core.release(former);
    },
  };
};
