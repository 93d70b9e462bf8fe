// The key ring over the addon: root, tenants' KEKs, the service's own keys (FORMAT.md has the record layout). Opened KEKs
// stay in the addon's locked memory; here are their references. It does not decide when an erasure run
// happens: operations/root/run-erasure.ts orders its steps.

import { CoreError } from '../../addon/core.ts';
import { canonicalJson, toBase64 } from '../base/bytes.ts';
import { ServiceError } from '../base/errors.ts';
import { idBytes, serviceTenantId } from '../base/ids.ts';
import type { CryptoCore, KeyRef, RecordContext } from '../ports/crypto-core.ts';
import { type HashKey, type KeyRing, RootKeyError, type TokenPurpose } from '../ports/key-ring.ts';
import type { RecordPlace, StoredRecord } from '../ports/records.ts';
import type { RootKey, RootProvider } from '../ports/root-provider.ts';
import type { Repositories, Store, StoredKek } from '../ports/store.ts';
import {
  type AuditKeyAttributes,
  hashKeyOf,
  hashKeys,
  isOwn,
  type OwnKey,
  ownAttributes,
  ownKeys,
  type ReplacedKeyAttributes,
  secretAttributes,
} from './own-keys.ts';

const nothing = new Uint8Array(0);
const recipientLabel = Buffer.from('dke key recipient 1');

interface OpenKek {
  readonly epoch: number;
  readonly key: KeyRef;
}

const contextOf = (place: RecordPlace, epoch: number): RecordContext => ({
  tenant: idBytes(place.tenantId),
  object: idBytes(place.objectId),
  version: place.version,
  epoch,
  class: place.class,
  attributes: Buffer.from(place.attributes, 'utf8'),
});

/** A KEK's record is sealed under a root: its `epoch` is the root's, its `version` the KEK's own. */
const kekContext = (tenantId: string, kekEpoch: number, rootEpoch: number): RecordContext => ({
  tenant: idBytes(tenantId),
  object: idBytes(tenantId),
  version: kekEpoch,
  epoch: rootEpoch,
  class: 'tenant-kek',
  attributes: Buffer.from(canonicalJson({ algorithm: 'kek' }), 'utf8'),
});

