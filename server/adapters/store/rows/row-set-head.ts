// The stored head of the policy rows: the sum over all of them, masked with a pad of its version
// and authenticated, and the walk through the rows that adds it up. What the sum is for:
// row-set.ts.

import { type CompiledQuery, type Kysely, sql } from 'kysely';
import type { RowAuthenticator, RowJob } from '../../../base/row-jobs.ts';
import type { RowSetHead } from '../../../ports/store.ts';
import type { PolicyTable, Schema } from '../schema/schema.ts';
import { policyTables } from './row-codes.ts';

/** What every policy table has. */
export interface Coded {
  readonly id: string;
  readonly row_mac: string;
  readonly row_version: number;
}
/** One policy table represents all of them: Kysely's types need the name of a table. */
type OneTable = Kysely<{ readonly vaults: { id: string; row_mac: string; row_version: number } }>;
export const coded = (db: Kysely<Schema>): OneTable => db as unknown as OneTable;
export const named = (table: PolicyTable): 'vaults' => table as 'vaults';

/**
 * How a sum is made. In layout 1, the row key itself makes elements, masks and codes; since layout
 * 2, each has its own key. The head does not name its layout: the key that its code is right under
 * says it.
 */
type Layout = 1 | 2;
export const newestLayout: Layout = 2;

export interface Head extends RowSetHead {
  readonly sum: bigint;
  readonly layout: Layout;
}

const modulus = 1n << 256n;
const inPage = 1_000;

const fromHex = (text: string): bigint => (/^[0-9a-f]{64}$/.test(text) ? BigInt(`0x${text}`) : 0n);
const toHex = (value: bigint): string => value.toString(16).padStart(64, '0');
/** Within the range of a sum. */
export const reduce = (value: bigint): bigint => ((value % modulus) + modulus) % modulus;

export interface Heads {
  /** The number that a row adds to the sum. */
  element(layout: Layout, table: PolicyTable, id: string, code: string): bigint;
  /** Null: there is one that the service did not write. */
  read(db: Kysely<Schema>): Promise<Head | null | undefined>;
  write(db: Kysely<Schema>, head: Omit<Head, 'tag'>): Promise<Head>;
  /** The code that a head of this version and sum has. */
  tag(head: Omit<Head, 'tag'>): string;
  /** Adds up the rows. */
  scan(
    db: Kysely<Schema>,
    layout: Layout,
    each: (table: PolicyTable, row: Coded) => void,
  ): Promise<{ readonly sum: bigint; readonly rows: number }>;
}

export const createHeads = (authenticate: RowAuthenticator): Heads => {
  /** Put together once: it is part of every commit. */
  let headStatement: CompiledQuery | undefined;

  const make = (layout: Layout, text: string, job: RowJob): string =>
    authenticate(text, layout === newestLayout ? job : 'earlier');
  const element: Heads['element'] = (layout, table, id, code) =>
    fromHex(make(layout, `row set element ${table} ${id} ${code}`, 'dke row set elements 1'));
  const mask = (layout: Layout, version: number): bigint =>
    fromHex(make(layout, `row set mask ${version}`, 'dke row set masks 1'));
  const masked = ({ layout, version, sum }: Omit<Head, 'tag'>): string => toHex(sum ^ mask(layout, version));
  const tagOf = (layout: Layout, version: number, text: string): string =>
    make(layout, `row set ${version} ${text}`, 'dke row set heads 1');

  const read: Heads['read'] = async (db) => {
    const row = await db.selectFrom('row_set').selectAll().executeTakeFirst();
    if (row === undefined) return undefined;
    const version = Number(row.version);
    const layout = ([newestLayout, 1] as const).find((each) => tagOf(each, version, row.sum) === row.tag);
    if (layout === undefined) return null;
    return { version, tag: row.tag, sum: fromHex(row.sum) ^ mask(layout, version), layout };
  };
  const write: Heads['write'] = async (db, head) => {
    const { version, layout } = head;
    const text = masked(head);
    const tag = tagOf(layout, version, text);
    const parameters = [1, version, text, tag];
    headStatement ??= db
      .insertInto('row_set')
      .values({ id: 1, version, sum: text, tag })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((e) => ({
          version: e.ref('excluded.version'),
          sum: e.ref('excluded.sum'),
          tag: e.ref('excluded.tag'),
        })),
      )
      .compile();
    await db.executeQuery({ ...headStatement, parameters });
    return { ...head, tag };
  };

  const scan: Heads['scan'] = async (db, layout, each) => {
    let sum = 0n;
    let rows = 0;
    for (const table of policyTables)
      for (let after = ''; ; ) {
        const page = await coded(db)
          .selectFrom(named(table))
          .select(['id', 'row_mac', 'row_version'])
          .where('id', '>', after)
          .orderBy('id')
          .limit(inPage)
          .execute();
        for (const row of page) {
          sum += element(layout, table, row.id, row.row_mac);
          each(table, row);
        }
        rows += page.length;
        if (page.length < inPage) break;
        after = page.at(-1)?.id ?? after;
      }
    return { sum: sum % modulus, rows };
  };
  return { element, read, write, scan, tag: (head) => tagOf(head.layout, head.version, masked(head)) };
};

/** The version of the state that a long read sees, as far as it can be read. */
export const readVersion = async (db: Kysely<Schema>): Promise<number> => {
  const { rows } = await sql<{ readonly version: number | string }>`select version from row_set`.execute(db);
  return Number(rows[0]?.version ?? 0);
};
