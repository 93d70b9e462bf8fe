// What the directory shows while it reads a change: the state before or the state after, and
// nothing in between. When reading fails, what is shown stays as it is, and no row is reported as
// changed from outside.

import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../server/base/clock.ts';
import { newId } from '../../../server/base/ids.ts';
import type { TdeApplication } from '../../../server/domain/tde.ts';
import { createDirectory } from '../../../server/operations/data-path/directory.ts';
import { credentialOwner, keyOwner } from '../../../server/operations/keys/key-records.ts';
import type { KeyRef } from '../../../server/ports/crypto-core.ts';
import type { Directory } from '../../../server/ports/directory.ts';
import type { Ports } from '../../../server/ports/ports.ts';
import { OwnedRecord, type RecordClass } from '../../../server/ports/records.ts';
import type { Repositories, Store } from '../../../server/ports/store.ts';
import { oneEndpoint } from '../../support/one-endpoint.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog } from '../../support/quiet-log.ts';

const rows = oneEndpoint();
const { tenant, vault, key, endpoint } = rows;
const groupId = newId(3);
const credential = {
  id: newId(5),
  endpointId: endpoint.id,
  accessKeyId: 'DKEACCESSKEYID0000000001',
  createdAt: 5,
  lastUsedAt: null,
};
const application: TdeApplication = {
  ...{ id: newId(7), tenantId: tenant.id, groupId, name: 'erp', appId: 'erp', state: 'enabled' },
  ...{
    tokenLabel: 'erp',
    callers: { networks: [], certificates: [] },
    compatibility: [],
    createdAt: 5,
    integrity: 'ok',
  },
};
const recordOf = (version: number, owner = keyOwner(key), recordClass: RecordClass = 'vault-copy'): OwnedRecord => {
  const sealed = { version, class: recordClass, attributes: '{}', epoch: 1 } as const;
  return new OwnedRecord(owner, { ...sealed, record: Buffer.alloc(8, version) });
};

let store: Store;
/** Replaces reads of the directory. */
let reads: Partial<Repositories>;
let directory: Directory;
/** References that were released, and key encryption keys that the key ring has. */
let released: KeyRef[];
let hasKeks: boolean;
const complaints: string[] = [];

beforeEach(async () => {
  complaints.length = 0;
  released = [];
  reads = {};
  hasKeks = true;
  store = await storeOfTest(systemClock);
  await store.write(async (tx) => {
    await rows.insert(tx);
    await tx.records.put(recordOf(1));
    await tx.groups.insert({
      id: groupId,
      tenantId: tenant.id,
      name: 'group',
      vaultId: vault.id,
      createdAt: 3,
      integrity: 'ok',
    });
    await tx.applications.insert(application);
    await tx.accessGuids.insert({
      ...{ id: newId(8), applicationId: application.id, createdAt: 5, removedAt: null, lastUsedAt: null },
      ...{ hash: 'keyed hash', integrity: 'ok' },
    });
  });
  const read = new Proxy(store.read, { get: (whole, name) => Reflect.get({ ...whole, ...reads }, name) as unknown });
  let references = 0;
  const ring = {
    knows: () => hasKeks,
    refresh: () => (hasKeks ? Promise.resolve() : Promise.reject(new Error('the database does not answer'))),
    open: () => {
      references += 1;
      return references as unknown as KeyRef;
    },
  };
  const core = { release: (reference: KeyRef) => void released.push(reference) };
  directory = createDirectory(
    {
      store: { ...store, read },
      clock: systemClock,
      log: { ...quietLog, error: (message: string) => void complaints.push(message) },
      core: core as unknown as Ports['core'],
      ring: ring as unknown as Ports['ring'],
    },
    { objects: 16, requests: 16 },
  );
  await directory.renew({
    ...{ tenants: [tenant.id], vaults: [vault.id], endpoints: [endpoint.id], applications: [application.id] },
  });
});

const shownKey = () => {
  const view = directory.endpoint('/door');
  return view === undefined ? undefined : directory.key(view, key.id);
};

test('an application that changes is known all the time', async () => {
  const known = (): string | undefined => directory.application('keyed hash')?.application.name;
  expect(known()).toBe('erp');
  await store.write(async (tx) => {
    await tx.applications.get(tenant.id, application.id);
    await tx.applications.update({ ...application, name: 'crm' });
  });
  const meanwhile: unknown[] = [];
  reads = {
    accessGuids: {
      ...store.read.accessGuids,
      list: async (id) => {
        const found = await store.read.accessGuids.list(id);
        meanwhile.push(known());
        return found;
      },
    },
  };
  await directory.renew({ applications: [application.id] });
  expect(meanwhile).toEqual(['erp']);
  expect(known()).toBe('crm');
});

test.each(['applications', 'accessGuids'] as const)(
  'what was refused because its row was changed from outside is used again when the row is genuine: %s',
  async (of) => {
    const known = (): string | undefined => directory.application('keyed hash')?.application.name;
    const tampered = { integrity: 'tampered' } as const;
    reads =
      of === 'applications'
        ? { applications: { ...store.read.applications, stored: async () => ({ ...application, ...tampered }) } }
        : {
            accessGuids: {
              ...store.read.accessGuids,
              list: async (id) => (await store.read.accessGuids.list(id)).map((each) => ({ ...each, ...tampered })),
            },
          };
    await directory.renew({ applications: [application.id] });
    await directory.renewRefused();
    expect(known()).toBeUndefined();
    reads = {};
    await directory.renewRefused();
    expect(known()).toBe('erp');
  },
);

