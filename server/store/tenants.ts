// The tenants' own rows, and what it means that a look-up is told in which tenant it looks.

import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely';
import type { Clock } from '../base/clock.ts';
import { everyTenant, type Tenant, type TenantScope } from '../domain/tenant.ts';
import type { Integrity } from '../domain/vault.ts';
import type { Repositories } from '../ports/store.ts';
import { refuseTampered, soundOnly } from './row-codes.ts';
import type { PolicyRows } from './row-set.ts';
import type { Schema } from './schema.ts';
import { membersOf } from './tables/members.ts';
import { tenantsTables } from './tables/tenants.ts';

/** A query over a table whose rows belong to tenants; Kysely's own types would need the table's name at every call. */
interface Filterable {
  where(column: 'tenant_id', operator: '=', value: string): unknown;
}

/** The query, over the rows of these tenants alone. */
export const inScope = <Q>(query: Q, tenant: TenantScope): Q =>
  tenant === everyTenant ? query : ((query as Filterable).where('tenant_id', '=', tenant) as Q);

/**
 * The same, of a query that names something narrower than a tenant, which has an index of its own: SQLite, which does not count, would
 * else go through all that the tenant has.
 */
export const alsoInScope = <Q>(query: Q, tenant: TenantScope): Q =>
  tenant === everyTenant
    ? query
    : ((query as unknown as { where(condition: RawBuilder<boolean>): unknown }).where(
        sql<boolean>`coalesce(tenant_id, '') = ${tenant}`,
      ) as Q);

const members = membersOf<Tenant>()(tenantsTables.tenants);

const toTenant = (row: Selectable<Schema['tenants']>, integrity: Integrity): Tenant => ({
  ...members.fromRow(row),
  integrity,
});
const tenantRow = members.toRow;

export const createTenants = (db: Kysely<Schema>, policyRows: PolicyRows, clock: Clock): Repositories['tenants'] => {
  const checked = (row: Selectable<Schema['tenants']>): Tenant =>
    toTenant(row, policyRows.integrity('tenants', { ...row }));
  const all = () => db.selectFrom('tenants').selectAll();
  type Counted = 'vaults' | 'keys' | 'endpoints' | 'tde_applications';
  const count = async (table: Counted, id: string, operator: '=' | '!=', state: string): Promise<number> => {
    const row = await db
      .selectFrom(table as 'vaults')
      .select((e) => e.fn.countAll<number | string>().as('count'))
      .where('tenant_id', '=', id)
      .where('state', operator, state)
      .executeTakeFirstOrThrow();
    return Number(row.count);
  };
  const countTokens = async (id: string): Promise<number> => {
    const row = await db
      .selectFrom('api_tokens')
      .select((e) => e.fn.countAll<number | string>().as('count'))
      .where('tenant_id', '=', id)
      .where('revoked_at', 'is', null)
      .where((e) => e.or([e('expires_at', 'is', null), e('expires_at', '>', clock.now())]))
      .executeTakeFirstOrThrow();
    return Number(row.count);
  };
  const stored: Repositories['tenants']['stored'] = async (id) => {
    const row = await all().where('id', '=', id).executeTakeFirst();
    return row && checked(row);
  };
  return {
    contents: async (id) => ({
      vaults: await count('vaults', id, '!=', 'deleted'),
      keys: await count('keys', id, '!=', 'destroyed'),
      endpoints: await count('endpoints', id, '=', 'enabled'),
      applications: await count('tde_applications', id, '=', 'enabled'),
      tokens: await countTokens(id),
    }),
    list: async () => (await all().orderBy('id').execute()).map(checked),
    get: soundOnly(stored, 'tenant', ({ name }) => name),
    stored,
    findByName: async (name) => {
      const row = await all().where('name', '=', name).where('state', '!=', 'purged').executeTakeFirst();
      return row && checked(row);
    },
    insert: async (tenant) => {
      await policyRows.insert('tenants', tenantRow(tenant));
    },
    update: async (tenant) => {
      refuseTampered(tenant);
      await policyRows.update('tenants', tenantRow(tenant));
    },
  };
};
