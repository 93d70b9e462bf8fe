// What the clock removes: as the declarations of the tables say
// (adapters/store/schema/tables/table.ts), rows that are too old, and the key records that they
// own; and settings of nodes that are removed.

import { type Kysely, sql } from 'kysely';
import { newId } from '../../../base/ids.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import { type Declaration, declared, type PolicyTable, type Schema } from '../schema/schema.ts';
import { removeLeftSettings } from './nodes-repository.ts';
import { tenantOf } from './offline-check.ts';

type Ages = Extract<Declaration['pruned'], { readonly past: unknown }>;
const pruned = [...declared].flatMap(([name, table]) =>
  'past' in table.pruned ? [{ name, table, ages: table.pruned }] : [],
);

const isOver = ({ past, unitMs = 1, idsFrom }: Ages, now: number, idleMs: number) => {
  const before = Object.entries(past).map(([column, age]) => ({
    column,
    at: now - (typeof age === 'number' ? age : idleMs),
  }));
  const over = sql.join(
    before.map(({ column, at }) => sql`${sql.ref(column)} <= ${Math.floor(at / unitMs)}`),
    sql` or `,
  );
  return idsFrom === undefined ? over : sql`id < ${newId(Math.max(...before.map(({ at }) => at)))} and (${over})`;
};

export const createPruning = (
  db: Kysely<Schema>,
  policyRows: Pick<PolicyRows, 'remove'>,
  { wipe }: Pick<Repositories['records'], 'wipe'>,
): Repositories['pruning'] => ({
  run: async (now, sessionIdleMs) => {
    await removeLeftSettings(db);
    for (const { name, table, ages } of pruned) {
      const over = isOver(ages, now, sessionIdleMs);
      const { code, records } = table;
      const each = records === 'none' ? null : records.each;
      if (code === undefined && each === null) {
        await sql`delete from ${sql.table(name)} where ${over}`.execute(db);
        continue;
      }
      const some = ages.most === undefined ? sql`` : sql`order by id limit ${sql.lit(ages.most)}`;
      const tenant = each === null ? sql`null` : tenantOf(table, each.tenant);
      const { rows } = await sql<{ readonly id: string; readonly tenant: string }>`
        select id, ${tenant} as tenant from ${sql.table(name)} where ${over} ${some}`.execute(db);
      for (const { id, tenant: tenantId } of rows)
        for (const recordClass of records === 'none' ? [] : records.classes)
          await wipe({ tenantId, objectId: id, version: 1, class: recordClass });
      const ids = rows.map(({ id }) => id);
      if (code !== undefined) await policyRows.remove(name as PolicyTable, ids);
      else for (const id of ids) await sql`delete from ${sql.table(name)} where id = ${id}`.execute(db);
    }
  },
});
