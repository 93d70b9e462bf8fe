// The queries of API tokens.

import type { Kysely } from 'kysely';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { tokenRow, toToken } from '../schema/tables/api-tokens-table.ts';
import { laterOf } from './later-of.ts';
import type { Terms } from './search-index-repository.ts';
import { inScope } from './tenants-repository.ts';

export const createTokens = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): Repositories['tokens'] => {
  const check = policyRows.integrity;
  return {
    get: async (tenant, id) => {
      const query = inScope(db.selectFrom('api_tokens').selectAll(), tenant);
      const row = await query.where('id', '=', id).executeTakeFirst();
      return row && toToken(row, check('api_tokens', row));
    },
    findByHash: async (hash) => {
      const row = await db.selectFrom('api_tokens').selectAll().where('hash', '=', hash).executeTakeFirst();
      return row && toToken(row, check('api_tokens', row));
    },
    list: async (tenant, { after, limit }) => {
      let query = inScope(db.selectFrom('api_tokens').selectAll(), tenant).orderBy('id').limit(limit);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => toToken(row, check('api_tokens', row)));
    },
    countAdministrators: async (which) => {
      const row = await db
        .selectFrom('api_tokens')
        .select((e) => e.fn.countAll<number | string>().as('count'))
        .where('tenant_id', 'is', null)
        .where('owner_id', 'is', null)
        .where('grants', 'like', '%"role":"administrator","scope":null,"tenantId":null%')
        .where('revoked_at', 'is', null)
        .where((e) =>
          which === 'lasting'
            ? e('expires_at', 'is', null)
            : e.or([e('expires_at', 'is', null), e('expires_at', '>', which.liveAt)]),
        )
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
    hasLive: async (tenantId, ownerId, name, now) =>
      (await db
        .selectFrom('api_tokens')
        .select('id')
        .where('name', '=', name)
        .where('tenant_id', tenantId === null ? 'is' : '=', tenantId)
        .where('owner_id', ownerId === null ? 'is' : '=', ownerId)
        .where('revoked_at', 'is', null)
        .where((e) => e.or([e('expires_at', 'is', null), e('expires_at', '>', now)]))
        .limit(1)
        .executeTakeFirst()) !== undefined,
    insert: async (token) => {
      await policyRows.insert('api_tokens', tokenRow(token));
      await terms.add('api_tokens', tokenRow(token));
    },
    update: async (token) => {
      refuseTampered(token);
      await policyRows.update('api_tokens', tokenRow(token));
      await terms.renew('api_tokens', tokenRow(token));
    },
    touch: async (id, at) => {
      await db
        .updateTable('api_tokens')
        .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
        .where('id', '=', id)
        .execute();
    },
  };
};
