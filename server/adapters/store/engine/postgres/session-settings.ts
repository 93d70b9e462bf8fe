// What a connection to PostgreSQL depends on, for each connection that is opened: it is set, read
// back, and compared. Settings of a role, a database or the server may change while the service
// runs, and what a session has set itself no longer follows them.
//
// Who can choose the values: the database's administrators, by any of those settings, and a pooler,
// which gives one session's settings to another. Proof: what is read back after it was set, by the
// server process that has announced itself when the connection was opened. Whose: of this
// connection only. Lost or older: a connection that is opened again is compared again. Settings
// that no session can set (`fsync`, `full_page_writes`) are read again each time that the health is
// checked.

import { StoreError } from '../store-error.ts';
import type { Row } from './link-query.ts';

/**
 * Confirmed changes stay; a weaker setting than `on` that waits for the server's own disk, and a
 * stronger one, are the administrators' choice.
 */
const durable = `case pg_catalog.current_setting('synchronous_commit') when 'off' then 'on' else pg_catalog.current_setting('synchronous_commit') end`;

/**
 * The first words of a session. A function without a schema is one of the search_path, which the
 * database's owner sets: until this is done, only functions of pg_catalog are called, by their full
 * names. Answers which schema that path meant.
 */
export const enterSql = `select pg_catalog.current_schema() as first, pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)`;

/**
 * The schema of the tables; `$1`: the one that the session's own path meant. Null: there is none.
 * More than one schema with tables of a service: the path tells which.
 */
export const findSchemaSql = `
  with found as (
    select n.nspname::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relname = 'kysely_migration' and c.relkind = 'r' and has_schema_privilege(n.oid, 'usage'))
  select coalesce((select name from found where name = $1::text), (select min(name) from found having count(*) = 1), $1::text) as schema`;

/** `$1`: the path. */
export const setSessionSql = `
  select pg_catalog.set_config('search_path', $1, false),
         pg_catalog.set_config('synchronous_commit', ${durable}, false),
         pg_catalog.set_config('lock_timeout', '0', false),
         pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
         pg_catalog.set_config('default_transaction_read_only', 'off', false),
         pg_catalog.set_config('default_transaction_deferrable', 'off', false)`;

/** The path with the schema of the tables only; a temporary table is never one of the service's. */
export const pathOf = (schema: string | null): string =>
  `${schema === null ? '""' : `"${schema.replaceAll('"', '""')}"`}, pg_temp`;

/** Columns of the statement that follows. */
export const sessionColumns = `
  pg_catalog.pg_backend_pid() as backend, pg_catalog.current_schema()::text as schema,
  pg_catalog.concat_ws(' ', 'lock_timeout=' || pg_catalog.current_setting('lock_timeout'),
    'default_transaction_isolation=' || pg_catalog.current_setting('default_transaction_isolation'),
    'default_transaction_read_only=' || pg_catalog.current_setting('default_transaction_read_only'),
    'default_transaction_deferrable=' || pg_catalog.current_setting('default_transaction_deferrable')) as settings,
  pg_catalog.current_setting('synchronous_commit') as commits`;

const expectedSettings =
  'lock_timeout=0 default_transaction_isolation=read committed default_transaction_read_only=off default_transaction_deferrable=off';

const poolerFault = (): StoreError =>
  new StoreError(
    'open',
    'a pooler (PgBouncer, for example) is between this node and PostgreSQL, and gives its connections to others: connect to PostgreSQL itself (host and ' +
      'port of [store]); nothing was changed',
  );

/**
 * `announced`: the server process that answered when the connection was opened. Throws StoreError.
 */
export const requireOwnBackend = (announced: number | null, found: unknown): void => {
  if (announced !== null && Number(found) !== announced) throw poolerFault();
};

/** Throws StoreError unless the session is as it was set. */
export const requireSession = (row: Row, expectedSchema: string | undefined): void => {
  if (row.schema === null || (expectedSchema !== undefined && row.schema !== expectedSchema))
    throw new StoreError(
      'open',
      `the schema ${expectedSchema ?? 'of the tables'} is not in the search_path of the session: give it back, and USAGE on it; nothing was changed`,
    );
  if (row.settings !== expectedSettings || row.commits === 'off')
    throw new StoreError(
      'open',
      `the database does not keep what this session sets (${String(row.settings)} synchronous_commit=${String(row.commits)}): a pooler or an extension ` +
        'changes it; nothing was changed',
    );
};

/** Server-wide settings without which a crash loses or damages what was confirmed. */
export const risksSql = `
  select name || ' is ' || setting as risk from pg_settings
   where name in ('fsync', 'full_page_writes') and setting <> 'on' order by name`;
