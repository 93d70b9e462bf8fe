// The tenants' own rows, and what it means that a look-up is told in which tenant it looks.

import type { Kysely, Selectable } from 'kysely';
import { everyTenant, type Tenant, type TenantScope, type TenantState } from '../domain/tenant.ts';
import type { Integrity } from '../domain/vault.ts';
import type { Repositories } from '../ports/store.ts';
import { type RowAuthenticator, refuseTampered, rowIntegrity, sealRow } from './rows.ts';
import type { Schema } from './schema.ts';

/** A query over a table whose rows belong to tenants; Kysely's own types would need the table's name at every call. */
interface Filterable {
  where(column: 'tenant_id', operator: '=', value: string): unknown;
}

/** The query, over the rows of these tenants alone. */
export const inScope = <Q>(query: Q, tenant: TenantScope): Q =>
  tenant === everyTenant ? query : ((query as Filterable).where('tenant_id', '=', tenant) as Q);

const toTenant = (row: Selectable<Schema['tenants']>, integrity: Integrity): Tenant => ({
  id: row.id,
  name: row.name,
  state: row.state as TenantState,
  createdAt: row.created_at,
  suspendedAt: row.suspended_at,
  deletedAt: row.deleted_at,
  purgeAt: row.purge_at,
  purgedAt: row.purged_at,
  unrecoverableAt: row.unrecoverable_at,
  integrity,
});
const tenantRow = (tenant: Tenant) => ({
  id: tenant.id,
  name: tenant.name,
  state: tenant.state,
  created_at: tenant.createdAt,
  suspended_at: tenant.suspendedAt,
  deleted_at: tenant.deletedAt,
  purge_at: tenant.purgeAt,
  purged_at: tenant.purgedAt,
  unrecoverable_at: tenant.unrecoverableAt,
});

export const createTenants = (db: Kysely<Schema>, authenticate: RowAuthenticator): Repositories['tenants'] => {
  const checked = (row: Selectable<Schema['tenants']>): Tenant =>
    toTenant(row, rowIntegrity(authenticate, 'tenants', { ...row }));
  const all = () => db.selectFrom('tenants').selectAll();
  return {
    list: async () => (await all().orderBy('id').execute()).map(checked),
    get: async (id) => {
      const row = await all().where('id', '=', id).executeTakeFirst();
      return row && checked(row);
    },
    findByName: async (name) => {
      const row = await all().where('name', '=', name).where('state', '!=', 'purged').executeTakeFirst();
      return row && checked(row);
    },
    insert: async (tenant) => {
      await db
        .insertInto('tenants')
        .values(sealRow(authenticate, 'tenants', tenantRow(tenant)))
        .execute();
    },
    update: async (tenant) => {
      refuseTampered(tenant);
      const { id, ...change } = sealRow(authenticate, 'tenants', tenantRow(tenant));
      await db.updateTable('tenants').set(change).where('id', '=', id).execute();
    },
  };
};
