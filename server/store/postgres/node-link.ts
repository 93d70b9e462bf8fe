// What nodes say to one another (ports/node-link.ts), on PostgreSQL: one connection of its own, in no transaction, that listens,
// beats and has an advisory lock, which goes with the connection: the proof that no other process bears the node's id.

import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { type ChangeMark, continuationOf } from '../../domain/change-protocol.ts';
import type { Changes } from '../../domain/changes.ts';
import { duties } from '../../domain/node.ts';
import type { RootRun } from '../../domain/root-run.ts';
import type { DutyHold, NodeLink, SeenNode } from '../../ports/node-link.ts';
import { isReadTimeout, OrderlyClient, type OrderlyConfig } from './orderly-client.ts';
import { createReplicas } from './replicas.ts';

const channel = 'dke';
/** Classes of advisory locks: 'DKE' and what they are for. */
export const nodeLocks = 0x444b_4502;
const startLock = 0x444b_4504;
/** A query that takes longer has lost its server. */
const answerMs = 5_000;
/** How long a lost connection of this process may take to give its locks back, once it is ended. */
const endedMs = 2_000;
/** How often a start checks whether the one before it has ended. */
const startTurnMs = 100;
const mostChanges = 1_000;
/** The clock of a node counts while its last heartbeat is not older. */
const recentMs = 10_000;
const nowSql = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** Whether a change that a node shows is one of this database's, and still known. Its number alone may be that of another one. */
const isInHistory = (epoch: string, history: string): string =>
  `(exists (select from node_head where epoch = ${epoch} and history = ${history})
    or exists (select from node_changes where epoch = ${epoch} and history = ${history}))`;

