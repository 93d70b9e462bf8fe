// A tenant's rows for snapshots (ports/tenant-rows.ts). Statements are put together from the
// tables' names, because all that matters of a table here is whose its rows are and which columns
// it has.

import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Integrity } from '../../../domain/vault.ts';
import { RecordOwner, type RecordTable } from '../../../ports/key-record.ts';
import type { SnapshotRow } from '../../../ports/snapshot-archive.ts';
import type { CarriedTable, TenantRow, TenantRows, TenantTable } from '../../../ports/tenant-rows.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import {
  type Declaration,
  declared,
  leavesTombstones,
  ownedBy,
  type PolicyTable,
  type Schema,
} from '../schema/schema.ts';
import type { TableDeclaration } from '../schema/tables/table.ts';
import { recordsOf } from './key-records-repository.ts';
import type { KeyTags } from './key-tags-repository.ts';
import type { Terms } from './search-index-repository.ts';

/** Columns of the constraints and indexes that say: one value in a tenant once. */
const unsharedOf = ({ unique, indexes = [] }: Pick<TableDeclaration, 'unique' | 'indexes'>): readonly string[] =>
  [unique, ...indexes.filter((index) => index.unique && index.where === undefined)].flatMap((each) => {
    const [tenant, column, ...more] = each !== undefined && 'columns' in each ? each.columns : [];
    return tenant === 'tenant_id' && column !== undefined && more.length === 0 ? [column] : [];
  });

/** A table whose rows snapshots carry, and what it declares of that. */
type Carried = readonly [TenantTable, Declaration, Extract<Declaration['snapshots'], { readonly marks: unknown }>];

const tables: readonly Carried[] = [...declared].flatMap(([name, table]): readonly Carried[] =>
  typeof table.snapshots === 'object' && 'marks' in table.snapshots
    ? [[name as TenantTable, table, table.snapshots]]
    : [],
);
const isAuthenticated = (table: TenantTable): table is TenantTable & PolicyTable =>
  declared.get(table)?.code !== undefined;

/** What authenticates a row. */
const codeColumns = (table: TenantTable): readonly string[] =>
  isAuthenticated(table) ? ['row_mac', 'row_version'] : [];

const carriedTable = ([name, table, snapshots]: Carried): CarriedTable => {
  const { columns, code = [], primaryKey, records } = table;
  const { marks, fixed, beside, existing, reactivates } = snapshots;
  const others = [...code, ...marks, ...codeColumns(name)];
  const policy = [...code, ...Object.keys(columns).filter((column) => !others.includes(column))];
  const references = new Map(
    Object.entries(columns).flatMap(([column, { of }]) => {
      const to = tables.find(([each]) => each === of);
      return to === undefined ? [] : [[column, to[0]] as const];
    }),
  );
  const keys = primaryKey?.columns ?? Object.keys(columns).filter((column) => columns[column]?.key === true);
  const [first = '', ...rest] = Object.hasOwn(columns, 'id') ? ['id'] : keys;
  return {
    name,
    columns: [...policy, ...marks],
    policy,
    fixed,
    references,
    unshared: unsharedOf(table),
    identity: [first, ...rest],
    comesWith: references.get(first),
    leavesTombstones: leavesTombstones(table),
    recordClasses: records === 'none' ? [] : records.classes,
    isCopied: beside === 'copied',
    isReplaced: existing === 'replaced',
    reactivates: typeof reactivates === 'function' ? reactivates : () => [],
  };
};
const carried = new Map(tables.map((each) => [each[0], carriedTable(each)]));
const of = (table: TenantTable): CarriedTable => {
  const found = carried.get(table);
  if (found === undefined) throw new Error(`snapshots do not carry ${table}`);
  return found;
};

type Loose = { readonly [column: string]: SnapshotRow[string] };

/** Rows of one statement: databases take so many parameters at most. */
const atOnce = 200;
const inParts = async <T>(all: readonly T[], each: (part: readonly T[]) => Promise<void>): Promise<void> => {
  for (let at = 0; at < all.length; at += atOnce) await each(all.slice(at, at + atOnce));
};

type RowTerms = Pick<Terms, 'renewRows'>;
type RowTags = Pick<KeyTags, 'renew'>;

const selection = (table: TenantTable): RawBuilder<unknown> =>
  sql.join([...of(table).columns, ...codeColumns(table)].map((column) => sql.ref(column)));

