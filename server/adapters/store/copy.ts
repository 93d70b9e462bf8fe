// Copies everything from one store to another of the other kind, in one transaction: all of it is
// there afterwards, or nothing. Rows go as they are: what is sealed stays sealed, authentication
// codes and the audit log's tree stay those that they were. What nodes tell one another is not
// copied: it is about the database that they share.

import { type Kysely, sql } from 'kysely';
import { rootHash } from '../../base/merkle-tree.ts';
import type { RowAuthenticator } from '../../base/row-jobs.ts';
import type { Clock } from '../../base/time.ts';
import type { Repositories } from '../../ports/store.ts';
import { nodeLocks } from './engine/postgres/link-query.ts';
import { StoreError } from './engine/store-error.ts';
import { createRepositories } from './repositories/repositories.ts';
import { begunSetting } from './repositories/settings-repository.ts';
import { createRowSet } from './rows/row-set.ts';
import { declared, type Schema } from './schema/schema.ts';

export interface Copyable {
  readonly db: Kysely<Schema>;
  readonly dialect: 'sqlite' | 'postgres';
  /** For people. */
  readonly place: string;
}

export interface CopyReport {
  readonly tables: number;
  readonly rows: number;
  readonly auditRecords: number;
  /** Root of the audit log's tree, hexadecimal: the same in both. */
  readonly auditRoot: string;
}

/** Not copied, beside what is declared so: the record of migrations is the target's own. */
const ofMigrations: readonly string[] = ['kysely_migration', 'kysely_migration_lock'];
const isCopied = (name: string): boolean =>
  !ofMigrations.includes(name) && typeof declared.get(name)?.copied !== 'object';
/** Copied tables in which a new store has rows; those of the source take their place. */
const seeded: readonly string[] = [...declared]
  .filter(([name, { rows }]) => rows !== undefined && isCopied(name))
  .map(([name]) => name);

const inPage = 500;
/** Databases take so many values in one statement at most. */
const mostValues = 8_000;

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** A number that grows with every row. */
  readonly sequence: string | undefined;
}

type Row = Readonly<Record<string, unknown>>;

const countOf = async (db: Kysely<Schema>, table: string): Promise<number> => {
  const { rows } = await sql<{ readonly n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db);
  return Number(rows[0]?.n);
};

const tablesOf = async (db: Kysely<Schema>): Promise<readonly Table[]> =>
  (await db.introspection.getTables())
    .filter(({ name, isView }) => !isView && isCopied(name) && !name.startsWith('sqlite_'))
    .map(({ name, columns }) => ({
      name,
      columns: columns.map((column) => column.name).toSorted(),
      sequence: columns.find(({ isAutoIncrementing }) => isAutoIncrementing)?.name,
    }));

/** Each table behind those that it refers to. `from`: of the embedded database, which tells. */
const inOrder = async (embedded: Kysely<Schema>, tables: readonly Table[]): Promise<readonly Table[]> => {
  const refers = new Map<string, readonly string[]>();
  for (const { name } of tables) {
    const { rows } = await sql<{ readonly table: string }>`
      select "table" from pragma_foreign_key_list(${sql.lit(name)})`.execute(embedded);
    refers.set(
      name,
      rows.map((row) => row.table).filter((other) => other !== name && tables.some((each) => each.name === other)),
    );
  }
  const placed: Table[] = [];
  let waiting = tables;
  while (waiting.length > 0) {
    const has = (name: string): boolean => placed.some((table) => table.name === name);
    const next = waiting.filter(({ name }) => refers.get(name)?.every(has));
    if (next.length === 0) throw new Error('tables refer to one another in a circle');
    placed.push(...next);
    waiting = waiting.filter((table) => !next.includes(table));
  }
  return placed;
};

/** A table page by page, in the one state that the transaction sees. */
async function* pagesOf({ db, dialect }: Copyable, { name, columns }: Table): AsyncGenerator<readonly Row[]> {
  const list = sql.join(columns.map((column) => sql.ref(column)));
  if (dialect === 'sqlite') {
    for (let after = Number.MIN_SAFE_INTEGER; ; ) {
      const { rows } = await sql<Row>`select rowid as "rowid of the table", ${list} from ${sql.table(name)}
        where rowid > ${after} order by rowid limit ${inPage}`.execute(db);
      if (rows.length === 0) return;
      after = Number(rows.at(-1)?.['rowid of the table']);
      yield rows;
    }
  }
  await sql`declare copying cursor for select ${list} from ${sql.table(name)}`.execute(db);
  for (;;) {
    const { rows } = await sql<Row>`fetch ${sql.lit(inPage)} from copying`.execute(db);
    if (rows.length === 0) break;
    yield rows;
  }
  await sql`close copying`.execute(db);
}

/** The last number that was given, whether or not its row is there still. */
const lastNumber = async ({ db, dialect }: Copyable, { name, sequence = '' }: Table): Promise<number> => {
  const { rows } =
    dialect === 'sqlite'
      ? await sql<{ readonly last: number }>`select seq as last from sqlite_sequence where name = ${name}`.execute(db)
      : await sql<{ readonly last: number | null }>`
          select pg_sequence_last_value(pg_get_serial_sequence(${name}, ${sequence})::regclass) as last`.execute(db);
  return Number(rows[0]?.last ?? 0);
};
const setLastNumber = async (
  { db, dialect }: Copyable,
  { name, sequence = '' }: Table,
  last: number,
): Promise<void> => {
  if (last === 0) return;
  if (dialect === 'postgres') {
    await sql`select setval(pg_get_serial_sequence(${name}, ${sequence}), ${last})`.execute(db);
    return;
  }
  await sql`delete from sqlite_sequence where name = ${name}`.execute(db);
  await sql`insert into sqlite_sequence (name, seq) values (${name}, ${last})`.execute(db);
};

