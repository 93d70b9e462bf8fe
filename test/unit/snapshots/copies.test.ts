// A snapshot is restored next to its own tenant: from then on the same keys are in two tenants. A
// destroyed key whose copy is usable is not unrecoverable, its copies are named to those who may
// see their tenants, and destroying the copies ends it.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Approval } from '../../../server/domain/approval.ts';
import type { Key } from '../../../server/domain/key.ts';
import { administrator, masterKey, registerCaller, untilAudited } from '../../support/open-service.ts';
import { waits } from '../../support/people.ts';
import { freshService, restart } from '../../support/shared.ts';
import { actorIn, checksOf, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const settings = {
  toml: '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n',
};
const opened = freshService(settings);
let hand: SnapshotHand;
let applicationId: string;
let keyId: string;
let snapshotId: string;
beforeEach(async () => {
  hand = await handOf(opened);
  const { caller } = await registerCaller(opened, 'erp');
  applicationId = caller.application.id;
  keyId = (await opened.operations.tde.generateKey(caller, masterKey('pages'))).id;
  snapshotId = await hand.make(administrator.tenantId);
});

/** The copy of the key in this tenant. */
const copyIn = async (tenantId: string): Promise<Key> => {
  const { items } = await opened.operations.keys.list(actorIn(tenantId), { limit: 10 });
  const found = items.find(({ name }) => name === 'pages');
  if (found === undefined) throw new Error('the key was not copied');
  return found;
};
const restoreBeside = async (name: string, from = snapshotId): Promise<Key> =>
  copyIn((await hand.restore(from, { newTenant: name })).tenantId);
const keyNow = (): Promise<Key> => opened.operations.keys.get(administrator, keyId);
const destroy = async (key: Key): Promise<void> => {
  await opened.operations.masterKeys.destroy(actorIn(key.tenantId), key.applicationId ?? '', key.id);
};
/** A person who can write to the database does so while the service is stopped. */
const tamper = async (statement: string, ...values: string[]): Promise<void> => {
  await opened.stop();
  await queryStored(opened.folder, statement, ...values);
  await restart(opened, settings);
};
const runsFinished = async (): Promise<number> =>
  (await opened.operations.audit.list(administrator, { kind: 'erasure.finished', limit: 50 })).items.length;

test('a destroyed key is not unrecoverable while a copy of it is usable, and the copies are named', async () => {
  const { operations } = opened;
  const copy = await restoreBeside('beside');
  const again = await restoreBeside('copy of the copy', await hand.make(copy.tenantId));
  const named = [copy, again]
    .map((key) => ({ id: key.id, tenantId: key.tenantId, applicationId: key.applicationId }))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1));

  const radius = await operations.masterKeys.blastRadius(administrator, applicationId, keyId);
  expect(radius.copies).toMatchObject({ count: 2, items: named });
  expect(radius.copies.items.map(({ tenantName }) => tenantName).toSorted()).toEqual(['beside', 'copy of the copy']);
  expect(await operations.snapshots.ofKey(administrator, keyId)).toEqual(radius.copies);
  expect((await operations.keys.use(administrator, keyId)).copies).toEqual(radius.copies);
  // The list of a copy contains the original.
  expect(
    (await operations.keys.use({ ...administrator, tenantId: copy.tenantId }, copy.id)).copies.items,
  ).toContainEqual(expect.objectContaining({ id: keyId, tenantId: administrator.tenantId }));

  await destroy(await keyNow());
  // The service's own material of this key is erased as well: only the copy remains.
  await expect.poll(runsFinished).toBe(1);
  await expect.poll(async () => (await operations.status(administrator)).erasure.state).toBe('idle');
  expect((await checksOf(opened, snapshotId, hand.recovery)).get(`${keyId} 1`)).toBe('erased');
  expect(await keyNow()).toMatchObject({ state: 'destroyed', unrecoverableAt: null });
  expect((await operations.status(administrator)).erasure.pendingKeys).toBe(0);

  await destroy(copy);
  await expect.poll(runsFinished).toBe(2);
  expect(await keyNow()).toMatchObject({ unrecoverableAt: null });
  expect((await operations.keys.use(administrator, keyId)).copies).toMatchObject({
    count: 1,
    items: [{ id: again.id }],
  });

  await destroy(again);
  await untilAudited(opened, 'key.unrecoverable', keyId);
  expect((await keyNow()).unrecoverableAt).not.toBeNull();
  expect((await copyIn(copy.tenantId)).unrecoverableAt).not.toBeNull();
  expect((await copyIn(again.tenantId)).unrecoverableAt).not.toBeNull();
});

test('a user of one tenant sees how many copies there are, but not where', async () => {
  await restoreBeside('beside');
  const actor = actorIn(administrator.tenantId);
  const hidden = { count: 1, items: [] };
  expect((await opened.operations.masterKeys.blastRadius(actor, applicationId, keyId)).copies).toEqual(hidden);
  expect((await opened.operations.keys.use(actor, keyId)).copies).toEqual(hidden);
  expect(await opened.operations.snapshots.ofKey(actor, keyId)).toEqual(hidden);
});

