// The key ring over the addon, put together: the root key, tenants' key encryption keys, and the
// service's own keys (addon/FORMAT.md has the layout of records). Opened keys stay in the addon's
// locked memory; here are their references.

import type { Core } from '../../../addon/core.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { CryptoCore, KeyRef } from '../../ports/crypto-core.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { RootProvider } from '../../ports/root-provider.ts';
import type { Store } from '../../ports/store.ts';
import { createAuditKey } from './audit-key.ts';
import { createKekRotation } from './kek-rotation.ts';
import { createKeyRecords } from './key-records.ts';
import { createMessageStates } from './message-states.ts';
import { createHeldOwnKeys, hashKeys, isOwn, mac } from './own-keys.ts';
import { createRecipients } from './recipients.ts';
import { createTenantKeks } from './tenant-keks.ts';
import { createAdoptedKeys, createFormerKeys, createTokenHashes } from './token-hashes.ts';

const roundTrip = (core: CryptoCore, key: KeyRef): void => {
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
};

/**
 * The key ring takes the addon itself: its errors tell a record that does not open from one that a
 * caller has sent (key-records.ts).
 */
export const createKeyRing = (core: Core): KeyRing => {
  const keks = createTenantKeks(core);
  const records = createKeyRecords(core, keks);
  const own = createHeldOwnKeys(core, records);
  const adopted = createAdoptedKeys(core, records);
  const former = createFormerKeys(core, records);
  const tokenHashes = createTokenHashes(core, own, { adopted, former }, records);
  const auditKey = createAuditKey(core, own, records);

  /** Opens everything that is stored, or makes it in an empty store. */
  const openAll = async (store: Store, provider: RootProvider): Promise<void> => {
    if ((await keks.unlock(store.read, provider)) === 0) {
      await store.write(async (tx) => {
        await keks.add(tx, serviceTenantId, 1);
        await own.makeAll(tx);
      });
      return;
    }
    await auditKey.refreshAuditKey(store);
    if (!own.has('audit-signature'))
      throw new ServiceError('key-tampered', 'the store has lost its audit-signature key');
    for (const name of hashKeys) {
      await tokenHashes.refreshHashKey(store, name);
      if (!own.has(name)) throw new ServiceError('key-tampered', `the store has lost its ${name} key`);
    }
    await own.openOthers(store.read);
    await adopted.openStored(store.read);
  };

  const close = (): void => {
    for (const each of [keks, own, adopted]) each.clear();
    former.take([]);
  };

  return {
    ...createKekRotation(core, keks),
    ...createRecipients(core, keks),
    ...createMessageStates(keks),
    ...tokenHashes,
    ...auditKey,
    unlock: async (store, provider) => {
      try {
        await openAll(store, provider);
      } catch (error) {
        close();
        throw error;
      }
    },
    close,
    refresh: async (repositories) => {
      const stored = await keks.openStored(repositories);
      if (stored === undefined) return;
      if (own.has('audit-signature')) await auditKey.followAuditKey(repositories);
      for (const name of hashKeys) if (own.has(name)) await tokenHashes.followHashKey(repositories, name);
      await adopted.openStored(repositories);
      keks.dropDeleted(stored);
    },
    knows: ({ tenantId, epoch }) => keks.find(tenantId, epoch) !== undefined,
    addTenant: (tx, tenantId) => keks.add(tx, tenantId, 1),
    aside: () => {
      const besides = createTenantKeks(core, keks);
      const { seal, open } = createKeyRecords(core, besides);
      const brought = createAdoptedKeys(core, { ...records, seal, open });
      return {
        seal,
        open,
        hashNeedsKey: tokenHashes.hashNeedsKey,
        addTenant: (tx, tenantId) => besides.add(tx, tenantId, 1),
        adoptTokenHashKey: (tx, key) => brought.adopt(tx, key, own.key('token-hash')),
        close: () => {
          for (const each of [besides, brought]) each.clear();
        },
      };
    },
    dropTenant: async (tx, tenantId) => {
      for (const kek of await tx.keks.list()) if (kek.tenantId === tenantId) await tx.keks.remove(tenantId, kek.epoch);
    },
    retainStored: async (repositories) => {
      await keks.retainStored(repositories);
      await adopted.retainStored(repositories);
      for (const name of ['audit-signature', ...hashKeys] as const) await own.retain(repositories, name);
    },
    epochs: keks.epochs,
    seal: records.seal,
    open: records.open,
    opens: records.opens,
    reseal: (record) => {
      // Not an audit key that another node has put into the place of the one in memory.
      if (record.tenantId === serviceTenantId && isOwn(record.class) && record.version === own.versionOf(record.class))
        return records.seal(own.ownerOf(record.class), record.version, record.class, own.key(record.class));
      return records.reseal(record);
    },
    authenticateRow: (text, job) =>
      mac(core, job === 'earlier' ? own.key('row-authentication') : own.derived(job), text),
    authenticateAttempt: (text) => mac(core, own.derived('dke sign-in attempts 1'), text),
    selfTest: () => roundTrip(core, own.key('self-test')),
  };
};
