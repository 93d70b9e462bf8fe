// Making, verifying and restoring snapshots through the service's operations, over the real store,
// addon and files.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  administrator,
  auditKindsOf,
  masterKey,
  openTestService,
  registerCaller,
  toLabel,
  untilAudited,
} from '../../support/open-service.ts';
import { codeOfWork } from '../../support/outcomes.ts';
import { sharedService } from '../../support/shared.ts';
import { makeRecoveryKey } from '../../support/snapshot-files.ts';
import { actorIn, checksOf, dumpTenant, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const settings = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
const opened = sharedService({ toml: `${settings}[snapshots]\nrestore_second_person = false\n` });
let hand: SnapshotHand;
let tenantId: string;
beforeAll(async () => {
  tenantId = administrator.tenantId;
});

const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7) } as const;

describe('creating', () => {
  test('without a recovery key none is made, and the refusal says what to do', async () => {
    await expect(opened.operations.snapshots.create(administrator, tenantId)).rejects.toMatchObject({
      code: 'conflict',
      hint: expect.stringContaining('dke recovery-key create'),
    });
    hand = await handOf(opened);
  });

  test('one is held, verified and audited', async () => {
    const made = await opened.operations.snapshots.create(administrator, null);
    expect(made).toMatchObject({
      tenantId,
      state: 'available',
      origin: 'requested',
      recoveryKeyIds: [hand.recovery.id],
    });
    expect(made.verification).toMatchObject({ depth: 'sealed', valid: true });
    expect(made.counts).toMatchObject({ omitted: 0, erased: 0 });
    expect(await auditKindsOf(opened, made.id)).toEqual(['snapshot.created']);
    const verified = await opened.operations.snapshots.verify(administrator, made.id, await hand.answer(made.id));
    expect(verified.verification).toMatchObject({ depth: 'opened', valid: true, finding: null });
  });

  test('a recovery key is registered once, removed, and counts for new snapshots only', async () => {
    const other = makeRecoveryKey();
    const second = await handOf(opened, other);
    expect(await codeOfWork(handOf(opened, other))).toBe('conflict');
    const id = await second.make(tenantId);
    const removal = await opened.operations.recoveryKeys.remove(administrator, other.id, false);
    const later = await hand.make(tenantId);
    expect((await opened.operations.snapshots.get(administrator, id)).recoveryKeyIds).toContain(other.id);
    expect((await opened.operations.snapshots.get(administrator, later)).recoveryKeyIds).not.toContain(other.id);
    // The answer, the list and the record of the removal name what it still opens.
    expect(removal.snapshots).toEqual([id]);
    const listed = await opened.operations.recoveryKeys.list(administrator);
    expect(listed.find((key) => key.id === other.id)?.snapshots).toEqual([id]);
    expect(listed.find((key) => key.id === hand.recovery.id)?.snapshots).toContain(later);
    const [removed] = (
      await opened.operations.audit.list(administrator, { kind: 'recovery-key.removed', subjectId: other.id })
    ).items;
    expect(removed?.details).toMatchObject({ snapshots: [id], snapshotCount: 1 });
    expect(
      (await opened.operations.snapshots.verify(administrator, id, await second.answer(id))).verification?.valid,
    ).toBe(true);
    expect(await codeOfWork(opened.operations.snapshots.beginOpening(administrator, later, other.id))).toBe('conflict');
  });

  test('an opening is valid once, for its snapshot and its caller', async () => {
    const { snapshots } = opened.operations;
    const id = await hand.make(tenantId);
    const answer = await hand.answer(id);
    expect(await codeOfWork(snapshots.verify({ ...administrator, id: 'other' }, id, answer))).toBe('conflict');
    expect((await snapshots.verify(administrator, id, answer)).verification?.depth).toBe('opened');
    expect(await codeOfWork(snapshots.verify(administrator, id, answer))).toBe('conflict');
    const another = await hand.answer(id);
    expect(
      await codeOfWork(
        snapshots.verify(administrator, id, { ...another, sealedKey: Buffer.alloc(80).toString('base64') }),
      ),
    ).toBe('validation');
  });
});

