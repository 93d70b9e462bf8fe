// All nodes of one database have its schema: a node of another version would take rows that it does
// not know for rows that were changed from outside, or write rows that others take for such. The
// schema is in the database itself (kysely_migration), and each transaction that writes reads it
// under the writer's lock, so that a node of the version before writes nothing once a migration is
// committed; each heartbeat reads it too. A migration, which no other way undoes, waits for no one:
// it is refused while another node runs or starts (migrate.ts). Its transaction looks again under
// the writer's lock, which the first write of a node of any version needs.

import { newestSchema } from '../../migrations/migrate.ts';
import { StoreError } from '../store-error.ts';
import { nodeLocks } from './link-query.ts';

/** An expression: the newest migration of the database. Names begin with their numbers. */
export const schemaSql = '(select max(name collate "C") from kysely_migration)';

/** Throws StoreError when the tables are of another version of the service. */
export const requireSchema = (found: unknown): void => {
  if (found === newestSchema) return;
  throw new StoreError(
    'newer',
    `the database has the schema ${String(found)}, and this version of the service needs ${newestSchema}: another version was started on it; ` +
      'all nodes of one database run the same version (docs/upgrade.md)',
  );
};

/**
 * Nodes that are connected, in a database of any version: one that starts has its lock before it
 * has a row.
 */
export const runningNodesSql = `
  select coalesce(nodes.name, 'a node that starts') as name from pg_locks own
    join pg_database on pg_database.oid = own.database and pg_database.datname = current_database()
    left join nodes on own.objid::bigint = (hashtext(nodes.id)::bigint & 4294967295)
   where own.locktype = 'advisory' and own.granted and own.classid = ${nodeLocks} and own.objsubid = 2
   order by 1`;
