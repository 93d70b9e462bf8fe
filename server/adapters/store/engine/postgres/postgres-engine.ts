// PostgreSQL as the store's engine. One connection of each process writes; an advisory lock keeps
// the writers of all processes apart, as the embedded database does, so that what a unit of work
// has read stays true until it is committed. What it has changed is told to the other processes in
// the same transaction (node-link.ts). A connection that is lost before its commit has changed
// nothing and is opened again. One that is lost during it leaves open what happened: the caller is
// told so, and when the change was made, it is among those that this process reads like any
// other's.
//
// Every statement has a time limit on both sides: on the server, which may have much to do, and
// here, where a host that vanished sends nothing. Secrets are sealed before they come here; that
// pages, logs and replicas keep them is what the erasure run is for.

import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { PostgresDialect, type PostgresPool, sql } from 'kysely';
import pg from 'pg';
import { sqlName } from '../../../../base/command-line.ts';
import type { RowAuthenticator } from '../../../../base/row-jobs.ts';
import type { ChangeMark } from '../../../../domain/change-protocol.ts';
import type { Changes } from '../../../../domain/changes.ts';
import { codeOfChange } from '../../rows/change-codes.ts';
import type { ColumnKinds } from '../../schema/create-tables.ts';
import type { Engine, HeadOfChanges } from '../engine.ts';
import { StoreError } from '../store-error.ts';
import {
  asConnectionError,
  awayCause,
  CommitUnknown,
  isPassing,
  isUndone,
  kindOf,
  leavesCommitOpen,
  TransactionLost,
} from './error-kinds.ts';
import { createLineage, type Lineage } from './lineage.ts';
import { nowSql } from './link-query.ts';
import { openNodeLink, type PostgresLink } from './node-link.ts';
import { type OneConnection, openOneConnection } from './one-connection.ts';
import { OrderlyClient, type OrderlyConfig } from './orderly-client.ts';
import { requireSchema, runningNodesSql, schemaSql } from './schema-fence.ts';
import { postgresSchema } from './schema-list.ts';
import { risksSql } from './session-settings.ts';

export interface PostgresOptions {
  /** A name or an address, or the folder of a socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** Reads the password at every connection; undefined: none is needed. */
  readonly password: (() => Promise<string>) | undefined;
  /**
   * Reads the PEM at every connection; undefined: no TLS, for a socket or a host that is trusted
   * with everything.
   */
  readonly ca: (() => string) | undefined;
  /** Connections that read. */
  readonly readers: number;
  /** How long this side waits for an answer; the usual time when absent. */
  readonly answerMs?: number | undefined;
}

const columns: ColumnKinds = {
  bytes: 'bytea',
  long: 'bigint',
  text: sql`text collate "C"`,
  compareBytewise: async (db, tables) => {
    const found = await sql<{ place: string; name: string }>`
      select c.relname::text as place, a.attname::text as name from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname = any(${tables})
        and a.attnum > 0 and not a.attisdropped and a.atttypid = 'text'::regtype
        and a.attcollation = 'pg_catalog."default"'::regcollation`.execute(db);
    for (const [place, rows] of Map.groupBy(found.rows, (row) => row.place)) {
      const changes = rows.map(({ name }) => sql`alter column ${sql.ref(name)} type text collate "C"`);
      // One statement: the indexes of a table are built once.
      await sql`alter table ${sql.table(place)} ${sql.join(changes)}`.execute(db);
    }
  },
  sequence: { type: 'bigserial', define: (column) => column.primaryKey() },
  count: async (db, name, table, expression) => {
    await sql`create statistics ${sql.ref(name)} on (${expression}) from ${sql.table(table)}`.execute(db);
  },
};

/** 'DKE' and what it is for: one of a kind among the advisory locks of the database. */
const writerLock = 0x444b_4501;
const connectTimeoutMs = 5_000;
/** The server ends a statement that takes longer, except a commit. */
const statementTimeoutMs = 30_000;
/** This side does not wait longer for any answer, a commit's included. */
const answerTimeoutMs = 32_000;
/**
 * A transaction in which nothing is asked for so long is undone. Reading, and copying a whole
 * database, may pause.
 */
