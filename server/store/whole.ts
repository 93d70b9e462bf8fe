// The store as a whole, table by table, for its offline check: what no request ever asks for.

import type { Kysely } from 'kysely';
import type { WholeRecord } from '../ports/records.ts';
import type { Repositories } from '../ports/store.ts';
import { policyTables } from './row-codes.ts';
import type { PolicyRows, ReadingAs, RowSet } from './row-set.ts';
import type { PolicyTable, Schema } from './schema.ts';
import { recordMembers } from './tables/keys.ts';
import { bytesOf } from './tables/values.ts';

const nameOf = (row: Readonly<Record<string, unknown>>): string => String(row.id ?? row.handle ?? 'a row');

export const createWhole = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  set: RowSet,
  as: ReadingAs,
): Repositories['whole'] => ({
  policyTables: () => policyTables,
  rowSet: () => set.head(db),
  compareRowSet: () => set.compare(db, as),
  checkRows: async (table) => {
    const found = await db
      .selectFrom(table as PolicyTable)
      .selectAll()
      .execute();
    const tampered = found.filter((row) => policyRows.integrity(table as PolicyTable, row) !== 'ok').map(nameOf);
    return { rows: found.length, tampered };
  },
  records: async (after, limit) => {
    const rows = await db
      .selectFrom('key_records')
      .selectAll()
      .orderBy('tenant_id')
      .orderBy('object_id')
      .orderBy('version')
      .orderBy('class')
      .limit(limit)
      .offset(after)
      .execute();
    return rows.map(
      (row): WholeRecord => ({
        ...recordMembers.fromRow(row),
        record: bytesOf(row.record),
      }),
    );
  },
  objects: async (after, limit) =>
    (
      await db
        .selectFrom('tde_objects')
        .select(['handle', 'id', 'class', 'destroyed_at', 'content'])
        .where('handle', '>', after)
        .orderBy('handle')
        .limit(limit)
        .execute()
    ).map(({ handle, id, class: objectClass, destroyed_at, content }) => ({
      handle,
      id,
      class: objectClass,
      destroyed: destroyed_at !== null,
      hasContent: content !== null && content.length > 0,
    })),
});
