// A pool of one connection, for the writer. What makes it more than that: a transaction stays on the connection that it was started
// on. When that is lost, everything up to the transaction's end fails, instead of continuing on its own on a fresh one.
//
// The database ends a transaction in which nothing is asked for three seconds, so that a node that stands still gives the writer's lock back. A node that
// is busy between two statements asks for nothing once a second, which one that stands still cannot.

import type { PostgresPool, PostgresPoolClient } from 'kysely';
import type pg from 'pg';
import { TransactionLost } from './errors.ts';
import type { Row } from './link-query.ts';
import { OrderlyClient, type OrderlyConfig } from './orderly-client.ts';

const aliveEveryMs = 1_000;

export interface OneConnection extends PostgresPool {
  /**
   * Begins a transaction, on a fresh connection when the old one is gone. Answers the last
   * statement's first row, which names its `backend`.
   */
  begin(statements: string): Promise<Row | undefined>;
  /** On the connection of the transaction. */
  query(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
  /** Answers false when the database has undone it instead. */
  commit(): Promise<boolean>;
  rollback(): Promise<void>;
}

export const openOneConnection = (options: OrderlyConfig): OneConnection => {
  let client: OrderlyClient | undefined;
  /** The one that the transaction runs on. */
  let pinned: OrderlyClient | undefined;
  let alive: NodeJS.Timeout | undefined;

  const open = async (): Promise<OrderlyClient> => {
    if (client?.isCurrent === true) return client;
    client?.drop();
    client = undefined;
    const made = new OrderlyClient(options);
    const gone = (): void => {
      if (client === made) client = undefined;
    };
    made.on('error', gone);
    made.on('end', gone);
    await made.open();
    client = made;
    return made;
  };
  const current = async (): Promise<OrderlyClient> => {
    if (pinned === undefined) return open();
    if (pinned !== client) throw new TransactionLost('the connection was lost during a transaction');
    return pinned;
  };
  const unpin = (): void => {
    pinned = undefined;
    clearInterval(alive);
  };
  const pin = (used: OrderlyClient): void => {
    pinned = used;
    let asked = false;
    alive = setInterval(() => {
      if (asked) return;
      asked = true;
      used
        .query('select')
        .catch(() => undefined)
        .finally(() => {
          asked = false;
        });
    }, aliveEveryMs);
    alive.unref();
  };
  /** Statements that end a transaction end the pinning, whatever comes of them. */
  const end = async (statement: string): Promise<pg.QueryResult> => {
    try {
      return await (await current()).query(statement);
    } finally {
      unpin();
    }
  };
  /** Kysely keeps what it knows of a connection by this object. */
  const faces = new WeakMap<OrderlyClient, PostgresPoolClient>();

  return {
    options,
    connect: async () => {
      const used = await current();
      let face = faces.get(used);
      if (face === undefined) {
        face = { query: used.query.bind(used), release: () => undefined } as unknown as PostgresPoolClient;
        faces.set(used, face);
      }
      return face;
    },
    begin: async (statements) => {
      const used = await open();
      pin(used);
      try {
        const answered = (await used.query(statements)) as pg.QueryResult | pg.QueryResult[];
        const row = (Array.isArray(answered) ? answered.at(-1) : answered)?.rows[0] as Row | undefined;
        used.requireBackend(row?.backend);
        return row;
      } catch (error) {
        unpin();
        // Half begun: it is not used again.
        client = undefined;
        used.drop();
        throw error;
      }
    },
    query: async (text, values) => (await (await current()).query(text, [...values])).rows,
    commit: async () => {
      if (pinned?.leadsToPrimary === false) {
        pinned.drop();
        unpin();
        throw new TransactionLost('another server is the primary now');
      }
      return (await end('commit')).command === 'COMMIT';
    },
    rollback: async () => {
      // What the connection took with it needs no end.
      if (pinned !== undefined) await end('rollback');
    },
    end: async () => {
      const last = client;
      client = undefined;
      await last?.end();
    },
  };
};
