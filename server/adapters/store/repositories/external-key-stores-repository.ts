// The queries of external key stores.

import { type Kysely, sql } from 'kysely';
import { everyTenant, type TenantScope } from '../../../domain/tenant.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { externalKeyStoreRow, toExternalKeyStore } from '../schema/tables/external-key-stores-table.ts';
import type { Terms } from './search-index-repository.ts';
import { inScope } from './tenants-repository.ts';

export const createExternalKeyStores = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'remove'>,
): Repositories['externalKeyStores'] => {
  const check = policyRows.integrity;
  const checkedStore = (row: Schema['external_key_stores']) =>
    toExternalKeyStore(row, check('external_key_stores', { ...row }));
  const storesBy = (tenant: TenantScope, column: 'id' | 'custom_key_store_id' | 'endpoint_id', value: string) =>
    inScope(db.selectFrom('external_key_stores').selectAll(), tenant).where(column, '=', value).orderBy('id').execute();
  /**
   * The time of the last check; 0: never checked. Written as in the index, which is used only then.
   */
  const lookedAt = sql<number>`coalesce(looked_at, 0)`;
  const toStore = ([row]: readonly Schema['external_key_stores'][]) =>
    row === undefined ? undefined : checkedStore(row);
  return {
    get: async (tenant, id) => toStore(await storesBy(tenant, 'id', id)),
    findByCloudId: async (tenantId, customKeyStoreId, region) =>
      toStore(
        (await storesBy(tenantId, 'custom_key_store_id', customKeyStoreId)).filter((row) => row.region === region),
      ),
    list: async (tenant, { after, limit }) => {
      let query = inScope(db.selectFrom('external_key_stores').selectAll(), tenant).orderBy('id').limit(limit);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => checkedStore(row));
    },
    listByEndpoint: async (endpointId) => (await storesBy(everyTenant, 'endpoint_id', endpointId)).map(checkedStore),
    listUnseenSince: async (at, limit) =>
      (
        await db
          .selectFrom('external_key_stores')
          .selectAll()
          .where(lookedAt, '<=', at)
          .orderBy(lookedAt)
          .orderBy('id')
          .limit(limit)
          .execute()
      ).map(checkedStore),
    insert: async (store) => {
      await policyRows.insert('external_key_stores', externalKeyStoreRow(store));
      await terms.add('external_key_stores', externalKeyStoreRow(store));
    },
    setConnection: async (id, connection) => {
      await db
        .updateTable('external_key_stores')
        .set({ connection: JSON.stringify(connection), looked_at: connection.checkedAt })
        .where('id', '=', id)
        .execute();
    },
    setLookedAt: async (id, at) => {
      await db.updateTable('external_key_stores').set({ looked_at: at }).where('id', '=', id).execute();
    },
    remove: async (id) => {
      await policyRows.remove('external_key_stores', [id]);
      await terms.remove(id);
    },
  };
};
