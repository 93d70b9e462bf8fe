// Rows that a restore puts are of the tenant that it names: other nodes read only what is of that
// tenant again.
import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../server/base/time.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { TenantRow } from '../../../server/ports/tenant-rows.ts';
import { oneEndpoint } from '../../support/one-endpoint.ts';
import { storeOfTest } from '../../support/open-store.ts';

const other = oneEndpoint();
const own = newTenant('own', 1);
const binding = (): TenantRow => ({ row: { key_id: other.key.id, binding: Buffer.alloc(32) }, integrity: 'ok' });
const refused = (table: string) => `a row of ${table} is not of the tenant that it is put for`;

let store: Store;
let vault: TenantRow;
beforeEach(async () => {
  store = await storeOfTest(systemClock);
  await store.write(async (tx) => {
    await tx.tenants.insert(own);
    await other.insert(tx);
  });
  const [found] = await store.read.tenantRows.page('vaults', other.tenant.id, undefined, 1);
  if (found === undefined) throw new Error('no vault');
  vault = found;
});

test('a row of another tenant is not put', async () => {
  const changed = { ...vault, row: { ...vault.row, name: 'changed' } };
  await expect(store.write((tx) => tx.tenantRows.put(own.id, 'vaults', [changed]))).rejects.toThrow(refused('vaults'));
  const fresh = { ...vault, row: { ...vault.row, id: own.id } };
  await expect(store.write((tx) => tx.tenantRows.put(own.id, 'vaults', [fresh]))).rejects.toThrow(refused('vaults'));
  expect(await store.read.tenantRows.find('vaults', [own.id, other.vault.id])).toEqual([vault]);
});

test('nor one that takes the place of a row of another tenant', async () => {
  const taken = { ...vault, row: { ...vault.row, tenant_id: own.id } };
  await expect(store.write((tx) => tx.tenantRows.put(own.id, 'vaults', [taken]))).rejects.toThrow(refused('vaults'));
  expect((await store.read.vaults.get(everyTenant, other.vault.id))?.tenantId).toBe(other.tenant.id);
});

test('nor one that comes with a row of another tenant', async () => {
  const put = (tenantId: string) => store.write((tx) => tx.tenantRows.put(tenantId, 'key_bindings', [binding()]));
  await expect(put(own.id)).rejects.toThrow(refused('key_bindings'));
  expect(await store.read.keyBindings.get(other.key.id)).toBeUndefined();
  await put(other.tenant.id);
  expect(await store.read.keyBindings.get(other.key.id)).toEqual(Buffer.alloc(32));
});
