// A row that was changed in the database decides nothing: neither for people nor for programs. Each
// operation that reads a rule, a state or an owner is tried while that row is changed, and again
// when it is as it was.
import type { SQLInputValue } from 'node:sqlite';
import { beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../../server/base/service-error.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';
import { files, read } from '../../support/sources.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();
const tampered = expect.objectContaining({ name: ServiceError.name, code: 'key-tampered' });
const ids = { tenant: '', vault: '', key: '', endpoint: '', group: '', tdeVault: '', application: '', masterKey: '' };
let caller: Awaited<ReturnType<typeof registerCaller>>['caller'];
let handle = 0;

beforeAll(async () => {
  const { operations } = opened;
  ids.tenant = administrator.tenantId;
  ids.vault = (await operations.vaults.create(administrator, { name: 'vault' })).id;
  ids.key = (await operations.keys.create(administrator, { name: 'key', vaultId: ids.vault })).id;
  ids.endpoint = (
    await operations.endpoints.create(administrator, { name: 'endpoint', vaultId: ids.vault, keyId: ids.key })
  ).id;
  const registered = await registerCaller(opened, 'db');
  caller = registered.caller;
  ids.group = registered.groupId;
  ids.application = caller.application.id;
  ids.tdeVault = (await operations.tdeGroups.get(administrator, ids.group)).vaultId;
  const made = await operations.tde.generateKey(
    { ...caller, once: { key: 'of MK', fingerprint: 'MK' } },
    masterKey('MK'),
  );
  ids.masterKey = made.id;
  handle = made.handle;
});

interface Changed {
  readonly table: string;
  readonly id: keyof typeof ids;
  readonly column: string;
  readonly to: SQLInputValue;
}
const row = (table: string, id: keyof typeof ids, column: string, to: SQLInputValue): Changed => ({
  table,
  id,
  column,
  to,
});
const tdeVault = row('vaults', 'tdeVault', 'dual_control', '{"actions":[],"approvers":null,"required":1}');
const vault = row('vaults', 'vault', 'kind', 'other');
const group = row('tde_groups', 'group', 'name', 'other');
const application = row('tde_applications', 'application', 'app_id', 'other');
const endpoint = row('endpoints', 'endpoint', 'settings', '{}');
const key = row('keys', 'key', 'created_at', 1);
const ownKey = row('keys', 'masterKey', 'created_at', 1);
const object = row('tde_objects', 'masterKey', 'created_at', 1);

const tried: readonly (readonly [string, readonly Changed[], () => Promise<unknown>])[] = [
  [
    'a database destroys its master key',
    [tdeVault, application, ownKey, object],
    () => opened.operations.tde.destroyObject(caller, handle),
  ],
  ['a database withdraws its request', [ownKey, object], () => opened.operations.tde.withdraw(caller, 'of MK')],
  [
    'a person destroys a master key',
    [tdeVault, application],
    () => opened.operations.masterKeys.destroy(administrator, ids.application, ids.masterKey),
  ],
  [
    'a database creates a key',
    [tdeVault, application, group],
    () => opened.operations.tde.generateKey(caller, masterKey('another')),
  ],
  [
    'an application is registered',
    [group],
    () => opened.operations.applications.register(administrator, { name: 'another', groupId: ids.group }),
  ],
  [
    'an access_guid is issued',
    [application],
    () => opened.operations.applications.rotateAccessGuid(administrator, ids.application),
  ],
  ['a credential is added', [endpoint], () => opened.operations.endpoints.addCredential(administrator, ids.endpoint)],
  [
    'an endpoint is created',
    [vault, key],
    () => opened.operations.endpoints.create(administrator, { name: 'another', vaultId: ids.vault, keyId: ids.key }),
  ],
  [
    'a key is created',
    [vault],
    () => opened.operations.keys.create(administrator, { name: 'another', vaultId: ids.vault }),
  ],
  ['a key is rotated', [key], () => opened.operations.keys.rotate(administrator, ids.key)],
  ['a key is deleted', [vault, key], () => opened.operations.keys.softDelete(administrator, ids.key)],
  ['a vault is deleted', [vault], () => opened.operations.vaults.delete(administrator, ids.vault)],
];

const cases = tried.flatMap(([what, rows, run]) =>
  rows.map((changed) => [what, `${changed.table}.${changed.column}`, changed, run] as const),
);

test.each(cases)('%s: refused while %s is changed, and nothing is done', async (_what, _where, changed, run) => {
  const { table, id, column, to } = changed;
  const [before] = await queryStored(opened.folder, `select ${column} as value from ${table} where id = ?`, ids[id]);
  const put = (value: unknown) =>
    queryStored(opened.folder, `update ${table} set ${column} = ? where id = ?`, value as SQLInputValue, ids[id]);
  const records = async () =>
    Number((await queryStored(opened.folder, 'select count(*) as n from audit_events'))[0]?.n);
  const had = await records();
  await put(to);
  await expect(run()).rejects.toEqual(tampered);
  expect(await records()).toBe(had);
  await put(before?.value);
});

test('a key whose row was changed is destroyed under the rules of every vault, because its own is not known', async () => {
  const { operations } = opened;
  const governed = await registerCaller(opened, 'governed');
  const made = await operations.tde.generateKey(governed.caller, masterKey('GOVERNED'));
  const { vaultId } = await operations.tdeGroups.get(administrator, governed.groupId);
  for (const name of ['one', 'two'])
    await operations.tokens.create(administrator, 'the service', {
      name,
      grants: [{ role: 'key-approver', scope: null, tenantId: administrator.tenantId }],
    });
  const rule = { required: 1, approvers: null, actions: ['destroy'], databases: 'refused' } as const;
  await operations.dualControl.change(administrator, vaultId, rule);
  await queryStored(opened.folder, 'update keys set vault_id = ? where id = ?', ids.tdeVault, made.id);
  const { rules } = await operations.masterKeys.destroyNeeds(administrator, governed.caller.application.id, made.id);
  expect(rules).toMatchObject([{ vaultId }]);
});

/** Why each reads rows that may have been changed from outside. */
const asStored: Readonly<Record<string, string>> = {
  'adapters/diagnosis/run-endpoint-checks.ts': 'its checks say what is wrong with them',
  'adapters/diagnosis/key-store-probe.ts': 'shows what the cloud would find',
  'operations/access/access.ts': 'refuses by the state that requests are refused by already',
  'operations/copies/copies-of.ts': 'shows the name of a tenant',
  'operations/data-path/held-applications.ts': 'keeps them marked, so that callers are refused by name',
  'operations/data-path/held-endpoints.ts': 'keeps them marked, so that callers are refused by name',
  'operations/data-path/held-keys.ts': 'keeps them marked, so that callers are refused by name',
  'operations/data-path/held-tenants.ts': 'keeps them marked, so that callers are refused by name',
  'operations/data-path/object-cache.ts': 'keeps them marked, so that callers are refused by name',
  'operations/data-path/working-memory.ts': 'keeps them marked, so that callers are refused by name',
  'operations/endpoints/diagnose-endpoint.ts': 'follows what diagnostics found',
  'operations/keys/destroy-master-key.ts': 'a changed key can be destroyed, under the rules of every vault',
  'operations/keys/read-master-keys.ts': 'shows them',
  'operations/notifications/exchange-sources.ts': 'reminds people of dates',
  'operations/notifications/snapshot-sources.ts': 'shows the name of a tenant',
  'operations/root/manage-root.ts': 'shows the name of a tenant',
  'operations/root/reseal-records.ts': 'compares the integrity itself before it decides',
  'operations/runbooks/follow-runbook.ts': 'fills names into a text',
  'operations/search/find-rows.ts': 'shows them',
  'operations/service/verify-store.ts': 'reports them',
  'operations/shared/find.ts': 'is the door: find… for decisions, show… for people',
  'operations/snapshots/restore-materials.ts': 'compares the integrity itself before it decides',
  'operations/snapshots/restore-rows.ts': 'shows the name of a vault',
  'operations/snapshots/restore-snapshot.ts': 'asks whether a tenant is there, and renews what is in memory',
  'operations/tenants/purge-steps.ts': 'ends them, whatever they say',
  'operations/tenants/purge-tenant.ts': 'compares the integrity itself before it decides',
};

test('only files that decide nothing by it read rows as they are stored', () => {
  const found = files(['server'], '.ts')
    .filter(
      (path) =>
        !path.startsWith('server/adapters/store/') &&
        /(tenants|vaults|keys|groups|applications|endpoints)\.stored\(/.test(read(path)),
    )
    .map((path) => path.slice('server/'.length));
  expect(found.sort()).toEqual(Object.keys(asStored).sort());
});
