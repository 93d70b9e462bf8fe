// The keys of tenants in memory during units of work: the end of one does not remove a key that
// another one has created.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKeyRing } from '../../../server/adapters/crypto/key-ring.ts';
import { openCore } from '../../../server/adapters/crypto/open-core.ts';
import { openFileRoot } from '../../../server/adapters/roots/file-root.ts';
import { newId, serviceTenantId } from '../../../server/base/ids.ts';
import { rowJobs } from '../../../server/base/row-jobs.ts';
import { systemClock } from '../../../server/base/time.ts';
import type { Tenant } from '../../../server/domain/tenant.ts';
import { retainStoredKeys } from '../../../server/operations/keys/forget-unstored-keys.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import { RecordOwner } from '../../../server/ports/key-record.ts';
import type { KeyRing } from '../../../server/ports/key-ring.ts';
import type { Repositories, Store, StoredKek } from '../../../server/ports/store.ts';
import { sharedFolder } from '../../support/folders.ts';
import { openTestStore } from '../../support/open-store.ts';

const folder = sharedFolder();
let store: Store;
let ring: KeyRing;
beforeAll(async () => {
  const { raw } = openCore({ allowUnlocked: true });
  store = await openTestStore(folder, systemClock);
  ring = createKeyRing(raw);
  await ring.unlock(store, openFileRoot(raw, join(folder, 'root.key'), true));
});
afterAll(() => store?.close());

/**
 * A unit of work that makes the key of a tenant and then waits. `made` resolves when it is there.
 */
const beginTenant = () => {
  const id = newId(Date.now());
  const made = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const done = store.write(async (tx) => {
    await ring.addTenant(tx, id);
    made.resolve();
    await end.promise;
  });
  return { tenantId: id, made: made.promise, end, done };
};

test('of a unit of work that is not committed yet: kept, and usable in it and after it', async () => {
  const { tenantId, made, end, done } = beginTenant();
  await made;
  const retained = retainStoredKeys({ store, ring });
  // Its own reads have ended by then.
  await store.read.keks.list();
  expect(ring.knows({ tenantId, epoch: 1 })).toBe(true);
  end.resolve();
  await Promise.all([done, retained]);
  expect(ring.knows({ tenantId, epoch: 1 })).toBe(true);
});

test('of one that failed: gone', async () => {
  const { tenantId, made, end, done } = beginTenant();
  await made;
  end.reject(new Error('it fails'));
  await expect(done).rejects.toThrow('it fails');
  expect(ring.knows({ tenantId, epoch: 1 })).toBe(true);
  await retainStoredKeys({ store, ring });
  expect(ring.knows({ tenantId, epoch: 1 })).toBe(false);
});

test('of one that was taken back, and done again before its key is gone: the stored one opens', async () => {
  const { core, raw } = openCore({ allowUnlocked: true });
  const first = beginTenant();
  await first.made;
  first.end.reject(new Error('it is taken back'));
  await expect(first.done).rejects.toThrow('it is taken back');
  const { tenantId } = first;
  const key = core.generateGeneric(32);
  const owner = new RecordOwner('keys', { tenantId, id: newId(Date.now()), integrity: 'ok' }, '{}');
  const record = await store.write(async (tx) => {
    await ring.addTenant(tx, tenantId);
    const sealed = ring.seal(owner, 1, 'vault-copy', key);
    core.release(ring.open(sealed));
    return sealed;
  });
  await retainStoredKeys({ store, ring });
  core.release(ring.open(record));
  const started = createKeyRing(raw);
  await started.unlock(store, openFileRoot(raw, join(folder, 'root.key'), false));
  core.release(started.open(record));
  core.release(key);
});

test('of one that is under way while another one, before it, failed: only that one’s is gone', async () => {
  const first = beginTenant();
  const second = beginTenant();
  await first.made;
  first.end.reject(new Error('it fails'));
  await expect(first.done).rejects.toThrow('it fails');
  await second.made;
  const retained = retainStoredKeys({ store, ring });
  second.end.resolve();
  await Promise.all([second.done, retained]);
  expect([first, second].map(({ tenantId }) => ring.knows({ tenantId, epoch: 1 }))).toEqual([false, true]);
});

