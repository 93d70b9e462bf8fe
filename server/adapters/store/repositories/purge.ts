// What the purge of a tenant removes (ports/purge.ts), as the declarations of the tables say.

import { type Kysely, sql } from 'kysely';
import type { PurgeRepository } from '../../../ports/purge.ts';
import { declared, ownedBy, type Schema } from '../schema/schema.ts';

/** Rows are removed by their owners, some at a time: other units of work go between. */
const ownersAtOnce = 20;

export const createPurge = (db: Kysely<Schema>): PurgeRepository => {
  const removed = new Map(
    [...declared].flatMap(([table, { purge }]) =>
      typeof purge === 'object' && 'removed' in purge ? [[table, purge] as const] : [],
    ),
  );
  return {
    tables: () => [...removed.keys()],
    remove: async (table, tenantId) => {
      const purge = removed.get(table);
      if (purge === undefined) throw new Error(`a purge removes nothing from ${table}`);
      const column = sql.ref(purge.removed);
      const isOfTenant =
        purge.of === undefined
          ? ownedBy(table, tenantId)
          : sql`${column} in (select id from ${sql.table(purge.of)} where tenant_id = ${tenantId})`;
      const some = sql`select distinct ${column} from ${sql.table(table)} where ${isOfTenant} limit ${sql.lit(ownersAtOnce)}`;
      const { numAffectedRows } = await sql`
        delete from ${sql.table(table)} where ${column} in (${some})`.execute(db);
      return Number(numAffectedRows ?? 0);
    },
  };
};