const idleInTransactionMs = 15_000;
/**
 * The writer's may not: a node that stands still, or is gone without a word, keeps the others from
 * writing no longer than this.
 */
const idleWriterMs = 3_000;
/** For the server's side of a connection. */
const sessionOptions =
  '-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=10000';

/**
 * Counts and instants are 64-bit there and safe integers here; NUMERIC does not occur. A number
 * that JavaScript cannot hold was not written by us, and does not take the other rows with it: it
 * is read as the largest that we know.
 */
const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.INT8)
      return (text: string): number =>
        Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number(text), Number.MAX_SAFE_INTEGER));
    return pg.types.getTypeParser(oid, format as 'text');
  }) as typeof pg.types.getTypeParser,
};

interface Connections {
  readonly writer: OneConnection;
  readonly reader: PostgresPool;
  readonly link: PostgresLink;
  readonly lineage: Lineage;
}

/**
 * pg copies the options for each connection, and so reads the authorities again: they can be
 * changed while the service runs.
 */
export const tlsOf = (ca: () => string): { readonly ca: string; readonly minVersion: 'TLSv1.2' } => ({
  get ca() {
    return ca();
  },
  minVersion: 'TLSv1.2',
});

const openConnections = (options: PostgresOptions, authenticate: RowAuthenticator): Connections => {
  const { host, port, user, database, password, ca, readers, answerMs = answerTimeoutMs } = options;
  const lineage = createLineage();
  // Tells the connections of one process from those of another one under the same id.
  const instance = randomBytes(4).toString('hex');
  const shared: OrderlyConfig & { readonly user: string } = {
    lineage,
    host,
    port,
    user,
    database,
    ...(password === undefined ? {} : { password }),
    ...(ca === undefined ? {} : { ssl: tlsOf(ca) }),
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: answerMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    options: sessionOptions,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    types,
  };
  const named = (purpose: string) => ({ ...shared, application_name: `dke ${purpose} ${instance}` });
  const writer = openOneConnection(named('writer'));
  const pool = new pg.Pool({
    ...named('reader'),
    max: readers,
    Client: OrderlyClient,
    onConnect: (client) => (client as OrderlyClient).identify(),
  });
  // A connection that breaks while it is not used: the next one that is needed is opened again.
  pool.on('error', () => undefined);
  const reader: PostgresPool = {
    options: pool.options,
    connect: async () => {
      for (;;) {
        const client = await pool.connect().catch((error: unknown) => {
          throw asConnectionError(error);
        });
        if ((client as unknown as OrderlyClient).isCurrent) return client;
        client.release(true);
      }
    },
    end: () => pool.end(),
  };
  return { writer, reader, link: openNodeLink(named('link'), authenticate), lineage };
};

const writtenTables = ['kysely_migration', 'settings', 'tenant_keks', 'node_head'];
/**
 * What this user may not do that the service has to: the first table that it may not write, or
 * empty: it may make none.
 */
const refusedSql = `
  select current_schema()::text as schema, case
    when not exists (select from pg_class where relnamespace = current_schema()::regnamespace and relname = 'kysely_migration')
    then case when has_schema_privilege(current_schema(), 'create') then null else '' end
    else (select min(c.relname::text) from pg_class c
           where c.relnamespace = current_schema()::regnamespace
             and c.relname in (${writtenTables.map((name) => `'${name}'`).join(', ')})
             and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                  and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete')))
  end as refused`;

/**
 * Why the database cannot be used, if so: it is too old, may lose what it confirms, or belongs to
 * another program.
 */
