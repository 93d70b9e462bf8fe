// A statement of a node that the database keeps waiting: with a lock of the table, as its owner
// could not do it with a trigger, which the service finds.
import pg from 'pg';
import { until } from './host.ts';
import type { PostgresPlace } from './postgresql.ts';

const beginning = { insert: 'insert into', update: 'update', delete: 'delete from' } as const;

export const holdStatement = async (
  { host, port, user, database }: PostgresPlace,
  when: keyof typeof beginning,
  table: string,
) => {
  const hand = new pg.Client({ host, port, user, database });
  hand.on('error', () => undefined);
  await hand.connect();
  const lock = `begin; lock table ${table} in share mode`;
  await hand.query(lock);
  let open = true;
  return {
    /** Resolves when a statement of this kind waits for the table; other writes pass in turn. */
    reached: () =>
      until(`${when} of ${table}`, async () => {
        // Otherwise the transaction would see the statements of its first look.
        await hand.query('select pg_stat_clear_snapshot()');
        const { rows } = await hand.query<{ readonly query: string }>(
          `select a.query from pg_locks l join pg_stat_activity a on a.pid = l.pid
           where l.relation = '${table}'::regclass and l.mode = 'RowExclusiveLock' and not l.granted`,
        );
        if (rows.some(({ query }) => query.replaceAll('"', '').includes(`${beginning[when]} ${table}`))) return true;
        // The lock is next behind what waits.
        if (rows.length > 0) await hand.query(`rollback; ${lock}`);
        return undefined;
      }),
    /** The database is another one. */
    abandon: () => {
      open = false;
      hand.end().catch(() => undefined);
    },
    goOn: async () => {
      if (!open) return;
      open = false;
      await hand.end();
    },
  };
};
