// What nodes say to one another (ports/node-link.ts), on PostgreSQL: one connection of its own, in
// no transaction, that listens, beats and has an advisory lock, which goes with the connection: the
// proof that no other process has the node's id.

import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { RowAuthenticator } from '../../../../base/row-jobs.ts';
import { isSameDirectory } from '../../../../domain/host.ts';
import type { NodeLink } from '../../../../ports/node-link.ts';
import { createChangeRows } from './change-rows.ts';
import { createDutyRows } from './duty-rows.ts';
import { ConnectionLost } from './error-kinds.ts';
import { channel, nodeLocks, nowSql, type Query, type Row } from './link-query.ts';
import { createNodeRows } from './node-rows.ts';
import { isReadTimeout, OrderlyClient, type OrderlyConfig } from './orderly-client.ts';
import { createReplicas } from './replicas.ts';
import { createRootRows } from './root-rows.ts';

const startLock = 0x444b_4504;
/** A query that takes longer has lost its server. */
const answerMs = 5_000;
/** How long a lost connection of this process may take to give its locks back, once it is ended. */
const endedMs = 2_000;
/** How often a start checks whether the one before it has ended. */
const startTurnMs = 100;

export interface PostgresLink extends NodeLink {
  readonly query: Query;
  /**
   * Starts are one after the other: what the first makes, the next finds. Held until `started`, or
   * the connection ends.
   */
  starting(): Promise<void>;
  started(): Promise<void>;
}

type Heard = Parameters<NodeLink['listen']>[0];

/**
 * The lock of the node's id went with the connection before. The server may not have seen yet that
 * it is gone: then it is ended. When another process has the lock, it is one with a copy of the
 * data directory, which was started in the meantime.
 */
const claimAgain = async (made: OrderlyClient, id: string, onCopy: () => void): Promise<void> => {
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
      onCopy();
      throw new ConnectionLost('another server runs as this node');
    }
    if (performance.now() > until)
      throw new ConnectionLost('the lock of the node that an earlier connection had is not free');
    await setTimeout(startTurnMs);
  }
};

/** The connection, opened again when it was lost, and what comes over it. */
const createLinkConnection = (config: OrderlyConfig) => {
  let client: OrderlyClient | undefined;
  let connecting: Promise<OrderlyClient> | undefined;
  let closed = false;
  let ownId: string | undefined;
  let heard: Heard | undefined;

  const lose = (gone: pg.Client): void => {
    if (client !== gone) return;
    client = undefined;
    heard?.lost();
  };
  const onNotification = ({ payload = '' }: pg.Notification): void => {
    const [what, first = '', second = ''] = payload.split(' ');
    if (what === 'changed') heard?.changed({ epoch: Number(first), history: second });
    else if (what === 'root-run') heard?.rootRunChanged();
    else if (what === 'applied') heard?.applied(first, Number(second));
  };
  const connect = async (): Promise<OrderlyClient> => {
    const made = new OrderlyClient({ ...config, query_timeout: answerMs });
    made.on('error', () => lose(made));
    made.on('end', () => lose(made));
    made.on('notification', onNotification);
    try {
      await made.open();
      await made.query(`listen ${channel}`);
      if (closed) throw new ConnectionLost('the link to the other nodes is closed');
      if (ownId !== undefined) await claimAgain(made, ownId, () => heard?.copied());
    } catch (error) {
      made.drop();
      throw error;
    }
    client = made;
    return made;
  };
  const current = (): Promise<OrderlyClient> => {
    if (client?.leadsToPrimary === true) return Promise.resolve(client);
    // Another connection has met the next primary: what this one says is no longer true.
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

  return {
    current,
    lose,
    primary: () => client?.primary,
    /** From now on, a connection that is opened has the lock of this node. */
    own: (id: string): void => {
      ownId = id;
    },
    listen: (told: Heard): void => {
      heard = told;
    },
    close: async (): Promise<void> => {
      closed = true;
      await connecting?.catch(() => undefined);
      const last = client;
      client = undefined;
      await last?.end().catch(() => undefined);
    },
  };
};

export const openNodeLink = (
  config: OrderlyConfig & { readonly user: string },
  authenticate: RowAuthenticator,
): PostgresLink => {
  const connection = createLinkConnection(config);
  const query: Query = async (text, values = []) => {
    const used = await connection.current();
    try {
      return (await used.query(text, [...values])).rows;
    } catch (error) {
      // A server that is gone without a word: the connection has ended itself.
      if (isReadTimeout(error)) connection.lose(used);
      throw error;
    }
  };
  const one = async (text: string, values?: readonly unknown[]): Promise<Row> => (await query(text, values))[0] ?? {};

  return {
    query,
    starting: async () => {
      // Asked again and again: the one before may be making its tables for longer than any query
      // may take.
      while ((await one(`select pg_try_advisory_lock(${startLock}) as held`)).held !== true)
        await setTimeout(startTurnMs);
    },
    started: async () => {
      await query(`select pg_advisory_unlock(${startLock})`);
    },
    claim: async (id, directory) => {
      const { held: taken } = await one(`select pg_try_advisory_lock(${nodeLocks}, hashtext($1)) as held`, [id]);
      if (taken !== true) return { state: 'taken' };
      connection.own(id);
      // A process that runs under this id may have lost its connection, and with it the lock, and
      // continue to use keys.
      const { ms, directory: before } = await one(
        `select directory, case when contact_ms = 0 then 'infinity'::float8 else (contact_ms - (${nowSql} - heartbeat_at))::float8 end as ms
           from nodes where id = $1 and state in ('active', 'draining')`,
        [id],
      );
      return Number(ms ?? 0) > 0 && !isSameDirectory(String(before), directory)
        ? { state: 'copy', forMs: Number(ms) }
        : { state: 'claimed' };
    },

    ...createNodeRows(query),
    ...createChangeRows(query, authenticate),
    ...createDutyRows(query),
    ...createRootRows(query),
    ...createReplicas(query, config.user, connection.primary),

    listen: connection.listen,
    close: connection.close,
  };
};