describe('restoring into the same tenant', () => {
  test('brings back what was deleted, disabled and removed; what was made since stays', async () => {
    const { operations } = opened;
    const { caller, accessGuid } = await registerCaller(opened, 'accounts');
    const { handle, id: keyId } = await operations.tde.generateKey(caller, masterKey('A'));
    const secret = await operations.tde.encrypt(caller, handle, cbc, Buffer.alloc(16, 1));
    const vault = await operations.vaults.create(administrator, { name: 'general' });
    const general = await operations.keys.create(administrator, { name: 'cloud', vaultId: vault.id });
    const before = await dumpTenant(opened, tenantId);
    const id = await hand.make(tenantId);

    const since = await operations.keys.create(administrator, { name: 'since', vaultId: vault.id });
    await operations.keys.softDelete(administrator, general.id);
    await operations.keys.disable(administrator, keyId);
    await operations.vaults.disable(administrator, vault.id);
    await operations.applications.disable(administrator, caller.application.id);

    const planned = await hand.restore(id, { dryRun: true });
    expect(planned.counts.keys).toMatchObject({ created: 0, changed: 2 });
    expect((await operations.keys.get(administrator, general.id)).state).toBe('soft-deleted');
    const outcome = await hand.restore(id);
    expect(outcome).toEqual(planned);
    expect(outcome.stayDestroyed).toEqual([]);

    const after = await dumpTenant(opened, tenantId);
    for (const [table, rows] of before)
      for (const [name, row] of rows) expect([table, name, after.get(table)?.get(name)]).toEqual([table, name, row]);
    expect((await operations.keys.get(administrator, since.id)).state).toBe('active');
    const again = await operations.tde.authenticate({
      accessGuid,
      appId: caller.appId,
      instance: caller.instance,
      requestId: 'r',
      peer: null,
    });
    expect(await operations.tde.decrypt(again, handle, cbc, secret)).toEqual(Buffer.alloc(16, 1));
    expect(await auditKindsOf(opened, id)).toContain('snapshot.restored');
  });

  test('a destroyed key stays destroyed and is named, and the held snapshot no longer has it', async () => {
    const { operations } = opened;
    const { caller } = await registerCaller(opened, 'doomed');
    const { id: keyId } = await operations.tde.generateKey(caller, masterKey('gone'));
    const { id: keptId } = await operations.tde.generateKey(caller, masterKey('kept'));
    const id = await hand.make(tenantId);
    expect((await checksOf(opened, id, hand.recovery)).get(`${keyId} 1`)).not.toBe('erased');

    await operations.masterKeys.destroy(administrator, caller.application.id, keyId);
    await untilAudited(opened, 'key.unrecoverable', keyId);
    const checks = await checksOf(opened, id, hand.recovery);
    expect(checks.get(`${keyId} 1`)).toBe('erased');
    expect(checks.get(`${keptId} 1`)).not.toBe('erased');
    expect(await auditKindsOf(opened, id)).toContain('snapshot.keys-erased');
    expect((await operations.snapshots.get(administrator, id)).counts?.erased).toBe(1);
    expect((await operations.snapshots.verify(administrator, id, await hand.answer(id))).verification?.valid).toBe(
      true,
    );

    const outcome = await hand.restore(id);
    expect(outcome.stayDestroyed.map(({ id: each, name, label }) => [each, name, label])).toEqual([
      [keyId, 'gone', toLabel('gone')],
    ]);
    expect(await operations.masterKeys.get(administrator, caller.application.id, keyId)).toMatchObject({
      state: 'destroyed',
      vaultCopy: false,
      sealedCopy: false,
    });
  });

  test('a destroyed key names the exported copies that may contain it', async () => {
    const { operations } = opened;
    const { caller } = await registerCaller(opened, 'exported');
    const early = await hand.make(tenantId);
    const { id: keyId } = await operations.tde.generateKey(caller, masterKey('out'));
    const id = await hand.make(tenantId);
    const take = async (snapshotId: string): Promise<Buffer> => {
      const pieces: Uint8Array[] = [];
      for await (const piece of await operations.snapshots.export(administrator, snapshotId)) pieces.push(piece);
      return Buffer.concat(pieces);
    };
    await take(early);
    const copy = await take(id);
    expect(copy.equals(readFileSync(join(opened.config.snapshots.directory, `${id}.dkesnap`)))).toBe(true);
    const [first] = await operations.snapshots.exports(administrator, id);
    const exportsOfKey = async (): Promise<readonly string[]> =>
      (await operations.snapshots.ofKey(administrator, keyId)).items.map((each) => each.id);
    expect(await exportsOfKey()).toEqual([first?.id]);
    await operations.masterKeys.destroy(administrator, caller.application.id, keyId);
    await untilAudited(opened, 'snapshot.keys-erased', id);
    await expect.poll(async () => (await operations.status(administrator)).erasure.state).toBe('idle');
    // What leaves from now on is without it.
    await take(id);
    expect(await exportsOfKey()).toEqual([first?.id]);
    expect((await operations.snapshots.exports(administrator, id)).length).toBe(2);

    // The old copy is imported: keys that are destroyed here are removed from it before it can be
    // restored.
    await operations.snapshots.delete(administrator, id);
    expect(await codeOfWork(operations.snapshots.import(administrator, pieces(copy), undefined))).toBe('conflict');
  });

  test('a vault of the same name made since is a conflict that changes nothing', async () => {
    const { operations } = opened;
    const vault = await operations.vaults.create(administrator, { name: 'twice' });
    const id = await hand.make(tenantId);
    await operations.vaults.delete(administrator, vault.id);
    const other = await operations.vaults.create(administrator, { name: 'twice' });
    await expect(hand.restore(id)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('twice'),
    });
    expect((await operations.vaults.get(administrator, vault.id)).state).toBe('deleted');
    await operations.vaults.delete(administrator, other.id);
    expect((await hand.restore(id)).counts.vaults?.changed).toBe(1);
    await operations.vaults.delete(administrator, vault.id);
  });
});

