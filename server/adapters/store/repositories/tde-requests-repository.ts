// What was carried out for database hosts, so that a request that is sent again makes nothing
// twice. The rows are authenticated: what is in one is given as an answer, or refuses a request.

import type { Kysely } from 'kysely';
import type { Repositories } from '../../../ports/store.ts';
import { soundOnly } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';

const table = 'tde_requests';

export const createTdeRequests = (db: Kysely<Schema>, policyRows: PolicyRows): Repositories['tdeRequests'] => ({
  get: soundOnly(
    async (id: string) => {
      const row = await db.selectFrom(table).selectAll().where('id', '=', id).executeTakeFirst();
      if (row === undefined) return undefined;
      const integrity = policyRows.integrity(table, row);
      const handles = integrity === 'ok' ? (JSON.parse(row.handles) as number[]) : [];
      return { id, fingerprint: row.fingerprint, handles, at: row.at, integrity };
    },
    'request of a database host',
    ({ id }) => id,
  ),
  put: async ({ id, fingerprint, handles, at }) => {
    const row = { id, fingerprint, handles: JSON.stringify(handles), at };
    if (!(await policyRows.insertNew(table, row))) await policyRows.update(table, row);
  },
});