test('a tenant is not unrecoverable while another one has a copy of its key, and is when that one is purged', async () => {
  const { operations } = opened;
  const copy = await restoreBeside('beside');
  const other = await restoreBeside('other', await hand.make(copy.tenantId));
  await destroy(await keyNow());
  const purge = async (tenantId: string): Promise<void> => {
    await operations.tenants.delete(administrator, tenantId);
    await operations.tenants.purge(administrator, tenantId);
  };
  const tenantNow = async (tenantId: string) => operations.tenants.get(administrator, tenantId);
  const before = await runsFinished();
  await purge(copy.tenantId);
  await expect.poll(runsFinished).toBeGreaterThan(before);
  await expect.poll(async () => (await operations.status(administrator)).erasure.state).toBe('idle');
  expect(await tenantNow(copy.tenantId)).toMatchObject({ state: 'purged', unrecoverableAt: null });
  await purge(other.tenantId);
  await untilAudited(opened, 'key.unrecoverable', keyId);
  await untilAudited(opened, 'tenant.unrecoverable', copy.tenantId);
  await untilAudited(opened, 'tenant.unrecoverable', other.tenantId);
});

test('restoring a copy from its own snapshot keeps what it is a copy of', async () => {
  const copy = await restoreBeside('beside');
  const own = await hand.make(copy.tenantId);
  await opened.operations.keys.disable(actorIn(copy.tenantId), copy.id);
  await hand.restore(own);
  expect(await copyIn(copy.tenantId)).toMatchObject({ state: 'active', copyOf: keyId });
});

test.each([
  ['its state', "update keys set state = 'destroyed', destroyed_at = 1 where id = ?"],
  ['what it is a copy of', 'update keys set copy_of = null where id = ?'],
])('a copy hides itself from no run: %s was changed in the database', async (_, statement) => {
  const copy = await restoreBeside('hidden');
  const read = 'select state, destroyed_at, copy_of from keys where id = ?';
  const [before] = await queryStored(opened.folder, read, copy.id);
  await tamper(statement, copy.id);
  await destroy(await keyNow());
  const blocked = await untilAudited(opened, 'erasure.blocked');
  expect(blocked.details).toMatchObject({ subjects: [{ kind: 'key', id: copy.id }] });
  expect(await keyNow()).toMatchObject({ state: 'destroyed', unrecoverableAt: null });

  // Repaired, the run ends, and the copy is known again.
  await tamper(
    'update keys set state = ?, destroyed_at = null, copy_of = ? where id = ?',
    ...[String(before?.state), String(before?.copy_of), copy.id],
  );
  await expect.poll(runsFinished).toBe(1);
  expect(await keyNow()).toMatchObject({ unrecoverableAt: null });
  await destroy(copy);
  await untilAudited(opened, 'key.unrecoverable', keyId);
});

test('a destroyed copy whose row was changed hides no file of its tenant', async () => {
  const copy = await restoreBeside('with an export');
  const own = await hand.make(copy.tenantId);
  for await (const _ of await opened.operations.snapshots.export(administrator, own));
  await destroy(copy);
  await expect.poll(runsFinished).toBe(1);
  await tamper('update keys set copy_of = null where id = ?', copy.id);
  await destroy(await keyNow());
  await expect.poll(runsFinished).toBe(2);
  expect((await keyNow()).unrecoverableAt).toBeNull();

  // Repaired, the key waits for the file, and no longer when that is destroyed.
  await tamper('update keys set copy_of = ? where id = ?', keyId, copy.id);
  expect((await opened.operations.keys.use(administrator, keyId)).copies.count).toBe(1);
  expect((await keyNow()).unrecoverableAt).toBeNull();
  const [file] = (await opened.operations.copies.list(administrator, { limit: 1 })).items;
  await opened.operations.copies.confirmDestroyed(administrator, file?.id ?? '', false);
  await untilAudited(opened, 'key.unrecoverable', keyId);
});

describe('the approval of a destruction', () => {
  let ask: () => Promise<Approval>;
  let approve: (request: Approval) => Promise<Approval>;
  beforeEach(async () => {
    const { tokens, dualControl, masterKeys, approvals } = opened.operations;
    const person = async (role: 'key-destroyer' | 'key-approver') => {
      const given = { name: role, grants: [{ role, scope: null }] };
      return { ...administrator, id: (await tokens.create(administrator, 'the service', given)).record.id };
    };
    const [requester, approver] = [await person('key-destroyer'), await person('key-approver')];
    const rule = { required: 1, approvers: null, actions: ['destroy'], databases: 'allowed' } as const;
    await dualControl.change(administrator, (await keyNow()).vaultId, rule);
    ask = () => waits(masterKeys.destroy(requester, applicationId, keyId));
    approve = ({ id }) => approvals.approve(approver, id, null);
  });
  const shown = ({ id }: Approval) => opened.operations.approvals.get(administrator, id);

  test('is not outdated by a new copy, which is shown and named', async () => {
    const { snapshots } = opened.operations;
    const request = await ask();
    expect(request.impact).toMatchObject({ copies: 0, usableCopies: 0, copyList: [] });
    for await (const _ of await snapshots.export(administrator, snapshotId));
    await restoreBeside('beside');
    expect(await shown(request)).toMatchObject({
      changed: null,
      impact: { copies: 2, usableCopies: 1, copyList: [expect.stringContaining('exported')] },
    });
    expect(await approve(request)).toMatchObject({ state: 'completed' });
    expect((await keyNow()).state).toBe('destroyed');
  });

  test('is outdated when a copy that would stay usable is gone', async () => {
    const copy = await restoreBeside('beside');
    const request = await ask();
    expect(request.impact).toMatchObject({ copies: 1, usableCopies: 1 });
    await destroy(copy);
    expect((await shown(request)).changed).toMatchObject({ usableCopies: 0 });
    await expect(approve(request)).rejects.toMatchObject({ code: 'conflict' });
    expect(await shown(request)).toMatchObject({ state: 'outdated' });
    expect((await keyNow()).state).toBe('active');
  });
});
