// Tenants in the service itself: what stops with one and what continues, restoring, and the purge
// down to the bytes.
import { copyFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { verifyOffline } from '../../../server/app/host/offline.ts';
import { systemClock } from '../../../server/base/time.ts';
import { inTenant, serviceActor, type TenantActor } from '../../../server/domain/actor.ts';
import type { TdeCaller } from '../../../server/operations/index.ts';
import { clearingSteps } from '../../../server/operations/tenants/purge-steps.ts';
import type { PurgeStep } from '../../../server/ports/purge.ts';
import { folderOfTest } from '../../support/folders.ts';
import {
  administrator,
  auditKindsOf,
  callTde,
  instance,
  masterKey,
  type OpenedService,
  openTestService,
  untilAudited,
} from '../../support/open-service.ts';
import { copyStored, queryStored } from '../../support/test-store.ts';

const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7) } as const;
const plain = Buffer.alloc(32, 0x5a);

let opened: OpenedService;
afterEach(() => opened.remove());

interface Inhabited {
  readonly id: string;
  readonly actor: TenantActor;
  readonly accessGuid: string;
  readonly applicationId: string;
  readonly vaultId: string;
  readonly keyId: string;
  readonly masterKeyId: string;
  readonly handle: number;
  readonly endpointId: string;
  readonly caller: TdeCaller;
  readonly sealed: Buffer;
  readonly token: string;
}

const authenticate = (accessGuid: string): Promise<TdeCaller> =>
  opened.operations.tde.authenticate({ accessGuid, appId: 'db', instance, requestId: 'call-1', peer: null });

/** A tenant with one of everything. */
const inhabit = async (id: string): Promise<Inhabited> => {
  const { operations } = opened;
  const actor = inTenant(serviceActor('test'), id);
  const vault = await operations.vaults.create(actor, { name: 'vault' });
  const key = await operations.keys.create(actor, { name: 'key', vaultId: vault.id });
  const endpoint = await operations.endpoints.create(actor, { name: 'cloud', vaultId: vault.id, keyId: key.id });
  const { secretAccessKey } = await operations.endpoints.addCredential(actor, endpoint.id);
  secretAccessKey.fill(0);
  const group = await operations.tdeGroups.create(actor, { name: 'group' });
  const { application, accessGuid } = await operations.applications.register(actor, { name: 'db', groupId: group.id });
  const caller = await authenticate(accessGuid);
  const made = await operations.tde.generateKey(caller, masterKey('MK'));
  const { token } = await operations.tokens.create(actor, 'the service', {
    name: 'people',
    grants: [{ role: 'auditor', scope: null }],
  });
  return {
    id,
    actor,
    accessGuid,
    applicationId: application.id,
    vaultId: vault.id,
    keyId: key.id,
    masterKeyId: made.id,
    handle: made.handle,
    endpointId: endpoint.id,
    caller,
    sealed: await operations.tde.encrypt(caller, made.handle, cbc, plain),
    token,
  };
};
const open = async (options: Parameters<typeof openTestService>[0] = {}) => {
  opened = await openTestService(options);
  const { operations } = opened;
  const acme = await inhabit((await operations.tenants.create(administrator, { name: 'acme' })).id);
  const zeta = await inhabit((await operations.tenants.create(administrator, { name: 'zeta' })).id);
  return { acme, zeta };
};

/**
 * What of a tenant is served now: the database's path and the people's; the cloud's is in the
 * scenario.
 */
const served = async ({ accessGuid, handle, caller, sealed, token }: Inhabited) => {
  const { operations, service } = opened;
  const asPeople = async () => {
    const { actor, grants } = await operations.authenticateAdmin(token, 'r', null);
    return operations.access.actIn(actor, grants, undefined);
  };
  const outcomeOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'served',
      (error: { readonly code?: string }) => String(error.code),
    );
  return {
    session: await outcomeOf(operations.tde.decrypt(caller, handle, cbc, sealed)),
    request: (await callTde(service, accessGuid, 'info', {})).status,
    newKey: await outcomeOf(operations.tde.generateKey(caller, masterKey(`MK ${systemClock.monotonic()}`))),
    people: await outcomeOf(asPeople()),
  };
};
const everything = { session: 'served', request: 200, newKey: 'served', people: 'served' };
const nothing = { session: 'unauthenticated', request: 401, newKey: 'unauthenticated', people: 'unauthenticated' };

test('a suspended tenant is served nothing, at once, its neighbour everything; resumed, it has all as it was', async () => {
  const { acme, zeta } = await open();
  const { tenants } = opened.operations;
  const { contents } = await tenants.impact(administrator, acme.id, 'suspend');
  expect(contents).toEqual({ vaults: 2, keys: 2, endpoints: 1, applications: 1, tokens: 1, copies: 0 });
  expect((await tenants.suspend(administrator, acme.id)).state).toBe('suspended');
  expect(await served(acme)).toEqual(nothing);
  expect(await served(zeta)).toEqual(everything);
  // Operators of the service can still read it and repair it.
  expect((await opened.operations.vaults.get(acme.actor, acme.vaultId)).state).toBe('enabled');
  await tenants.suspend(administrator, acme.id);
  await tenants.resume(administrator, acme.id);
  expect(await served(acme)).toEqual(everything);
  expect(await auditKindsOf(opened, acme.id)).toEqual(['tenant.created', 'tenant.suspended', 'tenant.resumed']);
});