describe('that is not stored', () => {
  test('and replaced one of the service itself is not used after its unit of work was undone', async () => {
    const own = mkdtempSync(join(tmpdir(), 'dke-key-ring-own-'));
    const { raw } = openCore({ allowUnlocked: true });
    const fresh = createKeyRing(raw);
    const opened = await openTestStore(own, systemClock, async (tx) => {
      await fresh.refresh(tx);
      await fresh.retainStored(tx);
    });
    try {
      await fresh.unlock(opened, openFileRoot(raw, join(own, 'root.key'), true));
      const inMemory = () => [
        ...(['session', 'api-token'] as const).map((purpose) => fresh.hashToken(purpose, 'value')),
        fresh.auditPublicKey().toString('hex'),
      ];
      const before = inMemory();
      const undone = opened.write(async (tx) => {
        await fresh.rotateHashKey(tx, 'session-hash', 1);
        await fresh.rotateHashKey(tx, 'api-token-hash', 1);
        const next = fresh.makeAuditKey();
        await next.store(tx, { origin: 'log', size: 1 }, 1);
        next.release();
        // Follows the new keys, as another unit of work of the same transaction does, which sees
        // them.
        await fresh.followHashKey(tx, 'session-hash');
        await fresh.followHashKey(tx, 'api-token-hash');
        await fresh.followAuditKey(tx);
        expect(inMemory().filter((each) => before.includes(each))).toEqual([]);
        throw new Error('it fails');
      });
      await expect(undone).rejects.toThrow('it fails');
      // What was committed is never taken back: a row may be hidden for a moment.
      await opened.write(async () => expect(inMemory()).toEqual(before));
      await opened.write((tx) => fresh.rotateHashKey(tx, 'session-hash', 2));
      await fresh.refreshHashKey(opened, 'session-hash');
      const [after] = inMemory();
      expect(before).not.toContain(after);
      const hiding = { ...opened.read, records: { ...opened.read.records, of: () => ({ list: async () => [] }) } };
      await fresh.retainStored(hiding as unknown as Repositories);
      await fresh.refreshHashKey({ read: hiding as unknown as Repositories }, 'session-hash');
      expect(inMemory()).toEqual([after, ...before.slice(1)]);
    } finally {
      await opened.close();
      fresh.close();
      rmSync(own, { recursive: true });
    }
  });

  test('has gone before anything else is written, without being asked', async () => {
    const own = mkdtempSync(join(tmpdir(), 'dke-key-ring-undone-'));
    const { raw } = openCore({ allowUnlocked: true });
    const fresh = createKeyRing(raw);
    const opened = await openTestStore(own, systemClock, async (tx) => {
      await fresh.refresh(tx);
      await fresh.retainStored(tx);
    });
    try {
      await fresh.unlock(opened, openFileRoot(raw, join(own, 'root.key'), true));
      const tenantId = newId(1);
      const failing = opened.write(async (tx) => {
        await fresh.addTenant(tx, tenantId);
        throw new Error('it fails');
      });
      // In the same transaction or in the next one: each finds what is stored.
      const knows = () => fresh.knows({ tenantId, epoch: 1 });
      const others = [opened.write(async () => knows()), opened.write(async () => knows())];
      await expect(failing).rejects.toThrow('it fails');
      expect(await Promise.all(others)).toEqual([false, false]);
      // A new epoch that is not stored seals nothing.
      await expect(
        opened.write(async (tx) => {
          await fresh.addKekEpoch(tx);
          throw new Error('it fails again');
        }),
      ).rejects.toThrow('it fails again');
      expect(await opened.write(async () => fresh.epochs().get(serviceTenantId))).toBe(1);
    } finally {
      await opened.close();
      rmSync(own, { recursive: true, force: true });
    }
  });

  test('gives way to the one that another node has stored under its name', async () => {
    const { core, raw } = openCore({ allowUnlocked: true });
    const other = createKeyRing(raw);
    await other.unlock(store, openFileRoot(raw, join(folder, 'root.key'), false));
    const undone = beginTenant();
    await undone.made;
    undone.end.reject(new Error('it is undone'));
    await expect(undone.done).rejects.toThrow('it is undone');
    const { tenantId } = undone;
    await store.write((tx) => other.addTenant(tx, tenantId));
    const key = core.generateGeneric(32);
    const owner = new RecordOwner('keys', { tenantId, id: newId(Date.now()), integrity: 'ok' }, '{}');
    const record = other.seal(owner, 1, 'vault-copy', key);
    await ring.refresh(store.read);
    core.release(ring.open(record));
    core.release(key);
    other.close();
  });

  test('is in a ring of a trial only, which goes with it', async () => {
    const { core, raw } = openCore({ allowUnlocked: true });
    const fresh = createKeyRing(raw);
    await fresh.unlock(store, openFileRoot(raw, join(folder, 'root.key'), false));
    const before = core.memoryStatus().keys;
    const aside = fresh.aside();
    const tenantId = newId(Date.now());
    await store.tryOut(async (tx) => {
      await aside.addTenant(tx, tenantId);
      const key = core.generateGeneric(32);
      await aside.adoptTokenHashKey(tx, key);
      for (const each of [tenantId, serviceTenantId]) {
        const owner = new RecordOwner('keys', { tenantId: each, id: newId(1), integrity: 'ok' }, '{}');
        core.release(aside.open(aside.seal(owner, 1, 'vault-copy', key)));
      }
      core.release(key);
    });
    expect(fresh.knows({ tenantId, epoch: 1 })).toBe(false);
    aside.close();
    expect(core.memoryStatus().keys).toBe(before);
    fresh.close();
  });
});

