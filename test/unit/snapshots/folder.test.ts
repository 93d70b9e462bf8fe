// The folder of the snapshots on a disk that is not mounted for a time: the empty mount point does
// not count as the folder, no destroyed key counts as unrecoverable in the meantime, and destroyed
// keys are erased when the disk is back. Exported copies are reported, also for a tenant that is
// purged.
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import { administrator, type OpenedService, openTestService } from '../../support/open-service.ts';
import { type MountedFolder, mountFolder } from '../../support/small-disk.ts';
import { actorIn, answerOpening, handOf, type SnapshotHand } from '../../support/snapshots.ts';

const mounted = mountFolder();
if (typeof mounted === 'string') console.log(`skipped: ${mounted}`);
const folder = mounted as MountedFolder;
const skips = typeof mounted === 'string';
afterAll(() => {
  if (!skips) folder.end();
});

let opened: OpenedService;
let hand: SnapshotHand;
let tenantId: string;
let keyId: string;
let snapshotId: string;
afterEach(async () => {
  await opened?.remove();
  if (skips) return;
  folder.unmount();
  folder.mount();
  for (const name of readdirSync(folder.point)) rmSync(join(folder.point, name));
});

const settings = (missing: string): string =>
  `[erasure]\ngather_ms = 5\n${missing}[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\ndirectory = ${JSON.stringify(folder.point)}\n`;
/** A tenant with a key, and a snapshot of it. */
const begin = async (missing = ''): Promise<void> => {
  opened = await openTestService({ toml: settings(missing) });
  const { operations } = opened;
  hand = await handOf(opened);
  tenantId = (await operations.tenants.create(administrator, { name: 'gone' })).id;
  const actor = actorIn(tenantId);
  const { id: vaultId } = await operations.vaults.create(actor, { name: 'vault' });
  const key = await operations.keys.create(actor, { name: 'page key', vaultId });
  keyId = key.id;
  snapshotId = await hand.make(tenantId);
};
const purge = async (): Promise<void> => {
  await opened.operations.tenants.delete(administrator, tenantId);
  await opened.operations.tenants.purge(administrator, tenantId);
};
const restart = async (missing = ''): Promise<void> => {
  await opened.stop();
  opened = await openTestService({ folder: opened.folder, toml: settings(missing) });
};
const make = (of: string) => opened.operations.snapshots.create(administrator, of);
const restore = async () => {
  const { operations } = opened;
  const opening = await operations.snapshots.beginOpening(administrator, snapshotId, hand.recovery.id);
  return operations.snapshots.restore(administrator, snapshotId, answerOpening(opening, hand.recovery.key), {
    ...{ tenantId: null, newTenant: 'copy', dryRun: false },
  });
};
const tenantNow = () => opened.operations.tenants.get(administrator, tenantId);
const snapshotNow = () => opened.operations.snapshots.get(administrator, snapshotId);
const poll = <T>(ask: () => Promise<T>) => expect.poll(ask, { interval: 50 });

test.skipIf(skips)(
  'a purge waits for a folder that is not mounted, no snapshot goes to the bare mount point, and the purge finishes when it is mounted',
  async () => {
    await begin();
    folder.unmount();
    await purge();
    await poll(async () => (await opened.operations.status(administrator)).erasure.blockers?.snapshots).toEqual([
      snapshotId,
    ]);
    expect(await tenantNow()).toMatchObject({ state: 'purged', unrecoverableAt: null });
    const { id: other } = await opened.operations.tenants.default();
    await expect(make(other)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('its disk is not mounted') as unknown,
    });
    // A start does not take the bare mount point for the folder either.
    await restart();
    await expect(make(other)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(make(other)).rejects.toMatchObject({
      hint: expect.stringMatching(/printf '%s\\n' [0-9a-f-]{36} > /) as unknown,
    });
    expect(readdirSync(folder.point)).toEqual([]);
    await opened.service.checkNotifications();
    const notified = await opened.operations.notifications.list(administrator, { kind: 'snapshot.folder-missing' });
    expect(notified.items).toMatchObject([{ subject: { name: folder.point } }]);
    await poll(async () => (await opened.operations.status(administrator)).erasure.state).toBe('blocked');
    expect((await tenantNow()).unrecoverableAt).toBeNull();

    folder.mount();
    await poll(async () => (await tenantNow()).unrecoverableAt).not.toBeNull();
    expect(await snapshotNow()).toMatchObject({ state: 'available', counts: { erased: 1 } });
    const copy = await restore();
    expect(copy.stayDestroyed.map(({ name }) => name)).toEqual(['page key']);
    await opened.service.checkNotifications();
    expect(
      (await opened.operations.notifications.list(administrator, { kind: 'snapshot.folder-missing' })).items,
    ).toEqual([]);
  },
);

