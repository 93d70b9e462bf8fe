// What every store promises (ports/store.ts), run for each implementation.

import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { newId } from '../../server/base/ids.ts';
import { systemClock } from '../../server/base/time.ts';
import type { Actor } from '../../server/domain/actor.ts';
import { type Key, newKey } from '../../server/domain/key.ts';
import type { TdeApplication, TdeGroup } from '../../server/domain/tde.ts';
import { everyTenant } from '../../server/domain/tenant.ts';
import type { Vault } from '../../server/domain/vault.ts';
import { newTenant } from '../../server/operations/tenants/create-tenant.ts';
import { OwnedRecord, RecordOwner } from '../../server/ports/key-record.ts';
import type { Repositories, Store } from '../../server/ports/store.ts';
import type { StoredObject } from '../../server/ports/tde-repositories.ts';
import { type PostgresPlace, type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { storedVault } from '../support/stored.ts';

interface Implementation {
  readonly name: string;
  /** Opens a store; the same folder means the same database. */
  open(folder: string): Promise<Store>;
  /** Changes a row behind the store's back. */
  tamper(folder: string, statement: string): void;
}

let postgres: PostgresServer;
const databases = new Map<string, PostgresPlace>();
/** The database that represents a folder. */
const databaseOf = (folder: string): PostgresPlace => {
  const found = databases.get(folder) ?? postgres.createDatabase(`store_${databases.size}`);
  databases.set(folder, found);
  return found;
};
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.remove());

const authenticateRow = (text: string): string =>
  createHmac('sha256', 'row key of the test').update(text).digest('hex');

const implementations: readonly Implementation[] = [
  {
    name: 'sqlite',
    open: (folder) =>
      openStore({
        path: join(folder, 'dke.db'),
        clock: systemClock,
        authenticateRow,
        onFatal: (error) => {
          throw error;
        },
      }),
    tamper: (folder, statement) => {
      const database = new DatabaseSync(join(folder, 'dke.db'));
      database.exec(statement);
      database.close();
    },
  },
  {
    name: 'postgres',
    open: (folder) =>
      openPostgresStore({
        postgres: { ...databaseOf(folder), password: undefined, ca: undefined, readers: 4 },
        clock: systemClock,
        authenticateRow,
        onFatal: (error) => {
          throw error;
        },
      }),
    tamper: (folder, statement) => {
      postgres.run(databaseOf(folder).database, statement);
    },
  },
];

const tenant = newTenant('default', 1);
const actor: Actor = { kind: 'administrator', id: 'a', name: 'a', requestId: 'r-1', peer: null };
const vaultOf = (name: string) => storedVault({ tenantId: tenant.id, name });
const keyOf = (vaultId: string): Key =>
  newKey({ id: newId(3), tenantId: tenant.id, vaultId, name: 'key', createdAt: 3 });

