// The state of the erasure run on a node without the duty: a run that waits is never said to be
// idle, and only what the run of the node that has the duty tells is believed.
import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../server/base/time.ts';
import { rotationSetting } from '../../../server/domain/changes.ts';
import { newKey } from '../../../server/domain/key.ts';
import { type FleetNode, runOf } from '../../../server/domain/node.ts';
import { isRunDue } from '../../../server/operations/root/conclude-erasure.ts';
import { createErasureScheduler } from '../../../server/operations/root/schedule-erasure.ts';
import { parseToldErasure } from '../../../server/operations/root/told-erasure.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { storeOfTest } from '../../support/open-store.ts';
import fc from '../../support/property.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { storedVault } from '../../support/stored.ts';

let store: Store;
let holder = 'one';
let states: Record<string, FleetNode['state']> = {};
beforeEach(async () => {
  store = await storeOfTest(systemClock);
  holder = 'one';
  states = {};
});
const startedAt: Readonly<Record<string, number>> = { one: 1, two: 2, three: 3 };
/** A node of the store, as the fleet shows it to itself and to others. */
const openNode = (id: string, began = startedAt[id] ?? 0) => {
  const holds = () => holder === id;
  const fleet = {
    holds,
    perform: async <T>(_: unknown, work: () => Promise<T>) => (holds() ? work() : undefined),
    run: () => runOf({ id, startedAt: began }),
    nodes: async () =>
      Object.entries(startedAt).map(([other, at]) => ({
        ...{ id: other, startedAt: at, state: states[other] ?? 'active' },
        duties: holder === other ? ['erasure'] : [],
      })),
  };
  const ofNodes = Object.create(store, { link: { value: {} } });
  return createErasureScheduler({ store: ofNodes, log: quietLog, clock: systemClock, fleet, root: {} } as never, {
    gatherMs: 3_600_000,
    retryMs: 3_600_000,
    heldMs: 3_600_000,
  });
};
/** Two nodes of the store; the first one has the duty. */
const openNodes = () => ({ owner: openNode('one'), other: openNode('two') });
const waiting = { state: 'waiting', waitsFor: 'destructions', blockers: null, failure: null } as const;
const purge = () =>
  store.write(async (tx) => {
    const tenant = newTenant('purged', 1);
    await tx.tenants.insert(tenant);
    await tx.tenants.update({ ...tenant, state: 'purged', deletedAt: 2, purgedAt: 3, clearedAt: 3 });
  });
const stored = () => store.read.settings.get('erasure-state');

test('a run that collects destructions is told as soon as it waits', async () => {
  const { owner, other } = openNodes();
  expect(await other.state()).toMatchObject({ state: 'idle', waitsFor: null });
  owner.schedule();
  await expect.poll(() => other.state()).toEqual(waiting);
  await owner.stop();
});

test('a run that was asked for, or has begun, waits while no node tells of it', async () => {
  for (const name of ['erasure-started', rotationSetting] as const) {
    const { owner, other } = openNodes();
    await store.write((tx) => tx.decisions.set(name, '1'));
    expect(await other.state()).toMatchObject({ state: 'waiting', waitsFor: 'node' });
    expect(await owner.state()).toMatchObject({ state: 'waiting', waitsFor: 'destructions' });
    await owner.stop();
    await store.write((tx) => tx.decisions.set(name, null));
    expect(await other.state()).toMatchObject({ state: 'idle' });
  }
});

test('what was destroyed waits for its run on every node, also before one of them has begun to collect', async () => {
  const { owner, other } = openNodes();
  expect((await owner.state()).state).toBe('idle');
  await purge();
  expect(await owner.state()).toMatchObject({ state: 'waiting', waitsFor: 'destructions' });
  expect(await other.state()).toMatchObject({ state: 'waiting', waitsFor: 'node' });
  await owner.stop();
});