test.skipIf(skips)(
  'where the configuration says so the snapshots out of reach are named, and lose the keys when they are back',
  async () => {
    await begin('missing_snapshots = "name"\n');
    folder.unmount();
    await purge();
    await poll(async () => (await tenantNow()).unrecoverableAt).not.toBeNull();
    for (const kind of ['tenant.unrecoverable', 'key.unrecoverable'] as const) {
      const { items } = await opened.operations.audit.list(administrator, { kind });
      expect(items).toMatchObject([{ details: { except: [snapshotId] } }]);
    }
    expect(await snapshotNow()).toMatchObject({ state: 'missing' });
    folder.mount();
    // Missing snapshots are checked each minute, and soon after a start.
    await restart('missing_snapshots = "name"\n');
    await poll(async () => (await snapshotNow()).state).toBe('available');
    expect(await snapshotNow()).toMatchObject({ counts: { erased: 1 } });
  },
);

test.skipIf(skips)(
  'copies that left the service are part of the impact of a purge, and are told of its keys when the tenant is gone',
  async () => {
    await begin();
    const { operations } = opened;
    for await (const _ of await operations.snapshots.export(administrator, snapshotId));
    await operations.tenants.delete(administrator, tenantId);
    expect((await operations.tenants.impact(administrator, tenantId, 'purge')).contents).toMatchObject({
      copies: 1,
    });
    await operations.tenants.purge(administrator, tenantId);
    const [purged] = (await operations.audit.list(administrator, { kind: 'tenant.purged' })).items;
    expect(purged?.details).toMatchObject({ copies: 1 });
    const [exported] = (await operations.copies.list(administrator, { left: true })).items;
    expect(exported).toMatchObject({ tenantId, snapshotId });
    await operations.copies.confirmDestroyed(administrator, exported?.id ?? '', false);
    await poll(async () => (await tenantNow()).unrecoverableAt).not.toBeNull();
    const whole = [{ role: 'administrator', tenantId: null, scope: null }] as const;
    const actor = operations.access.actIn(administrator, whole, tenantId);
    expect((await operations.keys.list(actor, {})).items).toMatchObject([
      { id: keyId, state: 'destroyed', unrecoverableAt: expect.any(Number) as unknown },
    ]);
    expect(await operations.snapshots.ofKey(actor, keyId)).toEqual({ count: 0, items: [] });
    // Nothing in it is changed, and its name is free.
    expect(() => operations.access.requireChangeable(actor)).toThrow(/purged/);
    expect(() => operations.access.actIn(administrator, whole, 'gone')).toThrow(/tenant not found/);
  },
);

test.skipIf(skips)(
  'a folder that lost its mark is known by its snapshots; another one is used only when an operator says so',
  async () => {
    await begin();
    await opened.stop();
    rmSync(join(folder.point, 'folder'));
    await restart();
    const { id: other } = await opened.operations.tenants.default();
    await make(other);
    await opened.stop();
    const foreign = newId(Date.now());
    writeFileSync(join(folder.point, 'folder'), `${foreign}\n`);
    await restart();
    const refused = await make(other).catch((error: unknown) => error);
    const [, mark = ''] = /printf '%s\\n' (\S+) >/.exec(String((refused as { hint?: unknown }).hint)) ?? [];
    writeFileSync(join(folder.point, 'folder'), `${mark}\n`);
    await make(other);
  },
);
