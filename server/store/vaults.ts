// The queries of vaults.

import type { Kysely } from 'kysely';
import type { Repositories } from '../ports/store.ts';
import { refuseTampered, soundOnly } from './row-codes.ts';
import type { PolicyRows } from './row-set.ts';
import type { Schema } from './schema.ts';
import type { Terms } from './search.ts';
import { toVault, vaultRow } from './tables/vaults.ts';
import { inScope } from './tenants.ts';

export const createVaults = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): Repositories['vaults'] => {
  const check = policyRows.integrity;
  const stored: Repositories['vaults']['stored'] = async (tenant, id) => {
    const query = inScope(db.selectFrom('vaults').selectAll(), tenant);
    const row = await query.where('id', '=', id).executeTakeFirst();
    return row && toVault(row, check('vaults', row));
  };
  return {
    get: soundOnly(stored, 'vault', ({ name }) => name),
    stored,
    findByName: async (tenantId, name) => {
      const row = await db
        .selectFrom('vaults')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('name', '=', name)
        .where('state', '!=', 'deleted')
        .executeTakeFirst();
      return row && toVault(row, check('vaults', row));
    },
    list: async (tenant, { after, limit }) => {
      let query = inScope(db.selectFrom('vaults').selectAll(), tenant).orderBy('id').limit(limit);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => toVault(row, check('vaults', row)));
    },
    listByIds: async (ids) =>
      ids.length === 0
        ? []
        : (
            await db
              .selectFrom('vaults')
              .selectAll()
              .where('id', 'in', [...ids])
              .execute()
          ).map((row) => toVault(row, check('vaults', row))),
    listNaming: async (userId) => {
      const query = db.selectFrom('vaults').selectAll().where('dual_control', 'like', `%"${userId}"%`);
      return (await query.orderBy('id').execute()).map((row) => toVault(row, check('vaults', row)));
    },
    insert: async (vault) => {
      await policyRows.insert('vaults', vaultRow(vault));
      await terms.add('vaults', vaultRow(vault));
    },
    update: async (vault) => {
      refuseTampered(vault);
      await policyRows.update('vaults', vaultRow(vault));
      await terms.renew('vaults', vaultRow(vault));
    },
  };
};