test('a deleted tenant comes back as it was: what was disabled still is, what was destroyed stays so', async () => {
  const { acme } = await open();
  const { tenants, keys, masterKeys, tde } = opened.operations;
  const doomed = await tde.generateKey(acme.caller, masterKey('doomed'));
  await masterKeys.destroy(acme.actor, acme.applicationId, doomed.id);
  await keys.disable(acme.actor, acme.keyId);
  const deleted = await tenants.delete(administrator, acme.id);
  expect(deleted.purgeAt).toBe((deleted.deletedAt ?? 0) + 30 * 86_400_000);
  expect(await served(acme)).toEqual(nothing);
  await expect(tenants.rename(administrator, acme.id, { name: 'other' })).rejects.toMatchObject({ code: 'conflict' });
  // A restart does not change it.
  await opened.stop();
  opened = await openTestService({ folder: opened.folder });
  expect((await served(acme)).request).toBe(401);
  await opened.operations.tenants.restore(administrator, acme.id);
  const caller = await authenticate(acme.accessGuid);
  expect(await served({ ...acme, caller })).toEqual(everything);
  expect((await opened.operations.keys.get(acme.actor, acme.keyId)).state).toBe('disabled');
  expect((await opened.operations.keys.get(acme.actor, doomed.id)).state).toBe('destroyed');
});

test('a tenant that was suspended before it was deleted is suspended when it is restored', async () => {
  const { acme } = await open();
  const { tenants } = opened.operations;
  await tenants.suspend(administrator, acme.id);
  await tenants.delete(administrator, acme.id);
  expect((await tenants.restore(administrator, acme.id)).state).toBe('suspended');
  expect(await served(acme)).toEqual(nothing);
});

test('the default tenant is not deleted, and a name is taken once', async () => {
  await open();
  const { tenants } = opened.operations;
  const { id } = await tenants.default();
  await expect(tenants.delete(administrator, id)).rejects.toMatchObject({ code: 'conflict' });
  await expect(tenants.create(administrator, { name: 'acme' })).rejects.toMatchObject({ code: 'conflict' });
  await expect(tenants.rename(administrator, id, { name: 'zeta' })).rejects.toMatchObject({ code: 'conflict' });
  await expect(tenants.create(administrator, { name: id })).rejects.toMatchObject({ code: 'validation' });
  // The failed creation left no key encryption key behind: an erasure run ends.
  expect((await tenants.create(administrator, { name: 'third' })).state).toBe('active');
});

test('names are unique within a tenant, and each tenant has its own', async () => {
  const { acme, zeta } = await open();
  expect(acme.vaultId).not.toBe(zeta.vaultId);
  await expect(opened.operations.vaults.create(acme.actor, { name: 'vault' })).rejects.toMatchObject({
    code: 'conflict',
  });
});

test('the keys of another tenant are not there, whatever is known of them', async () => {
  const { acme, zeta } = await open();
  const { tde, audit } = opened.operations;
  await expect(tde.decrypt(acme.caller, zeta.handle, cbc, zeta.sealed)).rejects.toMatchObject({
    code: 'key-not-found',
  });
  expect((await tde.findObjects(acme.caller, { after: 0, limit: 10 })).objects.map(({ id }) => id)).toEqual([
    acme.masterKeyId,
  ]);
  // Neither log contains the other's resources: no record of zeta names acme's application, none of
  // acme's names zeta's key.
  const all = async ({ actor }: Inhabited) => JSON.stringify((await audit.list(actor, { limit: 1000 })).items);
  expect(await all(zeta)).not.toContain(acme.applicationId);
  expect(await all(acme)).not.toContain(zeta.masterKeyId);
  expect(await all(acme)).toContain(acme.masterKeyId);
});

