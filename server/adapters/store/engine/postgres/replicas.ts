// Copies of the database, as far as the database knows of them: standbys that are connected,
// replication slots (whose standbys may be away), and the archive of its write-ahead log. Copies
// that are made without its knowledge (of the storage, by files) do not occur here:
// store.replica_lag_seconds is for those.

import { sqlName } from '../../../../base/command-line.ts';
import type { LogPosition, NodeLink } from '../../../../ports/node-link.ts';
import { ConnectionLost } from './error-kinds.ts';
import type { Primary } from './lineage.ts';
import type { Query } from './link-query.ts';
import { risksSql } from './session-settings.ts';

const standbyName = `'standby ' || coalesce(nullif(application_name, ''), pid::text) || coalesce(' (' || host(client_addr) || ')', '')`;

/**
 * A walsender of another database's logical replication is none of ours. A base backup is not a
 * standby before it has started to stream; what a standby that is being made will need, its slot
 * keeps.
 */
const standbys = `pg_stat_replication r
  where state is distinct from 'backup'
    and not exists (select from pg_stat_activity a where a.pid = r.pid and a.datname <> current_database())`;

/**
 * A temporary slot ends with its connection, so that its standby is named as one that has no slot:
 * to lose the connection gives nothing up.
 */
const slots = 'pg_replication_slots s where not s.temporary';

/**
 * The file of the log that holds a position is still written: what receives whole files stores it
 * when it is full, or ended.
 */
const isInCurrentFile = 'pg_walfile_name($1::pg_lsn) = pg_walfile_name(pg_current_wal_lsn())';
const maySwitch = `has_function_privilege('pg_switch_wal()', 'execute')`;
const endsFiles = `case when ${isInCurrentFile} and not ${maySwitch} then 'file' end`;

/**
 * What helps, with the right that is missing. The database says which; the text is ours: who writes
 * the database must not choose what its administrator is asked to run.
 */
const hints = (user: string): ReadonlyMap<unknown, string> =>
  new Map([
    [
      'file',
      `. What receives whole files of the log waits for the end of this one: GRANT EXECUTE ON FUNCTION pg_switch_wal() TO ${sqlName(user)}`,
    ],
    ['standby', `, which only a member of pg_monitor can see: GRANT pg_monitor TO ${sqlName(user)}`],
  ]);
/**
 * A standby chooses its own name, which is shown on the line of the hint: psql would carry out a
 * `\!` of it. Beside such a name, the page has the statement.
 */
const isPlainName = (name: string): boolean => /^[\w .:()/@+-]*$/.test(name);
const onPage = ': grant it what docs/postgresql.md lists as optional rights';

/**
 * A receiver of files without a slot (pg_receivewal) tells only what it has written; it stores a
 * file before it begins the next one.
 */
const segment = `(select setting::numeric from pg_settings where name = 'wal_segment_size')`;
const hasNotWrittenFile = `write_lsn - '0/0'::pg_lsn < ceil(($1::pg_lsn - '0/0'::pg_lsn) / ${segment}) * ${segment}`;

/**
 * Copies of the log, and which of them are behind a position. To a role that may not read how far
 * standbys are (pg_read_all_stats), PostgreSQL says only that they are there; a slot tells all. A
 * standby with a slot is named by that alone: to drop the slot gives the standby up. `hint` is not
 * part of the name, which stays the same when rights are granted.
 */
const copiesSql = `
  select ${standbyName} as name, coalesce(flush_lsn < $1::pg_lsn, ${hasNotWrittenFile}, true) as is_behind, false as is_slow,
         case when flush_lsn is null and not pg_has_role('pg_read_all_stats', 'usage')
           then 'standby' else ${endsFiles} end as hint
    from ${standbys} and not exists (select from ${slots} and s.active_pid = r.pid and s.restart_lsn is not null)
  union all
  select 'slot ' || slot_name, wal_status = 'lost' or coalesce(confirmed_flush_lsn, restart_lsn) < $1::pg_lsn, false, ${endsFiles}
    from ${slots} and (slot_type = 'physical' or database = current_database()) and (wal_status = 'lost' or restart_lsn is not null)
  union all
  select 'WAL archive',
         not coalesce(last_archived_wal ~ '^[0-9A-F]{24}' and left(last_archived_wal, 24) collate "C" >= pg_walfile_name($1::pg_lsn), false),
         last_failed_time is null or last_failed_time < last_archived_time, ${endsFiles}
    from pg_stat_archiver where current_setting('archive_mode') <> 'off'
  order by name`;

/** `primary`: who answers on the connection that `query` uses; `user`: as whom. */
export const createReplicas = (
  query: Query,
  user: string,
  primary: () => Primary | undefined,
): Pick<NodeLink, 'logPosition' | 'copies' | 'risks' | 'asynchronousStandbys'> => ({
  risks: async () => (await query(risksSql)).map(({ risk }) => String(risk)),
  logPosition: async () => {
    const [row] = await query('select pg_current_wal_flush_lsn()::text as position');
    const here = primary();
    if (here === undefined) throw new ConnectionLost('the connection to the database was lost');
    return { ...here, position: String(row?.position) };
  },
  copies: async (known: LogPosition) => {
    const rows = await query(copiesSql, [known.position]);
    const here = primary();
    if (here?.system !== known.system || here.timeline !== known.timeline) return 'other';
    // Once for a position: then another file is the current one. Asked here, so that the node that
    // continues a run does it, too.
    if (rows.some((row) => row.is_behind === true))
      await query(`select pg_switch_wal() where ${isInCurrentFile} and ${maySwitch}`, [known.position]).catch(
        () => undefined,
      );
    const isPlain = rows.every(({ name }) => isPlainName(String(name)));
    const hintOf = (kind: unknown): string => {
      const hint = hints(user).get(kind) ?? '';
      return isPlain || hint === '' ? hint : `${hint.slice(0, hint.indexOf(':'))}${onPage}`;
    };
    return rows.map((row) => ({
      name: String(row.name),
      isBehind: row.is_behind === true,
      isSlow: row.is_slow === true,
      hint: row.is_behind === true ? hintOf(row.hint) : '',
    }));
  },
  asynchronousStandbys: async () =>
    (
      await query(
        `select ${standbyName} as name from ${standbys} and coalesce(sync_state, '') not in ('sync', 'quorum') order by name`,
      )
    ).map(({ name }) => String(name)),
});
