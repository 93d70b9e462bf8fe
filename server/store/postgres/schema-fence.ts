// All nodes of one database have its schema: a node of another version would take rows that it does
// not know for rows that were changed from outside, or write rows that others take for such. The
// schema is in the database itself (kysely_migration), and each transaction that writes reads it
// under the writer's lock, so that a node of the version before writes nothing once a migration is
// committed; each heartbeat reads it too. A migration, which no other way undoes, waits for no one:
// it is refused while another node runs (migrate.ts).

import { StoreError } from '../errors.ts';
import { newestSchema } from '../migrate.ts';
import { nodeLocks, type Query } from './link-query.ts';

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

/** The names of nodes that are connected, in a database of any version. */
export const runningNodes = async (query: Query): Promise<readonly string[]> =>
  (
    await query(
      `select nodes.name from nodes
         join pg_locks own on own.locktype = 'advisory' and own.granted and own.classid = ${nodeLocks} and own.objsubid = 2
          and own.objid::bigint = (hashtext(nodes.id)::bigint & 4294967295)
         join pg_database on pg_database.oid = own.database and pg_database.datname = current_database()
        order by nodes.name`,
    )
  ).map(({ name }) => String(name));