const copyTable = async (from: Copyable, to: Copyable, table: Table): Promise<number> => {
  const { name, columns, sequence } = table;
  const atOnce = Math.max(1, Math.floor(mostValues / columns.length));
  let rows = 0;
  for await (const page of pagesOf(from, table))
    for (let at = 0; at < page.length; at += atOnce) {
      const part = page.slice(at, at + atOnce);
      const tuples = part.map((row) => sql`(${sql.join(columns.map((column) => sql.val(row[column])))})`);
      await sql`insert into ${sql.table(name)} (${sql.join(columns.map((column) => sql.ref(column)))})
        values ${sql.join(tuples)}`.execute(to.db);
      rows += part.length;
    }
  const [before, after] = [await countOf(from.db, name), await countOf(to.db, name)];
  if (rows !== before || rows !== after)
    throw new StoreError('io', `${name} has ${before} rows and would have ${after}: nothing was copied`);
  if (sequence !== undefined) await setLastNumber(to, table, await lastNumber(from, table));
  return rows;
};

/** Copies some tables into an embedded database that has them all, and nothing that nodes share. */
export const copyTables = async (from: Copyable, to: Copyable, isCopied: (name: string) => boolean): Promise<void> => {
  const tables = (await tablesOf(to.db)).filter(({ name }) => isCopied(name));
  for (const { name } of tables) await sql`delete from ${sql.table(name)}`.execute(to.db);
  for (const table of await inOrder(to.db, tables)) await copyTable(from, to, table);
};

/** Throws `StoreError` where a node of the service runs on this database. */
const refuseRunning = async ({ db, dialect, place }: Copyable): Promise<void> => {
  if (dialect === 'sqlite') return;
  const { rows } = await sql<{ readonly n: number }>`
    select count(*) as n from pg_locks where locktype = 'advisory' and granted and classid = ${sql.lit(nodeLocks)}
      and database = (select oid from pg_database where datname = current_database())`.execute(db);
  if (Number(rows[0]?.n) > 0)
    throw new StoreError('open', `a node of the service runs on ${place}: stop all nodes; nothing was changed`);
};

/**
 * Copies one store to the other. Before, both are upgraded to the same schema; no other process
 * writes to either. `check` sees the copy before it counts. Throws `StoreError` when the target has
 * anything in it, or what arrived is not what was sent.
 */
export const copyStore = async (
  from: Copyable,
  to: Copyable,
  {
    authenticateRow,
    clock,
    check,
  }: {
    readonly authenticateRow: RowAuthenticator;
    readonly clock: Clock;
    readonly check: (source: Repositories, copy: Repositories) => Promise<void>;
  },
): Promise<CopyReport> => {
  if (from.dialect === to.dialect)
    throw new StoreError('open', `${from.place} and ${to.place} are of one kind: copy them with its own tools`);
  await refuseRunning(from);
  await refuseRunning(to);
  const tables = await tablesOf(from.db);
  const order = await inOrder(from.dialect === 'sqlite' ? from.db : to.db, tables);
  const there = await tablesOf(to.db);
  const shape = (of: readonly Table[]) => JSON.stringify(of.map(({ name, columns }) => [name, columns]).toSorted());
  if (shape(tables) !== shape(there)) throw new StoreError('newer', 'the two stores have different tables');
  for (const { name } of there)
    if (!seeded.includes(name) && (await countOf(to.db, name)) > 0)
      throw new StoreError('open', `${to.place} is not empty (${name}): name an empty database; nothing was changed`);
  // Its schema is compared above.
  const over = (db: Kysely<Schema>) =>
    createRepositories(
      db,
      createRowSet(authenticateRow, false, () => Promise.resolve([])),
      'again',
      clock,
    );
  const { audit, settings } = over(to.db);
  // A first start that was cut off has said so.
  if ((await audit.size()) > 0 || (await settings.get(begunSetting)) !== undefined)
    throw new StoreError('open', `${to.place} is not empty (settings): name an empty database; nothing was changed`);

  const reading = from.db.transaction();
  return (from.dialect === 'postgres' ? reading.setIsolationLevel('repeatable read') : reading).execute((source) =>
    to.db.transaction().execute(async (target): Promise<CopyReport> => {
      const here: Copyable = { ...from, db: source };
      const copy: Copyable = { ...to, db: target };
      for (const table of seeded) await sql`delete from ${sql.table(table)}`.execute(target);
      let rows = 0;
      for (const table of order) rows += await copyTable(here, copy, table);
      if (to.dialect === 'postgres') {
        // Agents have seen epochs of the store before: this one's are later.
        const { epoch } = await source.selectFrom('node_head').select('epoch').executeTakeFirstOrThrow();
        const later = Math.max(epoch, clock.now()) + 1;
        await target.updateTable('node_head').set({ epoch: later }).execute();
      }
      const [before, after] = [source, target].map(over);
      if (before === undefined || after === undefined) throw new Error('unreachable');
      const size = await before.audit.size();
      const root = size === 0 ? Buffer.alloc(0) : await rootHash(before.audit.subtree, size);
      if (
        (await after.audit.size()) !== size ||
        (size > 0 && !(await rootHash(after.audit.subtree, size)).equals(root))
      )
        throw new StoreError('io', 'the audit log of the copy would differ: nothing was copied');
      await check(before, after);
      return { tables: order.length, rows, auditRecords: size, auditRoot: root.toString('hex') };
    }),
  );
};