describe.each(implementations)('the $name store', ({ open, tamper }) => {
  let folder: string;
  let store: Store;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-store-'));
    store = await open(folder);
    await store.write((tx) => tx.tenants.insert(tenant));
  });
  afterEach(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('changes and reads continue during a trial, of which nothing stays', async () => {
    const others = newTenant('of others', 2);
    const seen = await store.tryOut(async (tx) => {
      await tx.tenants.insert(newTenant('tried out', 3));
      await store.write((real) => real.tenants.insert(others));
      return (await tx.tenants.list()).map(({ name, integrity }) => `${name} ${integrity}`).toSorted();
    });
    expect(seen).toEqual(['default ok', 'tried out ok']);
    expect((await store.read.tenants.list()).map(({ name }) => name).toSorted()).toEqual(['default', 'of others']);
    await expect(store.tryOut((tx) => tx.tenants.insert(tenant))).rejects.toMatchObject({ code: 'conflict' });
  });

  test('lets other work of the process continue during a walk over many rows', async () => {
    let others = false;
    setImmediate(() => {
      others = true;
    });
    // Hundreds of statements fill a turn of the event loop; the loop's end is only for a walk that
    // never leaves it.
    let asked = 0;
    for (; !others && asked < 100_000; asked++) await store.read.keys.get(everyTenant, 'k');
    expect(asked).toBeLessThan(100_000);
  });

  test('lets a change complete during a walk that fills every iteration of the event loop', async () => {
    let written = false;
    let pages = 0;
    // A page, and then what is made of it, for longer than a turn may be filled with statements.
    const walk = async (): Promise<void> => {
      for (; !written && pages < 1_000; pages++) {
        await store.read.keys.get(everyTenant, 'k');
        for (const until = performance.now() + 5; performance.now() < until; );
      }
    };
    const walking = walk();
    await store.write(async (tx) => {
      for (let each = 0; each < 20; each++) await tx.tenants.list();
    });
    written = true;
    await walking;
    expect(pages).toBeLessThan(1_000);
  });

  test('tells readers that the service stops when they still read while it closes', async () => {
    expect(await store.read.vaults.list(everyTenant, { limit: 1 })).toEqual([]);
    await store.close();
    await expect(store.read.vaults.list(everyTenant, { limit: 1 })).rejects.toMatchObject({
      code: 'unavailable',
      message: 'the service is stopping',
    });
    store = await open(folder);
    expect(await store.read.vaults.list(everyTenant, { limit: 1 })).toEqual([]);
  });

  test('shows to readers what is committed, and nothing before', async () => {
    const vault = vaultOf('one');
    let during: Vault | undefined = vault;
    await store.write(async (tx) => {
      await tx.vaults.insert(vault);
      during = await store.read.vaults.get(tenant.id, vault.id);
      expect(await tx.vaults.get(tenant.id, vault.id)).toEqual(vault);
    });
    expect(during).toBeUndefined();
    expect(await store.read.vaults.get(tenant.id, vault.id)).toEqual(vault);
  });

  test('undoes a unit that throws completely, and keeps its neighbours in the same commit', async () => {
    const [a, b, c] = [vaultOf('a'), vaultOf('b'), vaultOf('c')];
    const results = await Promise.allSettled([
      store.write((tx) => tx.vaults.insert(a)),
      store.write(async (tx) => {
        await tx.vaults.insert(b);
        throw new Error('changed my mind');
      }),
      store.write((tx) => tx.vaults.insert(c)),
    ]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await store.read.vaults.list(tenant.id, { limit: 10 })).map((vault) => vault.name)).toEqual(['a', 'c']);
  });

  test('writes a change and its audit record together or not at all', async () => {
    const vault = vaultOf('audited');
    const work = (fail: boolean) => async (tx: Repositories) => {
      await tx.vaults.insert(vault);
      await tx.audit.append({
        kind: 'vault.created',
        actor,
        tenantId: tenant.id,
        subject: { kind: 'vault', id: vault.id },
        details: { name: vault.name, kind: vault.kind },
      });
      if (fail) throw new Error('no');
    };
    await expect(store.write(work(true))).rejects.toThrow('no');
    const list = () => store.read.audit.list(everyTenant, { order: 'newest' }, { limit: 10 });
    expect(await list()).toEqual([]);
    await store.write(work(false));
    expect(await list()).toMatchObject([{ kind: 'vault.created', subjectId: vault.id, requestId: 'r-1' }]);
  });

  test('refuses an audit field that is not on the list', async () => {
    const details = { name: 'x', secret: 'y' } as unknown as { name: string };
    const work = store.write((tx) =>
      tx.audit.append({
        kind: 'vault.created',
        actor,
        tenantId: tenant.id,
        subject: { kind: 'vault', id: 'v' },
        details,
      }),
    );
    await expect(work).rejects.toMatchObject({ code: 'internal' });
  });

  test('runs units one after another: a counter under 100 writers loses nothing', async () => {
    const handles = await Promise.all(Array.from({ length: 100 }, () => store.write((tx) => tx.objects.nextHandle())));
    expect([...handles].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  test('never gives a handle twice, also after it was closed and opened', async () => {
    expect(await store.write((tx) => tx.objects.nextHandle())).toBe(1);
    await store.close();
    store = await open(folder);
    expect(await store.write((tx) => tx.objects.nextHandle())).toBe(2);
  });

  test('keeps a row as it was given', async () => {
    const vault = vaultOf('v');
    const key: Key = { ...keyOf(vault.id), state: 'soft-deleted', deletedAt: 9, disabledAt: 8, name: 'ключ 🔑' };
    await store.write(async (tx) => {
      await tx.vaults.insert(vault);
      await tx.keys.insert(key);
    });
    expect(await store.read.keys.get(tenant.id, key.id)).toEqual(key);
  });

  test.each([
    "state = 'active'",
    'usages = \'["sign"]\'',
    'disabled_at = null',
    "vault_id = (select id from vaults where name = 'other')",
    "name = 'another'",
    'current_version = 2',
    'bits = 0.5',
  ])('tells a key row that was changed from outside: %s', async (change) => {
    const [vault, other] = [vaultOf('v'), vaultOf('other')];
    const key: Key = { ...keyOf(vault.id), state: 'disabled', disabledAt: 5 };
    await store.write(async (tx) => {
      await tx.vaults.insert(vault);
      await tx.vaults.insert(other);
      await tx.keys.insert(key);
    });
    tamper(folder, `update keys set ${change}`);
    await expect(store.read.keys.get(tenant.id, key.id)).rejects.toMatchObject({ code: 'key-tampered' });
    const seen = await store.read.keys.stored(tenant.id, key.id);
    expect(seen?.integrity).toBe('tampered');
    const update = store.write(async (tx) => {
      if (seen !== undefined) await tx.keys.update(seen);
    });
    await expect(update).rejects.toMatchObject({ code: 'key-tampered' });
  });

  test('finds a row whose authentication code was copied from another row', async () => {
    const [one, two] = [vaultOf('one'), vaultOf('two')];
    await store.write(async (tx) => {
      await tx.vaults.insert(one);
      await tx.vaults.insert({ ...two, state: 'disabled' });
    });
    tamper(
      folder,
      `update vaults set state = 'enabled', row_mac = (select row_mac from vaults where name = 'one') where name = 'two'`,
    );
    expect(await store.read.vaults.stored(everyTenant, two.id)).toMatchObject({ integrity: 'tampered' });
  });

  test('wipes a record', async () => {
    const record = Buffer.alloc(200, 0xc5);
    const owner = new RecordOwner('keys', { tenantId: tenant.id, id: newId(5), integrity: 'ok' }, '{}');
    const sealed = { version: 1, class: 'vault-copy', attributes: '{}', epoch: 1, record } as const;
    const address = { tenantId: tenant.id, objectId: owner.objectId, version: 1, class: 'vault-copy' } as const;
    await store.write((tx) => tx.records.put(new OwnedRecord(owner, sealed)));
    expect((await store.read.records.of(owner).get(1, 'vault-copy'))?.record.equals(record)).toBe(true);
    expect(await store.write((tx) => tx.records.wipe(address))).toBe(true);
    expect(await store.write((tx) => tx.records.wipe(address))).toBe(false);
    expect(await store.read.records.of(owner).get(1, 'vault-copy')).toBeUndefined();
  });

  test('reports the objects of an application and of other groups, their uses, and its newest master key', async () => {
    const [vault, other] = [vaultOf('v'), vaultOf('w')];
    const groups: readonly TdeGroup[] = [vault, other].map(({ id, name }) => ({
      ...{ id: newId(4), tenantId: tenant.id, name, vaultId: id, createdAt: 4, integrity: 'ok' as const },
    }));
    const [here = '', there = ''] = groups.map(({ id }) => id);
    const application: TdeApplication = {
      ...{ id: newId(5), tenantId: tenant.id, groupId: here, name: 'erp', appId: 'erp', state: 'enabled' },
      tokenLabel: 'erp',
      ...{ callers: { networks: ['10.0.0.0/8'], certificates: [] } },
      ...{ compatibility: ['sha1-signatures'], createdAt: 5, integrity: 'ok' },
    };
    const made = [1, 2, 3].map((at) => ({
      ...keyOf(vault.id),
      ...{ id: newId(10 + at), name: `MK${at}`, kind: 'master' as const, applicationId: application.id },
    }));
    const objectOf = ({ id, name }: Key, handle: number): StoredObject => ({
      ...{ handle, id, tenantId: tenant.id, groupId: here, applicationId: application.id, class: 'secret-key' },
      ...{ label: Buffer.from(name).toString('base64'), algorithm: 'aes', bits: 256, usages: ['encrypt'] },
      ...{ sensitive: true, extractable: false, alwaysSensitive: true, neverExtractable: true, modifiable: true },
      ...{ destroyable: true, local: true, private: true, checkValue: null, publicKey: null, attributes: '' },
      ...{
        rules: { mechanisms: ['aes-cbc'] },
        wrappedSensitive: false,
        contentReplacedAt: null,
        createdAt: 6,
        state: 'active',
        integrity: 'ok',
        content: null,
        destroyedAt: null,
      },
    });
    const ids = made.map(({ id }) => id);
    await store.write(async (tx) => {
      for (const each of [vault, other]) await tx.vaults.insert(each);
      for (const each of groups) await tx.groups.insert(each);
      await tx.applications.insert(application);
      for (const [at, key] of made.entries()) {
        await tx.keys.insert(key);
        await tx.objects.insert(objectOf(key, at + 1));
        const sealed = { version: 1, class: 'sealed-copy', attributes: '{}', epoch: 1 } as const;
        const owner = new RecordOwner('keys', key, '{}');
        await tx.records.put(new OwnedRecord(owner, { ...sealed, record: Buffer.alloc(8, 1) }));
      }
    });
    const label = Buffer.from('MK1').toString('base64');
    expect((await store.read.objects.findElsewhere(tenant.id, there, label))?.handle).toBe(1);
    expect(await store.read.objects.findElsewhere(tenant.id, here, label)).toBeUndefined();
    expect(await store.read.objects.newestMasterKey(application.id)).toBe(ids[2]);
    expect(await store.read.objects.countKeys(application.id)).toBe(3);
    expect((await store.read.objects.listByApplication(application.id, 1, 1)).map(({ handle }) => handle)).toEqual([2]);
    expect((await store.read.records.copies(tenant.id, ids)).map(({ objectId }) => objectId).sort()).toEqual(
      ids.toSorted(),
    );

    // The first use stays; all other changes of the object leave both.
    const [first = ''] = ids;
    await store.write((tx) => tx.keys.touch(first, 100, 400));
    await store.write(async (tx) => {
      // From another node, which writes an earlier use later.
      await tx.keys.touch(first, 300, 350);
      const key = await tx.keys.get(tenant.id, first);
      if (key !== undefined) await tx.keys.update({ ...key, name: 'other', firstUsedAt: null, lastUsedAt: null });
      const object = await tx.objects.get(1);
      if (object !== undefined) await tx.objects.update({ ...object, groupId: there });
    });
    expect(await store.read.objects.listByIds([first])).toMatchObject([{ groupId: there, integrity: 'ok' }]);
    const used = { name: 'other', firstUsedAt: 100, lastUsedAt: 400, integrity: 'ok' };
    expect(await store.read.keys.get(tenant.id, first)).toMatchObject(used);
    await store.write((tx) => tx.keys.touch(first, 500, 500));
    expect(await store.read.keys.get(tenant.id, first)).toMatchObject({ ...used, lastUsedAt: 500 });
    expect((await store.read.objects.findElsewhere(tenant.id, here, label))?.handle).toBe(1);

    await store.write(async (tx) => {
      const newest = made[2] && (await tx.keys.get(tenant.id, made[2].id));
      if (newest !== undefined) await tx.keys.update({ ...newest, state: 'destroyed', destroyedAt: 9 });
      await tx.objects.destroy(3, 9);
    });
    expect(await store.read.objects.newestMasterKey(application.id)).toBe(ids[1]);
    expect(await store.read.objects.countKeys(application.id)).toBe(2);
    expect(await store.read.objects.listByApplication(application.id, 0, 10)).toHaveLength(3);
  });

  test('finds and lists what a tenant has in that tenant alone', async () => {
    const other = newTenant('other', 4);
    const [own, foreign] = [vaultOf('same name'), { ...vaultOf('same name'), tenantId: other.id }];
    const keys = [keyOf(own.id), { ...keyOf(foreign.id), tenantId: other.id }];
    await store.write(async (tx) => {
      await tx.tenants.insert(other);
      for (const vault of [own, foreign]) await tx.vaults.insert(vault);
      for (const key of keys) await tx.keys.insert(key);
      for (const each of [tenant, other])
        await tx.audit.append({
          kind: 'tenant.created',
          actor,
          tenantId: each.id,
          subject: { kind: 'tenant', id: each.id },
          details: {},
        });
    });
    const [first, second] = keys;
    expect(await store.read.vaults.get(tenant.id, foreign.id)).toBeUndefined();
    expect(await store.read.vaults.get(everyTenant, foreign.id)).toEqual(foreign);
    expect(await store.read.keys.get(other.id, first?.id ?? '')).toBeUndefined();
    expect(await store.read.vaults.list(other.id, { limit: 10 })).toEqual([foreign]);
    expect(await store.read.keys.list(other.id, {}, { limit: 10 })).toEqual([second]);
    expect(await store.read.keys.list(other.id, { vaultId: own.id }, { limit: 10 })).toEqual([]);
    expect(await store.read.vaults.list(everyTenant, { limit: 10 })).toHaveLength(2);
    const events = await store.read.audit.list(other.id, { order: 'newest' }, { limit: 10 });
    expect(events.map(({ subjectId }) => subjectId)).toEqual([other.id]);
  });

  test('gives a name to one tenant at a time, and the name of a purged one again', async () => {
    const other = newTenant('acme', 4);
    await store.write((tx) => tx.tenants.insert(other));
    await expect(store.write((tx) => tx.tenants.insert(newTenant('acme', 5)))).rejects.toThrow();
    const purge = (tx: Repositories) => tx.tenants.update({ ...other, state: 'purged', purgedAt: 6 });
    await expect(store.write(purge)).rejects.toThrow('has not read');
    await store.write(async (tx) => {
      await tx.tenants.get(other.id);
      await purge(tx);
    });
    expect(await store.read.tenants.findByName('acme')).toBeUndefined();
    const again = newTenant('acme', 7);
    await store.write((tx) => tx.tenants.insert(again));
    expect(await store.read.tenants.findByName('acme')).toEqual(again);
    expect((await store.read.tenants.list()).map(({ state }) => state)).toEqual(['active', 'purged', 'active']);
  });

  test('recognises a tenant whose state was changed from outside', async () => {
    tamper(folder, `update tenants set state = 'deleted' where id = '${tenant.id}'`);
    expect(await store.read.tenants.stored(tenant.id)).toMatchObject({ integrity: 'tampered' });
    await expect(
      store.write(async (tx) => {
        const [found] = await tx.tenants.list();
        if (found !== undefined) await tx.tenants.update({ ...found, state: 'active' });
      }),
    ).rejects.toMatchObject({ code: 'key-tampered' });
  });

  test('refuses work after it was closed', async () => {
    await store.close();
    await expect(store.probe()).rejects.toMatchObject({ code: 'unavailable' });
    store = await open(folder);
  });

  test('pages the audit log by sequence in both orders', async () => {
    for (let index = 0; index < 5; index += 1)
      await store.write((tx) =>
        tx.audit.append({
          kind: 'vault.disabled',
          actor,
          tenantId: tenant.id,
          subject: { kind: 'vault', id: `v${index}` },
          details: {},
        }),
      );
    const newest = await store.read.audit.list(everyTenant, { order: 'newest' }, { limit: 2 });
    expect(newest.map((event) => event.subjectId)).toEqual(['v4', 'v3']);
    const rest = await store.read.audit.list(
      tenant.id,
      { order: 'newest' },
      { limit: 10, after: String(newest.at(-1)?.sequence ?? 0) },
    );
    expect(rest.map((event) => event.subjectId)).toEqual(['v2', 'v1', 'v0']);
    const oldest = await store.read.audit.list(everyTenant, { order: 'oldest', subjectId: 'v3' }, { limit: 10 });
    expect(oldest).toHaveLength(1);
  });
});

// We cannot control old rows in a database server: there the erasure run makes them worthless.
describe('a transaction that PostgreSQL undoes for the sake of another one', () => {
  let folder: string;
  let store: Store;
  let hand: pg.Client;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-store-'));
    store = await (implementations.find(({ name }) => name === 'postgres') as Implementation).open(folder);
    await store.write((tx) => tx.tenants.insert(tenant));
    await store.write((tx) => tx.settings.set('counter', '1'));
    hand = new pg.Client({ ...databaseOf(folder) });
    await hand.connect();
  });
  afterEach(async () => {
    await store.close();
    await hand.end();
    rmSync(folder, { recursive: true, force: true });
  });

  /**
   * A unit whose second statement waits for the hand, which waits for its first: the database ends
   * the unit's transaction.
   */
  const inDeadlock = async (work: (tx: Repositories) => Promise<void>, byHand: string): Promise<void> => {
    // The unit is the one that looks for a deadlock.
    await hand.query("set deadlock_timeout = '1h'; begin; lock table vaults in share mode");
    const begun = Promise.withResolvers<void>();
    const blocked = Promise.withResolvers<void>();
    const unit = store.write(async (tx) => {
      await tx.settings.set('first', '1');
      begun.resolve();
      await blocked.promise;
      await work(tx);
    });
    await begun.promise;
    // Sent before the statement that waits for it; the database takes them in any order.
    const locked = hand.query('lock table settings in share mode');
    blocked.resolve();
    await locked;
    await hand.query(byHand);
    await unit;
  };
  const counter = async (tx: Pick<Repositories, 'settings'>): Promise<number> =>
    Number(await tx.settings.get('counter'));

  test('is done again without running its units of work twice', async () => {
    let ran = 0;
    const work = async (tx: Repositories): Promise<void> => {
      ran += 1;
      await tx.settings.set('counter', String((await counter(tx)) + 1));
      await tx.vaults.insert(vaultOf('behind a lock'));
    };
    await inDeadlock(work, 'commit');
    expect([ran, await counter(store.read)]).toEqual([1, 2]);
    expect((await store.read.vaults.list(tenant.id, { limit: 10 })).map(({ name }) => name)).toEqual(['behind a lock']);
  });

  test('is lost where what it has read is no longer so, and nothing of it remains', async () => {
    const work = async (tx: Repositories): Promise<void> => {
      const found = await counter(tx);
      await tx.vaults.insert(vaultOf('behind a lock'));
      await tx.settings.set('counter', String(found + 1));
    };
    await expect(
      inDeadlock(work, "update settings set value = '7' where name = 'counter'; commit"),
    ).rejects.toMatchObject({ code: 'unavailable' });
    expect(await counter(store.read)).toBe(7);
    expect(await store.read.settings.get('first')).toBeUndefined();
    expect(await store.read.vaults.list(tenant.id, { limit: 10 })).toEqual([]);
    await store.write(async (tx) => tx.settings.set('counter', String((await counter(tx)) + 1)));
    expect(await counter(store.read)).toBe(8);
  });
});

