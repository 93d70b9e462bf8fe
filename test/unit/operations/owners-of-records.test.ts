// The offline check names every secret that has lost its row, and every row that has lost its
// secret: whichever class it is of.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serviceRecordClasses } from '../../../server/adapters/store/schema/tables/keys-table.ts';
import { verifyOffline } from '../../../server/app/host/offline.ts';
import { formatRecoveryKey } from '../../../server/base/recovery-key.ts';
import { recordClasses } from '../../../server/ports/key-record.ts';
import {
  administrator,
  dataObject,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
} from '../../support/open-service.ts';
import { makeUser } from '../../support/people.ts';
import { makeRecoveryKey } from '../../support/snapshot-files.ts';
import { queryStored } from '../../support/test-store.ts';

let opened: OpenedService;
const verify = async (): Promise<readonly string[]> =>
  (await verifyOffline(opened.config, () => Promise.resolve(undefined))).findings;

interface Row {
  readonly tenant_id: string;
  readonly object_id: string;
  readonly class: string;
  readonly version: number;
}
/**
 * The records that are there, of other classes than the service's own keys: without those it does
 * not start.
 */
const readRecords = async (): Promise<readonly Row[]> =>
  (
    (await queryStored(
      opened.folder,
      'select tenant_id, object_id, class, version from key_records where record is not null order by object_id, class, version',
    )) as unknown as readonly Row[]
  ).filter((row) => !(serviceRecordClasses as readonly string[]).includes(row.class));

beforeAll(async () => {
  opened = await openTestService();
  const { operations } = opened;
  const vault = await operations.vaults.create(administrator, { name: 'vault' });
  const key = await operations.keys.create(administrator, { name: 'key', vaultId: vault.id });
  const endpoint = await operations.endpoints.create(administrator, { name: 'e', vaultId: vault.id, keyId: key.id });
  await operations.endpoints.addCredential(administrator, endpoint.id);
  const { caller } = await registerCaller(opened, 'db');
  await operations.tde.generateKey(caller, masterKey('pages'));
  await operations.tde.createObject(caller, dataObject('note'), Buffer.from('kept'));
  const { session } = await makeUser(operations, 'ada', 'key-manager');
  await operations.factors.begin(session, 'phone');
  const recovery = makeRecoveryKey();
  await operations.recoveryKeys.register(administrator, {
    name: 'safe',
    publicKey: formatRecoveryKey(recovery.publicKey),
  });
  const snapshot = await operations.snapshots.create(administrator, administrator.tenantId);
  await operations.snapshots.beginOpening(administrator, snapshot.id, recovery.id);
  await opened.stop();
});
afterAll(() => opened.remove());

test('a record of each class is there, and nothing is found', async () => {
  const there = new Set((await readRecords()).map((row) => row.class));
  expect([...there, ...serviceRecordClasses].toSorted()).toEqual([...recordClasses].toSorted());
  expect(await verify()).toEqual([]);
});

test('each record that is removed is named', async () => {
  const records = await readRecords();
  await queryStored(opened.folder, 'create table kept_records as select * from key_records');
  try {
    for (const row of records)
      await queryStored(
        opened.folder,
        'delete from key_records where tenant_id = ? and object_id = ? and class = ? and version = ?',
        ...[row.tenant_id, row.object_id, row.class, row.version],
      );
    const findings = await verify();
    expect(findings).toHaveLength(records.length);
    for (const row of records) expect(findings).toContainEqual(expect.stringContaining(row.object_id));
  } finally {
    await queryStored(opened.folder, 'delete from key_records');
    await queryStored(opened.folder, 'insert into key_records select * from kept_records');
    await queryStored(opened.folder, 'drop table kept_records');
  }
  expect(await verify()).toEqual([]);
});

test.each([
  ['endpoint-secret', 'endpoint_credentials'],
  ['second-factor', 'user_factors'],
  ['snapshot-opening', 'snapshot_openings'],
  ['object-content', 'tde_objects'],
])('each %s whose row is gone is named', async (recordClass, table) => {
  const left = (await readRecords()).filter((row) => row.class === recordClass);
  await queryStored(opened.folder, `create table kept_rows as select * from ${table}`);
  try {
    await queryStored(opened.folder, `delete from ${table}`);
    const findings = await verify();
    expect(left.length).toBeGreaterThan(0);
    for (const row of left)
      expect(findings).toContainEqual(
        `${recordClass} 1 of ${row.object_id} in ${row.tenant_id}: no row owns the record`,
      );
  } finally {
    await queryStored(opened.folder, `insert into ${table} select * from kept_rows`);
    await queryStored(opened.folder, 'drop table kept_rows');
  }
  expect(await verify()).toEqual([]);
});