export const createKeyRing = (core: CryptoCore): KeyRing => {
  /** By tenant, oldest epoch first; the last one seals. */
  const keks = new Map<string, OpenKek[]>();
  const own = new Map<OwnKey, KeyRef>();
  /** Of the own keys in memory that have been replaced. */
  const replaced = new Map<OwnKey, Pick<RecordPlace, 'version' | 'attributes'>>();
  /** By version: those that API tokens are still accepted under. */
  const formerTokenKeys = new Map<number, KeyRef>();
  /** By object id. */
  const adopted = new Map<string, KeyRef>();
  /** Tenants whose KEK was seen in the store: one that is no longer there was purged. */
  const persisted = new Set<string>();
  let root: RootProvider | undefined;

  const openRoot = (): RootProvider => {
    if (root === undefined) throw new ServiceError('unavailable', 'the service is not unsealed');
    return root;
  };
  const kekOf = (tenantId: string, epoch: number): KeyRef => {
    const found = keks.get(tenantId)?.find((kek) => kek.epoch === epoch);
    if (found === undefined) throw new ServiceError('key-tampered', 'a record names a key epoch that does not exist');
    return found.key;
  };
  const currentKek = (tenantId: string): OpenKek => {
    const found = keks.get(tenantId)?.at(-1);
    if (found === undefined) throw new ServiceError('internal', 'the tenant has no key encryption key');
    return found;
  };
  const ownKey = (name: OwnKey): KeyRef => {
    const key = own.get(name);
    if (key === undefined) throw new ServiceError('unavailable', 'the service is not unsealed');
    return key;
  };
  const keep = (tenantId: string, kek: OpenKek): void => {
    const list = keks.get(tenantId) ?? [];
    list.push(kek);
    list.sort((a, b) => a.epoch - b.epoch);
    keks.set(tenantId, list);
  };

  /** Takes KEKs out of memory. */
  const dropKeks = (goes: (tenantId: string, epoch: number) => boolean): void => {
    for (const [tenantId, open] of keks) {
      const rest = open.filter((kek) => !goes(tenantId, kek.epoch));
      for (const kek of open) if (!rest.includes(kek)) core.release(kek.key);
      if (rest.length === 0) keks.delete(tenantId);
      else keks.set(tenantId, rest);
    }
  };

  const seal = (place: RecordPlace, key: KeyRef): StoredRecord => {
    const kek = currentKek(place.tenantId);
    return { ...place, epoch: kek.epoch, record: core.sealRecord(kek.key, contextOf(place, kek.epoch), key) };
  };
  /** Says which record is at fault where the core says only that it does not open. */
  const opening = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (error instanceof CoreError && (error.code === 'authentication-failed' || error.code === 'format'))
        throw new ServiceError('key-tampered', 'a stored key record does not authenticate', { cause: error });
      throw error;
    }
  };
  const open = (record: StoredRecord): KeyRef => {
    const kek = kekOf(record.tenantId, record.epoch);
    return opening(() => core.openRecord(kek, contextOf(record, record.epoch), record.record));
  };

  /** The HPKE pair of a KEK (addon/FORMAT.md, section 4). The caller releases it. */
  const recipientPair = (kek: KeyRef): KeyRef => {
    const secret = core.hkdf(kek, 'sha256', nothing, recipientLabel, 'generic', 32);
    try {
      return core.deriveHpkeKey(secret);
    } finally {
      core.release(secret);
    }
  };

  const rootFor = (provider: RootProvider, epoch: number): RootKey | undefined => {
    if (provider.current.epoch === epoch) return provider.current;
    return provider.previous?.epoch === epoch ? provider.previous : undefined;
  };
  const openKek = (provider: RootProvider, stored: StoredKek): KeyRef => {
    const from = rootFor(provider, stored.rootEpoch);
    if (from === undefined)
      throw new RootKeyError(
        `the database needs root epoch ${stored.rootEpoch}, and the root key is at ${provider.current.epoch}: ${
          provider.current.epoch < stored.rootEpoch
            ? 'an erasure run has replaced the root key since this copy of it was made: restore the newest copy'
            : 'an erasure run has replaced the root key since this copy of the database was made: restore the newest database'
        }, or start with an empty service and restore a snapshot (docs/snapshots.md)`,
      );
    try {
      return core.openRecord(from.key, kekContext(stored.tenantId, stored.epoch, stored.rootEpoch), stored.record);
    } catch (error) {
      if (error instanceof CoreError && (error.code === 'authentication-failed' || error.code === 'format'))
        throw new RootKeyError('the root key cannot open a key encryption key: restore both from one backup', {
          cause: error,
        });
      throw error;
    }
  };

  const makeKek = (provider: RootProvider, tenantId: string, epoch: number): { kek: OpenKek; stored: StoredKek } => {
    const key = core.generateKek();
    const rootEpoch = provider.current.epoch;
    const record = core.sealRecord(provider.current.key, kekContext(tenantId, epoch, rootEpoch), key);
    return { kek: { epoch, key }, stored: { tenantId, epoch, rootEpoch, record } };
  };
  const addKek = async (tx: Repositories, tenantId: string, epoch: number): Promise<void> => {
    const { kek, stored } = makeKek(openRoot(), tenantId, epoch);
    try {
      await tx.keks.insert(stored);
    } catch (error) {
      core.release(kek.key);
      throw error;
    }
    keep(tenantId, kek);
  };

  const adoptedPlace = (objectId: string): RecordPlace => ({
    tenantId: serviceTenantId,
    objectId,
    version: 1,
    class: 'adopted-token-hash',
    attributes: secretAttributes,
  });
  const ownPlace = (name: OwnKey): RecordPlace => ({
    tenantId: serviceTenantId,
    objectId: ownKeys[name],
    class: name,
    ...(replaced.get(name) ?? { version: 1, attributes: ownAttributes[name] }),
  });
  const makeOwn = (name: OwnKey): KeyRef => {
    if (name === 'audit-signature') return core.generateEc('ed25519');
    return name === 'self-test' ? core.generateAes(256) : core.generateGeneric(32);
  };
  const readAuditAttributes = (): AuditKeyAttributes =>
    JSON.parse(ownPlace('audit-signature').attributes) as AuditKeyAttributes;
  /** The last 32 bytes of a SubjectPublicKeyInfo of RFC 8410 are the key. */
  const publicHalf = (key: KeyRef): Buffer => core.exportPublicKey(key).subarray(-32);
  const takeOwn = (name: OwnKey, record: StoredRecord): void => {
    const { version, attributes } = record;
    const key = open({ ...record, ...ownPlace(name), version, attributes });
    const former = own.get(name);
    own.set(name, key);
    replaced.set(name, { version, attributes });
    if (former !== undefined) core.release(former);
  };
  const refreshAuditKey = async (repositories: Repositories): Promise<void> => {
    const record = (await repositories.records.list(ownKeys['audit-signature'], 'audit-signature')).at(-1);
    // An older one is that of a look-up that was overtaken, or of an older database, which the sealer finds.
    if (record !== undefined && (record.version > ownPlace('audit-signature').version || !own.has('audit-signature')))
      takeOwn('audit-signature', record);
  };
  const takeFormerTokenKeys = (records: readonly StoredRecord[]): boolean => {
    const stored = new Map(records.map((record) => [record.version, record]));
    let changed = false;
    for (const [version, key] of formerTokenKeys) {
      if (stored.delete(version)) continue;
      formerTokenKeys.delete(version);
      core.release(key);
      changed = true;
    }
    for (const [version, { attributes, ...record }] of stored) {
      const place = { ...ownPlace('api-token-hash'), version, attributes };
      formerTokenKeys.set(version, open({ ...record, ...place }));
      changed = true;
    }
    return changed;
  };
  const refreshHashKey = async (repositories: Repositories, name: HashKey): Promise<boolean> => {
    const records = [...(await repositories.records.list(ownKeys[name], name))];
    const record = records.pop();
    const known = own.has(name) ? ownPlace(name).version : 0;
    // An older one is that of a look-up that was overtaken.
    if (record === undefined || record.version < known) return false;
    const isNew = record.version > known;
    if (isNew) takeOwn(name, record);
    return (name === 'api-token-hash' && takeFormerTokenKeys(records)) || isNew;
  };
  const macOf = (key: KeyRef, bytes: Uint8Array): string => {
    const out = Buffer.alloc(32);
    core.mac(key, { algorithm: 'hmac', digest: 'sha256' }, bytes, out);
    return out.toString('hex');
  };
  const mac = (key: KeyRef, text: string): string => macOf(key, Buffer.from(text, 'utf8'));
  /** That of an API token names the version of its key: those under a former one are found by it. */
  const storedHash = (purpose: TokenPurpose, version: number, digits: string): string =>
    hashKeyOf(purpose) === 'api-token-hash' ? `${version}.${digits}` : digits;
  const hashUnder = (key: KeyRef, purpose: TokenPurpose, token: string, version: number): string =>
    storedHash(purpose, version, mac(key, `${purpose}\0${token}`));

  return {
    get unlocked() {
      return own.size === Object.keys(ownKeys).length;
    },
    unlock: async (store: Store, provider: RootProvider) => {
      const stored = await store.read.keks.list();
      // Everything is opened before anything is kept or written: a wrong root key leaves no trace.
      const opened = stored.map((kek) => ({
        tenantId: kek.tenantId,
        kek: { epoch: kek.epoch, key: openKek(provider, kek) },
      }));
      root = provider;
      for (const { tenantId, kek } of opened) keep(tenantId, kek);
      const names = Object.keys(ownKeys) as OwnKey[];
      if (stored.length === 0) {
        await store.write(async (tx) => {
          await addKek(tx, serviceTenantId, 1);
          for (const name of names) {
            const key = makeOwn(name);
            own.set(name, key);
            await tx.records.put(seal(ownPlace(name), key));
          }
        });
        return;
      }
      await refreshAuditKey(store.read);
      if (!own.has('audit-signature'))
        throw new ServiceError('key-tampered', 'the store has lost its audit-signature key');
      for (const name of hashKeys) {
        await refreshHashKey(store.read, name);
        if (!own.has(name)) throw new ServiceError('key-tampered', `the store has lost its ${name} key`);
      }
      for (const name of names) {
        if (own.has(name)) continue;
        const record = await store.read.records.get(ownKeys[name], 1, name);
        if (record === undefined) throw new ServiceError('key-tampered', `the store has lost its ${name} key`);
        own.set(name, open({ ...record, ...ownPlace(name) }));
      }
      for (const record of await store.read.records.listClass('adopted-token-hash'))
        adopted.set(record.objectId, open({ ...record, ...adoptedPlace(record.objectId) }));
    },
    refresh: async (repositories) => {
      if (root === undefined) return;
      const provider = root;
      const stored = await repositories.keks.list();
      for (const kek of stored) {
        if (keks.get(kek.tenantId)?.some(({ epoch }) => epoch === kek.epoch) === true) continue;
        keep(kek.tenantId, { epoch: kek.epoch, key: openKek(provider, kek) });
      }
      if (own.has('audit-signature')) await refreshAuditKey(repositories);
      for (const name of hashKeys) if (own.has(name)) await refreshHashKey(repositories, name);
      for (const record of await repositories.records.listClass('adopted-token-hash'))
        if (!adopted.has(record.objectId))
          adopted.set(record.objectId, open({ ...record, ...adoptedPlace(record.objectId) }));
      const newest = new Map<string, number>();
      for (const { tenantId, epoch } of stored) newest.set(tenantId, Math.max(epoch, newest.get(tenantId) ?? 0));
      for (const tenantId of newest.keys()) persisted.add(tenantId);
      const isStored = new Set(stored.map((kek) => `${kek.tenantId} ${kek.epoch}`));
      // Newer ones than are stored belong to a unit of work that is not committed yet.
      dropKeks((tenantId, epoch) => {
        const last = newest.get(tenantId);
        return last === undefined ? persisted.has(tenantId) : epoch < last && !isStored.has(`${tenantId} ${epoch}`);
      });
    },
    knows: ({ tenantId, epoch }) => keks.get(tenantId)?.some((kek) => kek.epoch === epoch) === true,
    addTenant: (tx, tenantId) => addKek(tx, tenantId, 1),
    dropTenant: async (tx, tenantId) => {
      for (const kek of await tx.keks.list()) if (kek.tenantId === tenantId) await tx.keks.remove(tenantId, kek.epoch);
    },
    retainStored: async (repositories) => {
      const stored = new Set((await repositories.keks.list()).map((kek) => `${kek.tenantId} ${kek.epoch}`));
      dropKeks((tenantId, epoch) => !stored.has(`${tenantId} ${epoch}`));
      const known = new Set((await repositories.records.listClass('adopted-token-hash')).map((each) => each.objectId));
      for (const [objectId, key] of adopted)
        if (!known.has(objectId)) {
          adopted.delete(objectId);
          core.release(key);
        }
    },
    seal,
    open,
    recipient: (tenantId) => {
      const { epoch, key } = currentKek(tenantId);
      const pair = recipientPair(key);
      try {
        return { epoch, publicKey: core.hpkePublicKey(pair) };
      } finally {
        core.release(pair);
      }
    },
    openSealed: async (tenantId, { recipient, sealed, info, bound }, kind) => {
      const kek = keks.get(tenantId)?.find(({ epoch }) => epoch === recipient.epoch);
      if (kek === undefined) return null;
      const pair = recipientPair(kek.key);
      try {
        // The same epoch of another store, before this one was put in its place.
        if (Buffer.compare(core.hpkePublicKey(pair), recipient.publicKey) !== 0) return null;
        if (kind !== 'private') return core.hpkeOpenKey(pair, info, bound, sealed, kind);
        return await core.hpkeOpenKeyLater(pair, info, bound, sealed, kind);
      } catch (error) {
        if (error instanceof CoreError && error.code === 'authentication-failed')
          throw new ServiceError('invalid-ciphertext', 'the sealed key does not open', { cause: error });
        throw error;
      } finally {
        core.release(pair);
      }
    },
    authenticateRow: (text) => mac(ownKey('row-authentication'), text),
    hashToken: (purpose: TokenPurpose, token) => {
      const name = hashKeyOf(purpose);
      const key = ownKey(name);
      const { version } = ownPlace(name);
      if (typeof token === 'string') return hashUnder(key, purpose, token, version);
      const message = Buffer.concat([Buffer.from(`${purpose}\0`), token]);
      try {
        return storedHash(purpose, version, macOf(key, message));
      } finally {
        core.wipe(message);
      }
    },
    formerHashes: (purpose, token) => {
      if (hashKeyOf(purpose) === 'api-token-hash')
        return [...formerTokenKeys].map(([version, key]) => hashUnder(key, purpose, token, version));
      return purpose === 'access-guid' ? [...adopted.values()].map((key) => hashUnder(key, purpose, token, 1)) : [];
    },
    isFormerTokenHash: (hash) => !hash.startsWith(`${ownPlace('api-token-hash').version}.`),
    rotateHashKey: async (tx, name, since) => {
      await refreshHashKey(tx, name);
      const before = ownPlace(name);
      const attributes = canonicalJson({ algorithm: 'generic', bits: 256, since });
      const key = makeOwn(name);
      try {
        await tx.records.put(seal({ ...before, version: before.version + 1, attributes }, key));
      } finally {
        core.release(key);
      }
      if (name === 'session-hash') await tx.records.wipe(before.objectId, before.version, name);
    },
    wipeFormerTokenKeys: async (tx) => {
      const records = await tx.records.list(ownKeys['api-token-hash'], 'api-token-hash');
      for (const { objectId, version } of records.slice(0, -1))
        await tx.records.wipe(objectId, version, 'api-token-hash');
      return Math.max(0, records.length - 1);
    },
    refreshHashKey,
    hashKey: (name) => ({
      since: (JSON.parse(ownPlace(name).attributes) as ReplacedKeyAttributes).since ?? null,
      former: name === 'api-token-hash' ? formerTokenKeys.size : 0,
    }),
    tokenHashKeys: () => [ownKey('token-hash'), ...adopted.values()],
    adoptTokenHashKey: async (tx, key) => {
      const probe = 'which key is this';
      if ([ownKey('token-hash'), ...adopted.values()].some((each) => mac(each, probe) === mac(key, probe))) return;
      // One place for one key, wherever it came from.
      const digits = mac(key, 'object id').slice(0, 32);
      const objectId = [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, digits);
      const record = seal(adoptedPlace(objectId), key);
      await tx.records.put(record);
      adopted.set(objectId, open({ ...record, ...adoptedPlace(objectId) }));
    },
    signAudit: (text) => core.sign(ownKey('audit-signature'), { algorithm: 'ed25519' }, Buffer.from(text, 'utf8')),
    auditPublicKey: () => publicHalf(ownKey('audit-signature')),
    auditKeys: () => [
      { publicKey: publicHalf(ownKey('audit-signature')), until: null },
      ...(readAuditAttributes().former ?? []).map(({ key, origin, size }) => ({
        publicKey: Buffer.from(key, 'base64'),
        until: { origin, size },
      })),
    ],
    auditKeySince: () => readAuditAttributes().since ?? null,
    refreshAuditKey,
    makeAuditKey: () => {
      const key = makeOwn('audit-signature');
      return {
        publicKey: publicHalf(key),
        sign: (text) => core.sign(key, { algorithm: 'ed25519' }, Buffer.from(text, 'utf8')),
        store: async (tx, { origin, size }, since) => {
          await refreshAuditKey(tx);
          const before = ownPlace('audit-signature');
          const { former = [] } = readAuditAttributes();
          const own = { key: toBase64(publicHalf(ownKey('audit-signature'))), origin, size };
          const attributes = canonicalJson({ algorithm: 'ed25519', since, former: [own, ...former] });
          await tx.records.put(seal({ ...before, version: before.version + 1, attributes }, key));
          await tx.records.wipe(before.objectId, before.version, 'audit-signature');
        },
        release: () => core.release(key),
      };
    },
    selfTest: () => {
      const key = ownKey('self-test');
      const plain = Buffer.alloc(32);
      const iv = Buffer.alloc(12);
      core.random(plain);
      core.random(iv);
      const parameters = { algorithm: 'aes-gcm', iv, tagLength: 16 } as const;
      const sealed = Buffer.alloc(48);
      const back = Buffer.alloc(32);
      core.cipher(key, 'encrypt', parameters, plain, sealed);
      core.cipher(key, 'decrypt', parameters, sealed, back);
      if (!core.timingSafeEqual(plain, back)) throw new ServiceError('internal', 'the test key does not round-trip');
    },

    upToDate: async (repositories) => {
      const newest = new Map((await repositories.keks.list()).map((kek) => [kek.tenantId, kek.rootEpoch]));
      return [...newest.values()].every((epoch) => epoch === openRoot().current.epoch);
    },
    addKekEpoch: async (tx, only) => {
      // Those that are stored: a purged tenant may still be in memory for a moment.
      const stored = new Set((await tx.keks.list()).map(({ tenantId }) => tenantId));
      const tenants = [...stored].filter((tenantId) => only === undefined || tenantId === only);
      for (const tenantId of tenants) await addKek(tx, tenantId, currentKek(tenantId).epoch + 1);
      return tenants.length;
    },
    epochs: () => new Map([...keks.keys()].map((tenantId) => [tenantId, currentKek(tenantId).epoch])),
    reseal: (record, place = record) => {
      // Not an audit key that another node has put into the place of the one in memory.
      if (isOwn(record.class) && record.version === ownPlace(record.class).version)
        return seal(ownPlace(record.class), ownKey(record.class));
      const from = kekOf(record.tenantId, record.epoch);
      const to = currentKek(place.tenantId);
      const sealed = opening(() =>
        core.resealRecord(from, contextOf(record, record.epoch), record.record, to.key, contextOf(place, to.epoch)),
      );
      return { ...record, ...place, epoch: to.epoch, record: sealed };
    },
    prove: async (tx) => {
      const provider = openRoot();
      const newest = new Map<string, StoredKek>();
      for (const kek of await tx.keks.list()) newest.set(kek.tenantId, kek);
      for (const [tenantId, kek] of newest) {
        if (kek.rootEpoch !== provider.current.epoch || kek.epoch !== currentKek(tenantId).epoch)
          throw new ServiceError('internal', 'a tenant has no key encryption key under the new root');
        const key = openKek(provider, kek);
        core.release(key);
      }
      // Memory says nothing here: it has the keys of a purged tenant a moment longer than the store.
      const living = (await tx.tenants.list()).filter(({ state }) => state !== 'purged');
      for (const tenantId of [serviceTenantId, ...living.map(({ id }) => id)])
        if (!newest.has(tenantId)) throw new ServiceError('internal', 'a tenant has lost its key encryption key');
    },
    dropOldKeks: async (tx) => {
      for (const kek of await tx.keks.list()) {
        const current = currentKek(kek.tenantId);
        if (kek.epoch >= current.epoch) continue;
        if ((await tx.records.listOlder(kek.tenantId, current.epoch, 1)).length > 0)
          throw new ServiceError('internal', 'a key encryption key is still in use');
        await tx.keks.remove(kek.tenantId, kek.epoch);
      }
    },
  };
};