let named = 0;
describe.each([
  [
    'group',
    (name: string) => opened.operations.tdeGroups.create(administrator, { name }),
    () => opened.operations.tdeGroups,
  ],
  [
    'application',
    async (name: string) => {
      const { id: groupId } = await opened.operations.tdeGroups.create(administrator, {
        name: `group ${named++} of ${name}`,
      });
      return (await opened.operations.applications.register(administrator, { name, groupId })).application;
    },
    () => opened.operations.applications,
  ],
] as const)('a name of a %s that another one has by now', (kind, make, operations) => {
  test('is a conflict that changes nothing; renamed, the restore gives the former name back', async () => {
    const name = `books of the ${kind}`;
    const made = await make(name);
    const id = await hand.make(tenantId);
    await operations().rename(administrator, made.id, { name: `${name}, old` });
    const other = await make(`${name}, other`);
    await operations().rename(administrator, other.id, { name });
    await expect(hand.restore(id)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`${kind} ${name}`),
    });
    expect((await operations().get(administrator, made.id)).name).toBe(`${name}, old`);
    await operations().rename(administrator, other.id, { name: `${name}, new` });
    await hand.restore(id);
    expect((await operations().get(administrator, made.id)).name).toBe(name);
    expect((await operations().get(administrator, other.id)).name).toBe(`${name}, new`);
  });

  test('comes back where rows of the snapshot have exchanged their names since', async () => {
    const names = ['x', 'y', 'z'].map((each) => `${kind} ${each}`);
    const made: Awaited<ReturnType<typeof make>>[] = [];
    for (const name of names) made.push(await make(name));
    const id = await hand.make(tenantId);
    const rename = (at: number, name = ''): Promise<unknown> =>
      operations().rename(administrator, made[at]?.id ?? '', { name });
    await rename(0, `${kind} put aside`);
    await rename(1, names[0]);
    await rename(2, names[1]);
    await rename(0, names[2]);
    await hand.restore(id);
    for (const each of made) expect(await operations().get(administrator, each.id)).toEqual(each);
    // A name that only one of the snapshot left, to one that is not in it, is not taken away.
    await rename(1, `${kind} put aside`);
    await rename(0, names[1]);
    const newer = await make(`${kind} newer`);
    await operations().rename(administrator, newer.id, { name: names[0] ?? '' });
    await expect(hand.restore(id)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`: ${kind} ${names[0]}`),
    });
    expect((await operations().get(administrator, newer.id)).name).toBe(names[0]);
    await operations().rename(administrator, newer.id, { name: `${kind} newest` });
  });
});