test('a version that is removed is usable as long as it is shown', async () => {
  await store.write(async (tx) => {
    await tx.records.wipe(recordOf(1));
    await tx.records.put(recordOf(2));
  });
  const usable = (): boolean =>
    [...(shownKey()?.versions.values() ?? [])].every((reference) => !released.includes(reference));
  const meanwhile: boolean[] = [];
  reads = {
    keyBindings: {
      ...store.read.keyBindings,
      get: async (id) => {
        const found = await store.read.keyBindings.get(id);
        meanwhile.push(usable());
        return found;
      },
    },
  };
  await directory.renew({ keys: [key.id] });
  expect(meanwhile).toEqual([true]);
  expect([[...(shownKey()?.versions.keys() ?? [])], released]).toEqual([[2], [1]]);
});

test('a database that does not answer takes no key from an endpoint, and is not tampering', async () => {
  reads = {
    records: {
      ...store.read.records,
      of: (owner) => ({
        ...store.read.records.of(owner),
        list: () => Promise.reject(new Error('the database does not answer')),
      }),
    },
  };
  await expect(directory.renew({ keys: [key.id] })).rejects.toThrow('the database does not answer');
  expect([...(shownKey()?.versions.keys() ?? [])]).toEqual([1]);
  reads = {};
  hasKeks = false;
  await expect(directory.renew({ keys: [key.id] })).rejects.toThrow('the database does not answer');
  expect([...(shownKey()?.versions.keys() ?? [])]).toEqual([1]);
  expect([released, complaints]).toEqual([[], []]);
  expect(await store.read.audit.size()).toBe(0);
});

test('nor is a key encryption key of a credential that cannot be read', async () => {
  await store.write(async (tx) => {
    await tx.endpoints.get(tenant.id, endpoint.id);
    await tx.endpoints.insertCredential(tenant.id, credential);
    await tx.records.put(recordOf(1, credentialOwner(endpoint, credential), 'endpoint-secret'));
  });
  hasKeks = false;
  await expect(directory.renew({ endpoints: [endpoint.id] })).rejects.toThrow('the database does not answer');
  expect(directory.endpoint('/door')?.credentials).toEqual([]);
  hasKeks = true;
  await directory.renew({ endpoints: [endpoint.id] });
  expect(directory.endpoint('/door')?.credentials.map(({ id }) => id)).toEqual([credential.id]);
  expect(complaints).toEqual([]);
});

test('a credential that was opened before another one could not be read is released', async () => {
  const second = { ...credential, id: newId(6), accessKeyId: 'DKEACCESSKEYID0000000002', createdAt: 6 };
  await store.write(async (tx) => {
    await tx.endpoints.get(tenant.id, endpoint.id);
    for (const each of [credential, second]) {
      await tx.endpoints.insertCredential(tenant.id, each);
      await tx.records.put(recordOf(1, credentialOwner(endpoint, each), 'endpoint-secret'));
    }
  });
  reads = {
    records: {
      ...store.read.records,
      of: (owner) => ({
        ...store.read.records.of(owner),
        get: (...place) =>
          owner.objectId === second.id
            ? Promise.reject(new Error('the database does not answer'))
            : store.read.records.of(owner).get(...place),
      }),
    },
  };
  await expect(directory.renew({ endpoints: [endpoint.id] })).rejects.toThrow('the database does not answer');
  const [version] = shownKey()?.versions.values() ?? [];
  expect([version, released]).toEqual([1, [2]]);
  reads = {};
  await directory.renew({ endpoints: [endpoint.id] });
  const shown = directory.endpoint('/door')?.credentials.map(({ secret }) => secret);
  expect([shown, released]).toEqual([[3, 4], [2]]);
});

test('a new or changed vault releases the opened keys of its own objects, and of no other vault', async () => {
  const objects = [1, 2].map((number) => {
    const id = newId(100 + number);
    const own = { ...vault, id: newId(200 + number), name: `vault ${number}` };
    return { handle: number, own, key: { ...key, id, kind: 'master' as const, vaultId: own.id } };
  });
  reads = {
    objects: {
      ...store.read.objects,
      get: async (handle) => {
        const found = objects.find((each) => each.handle === handle);
        if (found === undefined) return undefined;
        return {
          ...{ handle, id: found.key.id, tenantId: tenant.id, class: 'secret-key', destroyedAt: null, integrity: 'ok' },
        } as unknown as Awaited<ReturnType<Repositories['objects']['get']>>;
      },
    },
    keys: { ...store.read.keys, stored: async (_, id) => objects.find((each) => each.key.id === id)?.key },
    records: {
      ...store.read.records,
      of: (owner) => ({ ...store.read.records.of(owner), get: async () => recordOf(1, owner, 'sealed-copy') }),
    },
  };
  const use = async () => {
    const used = await directory.withObjectKeys([1, 2], (opened) => opened.map(({ reference }) => reference));
    return used?.value;
  };
  const opened = await use();
  // Renewals of another vault, and of an application without keys, release nothing.
  await directory.renew({ vaults: [newId(300)], applications: [newId(301)] });
  expect([await use(), released]).toEqual([opened, []]);
  await directory.renew({ vaults: [objects[0]?.own.id ?? ''] });
  expect(released).toEqual([opened?.[0]]);
  expect((await use())?.[1]).toBe(opened?.[1]);
});