describe('proved', () => {
  /** A tenant with its key, committed. */
  const makeTenant = async (name: string): Promise<Tenant> => {
    const tenant = newTenant(name, systemClock.now());
    await store.write(async (tx) => {
      await tx.tenants.insert(tenant);
      await ring.addTenant(tx, tenant.id);
    });
    return tenant;
  };
  const proved = () => store.write((tx) => ring.prove(tx), { durable: false });

  test('while a tenant that was purged still has its key in memory', async () => {
    const tenant = await makeTenant('purged');
    await store.write(async (tx) => {
      await tx.tenants.get(tenant.id);
      await tx.tenants.update({ ...tenant, state: 'purged', purgedAt: systemClock.now() });
      await ring.dropTenant(tx, tenant.id);
    });
    expect(ring.knows({ tenantId: tenant.id, epoch: 1 })).toBe(true);
    await proved();
    await retainStoredKeys({ store, ring });
    await proved();
  });

  test('during a unit of work that creates a tenant: after it has ended', async () => {
    const { made, end, done } = beginTenant();
    await made;
    const both = Promise.all([done, proved()]);
    end.resolve();
    await both;
  });

  test('never when the store has lost the key of a tenant that is not purged, or of the service', async () => {
    const tenant = await makeTenant('lost');
    class TakenBack extends Error {}
    for (const tenantId of [tenant.id, serviceTenantId])
      await expect(
        store.write(async (tx) => {
          await ring.dropTenant(tx, tenantId);
          await expect(ring.prove(tx)).rejects.toThrow('a tenant has lost its key encryption key');
          throw new TakenBack();
        }),
      ).rejects.toThrow(TakenBack);
    await proved();
  });
});

