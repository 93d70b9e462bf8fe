// The schema of each released version, as a database of it has it, with a few rows:
// test/contract/schemas/. A released file is never changed. `node test/support/released-schemas.ts`
// records the schema of this version.
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { newId } from '../../server/base/ids.ts';
import { systemClock } from '../../server/base/time.ts';
import { newTenant } from '../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../server/ports/store.ts';
import { type PostgresPlace, type PostgresServer, postgresqlPrograms, startPostgres } from './postgresql.ts';

const folder = join(import.meta.dirname, '../contract/schemas');
type Dialect = 'sqlite' | 'postgresql';

/** Their names, oldest first. */
export const releasedSchemas = (): readonly string[] =>
  [...new Set(readdirSync(folder).map((file) => file.split('.')[0] ?? ''))].toSorted();
const fileOf = (name: string, dialect: Dialect): string => join(folder, `${name}.${dialect}.sql`);

const authenticateRow = (text: string): string =>
  createHmac('sha256', 'row key of released schemas').update(text).digest('hex');
const surroundings = {
  clock: systemClock,
  authenticateRow,
  onFatal: (error: Error) => {
    throw error;
  },
};

export interface TestDatabase {
  open(): Promise<Store>;
  /**
   * Columns, indexes, constraints and statistics, without the order of columns, which an upgrade
   * cannot keep.
   */
  schema(): Promise<readonly string[]>;
  run(statements: string): Promise<void>;
  query(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

const columnsOfSqlite = `
  select t.name || ' ' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || coalesce(c.dflt_value, '') || ' ' || c.pk as line
    from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table' and t.name not like 'sqlite%'
  union all select t.name || ' refers to ' || k."table" || ' by ' || k."from" from sqlite_master t, pragma_foreign_key_list(t.name) k
    where t.type = 'table'
  union all select t.name || ' unique ' || (select group_concat(i.name) from pragma_index_info(l.name) i)
    from sqlite_master t, pragma_index_list(t.name) l where t.type = 'table' and l.origin != 'c'
  union all select sql from sqlite_master where type = 'index' and sql is not null`;

/** The file in this folder. */
export const sqliteDatabase = (path: string): TestDatabase => {
  const on = <T>(work: (database: DatabaseSync) => T): Promise<T> => {
    const database = new DatabaseSync(path);
    try {
      return Promise.resolve(work(database));
    } finally {
      database.close();
    }
  };
  const query: TestDatabase['query'] = (statement) => on((database) => database.prepare(statement).all());
  return {
    open: () => openStore({ path, ...surroundings }),
    run: (statements) => on((database) => database.exec(`begin;${statements};commit`)),
    query,
    schema: async () => (await query(columnsOfSqlite)).map(({ line }) => String(line)).toSorted(),
  };
};

const schemaOfPostgresql = `
  select table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') || ' ' ||
      coalesce(collation_name, '') as line from information_schema.columns where table_schema = 'public'
  union all select indexdef from pg_indexes where schemaname = 'public'
  union all select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'public'::regnamespace
  union all select pg_get_statisticsobjdef(oid) from pg_statistic_ext`;

export const postgresqlDatabase = (place: PostgresPlace): TestDatabase => {
  const on = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client(place);
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  };
  const query: TestDatabase['query'] = (statement) => on(async (client) => (await client.query(statement)).rows);
  return {
    open: () =>
      openPostgresStore({ postgres: { ...place, password: undefined, ca: undefined, readers: 1 }, ...surroundings }),
    run: (statements) =>
      on(async (client) => {
        await client.query(statements);
      }),
    query,
    schema: async () => (await query(schemaOfPostgresql)).map(({ line }) => String(line)).toSorted(),
  };
};

export const restoreSchema = (name: string, dialect: Dialect, database: TestDatabase): Promise<void> =>
  database.run(readFileSync(fileOf(name, dialect), 'utf8'));

/** The rows that each recorded database has. */
export const vaultName = 'payments';
const addRows = async (store: Store): Promise<void> => {
  const tenant = newTenant('default', 1);
  const actor = { kind: 'administrator', id: 'a', name: 'a', requestId: 'r-1', peer: null } as const;
  await store.rowSet.load();
  await store.write(async (tx) => {
    await tx.tenants.insert(tenant);
    await tx.vaults.insert({
      ...{ id: newId(2), tenantId: tenant.id, name: vaultName, kind: 'general', state: 'enabled', createdAt: 2 },
      ...{ dualControl: null, profile: 'standard', integrity: 'ok' },
    });
    const subject = { kind: 'tenant', id: tenant.id } as const;
    await tx.audit.append({ kind: 'tenant.created', actor, tenantId: tenant.id, subject, details: {} });
  });
};

const literal = (value: unknown): string => {
  if (value === null) return 'null';
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex')}'`;
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
};
const dumpSqlite = (path: string): string => {
  const database = new DatabaseSync(path, { readOnly: true });
  const own = database
    .prepare("select type, name, sql from sqlite_master where sql is not null and name not like 'sqlite%'")
    .all();
  const rows = own.flatMap(({ type, name }) =>
    type === 'table'
      ? database
          .prepare(`select * from "${name}"`)
          .all()
          .map((row) => {
            const names = Object.keys(row).map((column) => `"${column}"`);
            return `insert into "${name}" (${names.join(', ')}) values (${Object.values(row).map(literal).join(', ')})`;
          })
      : [],
  );
  const id = Object.values(database.prepare('pragma application_id').get() ?? {})[0];
  database.close();
  const statements = [`pragma application_id = ${id}`, ...own.map(({ sql }) => String(sql)), ...rows];
  return `${statements.join(';\n')};\n`;
};
const dumpPostgresql = ({ host, user, database }: PostgresPlace): string =>
  execFileSync(
    join(postgresqlPrograms, 'pg_dump'),
    [...['-h', host, '-U', user, '-d', database], ...['--no-owner', '--no-privileges', '--inserts']],
    { encoding: 'utf8' },
  )
    .split('\n')
    .filter((line) => line !== '' && !/^(--|\\)/.test(line))
    .join('\n')
    .concat('\n');

const record = async (): Promise<void> => {
  const own = mkdtempSync(join(tmpdir(), 'dke-schema-'));
  let server: PostgresServer | undefined;
  try {
    const path = join(own, 'dke.db');
    server = await startPostgres();
    const place = server.createDatabase('recorded');
    for (const [dialect, database, dump] of [
      ['sqlite', sqliteDatabase(path), () => dumpSqlite(path)],
      ['postgresql', postgresqlDatabase(place), () => dumpPostgresql(place)],
    ] as const) {
      const store = await database.open();
      await addRows(store);
      await store.close();
      writeFileSync(fileOf(store.schema, dialect), dump());
    }
  } finally {
    await server?.remove();
    rmSync(own, { recursive: true, force: true });
  }
};
if (import.meta.main) await record();
