// The tenants' own rows, and what it means that a look-up is told in which tenant it looks.

import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely';
import type { Clock } from '../../../base/time.ts';
import { everyTenant, type Tenant, type TenantScope } from '../../../domain/tenant.ts';
import type { Integrity } from '../../../domain/vault.ts';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered, soundOnly } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import { declared, ownedBy, type Schema } from '../schema/schema.ts';
import { membersOf } from '../schema/tables/members.ts';
import { tenantsTables } from '../schema/tables/tenants-table.ts';

/**
 * A query over a table whose rows belong to tenants; Kysely's own types would need the table's name
 * at every call.
 */
interface Filterable {
  where(column: 'tenant_id', operator: '=', value: string): unknown;
}

/** The query, over the rows of these tenants alone. */
export const inScope = <Q>(query: Q, tenant: TenantScope): Q =>
  tenant === everyTenant ? query : ((query as Filterable).where('tenant_id', '=', tenant) as Q);

/**
 * Like `inScope`, for a query that names something narrower than a tenant, which has an index of
 * its own: SQLite, which does not count, would otherwise read all that the tenant has.
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

const countedTables = [...declared].flatMap(([table, { statistics }]) =>
  'counted' in statistics ? [{ table, ...statistics }] : [],
);

export const createTenants = (db: Kysely<Schema>, policyRows: PolicyRows, clock: Clock): Repositories['tenants'] => {
  const checked = (row: Selectable<Schema['tenants']>): Tenant =>
    toTenant(row, policyRows.integrity('tenants', { ...row }));
  const all = () => db.selectFrom('tenants').selectAll();
  const count = async (table: string, id: string, where: string): Promise<number> => {
    const { rows } = await sql<{ readonly count: number | string }>`
      select count(*) as count from ${sql.table(table)} where ${ownedBy(table, id)} and ${sql.raw(where)}`.execute(db);
    return Number(rows[0]?.count ?? 0);
  };
  const stored: Repositories['tenants']['stored'] = async (id) => {
    const row = await all().where('id', '=', id).executeTakeFirst();
    return row && checked(row);
  };
  return {
    contents: async (id) => {
      const counts: Record<string, number> = {};
      for (const { table, counted, where } of countedTables)
        counts[counted] = await count(table, id, where(clock.now()));
      return counts as Awaited<ReturnType<Repositories['tenants']['contents']>>;
    },
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
