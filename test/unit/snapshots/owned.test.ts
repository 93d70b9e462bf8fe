// Whose keys a snapshot carries, with a writer of the database: those of rows of its tenant that
// were not changed from outside.
import { beforeAll, expect, test } from 'vitest';
import { tables } from '../../../server/adapters/store/schema/schema.ts';
import { serviceRecordClasses } from '../../../server/adapters/store/schema/tables/keys-table.ts';
import type { TableDeclaration } from '../../../server/adapters/store/schema/tables/table.ts';
import { OwnedRecord, RecordOwner, recordClasses } from '../../../server/ports/key-record.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';
import { actorIn, checksOf, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService({
  toml: '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n',
});
let hand: SnapshotHand;
let masterKeyId: string;
let otherKeyId: string;
let generalId: string;
beforeAll(async () => {
  hand = await handOf(opened);
  const { operations } = opened;
  const { caller } = await registerCaller(opened, 'erp');
  masterKeyId = (await operations.tde.generateKey(caller, masterKey('pages'))).id;
  const vault = await operations.vaults.create(administrator, { name: 'cloud' });
  generalId = (await operations.keys.create(administrator, { name: 'cloud', vaultId: vault.id })).id;
  const other = actorIn((await operations.tenants.create(administrator, { name: 'other' })).id);
  const theirs = await operations.vaults.create(other, { name: 'theirs' });
  otherKeyId = (await operations.keys.create(other, { name: 'theirs', vaultId: theirs.id })).id;
});

const own = ['1', '2', '3', '4', '5', '6'].map((digit) => `00000000-0000-0000-0000-00000000000${digit}`);
const unitsOf = async (id: string): Promise<readonly string[]> =>
  [...(await checksOf(opened, id, hand.recovery)).keys()].map((name) => name.split(' ')[0] ?? '');

test('a row that takes the id of another object for a while exports none of its keys', async () => {
  for (const id of own) {
    // No other row refers to a general key without an endpoint but its versions, which go with it.
    const become = async (from: string, to: string): Promise<void> => {
      await queryStored(opened.folder, 'delete from key_versions where key_id = ?', from);
      await queryStored(opened.folder, 'update keys set id = ? where id = ?', to, from);
    };
    await become(generalId, id);
    const snapshotId = await hand.make(administrator.tenantId);
    const units = await unitsOf(snapshotId);
    expect(units).toEqual([masterKeyId]);
    expect((await opened.operations.snapshots.get(administrator, snapshotId)).counts?.omitted).toBe(1);
    await become(id, generalId);
  }
});

test('a snapshot that was made while a row said that its key is gone takes no key away when it is restored', async () => {
  for (const [column, value] of [
    ['state', 'soft-deleted'],
    ['destroyed_at', '1'],
  ] as const)
    for (const id of [generalId, masterKeyId]) {
      const [before] = await queryStored(opened.folder, `select ${column} as value from keys where id = ?`, id);
      const set = (to: unknown) =>
        queryStored(opened.folder, `update keys set ${column} = ? where id = ?`, to as string, id);
      await set(value);
      const snapshotId = await hand.make(administrator.tenantId);
      await set(before?.value);
      expect((await hand.restore(snapshotId)).stayDestroyed).toEqual([]);
      expect(await unitsOf(await hand.make(administrator.tenantId))).toContain(id);
    }
});

test('nor does a row that is moved into the tenant', async () => {
  await queryStored(opened.folder, 'update keys set tenant_id = ? where id = ?', administrator.tenantId, otherKeyId);
  const units = await unitsOf(await hand.make(administrator.tenantId));
  expect(units).not.toContain(otherKeyId);
});

test('each class of records belongs to the rows of one table, or to the service', () => {
  const declared = Object.values<TableDeclaration>(tables).flatMap(({ records }) =>
    records === 'none' ? [] : records.classes,
  );
  expect([...declared, ...serviceRecordClasses].toSorted()).toEqual([...recordClasses].toSorted());
});

test('a row that was changed from outside owns nothing, and only the record of an owner is opened or sealed', async () => {
  const row = { tenantId: administrator.tenantId, id: masterKeyId } as const;
  expect(() => new RecordOwner('keys', { ...row, integrity: 'tampered' }, '{}')).toThrow('changed from outside');
  const owner = new RecordOwner('keys', { ...row, integrity: 'ok' }, '{}');
  const record = { version: 1, class: 'vault-copy', attributes: '{}', epoch: 1, record: Buffer.alloc(1) } as const;
  // A copy of its members has no owner.
  expect(OwnedRecord.isOne(new OwnedRecord(owner, record))).toBe(true);
  expect(OwnedRecord.isOne({ ...new OwnedRecord(owner, record) })).toBe(false);
  expect(RecordOwner.isOne({ ...owner })).toBe(false);
});