test('of API tokens: a rotation on another node is followed, and former keys are accepted until they end', async () => {
  const { raw } = openCore({ allowUnlocked: true });
  const other = createKeyRing(raw);
  await other.unlock(store, openFileRoot(raw, join(folder, 'root.key'), false));
  const rings = [ring, other];
  const hashes = () => rings.map((each) => each.hashToken('api-token', 'value'));
  const former = () => rings.map((each) => each.formerHashes('api-token', 'value'));
  const untouched = () => (['access-guid', 'session'] as const).map((purpose) => ring.hashToken(purpose, 'value'));
  const follow = () => Promise.all(rings.map((each) => each.refreshHashKey(store, 'api-token-hash')));
  const others = untouched();
  const [first = ''] = hashes();
  expect(first).toMatch(/^1\.[0-9a-f]{64}$/);
  expect([hashes(), former()]).toEqual([
    [first, first],
    [[], []],
  ]);

  await store.write((tx) => other.rotateHashKey(tx, 'api-token-hash', 1_000));
  expect([await follow(), await follow()]).toEqual([
    [true, true],
    [false, false],
  ]);
  const [second = ''] = hashes();
  expect([hashes(), former()]).toEqual([
    [second, second],
    [[first], [first]],
  ]);
  expect(ring.hashKey('api-token-hash')).toEqual({ since: 1_000, former: 1 });
  expect(rings.map((each) => [first, second].map((hash) => each.isFormerTokenHash(hash)))).toEqual([
    [true, false],
    [true, false],
  ]);
  await store.write((tx) => ring.rotateHashKey(tx, 'api-token-hash', 2_000));
  await follow();
  expect(former()).toEqual([
    [first, second],
    [first, second],
  ]);

  const undone = store.write(async (tx) => {
    await ring.wipeFormerTokenKeys(tx);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  expect(await follow()).toEqual([false, false]);
  expect(await store.write((tx) => ring.wipeFormerTokenKeys(tx))).toBe(2);
  expect(await follow()).toEqual([true, true]);
  expect(former()).toEqual([[], []]);
  expect(hashes()[0]).toBe(hashes()[1]);
  expect(untouched()).toEqual(others);
});

test('the key that snapshots of earlier versions had keys nothing of sign-ins, and an access_guid needs no key', async () => {
  const { core } = openCore({ allowUnlocked: true });
  const [record] = await store.read.records.ofService('token-hash');
  if (record === undefined) throw new Error('there is a key');
  const travelled = ring.open(record);
  const under = (text: string): string => {
    const out = Buffer.alloc(32);
    core.mac(travelled, { algorithm: 'hmac', digest: 'sha256' }, Buffer.from(text), out);
    return out.toString('hex');
  };
  for (const purpose of ['invitation', 'recovery-code', 'sign-in-attempt', 'sign-in-failures'] as const) {
    const hash = ring.hashToken(purpose, 'value');
    expect([hash, ring.hashToken(purpose, Buffer.from('value'))]).toEqual([hash, hash]);
    expect(hash).not.toBe(under(`${purpose}\0value`));
    // Rows of earlier versions that have codes stay valid; those of minutes, which have none, do
    // not.
    const isKept = purpose === 'invitation' || purpose === 'recovery-code';
    expect(ring.formerHashes(purpose, 'value')).toEqual(isKept ? [under(`${purpose}\0value`)] : []);
  }
  const codes = ['text', 'other'].map((text) => ring.authenticateAttempt(text));
  const ofRows = ([...rowJobs, 'earlier'] as const).map((job) => ring.authenticateRow('text', job));
  const all = [...codes, under('text'), ...ofRows, ring.hashToken('sign-in-attempt', 'text')];
  expect(new Set(all).size).toBe(all.length);
  expect(ring.hashToken('access-guid', 'value')).toBe(
    `2.${createHash('sha256').update('dke access-guid\0value').digest('hex')}`,
  );
  expect(ring.formerHashes('access-guid', 'value')).toEqual([under('access-guid\0value')]);
  expect([ring.hashToken('access-guid', 'value'), under('access-guid\0value')].map(ring.hashNeedsKey)).toEqual([
    false,
    true,
  ]);
});

test('a key that a unit of work has adopted and taken back is stored by the next one', async () => {
  const { core } = openCore({ allowUnlocked: true });
  const key = core.generateGeneric(32);
  const stored = () => store.read.records.ofService('adopted-token-hash');
  const before = (await stored()).length;
  const undone = store.write(async (tx) => {
    await ring.adoptTokenHashKey(tx, key);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  expect(await stored()).toHaveLength(before);
  for (let times = 0; times < 2; times += 1) await store.write((tx) => ring.adoptTokenHashKey(tx, key));
  expect(await stored()).toHaveLength(before + 1);
  const hashes = ring.formerHashes('access-guid', 'value');
  await retainStoredKeys({ store, ring });
  expect(ring.formerHashes('access-guid', 'value')).toEqual(hashes);
  core.release(key);
});

test('of sessions: a rotation on another node is followed, and a rotation that is undone changes nothing', async () => {
  const { raw } = openCore({ allowUnlocked: true });
  const other = createKeyRing(raw);
  await other.unlock(store, openFileRoot(raw, join(folder, 'root.key'), false));
  const hashes = () => [ring, other].map((each) => each.hashToken('session', 'value'));
  const tokens = () => [ring, other].map((each) => each.hashToken('api-token', 'value'));
  const [before = ''] = hashes();
  const [token = ''] = tokens();
  expect(hashes()).toEqual([before, before]);

  const undone = store.write(async (tx) => {
    await ring.rotateHashKey(tx, 'session-hash', Date.now());
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  expect(await ring.refreshHashKey(store, 'session-hash')).toBe(false);
  expect(hashes()).toEqual([before, before]);

  await store.write((tx) => ring.rotateHashKey(tx, 'session-hash', Date.now()));
  expect(await ring.refreshHashKey(store, 'session-hash')).toBe(true);
  const [after = ''] = hashes();
  expect(after).not.toBe(before);
  expect(hashes()).toEqual([after, before]);
  expect([
    await other.refreshHashKey(store, 'session-hash'),
    await other.refreshHashKey(store, 'session-hash'),
  ]).toEqual([true, false]);
  expect(hashes()).toEqual([after, after]);
  expect(tokens()).toEqual([token, token]);
  // Two nodes one after the other.
  await store.write((tx) => other.rotateHashKey(tx, 'session-hash', Date.now()));
  expect([await ring.refreshHashKey(store, 'session-hash'), await other.refreshHashKey(store, 'session-hash')]).toEqual(
    [true, true],
  );
  expect(new Set([...hashes(), before, after]).size).toBe(3);
});

describe('an unlock that fails', () => {
  test('over a key encryption key that does not open, or a key that is lost, leaves no key in memory', async () => {
    await store.write((tx) => ring.addTenant(tx, newId(Date.now())));
    const { raw: core } = openCore({ allowUnlocked: true });
    const root = openFileRoot(core, join(folder, 'root.key'), false);
    const before = core.memoryStatus().keys;
    const { keks, records } = store.read;
    const spoil = (kek: StoredKek): StoredKek => {
      const record = Buffer.from(kek.record);
      record.writeUInt8(record.readUInt8(record.length - 1) ^ 1, record.length - 1);
      return { ...kek, record };
    };
    const spoilt: Partial<Repositories> = {
      keks: {
        ...keks,
        list: async () => (await keks.list()).map((kek, at, all) => (at < all.length - 1 ? kek : spoil(kek))),
      },
    };
    const lost: Partial<Repositories> = {
      records: {
        ...records,
        of: (owner) => ({
          ...records.of(owner),
          get: async (version, name) => (name === 'self-test' ? undefined : records.of(owner).get(version, name)),
        }),
      },
    };
    for (const [reads, message] of [
      [spoilt, 'the root key cannot open a key encryption key'],
      [lost, 'the store has lost its self-test key'],
    ] as const) {
      const other = createKeyRing(core);
      await expect(other.unlock({ ...store, read: { ...store.read, ...reads } }, root)).rejects.toThrow(message);
      expect(core.memoryStatus().keys).toBe(before);
    }
  });

  test('at the commit of a first start leaves no key in memory, and the next one succeeds', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'dke-key-ring-first-'));
    const fresh = await openTestStore(empty, systemClock);
    try {
      const { raw: core } = openCore({ allowUnlocked: true });
      const root = openFileRoot(core, join(empty, 'root.key'), true);
      const before = core.memoryStatus().keys;
      const first = createKeyRing(core);
      const failing: Store = {
        ...fresh,
        write: (work) =>
          fresh.write(async (tx) => {
            await work(tx);
            throw new Error('the commit fails');
          }),
      };
      await expect(first.unlock(failing, root)).rejects.toThrow('the commit fails');
      expect(core.memoryStatus().keys).toBe(before);

      await first.unlock(fresh, root);
      const key = core.generateAes(256);
      const owner = new RecordOwner('keys', { tenantId: serviceTenantId, id: newId(1), integrity: 'ok' }, '{}');
      const record = first.seal(owner, 1, 'vault-copy', key);
      expect(core.describe(first.open(record))).toEqual(core.describe(key));
    } finally {
      await fresh.close();
      rmSync(empty, { recursive: true, force: true });
    }
  });
});