export interface PostgresLink extends NodeLink {
  query(text: string, values?: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Starts are one after the other: what the first makes, the next finds. Held until `started`, or the connection ends. */
  starting(): Promise<void>;
  started(): Promise<void>;
}

export const openNodeLink = (config: OrderlyConfig): PostgresLink => {
  let client: OrderlyClient | undefined;
  let connecting: Promise<OrderlyClient> | undefined;
  let closed = false;
  let ownId: string | undefined;
  let heard: Parameters<NodeLink['listen']>[0] | undefined;

  const lose = (gone: pg.Client): void => {
    if (client !== gone) return;
    client = undefined;
    heard?.lost();
  };
  const onNotification = ({ payload = '' }: pg.Notification): void => {
    const [what, first = '', second = ''] = payload.split(' ');
    if (what === 'changed') heard?.changed({ epoch: Number(first), history: second });
    else if (what === 'turned') heard?.turned();
    else if (what === 'applied') heard?.applied(first, Number(second));
  };
  const connect = async (): Promise<OrderlyClient> => {
    const made = new OrderlyClient({ ...config, query_timeout: answerMs });
    made.on('error', () => lose(made));
    made.on('end', () => lose(made));
    made.on('notification', onNotification);
    try {
      await made.connect();
      await made.identify();
      await made.query(`listen ${channel}`);
      if (closed) throw new Error('the link to the other nodes is closed');
      if (ownId !== undefined) await claimAgain(made, ownId);
    } catch (error) {
      made.drop();
      throw error;
    }
    client = made;
    return made;
  };
  /**
   * The lock of the node's id went with the connection before. The server may not have seen yet that it is gone: then it is ended. When another process
   * has the lock, it is one with a copy of the data directory, which was started meanwhile.
   */
  const claimAgain = async (made: OrderlyClient, id: string): Promise<void> => {
    const until = performance.now() + endedMs;
    for (;;) {
      const { rows } = await made.query(`select pg_try_advisory_lock(${nodeLocks}, hashtext($1)) as held`, [id]);
      if (rows[0]?.held === true) return;
      const { rows: others } = await made.query(
        `select case when application_name = current_setting('application_name') then pg_terminate_backend(pid) end as ended
           from pg_locks join pg_stat_activity using (pid)
          where locktype = 'advisory' and granted and classid = ${nodeLocks} and objsubid = 2
            and objid::bigint = (hashtext($1)::bigint & 4294967295) and pg_locks.database = datid`,
        [id],
      );
      if (others.some(({ ended }) => ended === null)) {
        heard?.copied();
        throw new Error('another server runs as this node');
      }
      if (performance.now() > until) throw new Error('the lock of the node that an earlier connection had is not free');
      await setTimeout(startTurnMs);
    }
  };
  const current = (): Promise<OrderlyClient> => {
    if (client?.leadsToPrimary === true) return Promise.resolve(client);
    // Another connection has met the next primary: what this one says is not true any more.
    if (client !== undefined) {
      const old = client;
      lose(old);
      old.drop();
    }
    connecting ??= connect().finally(() => {
      connecting = undefined;
    });
    return connecting;
  };

  const query = async (
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const used = await current();
    try {
      return (await used.query(text, [...values])).rows;
    } catch (error) {
      // A server that is gone without a word: the connection has ended itself.
      if (isReadTimeout(error)) lose(used);
      throw error;
    }
  };
  const one = async (text: string, values?: readonly unknown[]): Promise<Readonly<Record<string, unknown>>> =>
    (await query(text, values))[0] ?? {};
  const toTurn = (row: Readonly<Record<string, unknown>>): RootRun | undefined =>
    typeof row.phase === 'string'
      ? { epoch: Number(row.turn), nodeId: String(row.node_id), phase: row.phase as RootRun['phase'] }
      : undefined;

  const setTurn = async (
    before: RootRun | undefined,
    after: RootRun | undefined,
    hold: DutyHold | undefined,
  ): Promise<boolean> => {
    // Under a duty, only its owner of now: one that comes late changes nothing.
    const owned =
      '($1::text is null or exists (select from node_duties where duty = $1 and node_id = $2 and fence = $3 for key share))';
    const owner = [hold?.duty ?? null, hold?.nodeId ?? null, hold?.fence ?? null];
    const same = `id = 1 and epoch = $4 and node_id = $5 and phase = $6 and ${owned}`;
    const known = before === undefined ? [] : [before.epoch, before.nodeId, before.phase];
    const next = after === undefined ? [] : [after.epoch, after.nodeId, after.phase];
    if (before === undefined) {
      if (after === undefined) return true;
      const made = await query(
        // What an earlier turn has left for other nodes is of another root key.
        `with made as (
           insert into root_turns (id, epoch, node_id, phase) select 1, $4::integer, $5::text, $6::text where ${owned}
           on conflict (id) do nothing returning id),
         cleared as (delete from root_parcels where exists (select from made))
         select id from made`,
        [...owner, ...next],
      );
      return made.length === 1;
    }
    const changed =
      after === undefined
        ? await query(`delete from root_turns where ${same} returning id`, [...owner, ...known])
        : await query(`update root_turns set epoch = $7, node_id = $8, phase = $9 where ${same} returning id`, [
            ...owner,
            ...known,
            ...next,
          ]);
    return changed.length === 1;
  };

  return {
    query,
    starting: async () => {
      // Asked again and again: the one before may be making its tables for longer than any query may take.
      while ((await one(`select pg_try_advisory_lock(${startLock}) as held`)).held !== true)
        await setTimeout(startTurnMs);
    },
    started: async () => {
      await query(`select pg_advisory_unlock(${startLock})`);
    },
    claim: async (id, directory) => {
      const { held: taken } = await one(`select pg_try_advisory_lock(${nodeLocks}, hashtext($1)) as held`, [id]);
      if (taken !== true) return { state: 'taken' };
      ownId = id;
      // A process that runs under this id may have lost its connection, and with it the lock, and go on using keys.
      const { ms } = await one(
        `select case when contact_ms = 0 then 'infinity'::float8 else (contact_ms - (${nowSql} - heartbeat_at))::float8 end as ms
           from nodes where id = $1 and state in ('active', 'draining') and directory not in ('', $2)`,
        [id, directory],
      );
      return Number(ms ?? 0) > 0 ? { state: 'copy', forMs: Number(ms) } : { state: 'claimed' };
    },
    join: async (row) => {
      const { state } = await one(
        `insert into nodes (id, name, version, state, started_at, heartbeat_at, contact_ms, epoch, root_epoch, oldest_root_epoch,
                            public_key, proof, directory)
         values ($1, $2, $3, 'active', ${nowSql}, ${nowSql}, $4, 0, $5, $6, $7, $8, $9)
         on conflict (id) do update set name = $2, version = $3, started_at = ${nowSql}, heartbeat_at = ${nowSql}, contact_ms = $4,
           epoch = 0, root_epoch = $5, oldest_root_epoch = $6, public_key = $7, proof = $8, directory = $9,
           state = case nodes.state when 'removed' then 'removed' else 'active' end
         returning state`,
        [
          row.id,
          row.name,
          row.version,
          row.contactMs,
          row.rootEpoch,
          row.oldestRootEpoch,
          row.publicKey,
          row.proof,
          row.directory,
        ],
      );
      return state === 'active';
    },
    beat: async ({ id, shown }, now) => {
      // A heartbeat need not outlive the database, and must not wait for its disk: one that hangs would make every node look dead.
      const row = await one(
        `with own as (
           update nodes set heartbeat_at = ${nowSql}, epoch = case when ${isInHistory('$2', '$3')} then $2 else 0 end,
             clock_ahead_ms = $4 - ${nowSql} where id = $1 returning state)
         select (select state from own) as state, h.epoch as epoch, h.history, t.epoch as turn, t.node_id, t.phase,
                set_config('synchronous_commit', 'off', true)
           from node_head h left join root_turns t on t.id = 1`,
        [id, shown?.epoch ?? 0, shown?.history ?? '', now],
      );
      return {
        state: (row.state ?? undefined) as SeenNode['state'] | undefined,
        last: { epoch: Number(row.epoch), history: String(row.history) },
        turn: toTurn(row),
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
      await query(
        'update nodes set root_epoch = $2, oldest_root_epoch = $3, public_key = $4, proof = $5 where id = $1',
        [id, rootEpoch, oldestRootEpoch, publicKey, proof],
      );
    },
    leave: async (id) => {
      // It is behind nothing any more.
      await query(
        `update nodes set state = case state when 'removed' then 'removed' else 'stopped' end, epoch = ${Number.MAX_SAFE_INTEGER}
          where id = $1`,
        [id],
      );
    },
    nodes: async () =>
      (await query(`select nodes.*, ${nowSql} - heartbeat_at as silent_ms from nodes order by name, id`)).map(
        (row) => ({
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
        }),
      ),
    changesSince: async (mark) => {
      // One statement sees one state: the head, and the changes that lead to it.
      const rows = await query(
        `select h.epoch as head_epoch, h.history as head_history, c.epoch, c.previous, c.history, c.previous_history, c.changes
         from node_head h left join (
           select * from node_changes where epoch > $1 order by epoch limit ${mostChanges}) c on true
         order by c.epoch`,
        [mark.epoch],
      );
      const [first] = rows;
      const head: ChangeMark = { epoch: Number(first?.head_epoch), history: String(first?.head_history) };
      const next =
        first === undefined || first.epoch === null
          ? undefined
          : { epoch: Number(first.previous), history: String(first.previous_history) };
      const how = continuationOf(mark, { head, next });
      if (how === 'lost') return 'lost';
      if (how === 'reload') return 'pruned';
      if (how === 'nothing') return { last: mark, changes: [], marks: [], more: false };
      const newest = rows.at(-1);
      return {
        last: { epoch: Number(newest?.epoch), history: String(newest?.history) },
        changes: rows.map((row) => JSON.parse(String(row.changes)) as Changes),
        marks: rows.map((row) => ({ epoch: Number(row.epoch), history: String(row.history) })),
        more: Number(newest?.epoch) < head.epoch,
      };
    },
    pruneChanges: async (olderThanMs) => {
      await query(`delete from node_changes where at < ${nowSql} - $1`, [olderThanMs]);
    },
    tellShown: async (id, { epoch, history }) => {
      await query(`select pg_notify($1, $2) where ${isInHistory('$3::bigint', '$4')}`, [
        channel,
        `applied ${id} ${epoch}`,
        epoch,
        history,
      ]);
    },
    renewDuties: async (own) => {
      // A renewal that is lost with the database's memory looks like one more.
      const rows = await query(
        `with own as (select * from unnest($1::text[], $2::text[], $3::bigint[]) as t (duty, node_id, fence)),
         renewed as (
           update node_duties set renewals = renewals + 1 from own
            where node_duties.duty = own.duty and node_duties.node_id = own.node_id and node_duties.fence = own.fence
            returning node_duties.duty)
         select node_duties.*, renewed.duty is not null as is_renewed, set_config('synchronous_commit', 'off', true)
           from node_duties left join renewed using (duty)`,
        [own.map(({ duty }) => duty), own.map(({ nodeId }) => nodeId), own.map(({ fence }) => fence)],
      );
      const known = rows.flatMap((row) => {
        const duty = duties.find((each) => each === row.duty);
        return duty === undefined ? [] : [{ row, duty }];
      });
      return {
        rows: known.map(({ row, duty }) => ({
          duty,
          nodeId: row.node_id === null ? null : String(row.node_id),
          fence: Number(row.fence),
          renewals: Number(row.renewals),
        })),
        renewed: new Set(known.filter(({ row }) => row.is_renewed === true).map(({ duty }) => duty)),
      };
    },
    takeDuty: async ({ duty, nodeId: before, fence, renewals }, nodeId) => {
      const [taken] =
        fence === 0
          ? await query(
              `insert into node_duties (duty, node_id, fence, renewals) values ($1, $2, 1, 0)
               on conflict (duty) do nothing returning fence`,
              [duty, nodeId],
            )
          : await query(
              `update node_duties set node_id = $2, fence = fence + 1, renewals = 0 where duty in
                 (select duty from node_duties
                   where duty = $1 and node_id is not distinct from $3 and fence = $4 and renewals = $5 for update skip locked)
               returning fence`,
              [duty, nodeId, before, fence, renewals],
            );
      return taken === undefined ? undefined : Number(taken.fence);
    },
    giveUpDuty: async ({ duty, nodeId, fence }) => {
      await query('update node_duties set node_id = null where duty = $1 and node_id = $2 and fence = $3', [
        duty,
        nodeId,
        fence,
      ]);
    },
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
    turn: async () => toTurn(await one('select epoch as turn, node_id, phase from root_turns where id = 1')),
    setTurn: async (before, after, hold) => {
      const changed = await setTurn(before, after, hold);
      if (changed) await query('select pg_notify($1, $2)', [channel, 'turned']);
      return changed;
    },
    putParcel: async ({ nodeId, epoch, publicKey, sealed }) => {
      await query(
        `insert into root_parcels (node_id, epoch, public_key, sealed) values ($1, $2, $3, $4)
         on conflict (node_id) do update set epoch = $2, public_key = $3, sealed = $4`,
        [nodeId, epoch, publicKey, sealed],
      );
      await query('select pg_notify($1, $2)', [channel, 'turned']);
    },
    parcel: async (nodeId) => {
      const [row] = await query('select epoch, public_key, sealed from root_parcels where node_id = $1', [nodeId]);
      return row === undefined
        ? undefined
        : { nodeId, epoch: Number(row.epoch), publicKey: row.public_key as Buffer, sealed: row.sealed as Buffer };
    },
    wipeParcel: async (nodeId) => {
      await query("update root_parcels set sealed = ''::bytea where node_id = $1", [nodeId]);
      await query('delete from root_parcels where node_id = $1', [nodeId]);
    },

    ...createReplicas(query, () => client?.primary),

    listen: (told) => {
      heard = told;
    },
    close: async () => {
      closed = true;
      await connecting?.catch(() => undefined);
      const last = client;
      client = undefined;
      await last?.end().catch(() => undefined);
    },
  };
};
