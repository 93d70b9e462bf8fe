// What never changes is not set back by a restore, and the rules about names are those of live
// operations.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import {
  administrator,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
  toLabel,
} from '../../support/open-service.ts';
import { errorOf } from '../../support/people.ts';
import { freshService } from '../../support/shared.ts';
import { checksOf, dumpTenant, handOf } from '../../support/snapshots.ts';
import { copyStored } from '../../support/test-store.ts';

const toml = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n';
const opened = freshService({ toml });
async function* pieces(file: Buffer): AsyncGenerator<Uint8Array> {
  yield file;
}

test('a version of a key that has another value here is a conflict that changes nothing, also in a dry run', async () => {
  const hand = await handOf(opened);
  const { operations } = opened;
  const vault = await operations.vaults.create(administrator, { name: 'cloud' });
  const key = await operations.keys.create(administrator, { name: 'cloud', vaultId: vault.id });
  const twin = await operations.keys.create(administrator, { name: 'twin', vaultId: vault.id });
  const tenantId = administrator.tenantId;
  // Monday's copy of the machine; on Tuesday the key gets its second version, and a snapshot is
  // made.
  await opened.stop();
  const monday = mkdtempSync(join(tmpdir(), 'dke-monday-'));
  execFileSync('cp', ['-a', `${opened.folder}/.`, monday]);
  await copyStored(opened.folder, monday);
  let machine: OpenedService = await openTestService({ folder: opened.folder, toml });
  await machine.operations.keys.rotate(administrator, key.id);
  const at = Date.now();
  await rotateAt(machine, twin.id, at);
  const id = (await machine.operations.snapshots.create(administrator, tenantId)).id;
  const file = readFileSync(join(machine.config.snapshots.directory, `${id}.dkesnap`));
  const values = await checksOf(machine, id, hand.recovery);
  await machine.stop();

  machine = await openTestService({ folder: monday, toml });
  try {
    const { snapshots, keys } = machine.operations;
    // Before the key has its second version again, Tuesday's snapshot brings it back.
    await snapshots.import(administrator, pieces(file), undefined);
    const again = { make: hand.make, ...(await restorer(machine, hand.recovery)) };
    expect((await again.restore(id, true)).counts.key_versions).toMatchObject({ created: 2 });
    // The two second versions of the key twin differ in nothing but the value.
    await rotateAt(machine, twin.id, at);
    await expect(again.restore(id, true)).rejects.toMatchObject({
      ...{ code: 'conflict', message: expect.stringContaining('version 2 of the key twin') },
    });
    await keys.rotate(administrator, key.id);
    const before = await dumpTenant(machine, tenantId);
    for (const dryRun of [true, false])
      await expect(again.restore(id, dryRun)).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('key_versions'),
        hint: expect.stringContaining('new tenant'),
      });
    expect(await dumpTenant(machine, tenantId)).toEqual(before);
    const now = (await snapshots.create(administrator, tenantId)).id;
    const after = await checksOf(machine, now, hand.recovery);
    expect(after.get(`${key.id} 1`)).toBe(values.get(`${key.id} 1`));
    expect(after.get(`${key.id} 2`)).not.toBe(values.get(`${key.id} 2`));
  } finally {
    await machine.stop();
    rmSync(monday, { recursive: true, force: true });
  }
});

const rotateAt = async ({ operations }: OpenedService, id: string, at: number): Promise<void> => {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(at);
  try {
    await operations.keys.rotate(administrator, id);
  } finally {
    clock.mockRestore();
  }
};
const restorer = async (service: OpenedService, recovery: Awaited<ReturnType<typeof handOf>>['recovery']) => {
  const { answerOpening } = await import('../../support/snapshots.ts');
  const { snapshots } = service.operations;
  return {
    restore: async (id: string, dryRun: boolean) =>
      snapshots.restore(
        administrator,
        id,
        answerOpening(await snapshots.beginOpening(administrator, id, recovery.id), recovery.key),
        { tenantId: null, newTenant: null, dryRun },
      ),
  };
};

test('a tenant whose programs keep two keys under one label is restored', async () => {
  const hand = await handOf(opened);
  const { operations } = opened;
  const { caller } = await registerCaller(opened, 'erp');
  const key = { ...masterKey('rotated'), modifiable: true };
  for (let made = 0; made < 2; made += 1) await operations.tde.generateKey(caller, key);
  const id = await hand.make(administrator.tenantId);
  await operations.applications.disable(administrator, caller.application.id);
  expect((await hand.restore(id)).counts.tde_applications).toMatchObject({ changed: 1 });
  expect((await hand.restore(id, { newTenant: 'copy' })).counts.tde_objects).toMatchObject({ created: 2 });
});

test('a master key whose label was given to another one since is a conflict', async () => {
  const hand = await handOf(opened);
  const { operations } = opened;
  const { caller } = await registerCaller(opened, 'erp');
  const lasting = { ...masterKey('pages'), modifiable: false };
  const free = { ...masterKey('pages'), modifiable: true };
  const { handle } = await operations.tde.generateKey(caller, free);
  await operations.tde.generateKey(caller, free);
  const id = await hand.make(administrator.tenantId);
  await operations.tde.updateObject(caller, handle, { label: toLabel('other') });
  expect((await hand.restore(id)).counts.tde_objects).toMatchObject({ changed: 1 });
  await operations.tde.updateObject(caller, handle, { label: toLabel('other') });
  expect(await errorOf(operations.tde.generateKey(caller, lasting))).toBe('label-exists');
  const { objects } = await operations.tde.findObjects(caller, { label: toLabel('pages'), after: 0, limit: 10 });
  for (const each of objects) await operations.tde.updateObject(caller, each.handle, { label: toLabel('others') });
  await operations.tde.generateKey(caller, lasting);
  await expect(hand.restore(id)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('label pages'),
  });
});

test('the vault of a group takes no name that a vault has; where both have it, the tenant is restored', async () => {
  const hand = await handOf(opened);
  const { operations } = opened;
  await operations.vaults.create(administrator, { name: 'TDE group hr' });
  await expect(operations.tdeGroups.create(administrator, { name: 'hr' })).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('TDE group hr'),
  });
  const id = await hand.make(administrator.tenantId);
  expect((await hand.restore(id)).counts.vaults).toMatchObject({ unchanged: 1 });
});