describe('the store that is a file', () => {
  let folder: string;
  let store: Store;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-store-'));
    store = (await implementations[0]?.open(folder)) as Store;
    await store.write((tx) => tx.tenants.insert(tenant));
  });
  afterEach(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('wipes a record of a file: the sealed bytes are no longer in it after a checkpoint', async () => {
    const record = Buffer.alloc(200, 0xc5);
    const owner = new RecordOwner('keys', { tenantId: tenant.id, id: newId(5), integrity: 'ok' }, '{}');
    const sealed = { version: 1, class: 'vault-copy', attributes: '{}', epoch: 1, record } as const;
    const address = { tenantId: tenant.id, objectId: owner.objectId, version: 1, class: 'vault-copy' } as const;
    await store.write((tx) => tx.records.put(new OwnedRecord(owner, sealed)));
    await store.checkpoint();
    const holds = (): boolean =>
      ['dke.db', 'dke.db-wal'].some((name) => readFileSync(join(folder, name)).includes(record.subarray(0, 64)));
    expect(holds()).toBe(true);
    expect(await store.write((tx) => tx.records.wipe(address))).toBe(true);
    expect(await store.write((tx) => tx.records.wipe(address))).toBe(false);
    expect(await store.read.records.of(owner).get(1, 'vault-copy')).toBeUndefined();
    await store.checkpoint();
    expect(holds()).toBe(false);
  });
});
