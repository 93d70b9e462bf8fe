// Permissions of the search: each kind needs the permission of its list, a role for one resource
// finds that one, and the logs are searched by complete ids.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Grant, Role } from '../../../server/domain/access.ts';
import { acrossTenants, inTenant, type TenantActor } from '../../../server/domain/actor.ts';
import { type SearchKind, searchKindNames } from '../../../server/domain/search-terms.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';
import { handOf } from '../../support/snapshots.ts';

const opened = sharedService();
let actor: TenantActor;
let endpointId: string;
let applicationId: string;
let keyId: string;
beforeAll(async () => {
  const { operations } = opened;
  const tenantId = (await operations.tenants.default()).id;
  actor = { ...inTenant({ ...administrator, requestId: 'request-77' }, tenantId) };
  const vault = await operations.vaults.create(actor, { name: 'Zürich vault' });
  const key = await operations.keys.create(actor, { name: 'Zürich key', vaultId: vault.id });
  keyId = key.id;
  endpointId = (await operations.endpoints.create(actor, { name: 'Zürich cloud', vaultId: vault.id, keyId })).id;
  await operations.endpoints.create(actor, { name: 'Zürich cloud 2', vaultId: vault.id, keyId });
  const { caller } = await registerCaller(opened, 'zurich-db');
  applicationId = caller.application.id;
  await operations.tde.generateKey(caller, masterKey('ZURICH.MK.1'));
  await registerCaller(opened, 'zurich-db-2');
});

const grant = (role: Role, scope: Grant['scope'] = null, tenantId: string | null = null): Grant => ({
  role,
  scope,
  tenantId,
});
const find = (grants: readonly Grant[], text: string, kinds?: readonly SearchKind[]) =>
  opened.operations.search.find(actor, grants, { text, kinds, namesTenant: false });
const kindsOf = async (grants: readonly Grant[], text: string) => [
  ...new Set((await find(grants, text)).items.map(({ kind }) => kind)),
];

describe('who finds what', () => {
  test('an administrator finds of every kind, with and without accents', async () => {
    for (const text of ['zurich', 'ZÜRICH'])
      expect(await kindsOf([grant('administrator')], text)).toEqual([
        'key',
        'vault',
        'group',
        'application',
        'endpoint',
        'audit-actor',
      ]);
    expect((await find([grant('administrator')], 'zurich')).searched).toEqual(searchKindNames);
    expect((await find([grant('administrator')], 'zurich mk')).items.map(({ name, kind }) => [kind, name])).toEqual([
      ['key', 'ZURICH.MK.1'],
    ]);
  });

  test('a person who sees no keys finds none', async () => {
    const { items, searched } = await find([grant('platform-operator')], 'zurich');
    expect(searched).toEqual(['endpoint', 'external-key-store', 'tenant', 'node', 'snapshot', 'request']);
    expect(items.map(({ kind }) => kind)).toEqual(['endpoint', 'endpoint']);
  });

  test('a role for one resource finds only that resource', async () => {
    const owner = [grant('application-owner', { kind: 'application', id: applicationId })];
    const found = await find(owner, 'zurich');
    expect(found.items.map(({ kind, id }) => [kind, id])).toEqual([['application', applicationId]]);
    expect(found.searched).toEqual(['application']);
    const endpoint = await find([grant('application-owner', { kind: 'endpoint', id: endpointId })], 'cloud');
    expect(endpoint.items.map(({ id }) => id)).toEqual([endpointId]);
    expect(endpoint.searched).toEqual(['endpoint', 'request']);
    expect((await find([grant('application-owner', { kind: 'application', id: keyId })], 'zurich')).items).toEqual([]);
  });

  test('people of a tenant find its snapshots by their ids, and no one else’s', async () => {
    const { tenants, snapshots } = opened.operations;
    await handOf(opened);
    const other = (await tenants.create(administrator, { name: 'other' })).id;
    const [own, others] = [
      (await snapshots.create(actor, actor.tenantId)).id,
      (await snapshots.create(acrossTenants(administrator, other), other)).id,
    ];
    const ofTenant = [grant('tenant-administrator', null, actor.tenantId)];
    expect((await find(ofTenant, own, ['snapshot'])).items).toMatchObject([{ id: own, tenantId: actor.tenantId }]);
    expect((await find(ofTenant, others, ['snapshot'])).items).toEqual([]);
    expect((await find([grant('platform-operator')], others, ['snapshot'])).items).toMatchObject([{ id: others }]);
    expect((await find([grant('key-manager')], own, ['snapshot'])).searched).toEqual([]);
  });

  test('a person without a role finds nothing, and is told that nothing was searched', async () => {
    expect(await find([], 'zurich')).toEqual({ items: [], more: [], searched: [] });
  });
});

describe('the logs', () => {
  const auditor = [grant('auditor')];
  test('a request id finds its records of the audit log, and nothing by a part of it', async () => {
    expect((await find(auditor, 'request-77')).items).toMatchObject([
      { kind: 'audit-request', id: 'request-77', field: 'request-id' },
    ]);
    expect((await find(auditor, 'request-7')).items).toEqual([]);
  });
  test('an id finds the resource and its records in the audit log', async () => {
    expect((await find(auditor, keyId)).items.map(({ kind, id }) => [kind, id])).toEqual([
      ['key', keyId],
      ['audit-subject', keyId],
    ]);
  });
  test('an actor is found by name when they have done something, who was deleted too', async () => {
    const { operations } = opened;
    const role = [{ role: 'auditor', scope: null, tenantId: null }] as const;
    const made = await operations.tokens.create(actor, 'the service', { name: 'nightly export', grants: role });
    expect((await find(auditor, 'nightly', ['audit-actor'])).items).toEqual([]);
    const { actor: nightly } = await operations.authenticateAdmin(made.token, 'request-78', null);
    await operations.vaults.create(inTenant(nightly, actor.tenantId), { name: 'made at night' });
    await operations.tokens.revoke(actor, 'the service', made.record.id);
    expect((await find(auditor, 'NIGHTLY', ['audit-actor'])).items).toMatchObject([
      { kind: 'audit-actor', id: made.record.id, name: 'nightly export', field: 'actor' },
    ]);
  });
});

test('limits and texts are checked', async () => {
  const all = [grant('administrator')];
  await expect(find(all, ' -./ ')).rejects.toMatchObject({ code: 'validation' });
  await expect(
    opened.operations.search.find(actor, all, { text: 'x', limit: 101, namesTenant: false }),
  ).rejects.toMatchObject({ code: 'validation' });
  const one = await opened.operations.search.find(actor, all, { text: 'zurich', limit: 1, namesTenant: false });
  expect(one.more).toEqual(['key', 'vault', 'group', 'application', 'endpoint', 'audit-actor']);
  expect(one.items.filter(({ kind }) => kind === 'key')).toHaveLength(1);
});