/** Inserts or replaces rows, with what finds them. */
const putRows = async (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: RowTerms,
  tags: RowTags,
  table: TenantTable,
  given: Parameters<TenantRows['put']>[2],
): Promise<void> => {
  const { columns, policy, identity: own } = of(table);
  const names = [...columns, ...codeColumns(table)];
  const replaced = [...policy, ...codeColumns(table)].filter((name) => !own.includes(name));
  const change =
    replaced.length === 0
      ? sql`do nothing`
      : sql`do update set ${sql.join(replaced.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`))}`;
  const write = async (part: readonly Loose[]): Promise<void> => {
    const tuples = part.map((row) => sql`(${sql.join(names.map((name) => sql.val(row[name])))})`);
    await sql`
      insert into ${sql.table(table)} (${sql.join(names.map((name) => sql.ref(name)))})
      values ${sql.join(tuples)}
      on conflict (${sql.join(own.map((name) => sql.ref(name)))}) ${change}`.execute(db);
  };
  await inParts(given, async (part) => {
    // The row itself says nothing that its columns do not.
    const whole = part.map(({ row, integrity }) => ({
      row: Object.fromEntries(columns.map((column) => [column, row[column] ?? null])) as Loose,
      code: integrity === 'ok' ? undefined : integrity,
    }));
    if (isAuthenticated(table))
      await policyRows.put(
        table,
        whole.map(({ row, code }) => ({ row: { ...row, id: String(row.id) }, code })),
        write,
      );
    else await write(whole.map(({ row }) => row));
    await terms.renewRows(
      table,
      part.map(({ row }) => row),
    );
    if (table === 'keys')
      await tags.renew(
        part.map(({ row }) => ({
          id: String(row.id),
          tenant_id: String(row.tenant_id),
          tags: row.tags == null ? null : String(row.tags),
        })),
      );
  });
};

/**
 * Throws for rows that are not the tenant's: other nodes read again only what is of the tenant that
 * a change names. Asked before rows are put, of those in whose place they come, and afterwards.
 */
const requireOwned = async (
  db: Kysely<Schema>,
  tenantId: string,
  table: TenantTable,
  given: readonly TenantRow[],
): Promise<void> => {
  const [first] = of(table).identity;
  const ids = [...new Set(given.map(({ row }) => row[first] ?? null))];
  await inParts(ids, async (part) => {
    const { rows } = await sql<{ readonly others: number | string | null }>`
      select sum(case when ${ownedBy(table, tenantId)} then 0 else 1 end) as others from ${sql.table(table)}
      where ${sql.ref(first)} in (${sql.join(part)})`.execute(db);
    if (Number(rows[0]?.others ?? 0) > 0) throw new Error(`a row of ${table} is not of the tenant that it is put for`);
  });
};

/** Rows that do not fit together. */
const conflicts = (db: Kysely<Schema>): Pick<TenantRows, 'strays' | 'namesakes'> => ({
  strays: async (tenantId) =>
    (
      await db
        .selectFrom('tde_objects')
        .innerJoin('tde_applications', 'tde_applications.id', 'tde_objects.application_id')
        .innerJoin('tde_groups', 'tde_groups.id', 'tde_applications.group_id')
        .select(['tde_objects.id', 'handle', 'tde_applications.group_id as groupId', 'tde_groups.vault_id as vaultId'])
        .where('tde_objects.tenant_id', '=', tenantId)
        .whereRef('tde_objects.group_id', '!=', 'tde_applications.group_id')
        .execute()
    ).map(({ id, handle, groupId, vaultId }) => ({ id, handle, groupId, vaultId })),
  namesakes: async (tenantId) => {
    const { rows: vaults } = await sql<{ readonly id: string }>`
      select id from vaults one where tenant_id = ${tenantId} and state <> 'deleted' and exists (
        select 1 from vaults other where other.tenant_id = one.tenant_id and other.name = one.name
          and other.state <> 'deleted' and other.id <> one.id) order by id`.execute(db);
    const { rows: objects } = await sql<{ readonly handle: number }>`
      select handle from tde_objects one where tenant_id = ${tenantId} and label <> '' and destroyed_at is null and exists (
        select 1 from tde_objects other where other.group_id = one.group_id and other.label = one.label
          and other.destroyed_at is null and other.handle <> one.handle) order by handle`.execute(db);
    return { vaults: vaults.map(({ id }) => id), handles: objects.map(({ handle }) => handle) };
  },
});

/** The numbers of objects, which are never given twice. */
const handles = (db: Kysely<Schema>): Pick<TenantRows, 'reserveHandles' | 'takenHandles'> => ({
  reserveHandles: async (last) => {
    const name = 'next-object-handle';
    const row = await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst();
    if (Number(row?.value ?? 1) > last) return;
    const value = String(last + 1);
    await db
      .insertInto('settings')
      .values({ name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute();
  },
  takenHandles: async (handles) => {
    const all: number[] = [];
    await inParts(handles, async (part) => {
      const found = await db.selectFrom('tde_objects').select('handle').where('handle', 'in', part).execute();
      all.push(...found.map(({ handle }) => handle));
    });
    return all;
  },
});

export const createTenantRows = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: RowTerms,
  tags: RowTags,
): TenantRows => {
  const load = (table: TenantTable, { row_mac, row_version, ...row }: Loose): TenantRow => {
    const integrity: Integrity = isAuthenticated(table)
      ? policyRows.integrity(table, { ...row, row_version, row_mac: String(row_mac) })
      : 'ok';
    return { row, integrity };
  };
  const find = async (
    table: TenantTable,
    ids: readonly string[],
    where: RawBuilder<unknown> = sql`1 = 1`,
  ): Promise<readonly TenantRow[]> => {
    const { identity } = of(table);
    const all: TenantRow[] = [];
    await inParts(ids, async (part) => {
      const { rows: found } = await sql<Loose>`
        select ${selection(table)} from ${sql.table(table)}
        where ${sql.ref(identity[0])} in (${sql.join(part)}) and ${where}
        order by ${sql.join(identity.map((column) => sql.ref(column)))}`.execute(db);
      all.push(...found.map((row) => load(table, row)));
    });
    return all;
  };
  const findBy: TenantRows['findBy'] = async (table, tenantId, column, values) => {
    const all: TenantRow[] = [];
    await inParts(values, async (part) => {
      const { rows: found } = await sql<Loose>`
        select ${selection(table)} from ${sql.table(table)}
        where ${ownedBy(table, tenantId)} and ${sql.ref(column)} in (${sql.join(part)})
        order by ${sql.ref(of(table).identity[0])}`.execute(db);
      all.push(...found.map((row) => load(table, row)));
    });
    return all;
  };
  const destroyed = async (where: RawBuilder<unknown>): Promise<ReadonlySet<string>> => {
    const found = new Set<string>();
    for (const table of [...carried.values()].filter((each) => each.leavesTombstones).map(({ name }) => name)) {
      const { rows } = await sql<Loose>`select ${selection(table)} from ${sql.table(table)} where ${where}`.execute(db);
      for (const row of rows) if (load(table, row).integrity === 'ok') found.add(String(row.id));
    }
    return found;
  };
  return {
    tables: () => [...carried.keys()],
    of,
    page: async (table, tenantId, after, limit) => {
      const [id] = of(table).identity;
      const { rows: found } = await sql<Loose>`
        select ${selection(table)} from ${sql.table(table)}
        where ${ownedBy(table, tenantId)} and ${sql.ref(id)} > ${after ?? ''}
        order by ${sql.ref(id)} limit ${limit}`.execute(db);
      return found.map((row) => load(table, row));
    },
    find: (table, ids) => find(table, ids),
    findIn: (table, tenantId, ids) => find(table, ids, ownedBy(table, tenantId)),
    findBy,
    destroyedSince: async (at) => [...(await destroyed(sql`destroyed_at > ${at}`))],
    destroyedAmong: async (ids) => {
      const found = new Set<string>();
      await inParts(ids, async (part) => {
        const each = await destroyed(sql`destroyed_at is not null and id in (${sql.join(part)})`);
        for (const id of each) found.add(id);
      });
      return found;
    },
    count: async (table, tenantId) => {
      const { rows: found } = await sql<{ readonly count: number | string }>`
        select count(*) as count from ${sql.table(table)} where ${ownedBy(table, tenantId)}`.execute(db);
      return Number(found[0]?.count ?? 0);
    },
    put: async (tenantId, table, given) => {
      await requireOwned(db, tenantId, table, given);
      await putRows(db, policyRows, terms, tags, table, given);
      await requireOwned(db, tenantId, table, given);
    },
    place: async (places) => {
      const placeOf = new Map(places.map((each) => [each.id, each]));
      let isSound = true;
      for (const table of ['tde_objects', 'keys'] as const) {
        const found = await find(table, [...placeOf.keys()]);
        isSound &&= found.every(({ integrity }) => integrity === 'ok');
        const placed = found.map(({ row, integrity }): TenantRow => {
          const to = placeOf.get(String(row.id));
          const moved = table === 'keys' ? { vault_id: to?.vaultId ?? null } : { group_id: to?.groupId ?? null };
          return { row: { ...row, ...moved }, integrity };
        });
        await putRows(db, policyRows, terms, tags, table, placed);
      }
      return isSound;
    },
    owners: (table, tenantId, rows) => {
      const { records = 'none' } = declared.get(table) ?? {};
      const attributes = records === 'none' ? undefined : records.attributes;
      const owners = new Map<string, RecordOwner>();
      if (attributes === undefined) return owners;
      for (const { row, integrity } of rows) {
        const id = String(row.id);
        const isTheirs = integrity === 'ok' && (row.tenant_id ?? tenantId) === tenantId;
        if (isTheirs)
          owners.set(id, new RecordOwner(table as RecordTable, { tenantId, id, integrity }, attributes(row)));
      }
      return owners;
    },
    recordsOf: (owners) => recordsOf(db, owners),
    ...conflicts(db),
    ...handles(db),
  };
};
