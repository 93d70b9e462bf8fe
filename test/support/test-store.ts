// The stores of the services in a test run: the embedded database or, with
// DKE_TEST_STORE=postgresql, for each service a database of its own on the one PostgreSQL that the
// run has started (test-store-server.ts). A database belongs to a service's folder as the embedded
// one does: it is found again by the folder's path, and dropped when the folder is gone.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import pg from 'pg';
import { type PostgresPlace, postgresqlPrograms } from './postgresql.ts';

/**
 * The folder of that PostgreSQL's socket, which the run passes to its workers; and the template of
 * the other databases.
 */
export const socketVariable = 'DKE_TEST_POSTGRESQL_SOCKET';
export const templateDatabase = 'dke_template';

/**
 * The path of an embedded database with empty tables, which the run passes to its workers
 * (sqlite-template.ts).
 */
export const sqliteTemplate = 'DKE_TEST_SQLITE_TEMPLATE';

export const onPostgresql = process.env.DKE_TEST_STORE === 'postgresql';

/**
 * For `runIf` of tests about the embedded database's files. Prints `why` when the test is skipped.
 */
export const onSqlite = (why: string): boolean => {
  if (onPostgresql) console.log(`not on PostgreSQL: ${why}`);
  return !onPostgresql;
};

/**
 * An embedded database for a service whose data directory does not exist yet; none where `toml`
 * names a store or a data directory.
 */
export const layDatabase = (folder: string, toml: string): void => {
  const data = join(folder, 'dke-data');
  const template = process.env[sqliteTemplate];
  if (onPostgresql || template === undefined || /^\[(store|data)\]/m.test(toml) || existsSync(data)) return;
  mkdirSync(data, { mode: 0o700 });
  copyFileSync(template, join(data, 'dke.db'));
};

const socket = (): string => {
  const folder = process.env[socketVariable];
  if (folder === undefined) throw new Error(`${socketVariable} is not set: run vitest, which starts PostgreSQL`);
  return folder;
};

const databaseOf = (folder: string): string =>
  `dke_${createHash('sha256').update(resolve(folder)).digest('hex').slice(0, 24)}`;

/** Where the database of this folder's service is, on PostgreSQL. */
export const placeOf = (folder: string): PostgresPlace => ({
  host: socket(),
  port: 5432,
  user: 'dke',
  database: databaseOf(folder),
});

const asked = async <T>(database: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ host: socket(), user: 'dke', database });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

const drop = (client: pg.Client, database: string): Promise<unknown> =>
  client.query(`drop database if exists ${database} with (force)`);

/** Databases of removed folders. Another worker may do the same now. */
const sweep = async (client: pg.Client): Promise<void> => {
  const { rows } = await client.query(
    "select datname, shobj_description(oid, 'pg_database') as folder from pg_database where datname ~ '^dke_[0-9a-f]{24}$'",
  );
  for (const { datname, folder } of rows as { readonly datname: string; readonly folder: string | null }[])
    if (folder !== null && !existsSync(folder)) await drop(client, datname).catch(() => undefined);
};

/**
 * Like the embedded database, which is part of the data directory: a fresh directory gets a fresh
 * database.
 */
const ensureDatabase = async (folder: string): Promise<void> => {
  const database = databaseOf(folder);
  await asked('postgres', async (client) => {
    const known = await client.query('select from pg_database where datname = $1', [database]);
    if (known.rowCount === 1) {
      if (existsSync(join(folder, 'dke-data'))) return;
      await drop(client, database);
    }
    await sweep(client);
    await client.query(`create database ${database} template ${templateDatabase}`);
    await client.query(`comment on database ${database} is ${client.escapeLiteral(resolve(folder))}`);
  });
};

/**
 * Drops the database of a data directory that was removed and will be created again, like the
 * embedded database in it.
 */
export const loseStored = async (folder: string): Promise<void> => {
  if (onPostgresql) await ensureDatabase(folder);
};

/** A database with the tables, for a store without a data directory. */
export const freshDatabase = async (folder: string): Promise<PostgresPlace> => {
  await ensureDatabase(folder);
  return placeOf(folder);
};

