// A pool of one connection, for the writer. What makes it more than that: a transaction stays on the connection that it was begun
// on. When that is lost, everything up to the transaction's end fails, instead of going on by itself on a fresh one.

import type { PostgresPool, PostgresPoolClient } from 'kysely';
import type pg from 'pg';
import { OrderlyClient } from './orderly-client.ts';

/** The connection that a transaction ran on is gone; the transaction was not committed. */
export class TransactionLost extends Error {
  override readonly name = 'TransactionLost';
}

export interface OneConnection extends PostgresPool {
  /** Begins a transaction, on a fresh connection when the old one is gone. Answers the last statement's first row. */
  begin(statements: string): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** On the connection of the transaction. */
  query(text: string, values: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Answers false when the database has undone it instead. */
  commit(): Promise<boolean>;
  rollback(): Promise<void>;
}

export const openOneConnection = (options: pg.ClientConfig): OneConnection => {
  let client: pg.Client | undefined;
  /** The one that the transaction runs on. */
  let pinned: pg.Client | undefined;

  const open = async (): Promise<pg.Client> => {
    if (client !== undefined) return client;
    const made = new OrderlyClient(options);
    const gone = (): void => {
      if (client === made) client = undefined;
    };
    made.on('error', gone);
    made.on('end', gone);
    await made.connect();
    client = made;
    return made;
  };
  const current = async (): Promise<pg.Client> => {
    if (pinned === undefined) return open();
    if (pinned !== client) throw new TransactionLost('the connection was lost during a transaction');
    return pinned;
  };
  /** Statements that end a transaction end the pinning, whatever comes of them. */
  const end = async (statement: string): Promise<pg.QueryResult> => {
    try {
      return await (await current()).query(statement);
    } finally {
      pinned = undefined;
    }
  };
  /** Kysely keeps what it knows of a connection by this object. */
  const faces = new WeakMap<pg.Client, PostgresPoolClient>();

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
      pinned = used;
      try {
        const answered = (await used.query(statements)) as pg.QueryResult | pg.QueryResult[];
        return (Array.isArray(answered) ? answered.at(-1) : answered)?.rows[0];
      } catch (error) {
        pinned = undefined;
        // Half begun: it is not used again.
        client = undefined;
        await used.end().catch(() => undefined);
        throw error;
      }
    },
    query: async (text, values) => (await (await current()).query(text, [...values])).rows,
    commit: async () => (await end('commit')).command === 'COMMIT',
    rollback: async () => {
      await end('rollback');
    },
    end: async () => {
      const last = client;
      client = undefined;
      await last?.end();
    },
  };
};
