// What was carried out for database hosts, so that a request that is sent again makes nothing twice.

import type { Kysely } from 'kysely';
import type { Repositories } from '../ports/store.ts';
import type { Schema } from './schema.ts';

export const createTdeRequests = (db: Kysely<Schema>): Repositories['tdeRequests'] => ({
  get: async (id) => {
    const row = await db.selectFrom('tde_requests').selectAll().where('id', '=', id).executeTakeFirst();
    return row && { id, fingerprint: row.fingerprint, handles: JSON.parse(row.handles) as number[], at: row.at };
  },
  put: async ({ id, fingerprint, handles, at }) => {
    const row = { fingerprint, handles: JSON.stringify(handles), at };
    await db
      .insertInto('tde_requests')
      .values({ id, ...row })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
      .execute();
  },
  prune: async (before) => {
    await db.deleteFrom('tde_requests').where('at', '<', before).execute();
  },
});