const objectionTo = async (
  query: PostgresLink['query'],
  place: string,
  user: string,
): Promise<StoreError | undefined> => {
  const ask = async (text: string): Promise<Readonly<Record<string, unknown>>> => (await query(text))[0] ?? {};
  const { encoding, version } = await ask(
    `select current_setting('server_encoding') as encoding, current_setting('server_version_num')::int as version`,
  );
  if (Number(version) < 140_000)
    return new StoreError('open', `the database ${place} is of PostgreSQL before 14: use a newer one`);
  const risks = (await query(risksSql)).map(({ risk }) => String(risk));
  if (risks.length > 0)
    return new StoreError(
      'open',
      `the database ${place} may lose what it confirms (${risks.join(', ')}): set fsync and full_page_writes to on`,
    );
  if (encoding !== 'UTF8')
    return new StoreError('open', `the database ${place} is in ${String(encoding)}: make one in UTF8`);
  const { refused, schema } = await ask(refusedSql);
  if (typeof refused === 'string') {
    // The user as dke.toml names it: the database says only what is missing, and where.
    const [role, inSchema] = [sqlName(user), sqlName(String(schema))];
    const table = writtenTables.find((name) => name === refused);
    const what = table === undefined ? 'create tables' : `write the table ${table}`;
    return new StoreError('open', `the user ${user} may not ${what} in the database ${place}`, {
      fix:
        table === undefined
          ? `as the owner of the schema: GRANT CREATE ON SCHEMA ${inSchema} TO ${role}; nothing was changed`
          : `as the owner of the tables: GRANT ALL ON ALL TABLES IN SCHEMA ${inSchema} TO ${role}; ` +
            `GRANT ALL ON ALL SEQUENCES IN SCHEMA ${inSchema} TO ${role}; nothing was changed`,
    });
  }
  const { foreign } = await ask(
    `select count(*)::int as foreign from information_schema.tables
      where table_schema = current_schema() and not exists
        (select from information_schema.tables where table_schema = current_schema() and table_name = 'kysely_migration')`,
  );
  if (Number(foreign) > 0)
    return new StoreError(
      'corrupt',
      `the database ${place} belongs to another program: make one for the service; nothing was changed`,
    );
  return undefined;
};

const whenAway = (error: unknown, user: string, place: string): ReturnType<Engine['whenAway']> => {
  if (error instanceof StoreError) return { what: 'the database cannot be used', hint: error.message };
  const { what, words, fix } = awayCause(error);
  return { what: `the database ${what}`, hint: `${place}, user ${user}: ${words}: ${fix}` };
};

const begin = async (writer: OneConnection, durable: boolean): Promise<HeadOfChanges> => {
  const statements = [
    'begin',
    `set local idle_in_transaction_session_timeout = ${idleWriterMs}`,
    ...(durable ? [] : ['set local synchronous_commit = off']),
    `select pg_advisory_xact_lock(${writerLock})`,
    `select epoch, history, keks, pg_backend_pid() as backend, ${schemaSql} as schema from node_head`,
  ].join(';');
  const row = await repeated(beginRepeats, () => writer.begin(statements));
  requireSchema(row?.schema);
  return { epoch: Number(row?.epoch), history: String(row?.history), keks: Number(row?.keks) };
};

const commit = async (writer: OneConnection): Promise<void> => {
  let committed: boolean;
  try {
    committed = await writer.commit();
  } catch (error) {
    if (!leavesCommitOpen(error)) throw error;
    throw new CommitUnknown('the connection was lost during a commit', { cause: error });
  }
  if (!committed) throw new TransactionLost('the database has undone the transaction');
};

/** Nothing was done yet when one of these fails, so that it is done again. */
const repeated = async <T>({ times, pauseMs }: typeof beginRepeats, work: () => Promise<T>): Promise<T> => {
  for (let left = times; ; left -= 1)
    try {
      return await work();
    } catch (error) {
      if (left === 0 || !isPassing(error)) throw error;
      await setTimeout(pauseMs);
    }
};
const beginRepeats = { times: 3, pauseMs: 50 };
/** A database server that starts, or is full for a moment. */
const startRepeats = { times: 60, pauseMs: 500 };

