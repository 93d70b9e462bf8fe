// The store as a whole, table by table, for its offline check: what no request ever asks for.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import { serviceTenantId } from '../../../base/ids.ts';
import type { RecordAddress, WholeRecord } from '../../../ports/key-record.ts';
import type { Repositories } from '../../../ports/store.ts';
import { policyTables } from '../rows/row-codes.ts';
import type { PolicyRows, ReadingAs, RowSet } from '../rows/row-set.ts';
import { declared, type PolicyTable, type Schema } from '../schema/schema.ts';
import { recordMembers } from '../schema/tables/keys-table.ts';
import type { TableDeclaration } from '../schema/tables/table.ts';
import { bytesOf } from '../schema/tables/values.ts';

/** Rows that are read at once, with their contents. */
const rowsAtOnce = 100;

const nameOf = (row: Readonly<Record<string, unknown>>): string => String(row.id ?? row.handle ?? 'a row');

/** Whose a row is. A row whose owner is gone has none. */
export const tenantOf = ({ columns }: TableDeclaration, column: string): RawBuilder<string | null> => {
  if (column === 'the service') return sql`${serviceTenantId}`;
  const of = columns[column]?.of;
  if (of === undefined || of === 'tenants') return sql`${sql.ref(column)}`;
  return sql`(select owner.tenant_id from ${sql.table(of)} owner where owner.id = ${sql.ref(column)})`;
};

/** The records that the rows of a table must have, where they alone say it. */
const placesOf = async (
  db: Kysely<Schema>,
  name: string,
  table: TableDeclaration,
): Promise<readonly RecordAddress[]> => {
  if (table.records === 'none' || table.records.each === null) return [];
  const { each, classes } = table.records;
  const { rows } = await sql<{ readonly id: string; readonly tenant: string | null }>`
    select id, ${tenantOf(table, each.tenant)} as tenant from ${sql.table(name)} ${sql.raw(each.where === undefined ? '' : `where ${each.where}`)}`.execute(
    db,
  );
  return rows.flatMap(({ id, tenant }) =>
    classes.map((own) => ({ tenantId: tenant ?? '', objectId: id, version: 1, class: own })),
  );
};

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
    const tampered: string[] = [];
    let rows = 0;
    // A page at a time: the contents of token objects are megabytes.
    for (let after: string | undefined; ; ) {
      let query = db
        .selectFrom(table as 'vaults')
        .selectAll()
        .orderBy('id')
        .limit(rowsAtOnce);
      if (after !== undefined) query = query.where('id', '>', after);
      const page = await query.execute();
      for (const row of page) if (policyRows.integrity(table as PolicyTable, row) !== 'ok') tampered.push(nameOf(row));
      rows += page.length;
      after = page.at(-1)?.id;
      if (page.length < rowsAtOnce) return { rows, tampered };
    }
  },
  places: async () => {
    const places: RecordAddress[] = [];
    for (const [name, table] of declared) places.push(...(await placesOf(db, name, table)));
    return {
      classes: [...declared.values()].flatMap(({ records }) =>
        records === 'none' || records.each === null ? [] : records.classes,
      ),
      places,
    };
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
