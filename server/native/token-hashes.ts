// Hashes of bearer tokens, and the keys that hash them. Those of sessions and API tokens are replaced; former ones of API tokens count until
// they are wiped. Keys that hash access_guids and came with snapshots are adopted, by the ids of their records.

import { canonicalJson } from '../base/bytes.ts';
import { serviceTenantId } from '../base/ids.ts';
import type { CryptoCore, KeyRef } from '../ports/crypto-core.ts';
import type { HashKey, KeyRing, TokenPurpose } from '../ports/key-ring.ts';
import type { RecordPlace, StoredRecord } from '../ports/records.ts';
import type { Repositories } from '../ports/store.ts';
import type { KeyRecords } from './key-records.ts';
import {
  type HeldOwnKeys,
  hashKeyOf,
  mac,
  macOf,
  ownKeys,
  type ReplacedKeyAttributes,
  secretAttributes,
} from './own-keys.ts';

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

/** That of an API token names the version of its key: those under a former one are found by it. */
const storedHash = (purpose: TokenPurpose, version: number, digits: string): string =>
  hashKeyOf(purpose) === 'api-token-hash' ? `${version}.${digits}` : digits;
const hashUnder = (core: CryptoCore, key: KeyRef, purpose: TokenPurpose, token: string, version: number): string =>
  storedHash(purpose, version, mac(core, key, `${purpose}\0${token}`));

/** The former keys of API tokens, by version. */
export const createFormerKeys = (core: CryptoCore, own: HeldOwnKeys, { open }: KeyRecords) => {
  const keys = new Map<number, KeyRef>();
  return {
    keys: keys as ReadonlyMap<number, KeyRef>,
    /** Whether any changed. */
    take: (records: readonly StoredRecord[]): boolean => {
      const stored = new Map(records.map((record) => [record.version, record]));
      let changed = false;
      for (const [version, key] of keys) {
        if (stored.delete(version)) continue;
        keys.delete(version);
        core.release(key);
        changed = true;
      }
      for (const [version, { attributes, ...record }] of stored) {
        const place = { ...own.placeOf('api-token-hash'), version, attributes };
        keys.set(version, open({ ...record, ...place }));
        changed = true;
      }
      return changed;
    },
  };
};

export const createTokenHashes = (
  core: CryptoCore,
  own: HeldOwnKeys,
  { adopted, former }: { readonly adopted: AdoptedKeys; readonly former: ReturnType<typeof createFormerKeys> },
  records: KeyRecords,
): Pick<
  KeyRing,
  | 'hashToken'
  | 'formerHashes'
  | 'isFormerTokenHash'
  | 'rotateHashKey'
  | 'wipeFormerTokenKeys'
  | 'refreshHashKey'
  | 'hashKey'
  | 'tokenHashKeys'
  | 'adoptTokenHashKey'
> => {
  const refreshHashKey = async (repositories: Repositories, name: HashKey): Promise<boolean> => {
    const stored = [...(await repositories.records.list(ownKeys[name], name))];
    const record = stored.pop();
    const known = own.has(name) ? own.placeOf(name).version : 0;
    // An older one is that of a look-up that was overtaken.
    if (record === undefined || record.version < known) return false;
    const isNew = record.version > known;
    if (isNew) own.take(name, record);
    return (name === 'api-token-hash' && former.take(stored)) || isNew;
  };
  return {
    hashToken: (purpose, token) => {
      const name = hashKeyOf(purpose);
      const key = own.key(name);
      const { version } = own.placeOf(name);
      if (typeof token === 'string') return hashUnder(core, key, purpose, token, version);
      const message = Buffer.concat([Buffer.from(`${purpose}\0`), token]);
      try {
        return storedHash(purpose, version, macOf(core, key, message));
      } finally {
        core.wipe(message);
      }
    },
    formerHashes: (purpose, token) => {
      if (hashKeyOf(purpose) === 'api-token-hash')
        return [...former.keys].map(([version, key]) => hashUnder(core, key, purpose, token, version));
      return purpose === 'access-guid' ? [...adopted.keys()].map((key) => hashUnder(core, key, purpose, token, 1)) : [];
    },
    isFormerTokenHash: (hash) => !hash.startsWith(`${own.placeOf('api-token-hash').version}.`),
    rotateHashKey: async (tx, name, since) => {
      await refreshHashKey(tx, name);
      const before = own.placeOf(name);
      const attributes = canonicalJson({ algorithm: 'generic', bits: 256, since });
      const key = own.make(name);
      try {
        await tx.records.put(records.seal({ ...before, version: before.version + 1, attributes }, key));
      } finally {
        core.release(key);
      }
      if (name === 'session-hash') await tx.records.wipe(before.objectId, before.version, name);
    },
    wipeFormerTokenKeys: async (tx) => {
      const stored = await tx.records.list(ownKeys['api-token-hash'], 'api-token-hash');
      for (const { objectId, version } of stored.slice(0, -1))
        await tx.records.wipe(objectId, version, 'api-token-hash');
      return Math.max(0, stored.length - 1);
    },
    refreshHashKey,
    hashKey: (name) => ({
      since: (JSON.parse(own.placeOf(name).attributes) as ReplacedKeyAttributes).since ?? null,
      former: name === 'api-token-hash' ? former.keys.size : 0,
    }),
    tokenHashKeys: () => [own.key('token-hash'), ...adopted.keys()],
    adoptTokenHashKey: async (tx, key) => adopted.adopt(tx, key, own.key('token-hash')),
  };
};
