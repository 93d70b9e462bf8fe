// The rows of the nodes: one for each, which its node keeps up to date.

import type { NodeLink, NodeStart, SeenNode } from '../../../../ports/node-link.ts';
import { isInHistory, nodeLocks, nowSql, type Query, toRootRun } from './link-query.ts';
import { schemaSql } from './schema-fence.ts';

/** The clock of a node counts while its last heartbeat is not older. */
const recentMs = 10_000;

/** The column of each thing that a start says of itself: no member is without one. */
const columnsOfStart = {
  name: 'name',
  version: 'version',
  startedAt: 'started_at',
  contactMs: 'contact_ms',
  directory: 'directory',
} as const satisfies Record<keyof NodeStart, string>;

/**
 * What makes a row that of this start, all of it: a node joins with it, and a beat writes it again
 * where another start, or a failover, has changed the row. Without a time it starts now, by the
 * clock of the database. `first`: the number of the first parameter.
 */
const rowOfStart = (start: Omit<NodeStart, 'startedAt'> & Partial<Pick<NodeStart, 'startedAt'>>, first: number) => {
  const members = Object.keys(columnsOfStart) as (keyof NodeStart)[];
  const given = members.filter((member) => start[member] !== undefined);
  const expressionOf = (member: keyof NodeStart): string => {
    const at = given.indexOf(member);
    return at < 0 ? nowSql : `$${first + at}`;
  };
  return {
    columns: members.map((member) => columnsOfStart[member]),
    values: members.map(expressionOf),
    parameters: given.map((member) => start[member]),
  };
};

export const createNodeRows = (
  query: Query,
): Pick<NodeLink, 'join' | 'beat' | 'clocks' | 'tellRoot' | 'leave' | 'nodes' | 'connected'> => ({
  join: async (row) => {
    const own = rowOfStart(row, 6);
    const [entered] = await query(
      `insert into nodes (id, root_epoch, oldest_root_epoch, public_key, proof, state, heartbeat_at, epoch, ${own.columns.join(', ')})
       values ($1, $2, $3, $4, $5, 'active', ${nowSql}, 0, ${own.values.join(', ')})
       on conflict (id) do update set root_epoch = $2, oldest_root_epoch = $3, public_key = $4, proof = $5,
         state = case nodes.state when 'removed' then 'removed' else 'active' end, heartbeat_at = excluded.heartbeat_at, epoch = 0,
         ${own.columns.map((column) => `${column} = excluded.${column}`).join(', ')}
       returning state, started_at`,
      [row.id, row.rootEpoch, row.oldestRootEpoch, row.publicKey, row.proof, ...own.parameters],
    );
    return entered?.state === 'active' ? Number(entered.started_at) : undefined;
  },
  beat: async ({ id, shown, run }, now) => {
    const own = run === undefined ? undefined : rowOfStart(run, 5);
    const ofStart =
      own === undefined
        ? ''
        : `, state = case state when 'stopped' then 'active' else state end, ${own.columns.map((column, at) => `${column} = ${own.values[at]}`).join(', ')}`;
    // A heartbeat need not outlive the database, and must not wait for its disk: one that hangs
    // would make every node look dead.
    const [row = {}] = await query(
      `with before as (select started_at from nodes where id = $1), own as (
         update nodes set heartbeat_at = ${nowSql}, epoch = case when ${isInHistory('$2', '$3')} then $2 else 0 end,
           clock_ahead_ms = $4 - ${nowSql}${ofStart}
          where id = $1 returning state)
       select (select state from own) as state, (select started_at from before) as started_at, ${schemaSql} as schema, h.epoch as epoch, h.history, t.epoch as run, t.node_id, t.phase,
              pg_catalog.set_config('synchronous_commit', 'off', true)
         from node_head h left join root_runs t on t.id = 1`,
      [id, shown?.epoch ?? 0, shown?.history ?? '', now, ...(own?.parameters ?? [])],
    );
    return {
      state: (row.state ?? undefined) as SeenNode['state'] | undefined,
      startedAt: Number(row.started_at),
      schema: String(row.schema),
      last: { epoch: Number(row.epoch), history: String(row.history) },
      rootRun: toRootRun(row),
    };
  },
  clocks: async () => {
    const rows = await query(
      `select ${nowSql} as now, n.clock_ahead_ms as ahead
         from (select 0) as one left join nodes n on n.state in ('active', 'draining') and ${nowSql} - n.heartbeat_at < $1`,
      [recentMs],
    );
    return rows.flatMap(({ now, ahead }) => [Number(now), Number(now) + Number(ahead ?? 0)]);
  },
  tellRoot: async ({ id, rootEpoch, oldestRootEpoch, publicKey, proof }) => {
    await query('update nodes set root_epoch = $2, oldest_root_epoch = $3, public_key = $4, proof = $5 where id = $1', [
      id,
      rootEpoch,
      oldestRootEpoch,
      publicKey,
      proof,
    ]);
  },
  leave: async (id) => {
    // The epoch is the highest one: a stopped node is not behind.
    await query(
      `update nodes set state = case state when 'removed' then 'removed' else 'stopped' end, epoch = ${Number.MAX_SAFE_INTEGER}
        where id = $1`,
      [id],
    );
  },
  nodes: async () =>
    (await query(`select nodes.*, ${nowSql} - heartbeat_at as silent_ms from nodes order by name, id`)).map((row) => ({
      id: String(row.id),
      name: String(row.name),
      version: String(row.version),
      state: row.state as SeenNode['state'],
      startedAt: Number(row.started_at),
      heartbeatAt: Number(row.heartbeat_at),
      contactMs: Number(row.contact_ms),
      epoch: Number(row.epoch),
      clockAheadMs: Number(row.clock_ahead_ms),
      rootEpoch: Number(row.root_epoch),
      oldestRootEpoch: Number(row.oldest_root_epoch),
      publicKey: row.public_key as Buffer,
      proof: row.proof as Buffer,
      silentMs: Math.max(0, Number(row.silent_ms)),
    })),
  connected: async () =>
    new Set(
      (
        await query(
          `select nodes.id from nodes
             join pg_locks own on own.locktype = 'advisory' and own.granted and own.classid = ${nodeLocks}
              and own.objid::bigint = (hashtext(nodes.id)::bigint & 4294967295)
             join pg_database on pg_database.oid = own.database and pg_database.datname = current_database()`,
        )
      ).map(({ id }) => String(id)),
    ),
});
