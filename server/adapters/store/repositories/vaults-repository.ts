// The queries of vaults.

import type { Kysely } from 'kysely';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered, soundOnly } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { toVault, vaultRow } from '../schema/tables/vaults-table.ts';
import { searchStatements, type Terms } from './search-index-repository.ts';
import { inScope } from './tenants-repository.ts';

/** Vaults of one statement. */
const inPart = 50;

export const createVaults = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): Repositories['vaults'] => {
  const check = policyRows.integrity;
  const { naming } = searchStatements(db);
  const stored: Repositories['vaults']['stored'] = async (tenant, id) => {
    const query = inScope(db.selectFrom('vaults').selectAll(), tenant);
    const row = await query.where('id', '=', id).executeTakeFirst();
    return row && toVault(row, check('vaults', row));
  };
  const listByIds: Repositories['vaults']['listByIds'] = async (ids) => {
    if (ids.length === 0) return [];
    const query = db.selectFrom('vaults').selectAll();
    return (await query.where('id', 'in', [...ids]).execute()).map((row) => toVault(row, check('vaults', row)));
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
    listByIds,
    findNaming: async (userId) => {
      for (let after = ''; ; ) {
        const terms = await naming(userId, after, inPart).execute();
        const ids = terms.map(({ subject_id }) => subject_id);
        for (const vault of await listByIds(ids))
          if (vault.state !== 'deleted' && vault.dualControl?.approvers?.includes(userId) === true) return vault;
        if (ids.length < inPart) return undefined;
        after = ids.at(-1) ?? after;
      }
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
