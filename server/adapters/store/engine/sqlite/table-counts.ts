// Sizes of the embedded database for support: its schema and how many rows each table has. No value
// of a row is read.

import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

export interface TableCounts {
  readonly bytes: number;
  readonly logBytes: number;
  readonly migrations: readonly string[];
  readonly rows: Readonly<Record<string, number>>;
}

export const countTables = (path: string): TableCounts => {
  const { size } = statSync(path);
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const names = (query: string): string[] =>
      database
        .prepare(query)
        .all()
        .map(({ name }) => String(name));
    const tables = names(
      "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name",
    );
    return {
      bytes: size,
      logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      migrations: names('select name from kysely_migration order by name'),
      rows: Object.fromEntries(
        tables.map((table) => [
          table,
          Number(database.prepare(`select count(*) as count from "${table}"`).get()?.count),
        ]),
      ),
    };
  } finally {
    database.close();
  }
};