test('a group whose vault a restore gave the wanted name back gets that name, too', async () => {
  const { tdeGroups, vaults } = opened.operations;
  const group = await tdeGroups.create(administrator, { name: 'wages' });
  const change = (by: string): Promise<unknown> =>
    queryStored(opened.folder, `update tde_groups set created_at = created_at ${by} where id = '${group.id}'`);
  // The row of the group in the file was changed from outside: what is here stays.
  await change('+ 1');
  const id = await hand.make(tenantId);
  await change('- 1');
  await tdeGroups.rename(administrator, group.id, { name: 'salaries' });
  await hand.restore(id);
  expect((await tdeGroups.get(administrator, group.id)).name).toBe('salaries');
  expect((await vaults.get(administrator, group.vaultId)).name).toBe('TDE group wages');
  expect((await tdeGroups.rename(administrator, group.id, { name: 'wages' })).name).toBe('wages');
  expect((await vaults.get(administrator, group.vaultId)).name).toBe('TDE group wages');
});

test('exchanged names come back, also where the rows are far from each other in the file', async () => {
  const { tdeGroups } = opened.operations;
  const made = [];
  for (let at = 0; at < 210; at += 1) made.push(await tdeGroups.create(administrator, { name: `far ${at}` }));
  const [first, last] = [made[0], made.at(-1)];
  if (first === undefined || last === undefined) throw new Error('no groups');
  const id = await hand.make(tenantId);
  await tdeGroups.rename(administrator, first.id, { name: 'far away' });
  await tdeGroups.rename(administrator, last.id, { name: first.name });
  await tdeGroups.rename(administrator, first.id, { name: last.name });
  expect((await hand.restore(id)).counts.tde_groups).toMatchObject({ changed: 2, created: 0 });
  for (const each of [first, last]) expect(await tdeGroups.get(administrator, each.id)).toEqual(each);
});

test('a restore gives a former name back, and the token keeps its label', async () => {
  const { applications, tdeGroups } = opened.operations;
  const group = await tdeGroups.create(administrator, { name: 'labelled' });
  const { application } = await applications.register(administrator, { name: 'labelled', groupId: group.id });
  await applications.rename(administrator, application.id, { name: 'relabelled' });
  const id = await hand.make(tenantId);
  await applications.rename(administrator, application.id, { name: 'renamed again' });
  await hand.restore(id);
  expect(await applications.get(administrator, application.id)).toEqual({ ...application, name: 'relabelled' });
  const { tenantId: copy } = await hand.restore(id, { newTenant: 'copy with labels' });
  const copied = await applications.list(actorIn(copy), { limit: 1000 });
  expect(copied.items.find(({ name }) => name === 'relabelled')).toMatchObject({ tokenLabel: 'labelled' });
});

async function* pieces(file: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.length; at += 1000) yield file.subarray(at, at + 1000);
}

describe('keeping', () => {
  test('a deletion is undone until its time is over', async () => {
    const { snapshots } = opened.operations;
    const id = await hand.make(tenantId);
    expect((await snapshots.delete(administrator, id)).state).toBe('deleted');
    expect(await codeOfWork(hand.restore(id))).toBe('conflict');
    expect((await snapshots.undelete(administrator, id)).state).toBe('available');
    expect(await codeOfWork(snapshots.undelete(administrator, id))).toBe('conflict');
  });

  test('a damaged file is found, and stays found until it is put right', async () => {
    const { snapshots } = opened.operations;
    const id = await hand.make(tenantId);
    const path = join(opened.config.snapshots.directory, `${id}.dkesnap`);
    const sound = readFileSync(path);
    const changed = Buffer.from(sound);
    changed[sound.length >> 1] = (changed[sound.length >> 1] ?? 0) ^ 1;
    writeFileSync(path, changed);
    const verified = await snapshots.verify(administrator, id, null);
    expect(verified.verification).toMatchObject({ valid: false, finding: expect.stringContaining('damaged') });
    expect(await codeOfWork(hand.restore(id))).toBe('key-tampered');
    writeFileSync(path, sound);
    expect((await snapshots.verify(administrator, id, null)).verification?.valid).toBe(true);
  });
});

