// New names of vaults, endpoints, applications and groups: the rule of a new thing, one audit
// record with the former name, and the search and the approvals that follow.
import { describe, expect, test } from 'vitest';
import { administrator, auditKindsOf, instance } from '../../support/open-service.ts';
import { everything } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();
const code = (value: string) => expect.objectContaining({ code: value });
let count = 0;
const fresh = (name: string): string => {
  count += 1;
  return `${name} ${count}`;
};

const makeGroup = (name = fresh('group')) => opened.operations.tdeGroups.create(administrator, { name });
const makeApplication = async (name = fresh('application')) =>
  (await opened.operations.applications.register(administrator, { name, groupId: (await makeGroup()).id })).application;
const makeVault = (name = fresh('vault')) => opened.operations.vaults.create(administrator, { name });
const makeEndpoint = async () => {
  const vaultId = (await makeVault()).id;
  const key = await opened.operations.keys.create(administrator, { name: fresh('key'), vaultId });
  return opened.operations.endpoints.create(administrator, { name: fresh('endpoint'), vaultId, keyId: key.id });
};

/**
 * Each kind of thing: how one is made, renamed and read, its table, and what its record is called.
 */
const kinds = {
  vault: { make: makeVault, operations: () => opened.operations.vaults, table: 'vaults' },
  endpoint: { make: makeEndpoint, operations: () => opened.operations.endpoints, table: 'endpoints' },
  application: { make: makeApplication, operations: () => opened.operations.applications, table: 'tde_applications' },
  group: { make: makeGroup, operations: () => opened.operations.tdeGroups, table: 'tde_groups' },
} as const;
const all = Object.entries(kinds).map(([kind, each]) => ({ kind, ...each }));

const found = async (text: string): Promise<readonly string[]> =>
  (await opened.operations.search.find(administrator, everything, { text, limit: 10, namesTenant: false })).items.map(
    ({ id }) => id,
  );

describe.each(all)('a new name of a $kind', ({ kind, make, operations, table }) => {
  test('is shown, found and recorded with the former one; the rest stays', async () => {
    const before = await make();
    const name = fresh('Münze');
    const after = await operations().rename(administrator, before.id, { name });
    expect(after).toEqual({ ...before, name });
    expect(await operations().get(administrator, before.id)).toEqual(after);
    expect(await found(name)).toContain(before.id);
    expect(await found(before.name)).not.toContain(before.id);
    const { items } = await opened.operations.audit.list(administrator, {
      kind: `${kind}.renamed` as 'vault.renamed',
      subjectId: before.id,
      order: 'oldest',
    });
    expect(items.map(({ details }) => details)).toEqual([{ name, from: before.name }]);
    // What is so already is not a change.
    await operations().rename(administrator, before.id, { name });
    expect((await auditKindsOf(opened, before.id)).filter((each) => each.endsWith('.renamed'))).toHaveLength(1);
  });

  test.each(['', ' a', 'a\u200bb', 'a\u202eb', 'x'.repeat(129), 'a\nb'])(
    'follows the rule of a new name: %j is refused',
    async (name) => {
      const { id, name: before } = await make();
      await expect(operations().rename(administrator, id, { name })).rejects.toEqual(code('validation'));
      expect((await operations().get(administrator, id)).name).toBe(before);
    },
  );

  test('is not written into a row that was changed from outside', async () => {
    const { id } = await make();
    await queryStored(opened.folder, `update ${table} set name = 'planted' where id = '${id}'`);
    await expect(operations().rename(administrator, id, { name: fresh('other') })).rejects.toEqual(
      code('key-tampered'),
    );
  });
});

test.each(all.filter(({ kind }) => kind !== 'endpoint'))(
  'two of a tenant have no name together: a taken name of a $kind is refused',
  async ({ make, operations }) => {
    const [one, other] = [await make(), await make()];
    await expect(operations().rename(administrator, one.id, { name: other.name })).rejects.toEqual(code('conflict'));
    const left = one.name;
    await operations().rename(administrator, one.id, { name: fresh('elsewhere') });
    expect((await operations().rename(administrator, other.id, { name: left })).name).toBe(left);
  },
);

test('the token of an application keeps its label, which no other application gets', async () => {
  const { applications, tde } = opened.operations;
  const first = fresh('reports');
  const groupId = (await makeGroup()).id;
  const { application, accessGuid } = await applications.register(administrator, { name: first, groupId });
  await applications.rename(administrator, application.id, { name: fresh('figures') });
  const caller = await tde.authenticate({
    ...{ accessGuid, appId: application.appId, instance, requestId: 'r', peer: null },
  });
  expect(await tde.info(caller)).toMatchObject({ tokenLabel: first });
  await expect(applications.register(administrator, { name: first, groupId })).rejects.toMatchObject({
    code: 'conflict',
    hint: expect.stringContaining('label of its token'),
  });
  // Names and labels are apart: another application may have the name, under its own label.
  const other = await makeApplication();
  expect(await applications.rename(administrator, other.id, { name: first })).toMatchObject({
    name: first,
    tokenLabel: other.name,
  });
  // The label is under the code of the row.
  await queryStored(
    opened.folder,
    `update tde_applications set token_label = 'planted' where id = '${application.id}'`,
  );
  expect((await applications.get(administrator, application.id)).integrity).toBe('tampered');
});

test('the vault of a group is renamed with it, and only with it', async () => {
  const { vaults, tdeGroups } = opened.operations;
  const group = await makeGroup();
  await expect(vaults.rename(administrator, group.vaultId, { name: 'own' })).rejects.toEqual(code('conflict'));
  const name = fresh('ledgers');
  await tdeGroups.rename(administrator, group.id, { name });
  expect((await vaults.get(administrator, group.vaultId)).name).toBe(`TDE group ${name}`);
  expect(await auditKindsOf(opened, group.vaultId)).toContain('vault.renamed');
  // Where a vault has that name, neither of both changes.
  const taken = fresh('payroll');
  await makeVault(`TDE group ${taken}`);
  await expect(tdeGroups.rename(administrator, group.id, { name: taken })).rejects.toEqual(code('conflict'));
  expect((await tdeGroups.get(administrator, group.id)).name).toBe(name);
});

test('what is deleted has no new name', async () => {
  const { vaults, endpoints } = opened.operations;
  const vault = await makeVault();
  await vaults.delete(administrator, vault.id);
  await expect(vaults.rename(administrator, vault.id, { name: fresh('v') })).rejects.toEqual(code('conflict'));
  const endpoint = await makeEndpoint();
  await endpoints.delete(administrator, endpoint.id);
  await expect(endpoints.rename(administrator, endpoint.id, { name: fresh('e') })).rejects.toEqual(code('not-found'));
});
