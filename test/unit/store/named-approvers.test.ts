// The vaults whose rules name a user, as a password reset asks for them in its unit of work: an
// index leads to them (its plan: contract/search), and the rows of the others are neither read nor
// checked.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import type { DualControlRule } from '../../../server/domain/dual-control.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import type { Vault } from '../../../server/domain/vault.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';
import { storedVault } from '../../support/stored.ts';
import { askUnlocked } from '../../support/test-store.ts';

const naming = (...approvers: string[]): DualControlRule => ({
  ...{ required: 1, approvers, actions: ['destroy'], databases: 'refused' },
});
const open = (path: string, checked: string[]): Promise<Store> =>
  openStore({
    path,
    clock: { now: () => 0, monotonic: () => 0 },
    authenticateRow: (text) => {
      checked.push(text);
      return '';
    },
    onFatal: (error) => {
      throw error;
    },
  });
const found = async (store: Store, user: string): Promise<string | undefined> =>
  (await store.write((tx) => tx.vaults.findNaming(user)))?.name;
const change = (store: Store, id: string, to: Partial<Vault>): Promise<void> =>
  store.write(async (tx) => {
    const before = await tx.vaults.get(everyTenant, id);
    await tx.vaults.update({ ...(before as Vault), ...to });
  });

test('a reset reads the vaults that name the user, and no other', async () => {
  const path = join(folderOfTest(), 'dke.db');
  const checked: string[] = [];
  let store = await open(path, checked);
  const tenant = newTenant('tenant', 1);
  const vaults = Array.from({ length: 300 }, (_, at) =>
    storedVault({
      tenantId: tenant.id,
      name: `vault ${at}`,
      dualControl: at % 10 === 7 ? naming(at === 107 ? 'user-1' : 'user-2', 'user-3') : null,
    }),
  );
  await store.write(async (tx) => {
    await tx.tenants.insert(tenant);
    for (const vault of vaults) await tx.vaults.insert(vault);
  });
  checked.length = 0;
  expect(await found(store, 'user-1')).toBe('vault 107');
  const isRead = ({ id }: Vault): boolean => checked.some((text) => text.includes(id));
  expect(vaults.filter(isRead).map(({ name }) => name)).toEqual(['vault 107']);

  const named = vaults[107] as Vault;
  await change(store, named.id, { dualControl: naming('user-4') });
  expect([await found(store, 'user-1'), await found(store, 'user-4')]).toEqual([undefined, 'vault 107']);
  await change(store, named.id, { state: 'deleted' });
  expect(await found(store, 'user-4')).toBeUndefined();
  await store.close();

  // Terms of an earlier version have no approvers; a rule that was changed from outside may be
  // anything, and a term too.
  const database = new DatabaseSync(path);
  await askUnlocked(() => {
    database.exec(`update settings set value = '2' where name = 'search-terms'; delete from search_terms`);
    const spoil = database.prepare('update vaults set dual_control = ? where id = ?');
    spoil.run('{"approvers":7}', vaults[0]?.id ?? '');
    spoil.run('{"approvers":[7,null]}', vaults[1]?.id ?? '');
    spoil.run('[', vaults[2]?.id ?? '');
  });
  store = await open(path, checked);
  expect([await found(store, 'user-1'), (await found(store, 'user-2'))?.slice(0, 6)]).toEqual([undefined, 'vault ']);
  await askUnlocked(() =>
    database.exec(
      `insert into search_terms select '@approvers', 'vault', 'user-1', id, 'id' from vaults where name != 'vault 107'`,
    ),
  );
  database.close();
  expect(await found(store, 'user-1')).toBeUndefined();
  await store.close();
});
