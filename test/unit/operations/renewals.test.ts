// What the directory shows while it reads a change: the state before or the state after, and
// nothing in between. When reading fails, what is shown stays as it is, and no row is reported as
// changed from outside.

import { beforeEach, expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import { systemClock } from '../../../server/base/time.ts';
import type { Changes } from '../../../server/domain/changes.ts';
import type { TdeApplication } from '../../../server/domain/tde.ts';
import { createDirectory } from '../../../server/operations/data-path/create-working-memory.ts';
import { credentialOwner, keyOwner } from '../../../server/operations/keys/key-records.ts';
import { defaultTenantSetting } from '../../../server/operations/shared/find.ts';
import { usesAdmitted } from '../../../server/operations/tde/token-key-pipeline.ts';
import type { KeyRef } from '../../../server/ports/crypto-core.ts';
import { OwnedRecord, type RecordClass } from '../../../server/ports/key-record.ts';
import type { Ports } from '../../../server/ports/ports.ts';
import type { Repositories, Store } from '../../../server/ports/store.ts';
import type { Directory } from '../../../server/ports/working-memory.ts';
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

/** Master keys, each in a vault of its own, that the directory finds by these handles. */
const tokenKeys = (...handles: readonly number[]) => {
  const objects = handles.map((handle) => {
    const id = newId(100 + handle);
    const own = { ...vault, id: newId(200 + handle), name: `vault ${handle}` };
    return { handle, own, key: { ...key, id, kind: 'master' as const, vaultId: own.id } };
  });
  reads = {
    vaults: { ...store.read.vaults, stored: async (_, id) => objects.find(({ own }) => own.id === id)?.own },
    objects: {
      ...store.read.objects,
      get: async (handle) => {
        const found = objects.find((each) => each.handle === handle);
        if (found === undefined) return undefined;
        return {
          ...{ handle, id: found.key.id, tenantId: tenant.id, class: 'secret-key', destroyedAt: null, integrity: 'ok' },
          ...{ usages: ['decrypt'], wrappedSensitive: false },
        } as unknown as Awaited<ReturnType<Repositories['objects']['get']>>;
      },
    },
    keys: { ...store.read.keys, stored: async (_, id) => objects.find((each) => each.key.id === id)?.key },
    records: {
      ...store.read.records,
      of: (owner) => ({ ...store.read.records.of(owner), get: async () => recordOf(1, owner, 'sealed-copy') }),
    },
  };
  return objects;
};
const oneTokenKey = () => {
  const [one] = tokenKeys(1);
  if (one === undefined) throw new Error('no key');
  return one;
};
/** What a caller may do with the key of this handle. */
const admitted = async (handle: number): Promise<readonly string[]> => {
  const loaded = await directory.object(handle);
  return loaded === undefined ? [] : usesAdmitted(loaded);
};
const openedRefs = async (...handles: readonly number[]): Promise<readonly KeyRef[] | undefined> =>
  (await directory.withObjectKeys(handles, (opened) => opened.map(({ reference }) => reference)))?.value;

test.each([
  ['while its vault is read', {}],
  ['while a restored tenant is read before its vault', { restored: [newId(400)] }],
])('a key that is loaded %s follows the change of the vault', async (_when, before: Changes) => {
  const { own } = oneTokenKey();
  await directory.renew({ vaults: [own.id] });
  const held = await directory.object(1);
  expect(await admitted(1)).toEqual(['decrypt']);
  const meanwhile: unknown[] = [];
  const load = async (): Promise<void> => {
    meanwhile.push(await openedRefs(1));
  };
  const change = { ...own, state: 'disabled' as const };
  reads = {
    ...reads,
    vaults: {
      ...store.read.vaults,
      stored: async () => {
        await load();
        return change;
      },
    },
    applications: {
      ...store.read.applications,
      list: async () => {
        await load();
        return [];
      },
    },
  };
  await Promise.all([directory.renew(before), directory.renew({ vaults: [own.id] })]);
  expect(meanwhile.length).toBeGreaterThan(0);
  expect(await admitted(1)).toEqual([]);
  // Who found the key before sees it as it is now.
  expect(held && usesAdmitted(held)).toEqual([]);
  // Nothing that was opened in the meantime is left open.
  expect(released).toEqual(expect.arrayContaining(meanwhile.flat()));
});

test('a key that is being read when it changes is not kept as it was', async () => {
  const { handle, key: before } = oneTokenKey();
  const after = { ...before, disabledAt: 7 };
  const answers = [before, after];
  reads = {
    ...reads,
    keys: {
      ...store.read.keys,
      stored: async () => {
        const read = answers.shift() ?? after;
        if (read === before) directory.forget({ keys: [before.id] });
        return read;
      },
    },
  };
  expect((await directory.object(handle))?.key).toBe(after);
  expect((await directory.object(handle))?.key).toBe(after);
});

test('a change that comes during the first load is shown, whatever that has read before', async () => {
  await store.write((tx) => tx.decisions.set(defaultTenantSetting, tenant.id));
  const disabled = { ...vault, state: 'disabled' as const };
  let shown: Promise<void> | undefined;
  reads = {
    vaults: {
      ...store.read.vaults,
      stored: async () => disabled,
      list: async (...asked) => {
        const found = await store.read.vaults.list(...asked);
        if (shown === undefined) {
          shown = directory.renew({ vaults: [vault.id] });
          // Nothing that the change reads waits for more than this.
          await new Promise((resolve) => setImmediate(resolve));
        }
        return found;
      },
    },
  };
  await directory.load();
  await shown;
  expect(directory.vault(vault.id)?.state).toBe('disabled');
});

test('what clients are told while a change is read has another epoch afterwards', async () => {
  const meanwhile: number[] = [];
  reads = {
    vaults: {
      ...store.read.vaults,
      stored: async (...asked) => {
        meanwhile.push(directory.epoch());
        return store.read.vaults.stored(...asked);
      },
    },
  };
  await directory.renew({ vaults: [vault.id] });
  expect(meanwhile).toHaveLength(1);
  expect(directory.epoch()).toBeGreaterThan(meanwhile[0] ?? 0);
  // Where nothing changes, what clients remember counts.
  const epoch = directory.epoch();
  await directory.renewRefused();
  expect(directory.epoch()).toBe(epoch);
});

test('a vault whose row was changed from outside is an alarm when a key of the token asks for it', async () => {
  const { own } = oneTokenKey();
  reads = {
    ...reads,
    vaults: { ...store.read.vaults, stored: async () => ({ ...own, integrity: 'tampered' as const }) },
  };
  await directory.renew({ vaults: [own.id] });
  expect(await admitted(1)).toEqual([]);
  expect(complaints).toEqual(['a stored row was changed from outside: every use of it is refused']);
  // With the genuine row it is used again.
  reads = { ...reads, vaults: { ...store.read.vaults, stored: async () => own } };
  await directory.renewRefused();
  expect(await admitted(1)).toEqual(['decrypt']);
});

test('an endpoint that a restore gives another key marks the uses of that one', async () => {
  const view = () => directory.endpoint('/door');
  const used = (at: number): void => {
    const now = view();
    if (now !== undefined) now.use.at = at;
  };
  used(10);
  const second = { ...key, id: newId(9), name: 'second' };
  await store.write(async (tx) => {
    await tx.keys.insert(second);
    await tx.endpoints.get(tenant.id, endpoint.id);
    await tx.endpoints.update({ ...endpoint, keyId: second.id });
  });
  await directory.renew({ restored: [tenant.id] });
  used(20);
  const uses = directory.keyUses(true);
  expect(uses.map(({ keyId, at }) => [keyId, at])).toEqual([
    [key.id, 10],
    [second.id, 20],
  ]);
  directory.keyUsesWritten(uses);
  expect(directory.keyUses(true)).toEqual([]);
});

test('the authorities of a deleted tenant’s endpoints stop to be trusted with it', async () => {
  const told: (readonly string[])[] = [];
  const settings = { ...endpoint.settings, clientCertificate: { authorities: 'PEM', commonName: 'cloud' } };
  reads = { endpoints: { ...store.read.endpoints, stored: async () => ({ ...endpoint, settings }) } };
  await directory.renew({ endpoints: [endpoint.id] });
  directory.onClientAuthorities(() => void told.push(directory.clientAuthorities()));
  expect(directory.clientAuthorities()).toEqual(['PEM']);
  reads = {
    ...reads,
    tenants: { ...store.read.tenants, stored: async () => ({ ...tenant, state: 'deleted' as const }) },
  };
  await directory.renew({ tenants: [tenant.id] });
  expect(told).toEqual([[]]);
});

test('a new or changed vault releases the opened keys of its own objects, and of no other vault', async () => {
  const objects = tokenKeys(1, 2);
  const use = () => openedRefs(1, 2);
  const opened = await use();
  // Renewals of another vault, and of an application without keys, release nothing.
  await directory.renew({ vaults: [newId(300)], applications: [newId(301)] });
  expect([await use(), released]).toEqual([opened, []]);
  await directory.renew({ vaults: [objects[0]?.own.id ?? ''] });
  expect(released).toEqual([opened?.[0]]);
  expect((await use())?.[1]).toBe(opened?.[1]);
});