describe('restoring elsewhere', () => {
  test('a new tenant next to the original gets everything under new ids, and no credentials', async () => {
    const { operations } = opened;
    const { caller } = await registerCaller(opened, 'beside');
    const { handle, id: keyId } = await operations.tde.generateKey(caller, masterKey('beside'));
    const id = await hand.make(tenantId);
    const outcome = await hand.restore(id, { newTenant: 'copy' });
    expect(outcome).toMatchObject({ newTenant: true, newIds: true });
    expect(outcome.tenantId).not.toBe(tenantId);
    expect(outcome.counts.access_guids).toMatchObject({ created: 0 });
    const original = await dumpTenant(opened, tenantId);
    const copy = await dumpTenant(opened, outcome.tenantId);
    for (const table of ['vaults', 'tde_groups', 'tde_applications', 'keys', 'key_versions', 'tde_objects'])
      expect([table, copy.get(table)?.size]).toEqual([table, original.get(table)?.size]);
    expect(copy.get('keys')?.has(keyId)).toBe(false);
    expect(outcome.newHandles).toBeGreaterThan(0);
    // The copy's keys are the same keys.
    const again = await hand.make(outcome.tenantId);
    const values = async (snapshotId: string): Promise<readonly string[]> =>
      [...(await checksOf(opened, snapshotId, hand.recovery)).values()]
        .filter((check) => check !== 'erased')
        .toSorted();
    expect(await values(again)).toEqual(await values(id));
    expect((await operations.tde.getObject(caller, handle)).id).toBe(keyId);
  });

  test('another service accepts a copy when it is told who signed it, and databases continue to work', async () => {
    const { operations } = opened;
    const { caller, accessGuid } = await registerCaller(opened, 'moved');
    const { handle } = await operations.tde.generateKey(caller, masterKey('moved'));
    const secret = await operations.tde.encrypt(caller, handle, cbc, Buffer.alloc(16, 9));
    const id = await hand.make(tenantId);
    const file = readFileSync(join(opened.config.snapshots.directory, `${id}.dkesnap`));
    const { verifierKey } = await operations.audit.log();
    const from = await dumpTenant(opened, tenantId);

    const trusting = `${settings}[snapshots]\ntrusted_signers = ["${verifierKey}"]\nrestore_second_person = false\n`;
    const other = await openTestService({ toml: trusting });
    try {
      const there = await handOf(other, hand.recovery);
      const fresh = (await other.operations.tenants.default()).id;
      expect(await codeOfWork(other.operations.snapshots.import(administrator, pieces(file), undefined))).toBe(
        'conflict',
      );
      expect(await codeOfWork(other.operations.snapshots.import(administrator, pieces(file), 'nonsense'))).toBe(
        'validation',
      );
      const imported = await other.operations.snapshots.import(administrator, pieces(file), verifierKey);
      expect(imported).toMatchObject({ id, origin: 'imported', state: 'available', tenantId });
      const outcome = await there.restore(id, { tenantId: fresh });
      expect(outcome).toMatchObject({ tenantId: fresh, newTenant: false, newIds: false });
      const copy = await dumpTenant(other, fresh);
      for (const [table, rows] of from)
        for (const [name, row] of rows) {
          const wanted = Object.hasOwn(row, 'tenant_id') ? { ...row, tenant_id: fresh } : row;
          expect([table, name, copy.get(table)?.get(name)]).toEqual([table, name, wanted]);
        }
      const login = { accessGuid, appId: caller.appId, instance: caller.instance, requestId: 'r', peer: null };
      const agent = await other.operations.tde.authenticate(login);
      expect(await other.operations.tde.decrypt(agent, handle, cbc, secret)).toEqual(Buffer.alloc(16, 9));
      // The next handle is none of those that came.
      const made = await other.operations.tde.generateKey(agent, masterKey('after'));
      expect(made.handle).toBeGreaterThan(handle);

      // After a restart too.
      await other.stop();
      const again = await openTestService({ folder: other.folder, toml: trusting });
      const later = await again.operations.tde.authenticate(login);
      expect(await again.operations.tde.decrypt(later, handle, cbc, secret)).toEqual(Buffer.alloc(16, 9));
      await again.stop();
    } finally {
      await other.remove();
    }
  });
});
