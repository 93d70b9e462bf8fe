// A tenant whose vaults are under dual control is not deleted or purged by one person alone: that
// destroys every key in it. Through the API, as people meet it: the tenant is deleted in the
// meantime, and nothing else in it is decided.
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Role } from '../../../server/domain/access.ts';
import { administrator } from '../../support/open-service.ts';
import { sendTo, sharedApi, sharedService } from '../../support/shared.ts';
import { actorIn, handOf } from '../../support/snapshots.ts';

const opened = sharedService();
const api = sharedApi(opened);
const tokens: Record<string, string> = {};
const enrol = async (name: string, role: Role, tenantId: string | null = null): Promise<void> => {
  const { token } = await opened.operations.tokens.create(actorIn(tenantId ?? administrator.tenantId), 'the service', {
    name,
    grants: [{ role, scope: null, tenantId }],
  });
  tokens[name] = token;
};
/** Whatever was answered: an approval request, a snapshot, a page of them, or a problem. */
interface Answer {
  readonly id: string;
  readonly tenantId: string;
  readonly state: string;
  readonly operation: string;
  readonly missing: number;
  readonly impact: { readonly keys: number };
  readonly verification: unknown;
  readonly items: readonly { readonly id: string }[];
  readonly detail: string;
}
const send = async (by: string, method: string, path: string, body?: object) => {
  const { status, text } = await sendTo(`${api.base}/api`, tokens[by] ?? '', method, path, body);
  return { status, body: (text === '' ? {} : JSON.parse(text)) as Answer };
};

beforeAll(async () => {
  await enrol('operator', 'platform-operator');
  await enrol('destroyer', 'key-destroyer');
  await enrol('anna', 'key-approver');
  await enrol('bert', 'key-approver');
  await handOf(opened);
});

let at = 0;
let tenantId: string;
let name: string;
let keyId: string;
const stateOf = async (): Promise<string> => (await opened.operations.tenants.get(administrator, tenantId)).state;
const approve = (by: string, id: string) => send(by, 'POST', `/approvals/${id}/approve?tenant=${tenantId}`, {});
beforeEach(async () => {
  at += 1;
  name = `acme-${at}`;
  const { operations } = opened;
  tenantId = (await operations.tenants.create(administrator, { name })).id;
  await enrol('owner', 'tenant-administrator', tenantId);
  const vault = await operations.vaults.create(actorIn(tenantId), { name: 'vault' });
  keyId = (await operations.keys.create(actorIn(tenantId), { name: 'key', vaultId: vault.id })).id;
  const rule = { required: 2, approvers: null, actions: ['destroy'], databases: 'allowed' } as const;
  await operations.dualControl.change(actorIn(tenantId), vault.id, rule);
});

const deleteIt = async (): Promise<void> => {
  const asked = await send('operator', 'DELETE', `/tenants/${tenantId}`);
  expect([asked.status, asked.body.operation, asked.body.missing]).toEqual([202, 'tenant.delete', 2]);
  expect(await stateOf()).toBe('active');
  expect((await approve('anna', asked.body.id)).status).toBe(200);
  expect(await stateOf()).toBe('active');
  expect((await approve('bert', asked.body.id)).body.state).toBe('completed');
  expect(await stateOf()).toBe('deleted');
};

test('its deletion, and its purge before the time, each wait for two others', async () => {
  await deleteIt();
  const purge = () => send('destroyer', 'POST', `/tenants/${tenantId}/purge`, { confirm: name });
  const asked = await purge();
  expect([asked.status, asked.body.operation, asked.body.impact.keys]).toEqual([202, 'tenant.purge', 1]);
  expect((await purge()).body.id).toBe(asked.body.id);
  expect((await approve('anna', asked.body.id)).status).toBe(200);
  expect((await approve('anna', asked.body.id)).status).toBe(409);
  expect([await stateOf(), (await opened.operations.keys.get(actorIn(tenantId), keyId)).state]).toEqual([
    'deleted',
    'active',
  ]);
  expect((await approve('bert', asked.body.id)).body.state).toBe('completed');
  expect([await stateOf(), (await opened.operations.keys.get(actorIn(tenantId), keyId)).state]).toEqual([
    'purged',
    'destroyed',
  ]);
});

