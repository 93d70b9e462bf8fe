// Hashes of bearer values, and the keys that hash them. Those of sessions and API tokens are
// replaced; former ones of API tokens count until they are wiped. Access_guids are 256 random bits,
// and a row with a hash needs a code: they are hashed without a key, so that no secret of the
// service has to travel with a tenant. Earlier versions hashed them under `token-hash`, which
// hashes nothing else now; such keys come with snapshots, too, and are adopted, by the ids of their
// records.

import { createHash } from 'node:crypto';

import { canonicalJson } from '../../base/bytes.ts';
import type { CryptoCore, KeyRef } from '../../ports/crypto-core.ts';
import { OwnedRecord, type RecordOwner } from '../../ports/key-record.ts';
import type { HashKey, KeyRing, TokenPurpose } from '../../ports/key-ring.ts';
import type { Repositories } from '../../ports/store.ts';
import type { KeyRecords } from './key-records.ts';
import {
  type HeldOwnKeys,
  hashKeyOf,
  mac,
  macOf,
  type ReplacedKeyAttributes,
  secretAttributes,
  serviceOwner,
} from './own-keys.ts';

export type AdoptedKeys = ReturnType<typeof createAdoptedKeys>;

const ownerOf = (objectId: string): RecordOwner => serviceOwner(objectId, secretAttributes);

export const createAdoptedKeys = (core: CryptoCore, { seal, open }: KeyRecords) => {
  const adopted = new Map<string, KeyRef>();
  return {
    keys: (): Iterable<KeyRef> => adopted.values(),
    openStored: async (repositories: Repositories): Promise<void> => {
      for (const record of await repositories.records.ofService('adopted-token-hash'))
        if (!adopted.has(record.objectId))
          adopted.set(record.objectId, open(new OwnedRecord(ownerOf(record.objectId), record)));
    },
    retainStored: async (repositories: Repositories): Promise<void> => {
      const known = new Set((await repositories.records.ofService('adopted-token-hash')).map((each) => each.objectId));
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
    /**
     * `own`: the service's own key. What is in memory says nothing about what is stored: a dry run,
     * which is taken back, leaves the key in memory until `retainStored`.
     */
    adopt: async (tx: Repositories, key: KeyRef, own: KeyRef): Promise<void> => {
      const probe = 'which key is this';
      const digest = mac(core, key, probe);
      const isSame = (each: KeyRef | undefined): boolean => each !== undefined && mac(core, each, probe) === digest;
      const stored = (await tx.records.ofService('adopted-token-hash')).map((each) => adopted.get(each.objectId));
      if ([own, ...stored].some(isSame)) return;
      // One place for one key, wherever it came from.
      const digits = mac(core, key, 'object id').slice(0, 32);
      const objectId = [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, digits);
      const record = seal(ownerOf(objectId), 1, 'adopted-token-hash', key);
      await tx.records.put(record);
      if (!adopted.has(objectId)) adopted.set(objectId, open(record));
    },
  };
};

/** That of an API token names the version of its key: those under a former one are found by it. */
const storedHash = (purpose: TokenPurpose, version: number, digits: string): string =>
  hashKeyOf(purpose) === 'api-token-hash' ? `${version}.${digits}` : digits;
/** What is hashed. The caller wipes it. */
const messageOf = (purpose: TokenPurpose, token: string | Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${purpose}\0`), typeof token === 'string' ? Buffer.from(token) : token]);

const withoutKey = /^2\.[0-9a-f]{64}$/;
/**
 * What earlier versions hashed under `token-hash` and keep for longer than minutes, in rows that
 * have codes.
 */
const underTokenHash: ReadonlySet<TokenPurpose> = new Set(['access-guid', 'invitation', 'recovery-code']);

/** The former keys of API tokens, by version. */
export const createFormerKeys = (core: CryptoCore, { open }: KeyRecords) => {
  const keys = new Map<number, KeyRef>();
  return {
    keys: keys as ReadonlyMap<number, KeyRef>,
    /** Whether any changed. */
    take: (records: readonly OwnedRecord[]): boolean => {
      const stored = new Map(records.map((record) => [record.version, record]));
      let changed = false;
      for (const [version, key] of keys) {
        if (stored.delete(version)) continue;
        keys.delete(version);
        core.release(key);
        changed = true;
      }
      for (const [version, record] of stored) {
        keys.set(version, open(record));
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
  | 'hashNeedsKey'
  | 'isFormerTokenHash'
  | 'rotateHashKey'
  | 'wipeFormerTokenKeys'
  | 'refreshHashKey'
  | 'followHashKey'
  | 'hashKey'
  | 'adoptTokenHashKey'
> => {
  const follow = async (...[read, name, seen]: Parameters<HeldOwnKeys['follow']>): Promise<boolean> => {
    const found = await own.follow(read, name, seen);
    if (found === undefined) return false;
    return (name === 'api-token-hash' && former.take(found.former)) || found.isNew;
  };
  const followHashKey = (tx: Repositories, name: HashKey): Promise<boolean> => follow(tx, name, 'in a unit of work');
  return {
    hashToken: (purpose, token) => {
      const message = messageOf(purpose, token);
      try {
        const name = hashKeyOf(purpose);
        if (name === null) return `2.${createHash('sha256').update('dke ').update(message).digest('hex')}`;
        if (name === 'dke sign-in hashes 1') return macOf(core, own.derived(name), message);
        return storedHash(purpose, own.versionOf(name), macOf(core, own.key(name), message));
      } finally {
        core.wipe(message);
      }
    },
    formerHashes: (purpose, token) => {
      const message = messageOf(purpose, token);
      try {
        if (hashKeyOf(purpose) === 'api-token-hash')
          return [...former.keys].map(([version, key]) => storedHash(purpose, version, macOf(core, key, message)));
        const all = purpose === 'access-guid' ? [...adopted.keys()] : [];
        const keys = underTokenHash.has(purpose) ? [own.key('token-hash'), ...all] : [];
        return keys.map((key) => macOf(core, key, message));
      } finally {
        core.wipe(message);
      }
    },
    hashNeedsKey: (hash) => !withoutKey.test(hash),
    isFormerTokenHash: (hash) => !hash.startsWith(`${own.versionOf('api-token-hash')}.`),
    rotateHashKey: async (tx, name, since) => {
      await followHashKey(tx, name);
      const before = own.addressOf(name);
      const attributes = canonicalJson({ algorithm: 'generic', bits: 256, since });
      const key = own.make(name);
      try {
        await tx.records.put(records.seal(own.ownerOf(name, attributes), before.version + 1, name, key));
      } finally {
        core.release(key);
      }
      if (name === 'session-hash') await tx.records.wipe(before);
    },
    wipeFormerTokenKeys: async (tx) => {
      const stored = await own.stored(tx, 'api-token-hash');
      for (const record of stored.slice(0, -1)) await tx.records.wipe(record);
      return Math.max(0, stored.length - 1);
    },
    refreshHashKey: ({ read }, name) => follow(read, name, 'committed'),
    followHashKey,
    hashKey: (name) => ({
      since: (JSON.parse(own.attributesOf(name)) as ReplacedKeyAttributes).since ?? null,
      former: name === 'api-token-hash' ? former.keys.size : 0,
    }),
    adoptTokenHashKey: async (tx, key) => adopted.adopt(tx, key, own.key('token-hash')),
  };
};
