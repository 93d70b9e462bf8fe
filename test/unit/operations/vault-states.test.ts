// Keys of a vault that is disabled or deleted: everything that shows a key says so, and the dry run
// of the deletion names who would notice.
import { expect, test } from 'vitest';
import { exportKeys } from '../../../server/fronts/api/export.ts';
import { administrator } from '../../support/open-service.ts';
import { everything } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();

const inventory = async (vaultId: string): Promise<string> => {
  const pages = await opened.operations.keys.export(
    { ...administrator, reach: administrator.tenantId },
    { vaultId },
    'csv',
  );
  return new Response(exportKeys(pages, 'csv').body).text();
};

/** What the list, the key, the inventory and the search say. */
const said = async (vaultId: string, id: string, name: string) => {
  const { keys, search } = opened.operations;
  const found = await search.find(administrator, everything, { text: name, kinds: ['key'], namesTenant: true });
  return {
    list: (await keys.list(administrator, { vaultId })).items.map(({ effectiveState }) => effectiveState),
    key: (await keys.get(administrator, id)).effectiveState,
    inventory: (await inventory(vaultId)).trimEnd().split('\r\n').at(-1)?.split(',').at(-1),
    search: found.items.map(({ state }) => state),
  };
};
const all = (state: string) => ({ list: [state], key: state, inventory: state, search: [state] });

test('keys of a disabled or deleted vault are nowhere shown as active', async () => {
  const { vaults, keys } = opened.operations;
  const vault = await vaults.create(administrator, { name: 'states of vaults' });
  const key = await keys.create(administrator, { name: 'vaulted', vaultId: vault.id });
  expect(key.effectiveState).toBe('active');
  expect(await said(vault.id, key.id, 'vaulted')).toEqual(all('active'));
  await vaults.disable(administrator, vault.id);
  expect(await said(vault.id, key.id, 'vaulted')).toEqual(all('vault-disabled'));
  expect((await keys.disable(administrator, key.id)).effectiveState).toBe('disabled');
  await vaults.delete(administrator, vault.id);
  expect(await said(vault.id, key.id, 'vaulted')).toEqual(all('vault-deleted'));
  expect(await keys.get(administrator, key.id)).toMatchObject({ state: 'disabled' });
  expect((await keys.softDelete(administrator, key.id)).key.effectiveState).toBe('soft-deleted');
});

test('the dry run of a deletion shows the endpoints and the last use', async () => {
  const { vaults, keys, endpoints } = opened.operations;
  const vault = await vaults.create(administrator, { name: 'used vault' });
  const used = await keys.create(administrator, { name: 'used', vaultId: vault.id });
  await keys.create(administrator, { name: 'unused', vaultId: vault.id });
  const names = { endpoints: [] as readonly string[], lastUsedAt: null, lastUsedBy: null, lastUsedKey: null };
  expect((await vaults.planDelete(administrator, vault.id)).impact).toEqual({ keys: 2, ...names });
  const { id } = await endpoints.create(administrator, { name: 'front', vaultId: vault.id, keyId: used.id });
  await queryStored(opened.folder, 'update keys set last_used_at = 2000 where id = ?', used.id);
  await queryStored(opened.folder, 'update endpoints set last_used_at = 2000 where id = ?', id);
  expect((await vaults.planDelete(administrator, vault.id)).impact).toEqual({
    keys: 2,
    endpoints: ['front'],
    lastUsedAt: '1970-01-01T00:00:02.000Z',
    lastUsedBy: 'front',
    lastUsedKey: 'used',
  });
  expect(await vaults.get(administrator, vault.id)).toMatchObject({ state: 'enabled' });
});
