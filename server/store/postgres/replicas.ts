// Copies of the database, as far as the database knows of them: standbys that are connected, replication slots (whose standbys may be away), and the
// archive of its write-ahead log. Copies that are made without its knowledge (of the storage, by files) do not occur here: store.replica_lag_seconds is
// for those.

import type { LogPosition, NodeLink } from '../../ports/node-link.ts';
import { ConnectionLost } from './errors.ts';
import type { Primary } from './lineage.ts';
import type { Query } from './link-query.ts';

const standbyName = `'standby ' || coalesce(nullif(application_name, ''), pid::text) || coalesce(' (' || host(client_addr) || ')', '')`;

/**
 * A walsender of another database's logical replication is none of ours. A base backup is not a standby before it has started to stream; what a standby
 * that is being made will need, its slot keeps.
 */
const standbys = `pg_stat_replication r
  where state is distinct from 'backup'
    and not exists (select from pg_stat_activity a where a.pid = r.pid and a.datname <> current_database())`;

/**
 * Of a role that may not read how far standbys are (pg_read_all_stats), PostgreSQL says only that they are there; a slot tells all. A standby with a slot is
 * named by that alone: to drop the slot gives the standby up.
 */
const copiesSql = `
  select ${standbyName} || case when flush_lsn is null and not pg_has_role('pg_read_all_stats', 'usage')
           then ', which only a member of pg_monitor can see: GRANT pg_monitor TO ' || quote_ident(current_user) else '' end as name,
         coalesce(flush_lsn < $1::pg_lsn, true) as is_behind, false as is_slow
    from ${standbys} and not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.restart_lsn is not null)
  union all
  select 'slot ' || slot_name, wal_status = 'lost' or coalesce(confirmed_flush_lsn, restart_lsn) < $1::pg_lsn, false
    from pg_replication_slots
   where (slot_type = 'physical' or database = current_database()) and (wal_status = 'lost' or restart_lsn is not null)
  union all
  select 'WAL archive',
         not coalesce(last_archived_wal ~ '^[0-9A-F]{24}' and left(last_archived_wal, 24) collate "C" >= pg_walfile_name($1::pg_lsn), false),
         last_failed_time is null or last_failed_time < last_archived_time
    from pg_stat_archiver where current_setting('archive_mode') <> 'off'
  order by name`;

/** `primary`: who answers on the connection that `query` uses. */
export const createReplicas = (
  query: Query,
  primary: () => Primary | undefined,
): Pick<NodeLink, 'logPosition' | 'copies' | 'asynchronousStandbys'> => ({
  logPosition: async () => {
    const [row] = await query('select pg_current_wal_flush_lsn()::text as position');
    const here = primary();
    if (here === undefined) throw new ConnectionLost('the connection to the database was lost');
    // A file of the log is archived, and stored by those who receive files of it, when it is full, or ended. A role that may end it need not wait for
    // that.
    await query(`select pg_switch_wal() where has_function_privilege('pg_switch_wal()', 'execute')`).catch(
      () => undefined,
    );
    return { ...here, position: String(row?.position) };
  },
  copies: async (known: LogPosition) => {
    const rows = await query(copiesSql, [known.position]);
    const here = primary();
    if (here?.system !== known.system || here.timeline !== known.timeline) return 'other';
    return rows.map((row) => ({
      name: String(row.name),
      isBehind: row.is_behind === true,
      isSlow: row.is_slow === true,
    }));
  },
  asynchronousStandbys: async () =>
    (
      await query(
        `select ${standbyName} as name from ${standbys} and coalesce(sync_state, '') not in ('sync', 'quorum') order by name`,
      )
    ).map(({ name }) => String(name)),
});
