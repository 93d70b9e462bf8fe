// The stored head of the policy rows: the sum over all of them, masked with a pad of its version and authenticated, and the walk through
// the rows that adds it up. What the sum is for: row-set.ts.

import { type CompiledQuery, type Kysely, sql } from 'kysely';
import type { RowSetHead } from '../ports/store.ts';
import { policyTables, type RowAuthenticator } from './row-codes.ts';
import type { PolicyTable, Schema } from './schema.ts';

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

export interface Head extends RowSetHead {
  readonly sum: bigint;
}

const modulus = 1n << 256n;
const inPage = 1_000;

const fromHex = (text: string): bigint => (/^[0-9a-f]{64}$/.test(text) ? BigInt(`0x${text}`) : 0n);
const toHex = (value: bigint): string => value.toString(16).padStart(64, '0');
/** Within the range of a sum. */
export const reduce = (value: bigint): bigint => ((value % modulus) + modulus) % modulus;

export interface Heads {
  /** The number that a row adds to the sum. */
  element(table: PolicyTable, id: string, code: string): bigint;
  /** Null: there is one that the service did not write. */
  read(db: Kysely<Schema>): Promise<Head | null | undefined>;
  write(db: Kysely<Schema>, version: number, sum: bigint): Promise<Head>;
  /** The code that a head of this version and sum has. */
  tag(version: number, sum: bigint): string;
  /** Adds up the rows. */
  scan(
    db: Kysely<Schema>,
    each: (table: PolicyTable, row: Coded) => void,
  ): Promise<{ readonly sum: bigint; readonly rows: number }>;
}

export const createHeads = (authenticate: RowAuthenticator): Heads => {
  /** Put together once: it is part of every commit. */
  let headStatement: CompiledQuery | undefined;

  const element = (table: PolicyTable, id: string, code: string): bigint =>
    fromHex(authenticate(`row set element ${table} ${id} ${code}`));
  const mask = (version: number): bigint => fromHex(authenticate(`row set mask ${version}`));
  const masked = ({ version, sum }: Pick<Head, 'version' | 'sum'>): string => toHex(sum ^ mask(version));
  const tagOf = (version: number, text: string): string => authenticate(`row set ${version} ${text}`);

  const read: Heads['read'] = async (db) => {
    const row = await db.selectFrom('row_set').selectAll().executeTakeFirst();
    if (row === undefined) return undefined;
    const version = Number(row.version);
    if (tagOf(version, row.sum) !== row.tag) return null;
    return { version, tag: row.tag, sum: fromHex(row.sum) ^ mask(version) };
  };
  const write: Heads['write'] = async (db, version, sum) => {
    const text = masked({ version, sum });
    const tag = tagOf(version, text);
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
    return { version, tag, sum };
  };

  const scan: Heads['scan'] = async (db, each) => {
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
          sum += element(table, row.id, row.row_mac);
          each(table, row);
        }
        rows += page.length;
        if (page.length < inPage) break;
        after = page.at(-1)?.id ?? after;
      }
    return { sum: sum % modulus, rows };
  };
  return { element, read, write, scan, tag: (version, sum) => tagOf(version, masked({ version, sum })) };
};

/** The version of the state that a long read sees, as far as it can be read. */
export const readVersion = async (db: Kysely<Schema>): Promise<number> => {
  const { rows } = await sql<{ readonly version: number | string }>`select version from row_set`.execute(db);
  return Number(rows[0]?.version ?? 0);
};