test('what one refuses is not done', async () => {
  const asked = await send('operator', 'DELETE', `/tenants/${tenantId}`);
  expect((await send('anna', 'POST', `/approvals/${asked.body.id}/reject?tenant=${tenantId}`, {})).status).toBe(200);
  expect((await approve('bert', asked.body.id)).status).toBe(409);
  expect(await stateOf()).toBe('active');
});

test('a restore meanwhile makes the agreement to a purge worth nothing', async () => {
  await deleteIt();
  const asked = await send('destroyer', 'POST', `/tenants/${tenantId}/purge`, { confirm: name });
  expect((await approve('anna', asked.body.id)).status).toBe(200);
  expect((await send('operator', 'POST', `/tenants/${tenantId}/restore`)).status).toBe(200);
  expect((await approve('bert', asked.body.id)).status).toBe(409);
  expect(await stateOf()).toBe('active');
});

test('nothing else is decided in a deleted tenant', async () => {
  await enrol('manager', 'key-manager', tenantId);
  const asked = await send('manager', 'DELETE', `/keys/${keyId}`);
  expect([asked.status, asked.body.operation]).toEqual([202, 'key.delete']);
  expect((await approve('anna', asked.body.id)).status).toBe(200);
  await deleteIt();
  const late = await approve('bert', asked.body.id);
  expect([late.status, late.body.detail]).toEqual([409, 'the tenant is deleted: nothing in it can be changed']);
  expect((await opened.operations.keys.get(actorIn(tenantId), keyId)).state).toBe('active');
});

test('without a rule, one person does it at once', async () => {
  const other = await opened.operations.tenants.create(administrator, { name: `free-${at}` });
  await opened.operations.vaults.create(actorIn(other.id), { name: 'vault' });
  expect((await send('operator', 'DELETE', `/tenants/${other.id}`)).status).toBe(200);
  expect((await send('destroyer', 'POST', `/tenants/${other.id}/purge`, { confirm: other.name })).status).toBe(200);
  expect((await opened.operations.tenants.get(administrator, other.id)).state).toBe('purged');
});

test("a tenant's administrator makes, verifies, deletes and brings back snapshots of the tenant, and restores none", async () => {
  const made = await send('owner', 'POST', '/snapshots', {});
  expect([made.status, made.body.tenantId, made.body.state]).toEqual([201, tenantId, 'available']);
  const path = `/snapshots/${made.body.id}`;
  expect((await send('owner', 'POST', `${path}/verify`, {})).body.verification).toMatchObject({ valid: true });
  expect((await send('owner', 'DELETE', path)).body.state).toBe('deleted');
  expect((await send('owner', 'POST', `${path}/undelete`)).body.state).toBe('available');
  const others = await send('operator', 'POST', '/snapshots', {});
  expect(others.body.tenantId).toBe(administrator.tenantId);
  const list = await send('owner', 'GET', '/snapshots');
  expect(list.body.items.map(({ id }) => id)).toEqual([made.body.id]);
  expect((await send('owner', 'GET', `/snapshots?tenantId=${administrator.tenantId}`)).body.items).toEqual([]);
  for (const [method, target, body] of [
    ['GET', `/snapshots/${others.body.id}`, undefined],
    ['DELETE', `/snapshots/${others.body.id}`, undefined],
    ['POST', `/snapshots/${others.body.id}/verify`, {}],
    ['GET', `/snapshots/${others.body.id}/exports`, undefined],
    ['POST', '/snapshots', { tenantId: administrator.tenantId }],
  ] as const)
    expect([target, (await send('owner', method, target, body)).status]).toEqual([target, 404]);
  for (const [method, target] of [
    ['POST', `${path}/restore`],
    ['POST', `${path}/openings`],
    ['GET', `${path}/file`],
  ] as const)
    expect([target, (await send('owner', method, target, method === 'POST' ? {} : undefined)).status]).toEqual([
      target,
      403,
    ]);
  const all = (await send('operator', 'GET', '/snapshots')).body.items.map(({ id }) => id);
  expect(all).toEqual(expect.arrayContaining([made.body.id, others.body.id]));
});
