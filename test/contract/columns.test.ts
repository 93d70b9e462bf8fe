// The tables of both stores are those that are declared (server/adapters/store/schema/tables), and
// each declaration accounts for every column: whether a row's authentication code covers it, and
// whether snapshots carry it, or why not.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tables } from '../../server/adapters/store/schema/schema.ts';
import type { TableDeclaration } from '../../server/adapters/store/schema/tables/table.ts';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import type { Store } from '../../server/ports/store.ts';
import type { TenantTable } from '../../server/ports/tenant-rows.ts';
import { sharedFolder } from '../support/folders.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';

type Columns = readonly string[];
type Tables = ReadonlyMap<string, Columns>;

const folder = sharedFolder();
let postgres: PostgresServer;
const stores = new Map<string, { readonly store: Store; readonly tables: Tables }>();
beforeAll(async () => {
  const surroundings = {
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error: Error) => {
      throw error;
    },
  };
  const path = join(folder, 'dke.db');
  const sqlite = await openStore({ path, ...surroundings });
  const database = new DatabaseSync(path, { readOnly: true });
  const found = database
    .prepare(
      `select t.name as place, c.name as own from sqlite_master t, pragma_table_info(t.name) c
       where t.type = 'table' and t.name not like 'sqlite%'`,
    )
    .all();
  database.close();
  const group = (rows: readonly (readonly [string, string])[]): Tables =>
    new Map([...Map.groupBy(rows, ([table]) => table)].map(([table, of]) => [table, of.map(([, own]) => own)]));
  stores.set('sqlite', { store: sqlite, tables: group(found.map((row) => [String(row.place), String(row.own)])) });

  postgres = await startPostgres();
  const place = postgres.createDatabase('columns');
  const other = await openPostgresStore({
    postgres: { ...place, password: undefined, ca: undefined, readers: 1 },
    ...surroundings,
  });
  const listed = postgres.run(
    place.database,
    "select table_name || ' ' || column_name from information_schema.columns where table_schema = current_schema()",
  );
  const pairs = listed.split('\n').map((line) => line.split(' '));
  stores.set('postgresql', { store: other, tables: group(pairs.map(([table = '', own = '']) => [table, own])) });
});
afterAll(async () => {
  for (const { store } of stores.values()) await store.close();
  await postgres?.remove();
});

interface Declaration extends TableDeclaration {
  readonly code?: Columns;
  readonly beside?: Readonly<Record<string, string>>;
  readonly unauthenticated?: string;
}
const declared = new Map(Object.entries<Declaration>(tables));
const ofTheCode: Columns = ['row_mac', 'row_version'];
const ofMigrations: Columns = ['kysely_migration', 'kysely_migration_lock'];
const sorted = (columns: Iterable<string>): Columns => [...columns].toSorted();
const isCarried = ({ snapshots }: Pick<Declaration, 'snapshots'>): boolean =>
  typeof snapshots === 'object' && 'marks' in snapshots;

const carriedTables = [...declared].flatMap(([name, table]) => (isCarried(table) ? [name as TenantTable] : []));

test('both stores have the same tables and columns', () => {
  const plainly = (name: string) =>
    [...(stores.get(name)?.tables ?? [])].map(([table, own]) => [table, sorted(own)] as const).toSorted();
  expect(plainly('sqlite').length).toBeGreaterThan(30);
  expect(plainly('sqlite')).toEqual(plainly('postgresql'));
});

describe.each([...declared])('%s', (table, { columns, code, beside = {}, unauthenticated, snapshots, copied }) => {
  test('each column is under the authentication code of the row, or the declaration says why not', () => {
    if (code === undefined) expect(unauthenticated).toMatch(/\w/);
    else expect(sorted([...code, ...Object.keys(beside), ...ofTheCode])).toEqual(sorted(Object.keys(columns)));
    for (const why of Object.values(beside)) expect(why).toMatch(/\w/);
  });

  test('snapshots carry it, or the declaration says why not', () => {
    const carried: Columns = stores.get('sqlite')?.store.read.tenantRows.tables() ?? [];
    expect(isCarried({ snapshots })).toBe(carried.includes(table));
    if (isCarried({ snapshots })) expect(copied).toBe('for trials, too');
    if (typeof snapshots === 'object' && 'without' in snapshots) expect(snapshots.without).toMatch(/\w/);
    if (snapshots === 'of no tenant') expect(Object.keys(columns)).not.toContain('tenant_id');
  });
});

describe.each(['sqlite', 'postgresql'])('on %s', (name) => {
  const at = () => {
    const found = stores.get(name);
    if (found === undefined) throw new Error('the store was not opened');
    return found;
  };

  test('there are the declared tables', () => {
    expect(sorted([...declared.keys(), ...ofMigrations])).toEqual(sorted(at().tables.keys()));
  });

  test.each([...declared.keys()])('%s has the declared columns', (table) => {
    expect(sorted(Object.keys(declared.get(table)?.columns ?? {}))).toEqual(sorted(at().tables.get(table) ?? []));
  });

  test.each(carriedTables)('each column of %s is carried by snapshots', (table) => {
    const { store, tables } = at();
    const carried = store.read.tenantRows.of(table);
    const own = (tables.get(table) ?? []).filter((column) => !ofTheCode.includes(column));
    expect(sorted(carried.columns)).toEqual(sorted(own));
    // What is policy for the row is a change for a snapshot.
    for (const column of declared.get(table)?.code ?? []) expect(carried.policy).toContain(column);
  });
});

/** The tables of Kysely: a row for each migration, with names that the program orders itself. */
const listOfMigrations = /^kysely_migration(?:_lock)?(?:_pkey)?\./;

/**
 * Only this collation of PostgreSQL compares bytes, is the same everywhere, and has no version: an
 * upgrade of the operating system cannot change the order or the equality of what we store.
 */
test('each text of a table and of an index compares by its bytes on PostgreSQL, in a collation without a version', () => {
  const ours = `c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'i', 'I', 'v', 'm')`;
  const asked = (sql: string): readonly string[] =>
    postgres
      .run('columns', sql)
      .split('\n')
      .filter((line) => line !== '');
  const texts = asked(
    `select c.relname || '.' || a.attname || ' ' || a.attcollation::regcollation from pg_attribute a
       join pg_class c on c.oid = a.attrelid where ${ours} and a.attcollation <> 0 and a.attnum > 0 and not a.attisdropped`,
  );
  expect(texts.length).toBeGreaterThan(100);
  expect(texts.filter((each) => !each.endsWith(' "C"') && !listOfMigrations.test(each))).toEqual([]);
  // Expressions of indexes have the collation of the index.
  expect(
    asked(
      `select distinct each::regcollation from pg_index i join pg_class c on c.oid = i.indexrelid,
         unnest(i.indcollation) each where ${ours} and each <> 0 and c.relname not like 'kysely_migration%'`,
    ),
  ).toEqual(['"C"']);
  expect(asked(`select coalesce(collversion, 'none') from pg_collation where oid = '"C"'::regcollation`)).toEqual([
    'none',
  ]);
});