test('what no node has told counts as not told', async () => {
  const { other } = openNodes();
  const run = runOf({ id: 'one', startedAt: 1 });
  const texts = [
    ...['{', 'null', '[]', '"running"', '{"state":"running"}'],
    JSON.stringify({ state: 'running', blockers: null, failure: null }),
    JSON.stringify({ ...waiting, waitsFor: 'ever', run }),
    JSON.stringify({ ...waiting, state: 'blocked', waitsFor: null, blockers: { since: 1 }, run }),
    JSON.stringify({ ...waiting, state: 'failed', waitsFor: null, run }),
  ];
  for (const text of texts) {
    await store.write((tx) => tx.settings.set('erasure-state', text));
    expect(await other.state(), text).toMatchObject({ state: 'idle' });
  }
});

test('a run of a node that is gone, has started again, or has lost the duty, is not believed', async () => {
  const { owner, other } = openNodes();
  owner.schedule();
  await expect.poll(() => other.state()).toEqual(waiting);
  states = { one: 'offline' };
  expect(await other.state()).toMatchObject({ state: 'idle' });
  states = {};
  holder = 'three';
  expect(await other.state()).toMatchObject({ state: 'idle' });
  holder = 'one';
  expect(await other.state()).toEqual(waiting);
  await store.write((tx) =>
    tx.settings.set('erasure-state', JSON.stringify({ ...waiting, run: runOf({ id: 'one', startedAt: 0 }) })),
  );
  expect(await other.state()).toMatchObject({ state: 'idle' });
  await owner.stop();
});

test('a node that takes the duty over replaces what was told, also where nothing is due', async () => {
  const { owner, other } = openNodes();
  owner.schedule();
  await expect.poll(stored).toContain('waiting');
  holder = 'two';
  await other.resume();
  await expect.poll(stored).toContain('"state":"idle"');
  expect(await openNode('three').state()).toMatchObject({ state: 'idle', waitsFor: null });
  await owner.stop();
  await other.stop();
});

test('whether a run is due reads no key that waits for files: only those that no run has covered', async () => {
  const tenant = newTenant('keys', 1);
  const vault = storedVault({ id: 'v', tenantId: tenant.id, name: 'v', createdAt: 1 });
  const destroy = (id: string, destroyedAt: number) =>
    store.write(async (tx) => {
      await tx.keys.insert(newKey({ id, tenantId: tenant.id, vaultId: vault.id, name: id, createdAt: 1, usages: [] }));
      const key = await tx.keys.get(tenant.id, id);
      if (key !== undefined) await tx.keys.update({ ...key, state: 'destroyed', destroyedAt });
    });
  await store.write(async (tx) => {
    await tx.tenants.insert(tenant);
    await tx.vaults.insert(vault);
    await tx.decisions.set('erasure-covered', '100');
  });
  for (const id of ['a', 'b', 'c']) await destroy(id, 50);
  const read: string[] = [];
  const keys: Store['read']['keys'] = Object.create(store.read.keys, {
    listErasable: {
      value: async (...all: Parameters<Store['read']['keys']['listErasable']>) => {
        const page = await store.read.keys.listErasable(...all);
        read.push(...page.map(({ id }) => id));
        return page;
      },
    },
  });
  const counted: Store['read'] = Object.create(store.read, { keys: { value: keys } });
  expect([await isRunDue(counted), read]).toEqual([false, []]);
  await destroy('d', 100);
  expect([await isRunDue(counted), read]).toEqual([true, ['d']]);
});

test('any text is answered by a state that a run can have, or by none', () => {
  const run = runOf({ id: 'one', startedAt: 1 });
  const member = fc.oneof(fc.constant(null), fc.constantFrom('waiting', 'copies', 'blocked', 'failed', run), fc.json());
  const texts = fc
    .record({ state: member, blockers: member, failure: member, waitsFor: member, run: member })
    .map((value) => JSON.stringify(value));
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), texts), (text) => {
      const told = parseToldErasure(text);
      if (told === undefined) return;
      expect([told.blockers !== null, told.failure !== null, told.waitsFor !== null]).toEqual([
        told.state === 'blocked',
        told.state === 'failed',
        told.state === 'waiting',
      ]);
    }),
  );
  expect(parseToldErasure(JSON.stringify({ ...waiting, run }))).toEqual({ ...waiting, run });
});
