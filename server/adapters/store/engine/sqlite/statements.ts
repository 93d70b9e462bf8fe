// A database of node:sqlite with statements kept by their text, as Kysely expects them.

import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';

export type Parameters = readonly SQLInputValue[];
export type Row = Record<string, SQLOutputValue>;

const mostKept = 500;

const largest = BigInt(Number.MAX_SAFE_INTEGER);
/**
 * A number that JavaScript cannot hold was not written by us. The driver would refuse all rows for
 * its sake: it is read as the largest that we know.
 */
const readable = (value: SQLOutputValue): SQLOutputValue =>
  typeof value !== 'bigint' ? value : Number(value > largest ? largest : value < -largest ? -largest : value);
const allOf = (statement: StatementSync, parameters: Parameters, changes: boolean): Row[] => {
  try {
    return statement.all(...parameters);
  } catch (error) {
    if (changes || (error as NodeJS.ErrnoException).code !== 'ERR_OUT_OF_RANGE') throw error;
  }
  statement.setReadBigInts(true);
  try {
    return statement
      .all(...parameters)
      .map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, readable(value)])));
  } finally {
    statement.setReadBigInts(false);
  }
};

/** What Kysely's SqliteDialect expects of a database. */
export const keepStatements = (database: DatabaseSync) => {
  const statements = new Map<string, { readonly statement: StatementSync; readonly reader: boolean }>();
  const prepare = (sql: string) => {
    let entry = statements.get(sql);
    if (entry === undefined) {
      const statement = database.prepare(sql);
      entry = { statement, reader: statement.columns().length > 0 };
      if (statements.size < mostKept) statements.set(sql, entry);
    }
    const { statement, reader } = entry;
    return {
      reader,
      all: (parameters: Parameters) => allOf(statement, parameters, !/^(select|with)\b/i.test(sql)),
      run: (parameters: Parameters) => statement.run(...parameters),
      iterate: (parameters: Parameters) => statement.iterate(...parameters),
    };
  };
  return { prepare, close: () => database.close() };
};
