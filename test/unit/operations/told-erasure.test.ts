// The state of the erasure run on a node without the duty: a run that waits is never said to be
// idle.
import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../server/base/clock.ts';
import { rotationSetting } from '../../../server/domain/changes.ts';
import { createErasureScheduler } from '../../../server/operations/root/schedule-erasure.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog } from '../../support/quiet-log.ts';

let store: Store;
beforeEach(async () => {
  store = await storeOfTest(systemClock);
});
/** Two nodes of the store; the first one has the duty. */
const openNodes = () => {
  const ofNodes = Object.create(store, { link: { value: {} } });
  const open = (holds: boolean) =>
    createErasureScheduler(
      { store: ofNodes, log: quietLog, clock: systemClock, fleet: { holds: () => holds } } as never,
      { gatherMs: 3_600_000, retryMs: 3_600_000, heldMs: 3_600_000 },
    );
  return { owner: open(true), other: open(false) };
};

test('a run that collects destructions is told as soon as it waits', async () => {
  const { owner, other } = openNodes();
  expect(await other.state()).toMatchObject({ state: 'idle', waitsFor: null });
  owner.schedule();
  await expect
    .poll(() => other.state())
    .toEqual({ state: 'waiting', waitsFor: 'destructions', blockers: null, failure: null });
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
  await store.write((tx) =>
    (async () => {
      const tenant = newTenant('purged', 1);
      await tx.tenants.insert(tenant);
      await tx.tenants.update({ ...tenant, state: 'purged', deletedAt: 2, purgedAt: 3, clearedAt: 3 });
    })(),
  );
  expect(await owner.state()).toMatchObject({ state: 'waiting', waitsFor: 'destructions' });
  expect(await other.state()).toMatchObject({ state: 'waiting', waitsFor: 'node' });
  await owner.stop();
});
