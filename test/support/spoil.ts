// What a writer of the database does to one row: an id, an owner, a version, a class, a reference
// or a null of another row in its place, the values of two rows exchanged, a row removed, or copied
// under another id. Of rows that have codes, and of key records, in either database.
import type { SQLInputValue } from 'node:sqlite';
import { policyColumns } from '../../server/adapters/store/rows/row-codes.ts';
import { tables } from '../../server/adapters/store/schema/schema.ts';
import type { TableDeclaration } from '../../server/adapters/store/schema/tables/table.ts';
import { onPostgresql, type StoredRows } from './test-store.ts';

type Row = Awaited<ReturnType<StoredRows['query']>>[number];

const records = ['tenant_id', 'object_id', 'version', 'class', 'attributes', 'epoch', 'record'];
const coded: Readonly<Record<string, readonly string[]>> = { ...policyColumns, key_records: records };
const kinds = ['value', 'value', 'value', 'null', 'another column', 'exchange', 'remove', 'copy'] as const;

/** The columns that a row is found by. */
const identityOf = (table: string): readonly string[] => {
  const { primaryKey, columns } = (tables as { readonly [name: string]: TableDeclaration | undefined })[table] ?? {};
  const own = Object.entries(columns ?? {}).filter(([, { key, kind }]) => key === true || kind === 'sequence');
  return primaryKey?.columns ?? own.map(([name]) => name);
};
/** The condition for one row, whose identity may have become null. */
const at = (table: string, row: Row): readonly [where: string, values: readonly SQLInputValue[]] => {
  const identity = identityOf(table);
  const where = identity.map((name) => (row[name] === null ? `${name} is null` : `${name} = ?`)).join(' and ');
  return [where, identity.map((name) => row[name] as SQLInputValue).filter((value) => value !== null)];
};
const textOf = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value);

export interface Spoilt {
  readonly what: string;
  readonly table: string;
  readonly before: readonly Row[];
  readonly after: readonly Row[];
}

/**
 * Undefined: these choices change nothing. `isTarget`: of which rows one is changed; others only
 * give their values.
 */
export const chooseSpoilt = async (
  { query }: StoredRows,
  choices: readonly number[],
  isTarget: (table: string, row: Row) => boolean = () => true,
): Promise<Spoilt | undefined> => {
  const left = [...choices];
  const pick = <T>(all: readonly T[]): T => all[(left.shift() ?? 0) % all.length] as T;
  const filled: string[] = [];
  const rowsOf = new Map<string, readonly Row[]>();
  for (const table of Object.keys(coded)) {
    const rows = await query(`select * from ${table} order by ${identityOf(table).join(', ')}`);
    rowsOf.set(table, rows);
    if (rows.some((row) => isTarget(table, row))) filled.push(table);
  }
  const table = pick(filled);
  const rows = rowsOf.get(table) ?? [];
  const [one, other] = [pick(rows.filter((row) => isTarget(table, row))), pick(rows)];
  const column = pick([...(coded[table] ?? []), ...(table === 'key_records' ? [] : ['row_version', 'row_mac'])]);
  const kind = pick(kinds);
  const [what, id] = [`${kind} ${table}.${column}`, table === 'key_records' ? 'object_id' : 'id'];
  if (kind === 'remove') return { what, table, before: [one], after: [] };
  if (kind === 'copy') {
    const copied = { ...one, [id]: `${textOf(one[id]).slice(0, -4)}9999` };
    return { what, table, before: [], after: [copied] };
  }
  const value = kind === 'null' ? null : kind === 'another column' ? pick(Object.values(other)) : other[column];
  if (textOf(one[column]) === textOf(value)) return undefined;
  const changed = { ...one, [column]: value };
  if (kind !== 'exchange') return { what, table, before: [one], after: [changed] };
  return { what, table, before: [one, other], after: [changed, { ...other, [column]: one[column] }] };
};

const replace = async ({ query }: StoredRows, table: string, from: readonly Row[], to: readonly Row[]) => {
  // The owner of a database turns its constraints off.
  await query(onPostgresql ? 'set session_replication_role = replica' : 'pragma foreign_keys = off');
  await query('begin');
  try {
    for (const row of from) {
      const [where, values] = at(table, row);
      await query(`delete from ${table} where ${where}`, ...values);
    }
    for (const row of to)
      await query(
        `insert into ${table} (${Object.keys(row).join(', ')}) values (${Object.keys(row)
          .map(() => '?')
          .join(', ')})`,
        ...(Object.values(row) as SQLInputValue[]),
      );
    await query('commit');
    return true;
  } catch {
    await query('rollback');
    return false;
  }
};

/** False: a type or a constraint of the database holds. */
export const putSpoilt = (stored: StoredRows, { table, before, after }: Spoilt): Promise<boolean> =>
  replace(stored, table, before, after);
export const undoSpoilt = (stored: StoredRows, { table, before, after }: Spoilt): Promise<boolean> =>
  replace(stored, table, after, before);
/** What the writer has left, as it is now. */
export const rowsNow = async ({ query }: StoredRows, { table, after }: Spoilt): Promise<readonly Row[]> => {
  const found: Row[] = [];
  for (const row of after) {
    const [where, values] = at(table, row);
    found.push(...(await query(`select * from ${table} where ${where}`, ...values)));
  }
  return found;
};