/**
 * Tells the other nodes, in the transaction of the changes. `previous`: the newest change when it
 * began. No other process writes in between, so the head is still that one.
 */
const announce = async (
  writer: OneConnection,
  authenticate: RowAuthenticator,
  changes: Changes,
  { previous, history }: { readonly previous: ChangeMark; readonly history: string },
): Promise<HeadOfChanges> => {
  const epoch = previous.epoch + 1;
  const text = JSON.stringify(changes);
  const [row] = await writer.query(
    `with head as (
       update node_head set epoch = $3::bigint, keks = keks + $1, history = $4::text
        where epoch = $3::bigint - 1 and history = $5::text returning keks),
     told as (
       insert into node_changes (epoch, previous, history, previous_history, at, changes, code)
       select $3::bigint, $3::bigint - 1, $4::text, $5::text, ${nowSql}, $2, $6 from head)
     select keks, pg_notify('dke', 'changed ' || $3::bigint || ' ' || $4::text) from head`,
    [
      ...[changes.keks === true ? 1 : 0, text, epoch, history, previous.history],
      codeOfChange(authenticate, { epoch, history }, previous, text),
    ],
  );
  if (row === undefined) throw new TransactionLost('another program has changed which change is the newest');
  return { epoch, history, keks: Number(row.keks) };
};

const noKey: RowAuthenticator = () => {
  throw new Error('this process has no key of the codes of rows');
};

/**
 * Opens the connections and checks whether the database keeps what it confirms. Throws
 * `StoreError`.
 */
export const openPostgres = async (
  options: PostgresOptions,
  how: 'start' | 'look' = 'start',
  authenticate: RowAuthenticator = noKey,
): Promise<Engine> => {
  const { host, port, user, database } = options;
  const place = `${database} on ${host.startsWith('/') ? host : `${host}:${port}`}`;
  const { writer, reader, link, lineage } = openConnections(options, authenticate);
  const fail = async (error: StoreError): Promise<never> => {
    await Promise.allSettled([link.close(), writer.end(), reader.end()]);
    throw error;
  };

  try {
    // A doctor waits for no start of another node, and keeps none from starting.
    if (how === 'start') await repeated(startRepeats, link.starting);
    else await link.query('select 1');
  } catch (error) {
    if (error instanceof StoreError) return fail(error);
    const { what, words, fix } = awayCause(error);
    return fail(new StoreError('open', `the database ${place} ${what} (${words})`, { fix, cause: error }));
  }
  const objection = await objectionTo(link.query, place, user);
  if (objection !== undefined) return fail(objection);
  return {
    name: 'postgres',
    path: null,
    place: `the database ${place}`,
    whenFull: "free space on the database's host",
    whenAway: (error) => whenAway(error, user, place),
    whenStalled: "check the database's host and disk; another node may be writing a lot",
    writer: new PostgresDialect({ pool: writer }),
    reader: new PostgresDialect({ pool: reader }),
    lasting: () => null,
    requests: undefined,
    columns,
    schema: postgresSchema,
    kindOf,
    isUndone,
    begin: (_run, durable) => begin(writer, durable),
    // The strongest: what the session had before is not known.
    outlast: (run) => run('set local synchronous_commit = remote_apply'),
    commit: () => commit(writer),
    rollback: () => writer.rollback(),
    mark: undefined,
    file: undefined,
    committed: () => undefined,
    started: () => undefined,
    shared: {
      link,
      lineage: lineage.name,
      announce: (changes, as) => announce(writer, authenticate, changes, as),
      running: async () => (await link.query(runningNodesSql)).map(({ name }) => String(name)),
      fence: async (db) => {
        await sql`select pg_advisory_xact_lock(${sql.lit(writerLock)})`.execute(db);
        const { rows } = await sql.raw<{ readonly name: string }>(runningNodesSql).execute(db);
        return rows.map(({ name }) => name);
      },
      started: () => link.started(),
    },
    checkpoint: () => Promise.resolve(),
    close: () => link.close(),
  };
};