/**
 * The lines of dke.toml for a service in this folder; none for the embedded database, or where
 * `toml` names a store itself.
 */
export const storeToml = async (folder: string, toml: string): Promise<string> => {
  if (!onPostgresql || /^\[store\]/m.test(toml)) return '';
  await ensureDatabase(folder);
  const { host, database } = placeOf(folder);
  return `[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\nreaders = 3\nreplica_lag_seconds = 0\n`;
};

/**
 * What a service that is stopped has stored, for a copy of its folder: the embedded database is in
 * it.
 */
export const copyStored = async (from: string, to: string): Promise<void> => {
  if (!onPostgresql) return;
  await asked('postgres', async (client) => {
    await client.query(`create database ${databaseOf(to)} template ${databaseOf(from)}`);
    await client.query(`comment on database ${databaseOf(to)} is ${client.escapeLiteral(resolve(to))}`);
  });
};

/**
 * Everything that is committed, as statements. Nothing else of this process runs in the meantime.
 */
export const dumpStored = (folder: string): string => {
  const { host, user, database } = placeOf(folder);
  const dump = execFileSync(join(postgresqlPrograms, 'pg_dump'), ['-h', host, '-U', user, database], {
    encoding: 'utf8',
    maxBuffer: 1024 ** 3,
  });
  // A number that is drawn for each dump.
  return dump.replaceAll(/^\\(?:un)?restrict .*\n/gm, '');
};

/** The database of a service that is stopped becomes what was dumped. */
export const putStored = async (folder: string, dump: string): Promise<void> => {
  const { host, user, database } = placeOf(folder);
  await asked('postgres', async (client) => {
    await drop(client, database);
    await client.query(`create database ${database}`);
    await client.query(`comment on database ${database} is ${client.escapeLiteral(resolve(folder))}`);
  });
  execFileSync(
    join(postgresqlPrograms, 'psql'),
    ['-qX', '-h', host, '-U', user, '-d', database, '-v', 'ON_ERROR_STOP=1', '--single-transaction'],
    { input: dump, stdio: ['pipe', 'ignore', 'inherit'] },
  );
};

export interface StoredRows {
  /**
   * In SQLite's words: `?` represents a value, and zeroblob is known. Answers the rows, if the
   * statement has any.
   */
  query(
    statement: string,
    ...values: readonly SQLInputValue[]
  ): Promise<readonly { readonly [column: string]: unknown }[]>;
}

/**
 * A service of this process may be within a transaction. It can end that only while the event loop
 * runs, so the connection must not wait in SQLite: no `timeout`. Gives up after five minutes.
 */
export const askUnlocked = async <T>(ask: () => T): Promise<T> => {
  const end = performance.now() + 300_000;
  for (;;) {
    try {
      return ask();
    } catch (error) {
      if ((error as { readonly errcode?: number }).errcode !== 5 || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
};

/** Reads and changes what a service has stored, past the service, whichever database it has. */
export const withStored = async <T>(folder: string, work: (stored: StoredRows) => Promise<T>): Promise<T> => {
  if (onPostgresql)
    return asked(databaseOf(folder), (client) => {
      client.setTypeParser(pg.types.builtins.INT8, Number);
      return work({
        query: async (statement, ...values) => {
          let at = 0;
          const text = statement
            .replaceAll('?', () => `$${++at}`)
            .replaceAll(/zeroblob\((.*?)\) /g, "decode(repeat('00', $1), 'hex') ");
          return (await client.query(text, [...values])).rows;
        },
      });
    });
  const database = new DatabaseSync(join(folder, 'dke-data', 'dke.db'));
  try {
    return await work({
      query: (statement, ...values) => askUnlocked(() => database.prepare(statement).all(...values)),
    });
  } finally {
    database.close();
  }
};

/** Runs one statement on what the service of this folder has stored. */
export const queryStored = (
  folder: string,
  statement: string,
  ...values: readonly SQLInputValue[]
): ReturnType<StoredRows['query']> => withStored(folder, ({ query }) => query(statement, ...values));
