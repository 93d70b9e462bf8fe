// A pool of one connection, for the writer. What makes it more than that: a transaction stays on
// the connection that it was started on. When that is lost, everything up to the transaction's end
// fails, instead of continuing on its own on a fresh one.
//
// The database ends a transaction in which nothing is asked for three seconds, so that a node that
// stands still gives the writer's lock back. A node that is busy between two statements asks for
// nothing once a second, which one that stands still cannot.
//
// A transaction that the database undoes for another one's sake (a deadlock) is done again here, a
// few times: the same statements from its beginning. Each must be answered as it was before, and
// the head that the beginning reads must be the same. Then who asked them cannot tell the
// difference, and no unit of work runs twice. With any other answer the transaction is lost.

import { isDeepStrictEqual } from 'node:util';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import type pg from 'pg';
import { isUndone, TransactionLost } from './error-kinds.ts';
import type { Row } from './link-query.ts';
import { OrderlyClient, type OrderlyConfig } from './orderly-client.ts';
import { createReadOnce } from './read-once.ts';

const aliveEveryMs = 1_000;

/**
 * How often one transaction is done again, and the largest that is: longer ones are not kept in
 * memory.
 */
const mostAgain = 3;
const mostAsked = { statements: 1_000, rows: 10_000 };

/** What a transaction has asked so far, with the answers. */
interface Asked {
  readonly beginning: { readonly statements: string; readonly row: Row | undefined };
  readonly done: { readonly text: string; readonly values: unknown[]; readonly answer: pg.QueryResult }[];
  rows: number;
  left: number;
}

const firstRow = (answered: pg.QueryResult | pg.QueryResult[]): Row | undefined =>
  (Array.isArray(answered) ? answered.at(-1) : answered)?.rows[0] as Row | undefined;

/**
 * Throws `error` where an answer is another one. What this throws of another kind says nothing
 * either: the transaction is lost.
 */
const askAgain = async (used: OrderlyClient, { beginning, done }: Asked, error: unknown): Promise<void> => {
  await used.query('rollback');
  const row = firstRow((await used.query(beginning.statements)) as pg.QueryResult | pg.QueryResult[]);
  if (!isDeepStrictEqual(row, beginning.row)) throw error;
  for (const { text, values, answer } of done) {
    const { rows, rowCount } = await used.query(text, values);
    if (rowCount !== answer.rowCount || !isDeepStrictEqual(rows, answer.rows)) throw error;
  }
};

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

/** Asks the statements of one transaction after the other. */
const createAsking = () => {
  /** Undefined: the transaction is not done again. */
  let asked: Asked | undefined;
  const reads = createReadOnce();
  return {
    begin: (statements: string, row: Row | undefined): void => {
      reads.forget();
      asked = { beginning: { statements, row }, done: [], rows: 0, left: mostAgain };
    },
    end: (): void => {
      reads.forget();
      asked = undefined;
    },
    /**
     * A statement; when its transaction is undone, all that were before it, and then this one,
     * again.
     */
    ask: async (used: OrderlyClient, text: string, values: unknown[]): Promise<pg.QueryResult> => {
      const known = reads.find(text, values);
      if (known !== undefined) return known;
      let undone: unknown;
      for (;;)
        try {
          if (undone !== undefined && asked !== undefined) await askAgain(used, asked, undone);
          const answer = await used.query(text, values);
          reads.saw(text, values, answer);
          if (asked === undefined) return answer;
          asked.rows += answer.rows.length;
          asked.done.push({ text, values, answer });
          if (asked.done.length > mostAsked.statements || asked.rows > mostAsked.rows) asked = undefined;
          return answer;
        } catch (error) {
          if (asked !== undefined && isUndone(error) && error !== undone && asked.left > 0) {
            asked.left -= 1;
            undone = error;
            continue;
          }
          asked = undefined;
          reads.forget();
          // Other units of the transaction have seen answers that are no longer true.
          if (undone !== undefined) used.drop();
          throw error;
        }
    },
  };
};

export const openOneConnection = (options: OrderlyConfig): OneConnection => {
  let client: OrderlyClient | undefined;
  /** The one that the transaction runs on. */
  let pinned: OrderlyClient | undefined;
  let alive: NodeJS.Timeout | undefined;
  const asking = createAsking();

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
    asking.end();
    clearInterval(alive);
  };
  const pin = (used: OrderlyClient): void => {
    pinned = used;
    let isAsked = false;
    alive = setInterval(() => {
      if (isAsked) return;
      isAsked = true;
      used
        .query('select')
        .catch(() => undefined)
        .finally(() => {
          isAsked = false;
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
        const query = (text: unknown, values: unknown) =>
          typeof text === 'string' && pinned === used
            ? asking.ask(used, text, [...((values as readonly unknown[] | undefined) ?? [])])
            : used.query(text as string, values as unknown[]);
        face = { query, release: () => undefined } as unknown as PostgresPoolClient;
        faces.set(used, face);
      }
      return face;
    },
    begin: async (statements) => {
      const used = await open();
      pin(used);
      try {
        const row = firstRow((await used.query(statements)) as pg.QueryResult | pg.QueryResult[]);
        used.requireBackend(row?.backend);
        asking.begin(statements, row);
        return row;
      } catch (error) {
        unpin();
        // Half begun: it is not used again.
        client = undefined;
        used.drop();
        throw error;
      }
    },
    query: async (text, values) => (await asking.ask(await current(), text, [...values])).rows,
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