test('after a purge nothing can be opened, neither from the store nor from an old copy of it; tombstones stay', async () => {
  const { acme, zeta } = await open({ toml: '[erasure]\ngather_ms = 1\n[memory]\nallow_unlocked = true\n' });
  const { tenants } = opened.operations;
  const old = folderOfTest();
  await expect(tenants.purge(administrator, acme.id)).rejects.toMatchObject({ code: 'conflict' });
  await opened.stop();
  cpSync(opened.folder, old, { recursive: true });
  await copyStored(opened.folder, old);
  opened = await openTestService({
    folder: opened.folder,
    toml: '[erasure]\ngather_ms = 1\n[memory]\nallow_unlocked = true\n',
  });
  const { operations } = opened;
  const person = { name: 'maria', grants: [{ role: 'auditor', scope: null }] } as const;
  const own = [{ role: 'administrator', scope: null, tenantId: null }] as const;
  await operations.users.create(acme.actor, own, person);
  await operations.tenants.delete(administrator, acme.id);
  expect((await operations.tenants.purge(administrator, acme.id)).state).toBe('purged');
  expect((await served({ ...acme })).request).toBe(401);
  await untilAudited(opened, 'tenant.unrecoverable', acme.id);
  await untilAudited(opened, 'key.unrecoverable', acme.keyId);
  await untilAudited(opened, 'key.unrecoverable', acme.masterKeyId);
  expect(await operations.tenants.get(administrator, acme.id)).toMatchObject({
    state: 'purged',
    unrecoverableAt: expect.any(Number),
  });
  for (const id of [acme.keyId, acme.masterKeyId])
    expect(await operations.keys.get(acme.actor, id)).toMatchObject({ state: 'destroyed', tenantId: acme.id });
  // The name of a person who was in it is free again.
  await operations.users.create(administrator, own, person);
  for (const event of ['restore', 'resume', 'delete', 'purge'] as const)
    await expect(operations.tenants[event](administrator, acme.id)).rejects.toMatchObject({ code: 'conflict' });
  expect((await operations.tenants.create(administrator, { name: 'acme' })).id).not.toBe(acme.id);
  // The neighbour went through the same erasure run.
  const caller = await authenticate(zeta.accessGuid);
  expect(await served({ ...zeta, caller })).toEqual(everything);

  // The current store has no record of the tenant, and no key encryption key; and the offline check
  // accepts that.
  await opened.stop();
  expect((await verifyOffline(opened.config, () => Promise.resolve(undefined))).findings).toEqual([]);
  const keks = await queryStored(opened.folder, 'select tenant_id from tenant_keks');
  expect(keks.length).toBeGreaterThan(0);
  expect(keks).not.toContainEqual({ tenant_id: acme.id });
  const records = 'select object_id from key_records where tenant_id = ? and record is not null';
  expect(await queryStored(opened.folder, records, acme.id)).toEqual([]);
  // The old database with the current root key: it does not open, for any caller.
  const data = opened.config.dataDirectory.slice(opened.folder.length + 1);
  copyFileSync(opened.config.root.path, join(old, data, 'root.key'));
  await expect(openTestService({ folder: old, acceptDatabase: true })).rejects.toMatchObject({ name: 'StartError' });
});

test.each(Object.keys(clearingSteps) as PurgeStep[])(
  'a purge that is cut off at %s is finished by the next start, and only then certified',
  async (step) => {
    const { acme } = await open();
    const { operations } = opened;
    const own = [{ role: 'administrator', scope: null, tenantId: null }] as const;
    const { record } = await operations.tokens.create(acme.actor, 'the service', {
      name: 'bot',
      grants: [{ role: 'auditor', scope: null, tenantId: acme.id }],
    });
    const person = {
      name: 'maria',
      displayName: 'Maria K.',
      email: 'maria@example.com',
      grants: [{ role: 'auditor', scope: null }],
    } as const;
    const { user } = await operations.users.create(acme.actor, own, person);
    await operations.tenants.delete(administrator, acme.id);
    const cut = vi.spyOn(clearingSteps, step).mockRejectedValue(new Error('the power failed'));
    await expect(operations.tenants.purge(administrator, acme.id)).rejects.toThrow('the power failed');
    cut.mockRestore();
    await opened.stop();

    opened = await openTestService({ folder: opened.folder });
    await expect(opened.operations.tenants.restore(administrator, acme.id)).rejects.toMatchObject({ code: 'conflict' });
    expect((await opened.operations.tenants.get(administrator, acme.id)).unrecoverableAt).toBeNull();
    await opened.service.tenantRetention.run();
    await untilAudited(opened, 'tenant.cleared', acme.id);
    await untilAudited(opened, 'tenant.unrecoverable', acme.id);
    expect((await opened.operations.keys.get(acme.actor, acme.keyId)).state).toBe('destroyed');
    const [stored] = await queryStored(opened.folder, 'select * from users where id = ?', user.id);
    expect(stored).toMatchObject({ state: 'deleted', name: `deleted-${user.id}`, email: null, password: null });
    expect(Object.values(stored ?? {}).join()).not.toMatch(/maria/i);
    expect(
      await queryStored(opened.folder, 'select id from api_tokens where id = ? and revoked_at is null', record.id),
    ).toEqual([]);
    for (const table of ['instances', 'diagnoses', 'xks_latency'])
      expect(
        await queryStored(
          opened.folder,
          `select * from ${table} where ${
            table === 'instances'
              ? 'application_id in (select id from tde_applications where tenant_id = ?)'
              : 'endpoint_id in (select id from endpoints where tenant_id = ?)'
          }`,
          acme.id,
        ),
      ).toEqual([]);
  },
);
